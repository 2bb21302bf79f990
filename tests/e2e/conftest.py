"""A clone of the project as it stands in the working tree, with small parameters and own data."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


class Clone:
    """A temporary repository with the project's files."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, *command: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        result = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=self.root,
            env={**os.environ, "PATH": path, "PREFECT_HOME": str(self.root / ".prefect"), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if check:
            assert result.returncode == 0, result.stdout + result.stderr
        return result

    def git(self, *command: str) -> str:
        who = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
        return subprocess.run(["git", *who, *command], cwd=self.root, check=True, capture_output=True, text=True).stdout

    def parameters(self, change, method: str = "label_completion") -> None:
        file = self.root / "params.yaml"
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        change(content[method])
        file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def project_copy(root: Path) -> Clone:
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in files.stdout.splitlines():
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
    clone = Clone(root)
    clone.git("init", "-q", "-b", "main")
    clone.git("add", "-A")
    clone.git("commit", "-qm", "project")
    return clone


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Clone:
    return project_copy(tmp_path_factory.mktemp("clone") / "project")
