"""What the tests of all methods share: reference data beside the repository, and an empty repository for stages."""

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED = REPOSITORY.parent / "shared"


def shared_folder(kind: str, name: str) -> Path:
    """../shared/<kind>/<name> beside the repository; the test is skipped where it is absent."""
    folder = SHARED / kind / name
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent: reference data that the project may not contain, because of their licences")
    return folder


@cache
def read_arrays(file: Path) -> dict[str, np.ndarray]:
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


@dataclass
class Workspace:
    """An empty repository with a params.yaml, which is also the working directory."""

    root: Path
    method: str

    def parameters(self, **sections: dict) -> None:
        content = yaml.safe_dump({self.method: sections})
        (self.root / "params.yaml").write_text(content, encoding="utf-8")

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def run(self, stage: ModuleType, *arguments: str) -> tuple[int, str]:
        """Run a stage's command line in this process; (exit code, what it said on stderr)."""
        function = getattr(stage, stage.__name__.rsplit(".", 1)[-1])
        said, before = io.StringIO(), sys.argv
        sys.argv = [stage.__name__, *map(str, arguments)]
        try:
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
                function.run()
        except SystemExit as end:
            return int(end.code or 0), said.getvalue()
        finally:
            sys.argv = before
        return 0, said.getvalue()

    def shell(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        """Run ``python -m …`` in a process of its own."""
        path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
        return subprocess.run(
            [sys.executable, "-m", *map(str, arguments)],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": path, **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )

    def files(self) -> set[str]:
        """All files and folders, half-written ones and hidden ones included."""
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*")}

    @classmethod
    def enter(cls, root: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> "Workspace":
        monkeypatch.chdir(root)
        for name in ("METHODWORKS_WORKERS", "METHODWORKS_SCHEDULER"):
            monkeypatch.delenv(name, raising=False)
        return cls(root, method)
