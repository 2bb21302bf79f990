"""Reference data of the publications, where they lie beside the repository, and a workspace for stages."""

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import hypothesis
import numpy as np
import pandas as pd
import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = REPOSITORY.parent / "shared"

# The same examples in every run: a failure can be repeated, and a passing suite stays passing.
hypothesis.settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=25, database=None, print_blob=False
)
hypothesis.settings.load_profile("steady")


def shared_folder(kind: str) -> Path:
    """../shared/<kind>/ldplc beside the repository; the test is skipped where it is absent."""
    folder = SHARED / kind / "ldplc"
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent: golden tests need it")
    return folder


@dataclass(frozen=True)
class ReferenceData:
    """One reference data set: answers (workers as a categorical in the stored order), features, truth, schema."""

    answers: pd.DataFrame
    features: pd.DataFrame
    nominal: list[str]
    truth: np.ndarray
    schema: dict


@cache
def _reference_data(folder: Path) -> ReferenceData:
    schema = json.loads((folder / "schema.json").read_text(encoding="utf-8"))
    answers = pd.read_parquet(folder / "answers.parquet")
    answers["worker"] = pd.Categorical(answers["worker"], categories=schema["workers"])
    features = pd.read_parquet(folder / "features.parquet").set_index("task")
    nominal = [attribute["name"] for attribute in schema["attributes"] if attribute["type"] == "nominal"]
    truth = pd.read_parquet(folder / "truth.parquet")["label"].to_numpy()
    return ReferenceData(answers, features, nominal, truth, schema)


@cache
def _golden(folder: Path, name: str) -> dict[str, np.ndarray]:
    with np.load(folder / f"{name}.npz", allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.fixture(scope="session")
def reference_data():
    return lambda name: _reference_data(shared_folder("data") / name)


@pytest.fixture(scope="session")
def golden():
    return lambda name: _golden(shared_folder("golden"), name)


@pytest.fixture(scope="session")
def toy() -> dict:
    return json.loads((shared_folder("golden") / "toy.json").read_text(encoding="utf-8"))


@pytest.fixture
def answers() -> pd.DataFrame:
    """Four tasks of six are answered, by three workers of whom one gave a single class."""
    rows = [("a", "u", 0), ("b", "u", 0), ("d", "u", 1), ("a", "v", 0), ("c", "v", 0), ("d", "v", 1), ("d", "w", 1)]
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


@pytest.fixture
def features() -> pd.DataFrame:
    """Two groups of three tasks."""
    return pd.DataFrame({"x": [0.0, 1, 0, 4, 5, 4], "y": [0.0, 0, 1, 4, 4, 6]}, index=list("abcdef"))


@dataclass
class Workspace:
    """An empty repository with a params.yaml, which is also the working directory."""

    root: Path

    def parameters(self, **sections: dict) -> None:
        content = yaml.safe_dump({"label_completion": sections})
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


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.chdir(tmp_path)
    for name in ("METHODWORKS_WORKERS", "METHODWORKS_SCHEDULER"):
        monkeypatch.delenv(name, raising=False)
    return Workspace(tmp_path)
