"""Reference programs of the publication's trials, where they lie beside the repository, and a workspace for stages."""

from functools import partial
from pathlib import Path

import pytest

from tests import workspace as common
from tests.workspace import Workspace

shared_folder = partial(common.shared_folder, name="swiftcode")


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test judges and measures anew, but programs that were compiled stay compiled for the session."""
    compiled = tmp_path_factory.getbasetemp() / "programs"
    compiled.mkdir(exist_ok=True)
    folder = tmp_path_factory.mktemp("cache")
    (folder / "programs").symlink_to(compiled)
    monkeypatch.setenv("METHODWORKS_CACHE", str(folder))


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    return Workspace.enter(tmp_path, "swiftcode", monkeypatch)
