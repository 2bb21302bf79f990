"""Parameters from the run form: the run happens in a git worktree and is kept as a DVC experiment.

The worktree holds HEAD plus the uncommitted changes of tracked files, shares the repository's DVC cache, and is
removed in all cases; ``dvc exp show``, ``exp apply`` and ``exp push`` see the result like any other experiment.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import filelock
from pydantic import BaseModel

from tasks.stage import UserError

Changes = dict[tuple[str, ...], Any]


def changes(given: BaseModel, current: BaseModel) -> Changes:
    """The values set in ``given`` that differ from ``current``, by key path; what is not set keeps its value."""
    found: Changes = {}
    values = given.model_dump(mode="json")
    for key in sorted(given.model_fields_set):
        new, old = getattr(given, key), getattr(current, key)
        if isinstance(new, BaseModel) and type(new) is type(old):
            found |= {(key, *path): value for path, value in changes(new, old).items()}
        elif new != old:
            found[(key,)] = values[key]
    return found


def name(method: str, changed: Changes, run_id: str) -> str:
    """Readable and unique: the method, what was changed, and the end of the flow run's id."""
    keys = "-".join(path[-1] for path in list(changed)[:3])
    return f"{method}-{keys}-{str(run_id)[-8:]}"


def edit(file: Path, section: str, changed: Changes) -> None:
    """Set the changed values in params.yaml; comments and layout stay."""
    from dvc.utils.serialize import modify_yaml

    with modify_yaml(file) as data:
        for path, value in changed.items():
            node = data[section]
            for key in path[:-1]:
                node = node.setdefault(key, {})
            node[path[-1]] = value


@contextlib.contextmanager
def workspace(root: Path, name: str) -> Iterator[Path]:
    """A worktree of ``root`` under .dvc/tmp, removed at the end; those of killed runs are removed first.

    It lies at the repository's own absolute path below a folder of its own, so that ``../x`` stays inside there and
    can be linked to what it means in the repository.
    """
    home = root / ".dvc/tmp/flows"
    home.mkdir(parents=True, exist_ok=True)
    _remove_dead(root, home)
    folder = home / name
    tree = folder / "root" / root.relative_to(root.anchor)
    with filelock.FileLock(home / f"{name}.lock"):
        try:
            tree.parent.mkdir(parents=True)
            _git(root, "worktree", "add", "--quiet", "--detach", str(tree), "HEAD")
            _git(tree, "read-tree", "--reset", "-u", _tracked_changes(root, folder / "index"))
            _share_cache(root, tree)
            yield tree
        finally:
            _remove(root, folder)


def link_inputs(root: Path, tree: Path, method: str, stages: list) -> None:
    """Link files that git does not carry: paths among the method's parameters, and plain dependencies of stages.

    Only what is missing in the worktree, and never what a stage makes: that would be written through the link.
    """
    import yaml

    parameters = yaml.safe_load((tree / "params.yaml").read_text(encoding="utf-8"))[method]
    outs = [Path(out) for stage in stages for out in stage.outs]
    for text in {*_texts(parameters), *(dep for stage in stages for dep in stage.deps)}:
        path = Path(os.path.normpath(text))
        made = any(out == path or out in path.parents or path in out.parents for out in outs)
        with contextlib.suppress(OSError, ValueError):  # a text that is no path at all
            if not path.is_absolute() and not made and (root / path).exists() and not (tree / path).exists():
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                (tree / path).symlink_to((root / path).resolve())


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict | list):
        for child in node.values() if isinstance(node, dict) else node:
            yield from _texts(child)


def _tracked_changes(root: Path, index: Path) -> str:
    """The tree of HEAD plus the uncommitted changes of tracked files, written with an index of its own."""
    shutil.copy(root / _git(root, "rev-parse", "--git-path", "index"), index)
    alone = {"GIT_INDEX_FILE": str(index)}
    _git(root, "add", "--update", ":/", **alone)
    return _git(root, "write-tree", **alone)


def _share_cache(root: Path, tree: Path) -> None:
    from dvc.repo import Repo

    local = root / ".dvc/config.local"
    if local.exists():
        shutil.copy(local, tree / ".dvc/config.local")
    with Repo(str(root)) as repo:
        cache = repo.cache.local_cache_dir
    with Repo(str(tree)) as repo, repo.config.edit("local") as config:
        config["cache"]["dir"] = cache


def _remove_dead(root: Path, home: Path) -> None:
    for file in home.glob("*.lock"):
        lock = filelock.FileLock(file)
        with contextlib.suppress(filelock.Timeout), lock.acquire(timeout=0):
            _remove(root, file.with_suffix(""))


def _remove(root: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_name(f"{folder.name}.lock").unlink(missing_ok=True)
    _git(root, "worktree", "prune")


def _git(folder: Path, *arguments: str, **environment: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=folder, env=os.environ | environment, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{' '.join(command)}: {' '.join(done.stderr.split())}")
    return done.stdout.strip()
