"""Reference data of the publications, where they lie beside the repository, and a workspace for stages."""

import json
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests import workspace as common
from tests.workspace import Workspace, read_arrays

shared_folder = partial(common.shared_folder, name="ldplc")


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


@pytest.fixture(scope="session")
def reference_data():
    return lambda name: _reference_data(shared_folder("data") / name)


@pytest.fixture(scope="session")
def golden():
    return lambda name: read_arrays(shared_folder("golden") / f"{name}.npz")


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


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    return Workspace.enter(tmp_path, "label_completion", monkeypatch)
