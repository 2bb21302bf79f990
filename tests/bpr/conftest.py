"""Reference data of the publication, where they lie beside the repository, and a workspace for stages."""

from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from tasks.bpr.dataset import Panel
from tasks.bpr.public import public_panel
from tests import workspace as common
from tests.workspace import Workspace, read_arrays

shared_folder = partial(common.shared_folder, name="bpr")


@pytest.fixture(scope="session")
def golden():
    """The arrays of one golden file by its name."""
    return lambda name: read_arrays(shared_folder("golden") / f"{name}.npz")


@pytest.fixture(scope="session")
def cook() -> Panel:
    """Fatal overdoses of 1328 tracts of Cook County: training 2016–19, validation 2020, test 2021–22."""
    name = "cook_county_overdose"
    return public_panel(pd.read_parquet(shared_folder("data") / name / "data.parquet"), name)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    return Workspace.enter(tmp_path, "bpr", monkeypatch)
