"""Reference data of the publication, where they lie beside the repository, and a workspace for stages."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import yaml

from tests.label_completion import conftest as shared

# The same examples in every run: a failure can be repeated, and a passing suite stays passing.
hypothesis.settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=25, database=None, print_blob=False
)
hypothesis.settings.load_profile("steady")


def shared_folder(kind: str) -> Path:
    """../shared/<kind>/bpr beside the repository; the test is skipped where it is absent."""
    folder = shared.SHARED / kind / "bpr"
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent: golden tests need it")
    return folder


@cache
def _golden(folder: Path, name: str) -> dict[str, np.ndarray]:
    with np.load(folder / f"{name}.npz", allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.fixture(scope="session")
def golden():
    """The arrays of one golden file by its name."""
    return lambda name: _golden(shared_folder("golden"), name)


@dataclass
class Workspace(shared.Workspace):
    """An empty repository with a params.yaml, which is also the working directory."""

    def parameters(self, **sections: dict) -> None:
        (self.root / "params.yaml").write_text(yaml.safe_dump({"bpr": sections}), encoding="utf-8")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.chdir(tmp_path)
    for name in ("METHODWORKS_WORKERS", "METHODWORKS_SCHEDULER"):
        monkeypatch.delenv(name, raising=False)
    return Workspace(tmp_path)
