"""Reference data of the publication, where they lie beside the repository, and a workspace for stages."""

from functools import partial
from pathlib import Path

import pytest

from tests import workspace as common
from tests.workspace import Workspace

shared_folder = partial(common.shared_folder, name="prm")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    return Workspace.enter(tmp_path, "prm", monkeypatch)
