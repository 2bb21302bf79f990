"""One data set of this method as a folder of files; written by ingest and simulate, read by all later stages."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from tasks.label_completion.answers import argsort_identifiers
from tasks.label_completion.schemas import ANSWERS, TASK, TRUTH
from tasks.stage import UserError
from tasks.tables import read_json, read_table, write_json, write_table


@dataclass(frozen=True)
class Dataset:
    """Attributes:
    answers: columns repeat, task, worker, label; repeat 0 alone for real answers.
    features: index task, in instance order; nominal columns are categoricals in their declared order.
    truth: label by task, missing where unknown.
    classes: class names in the order that breaks ties.
    origin: where it comes from, in words.
    simulated: whether the answers are of simulated workers.
    """

    answers: pd.DataFrame
    features: pd.DataFrame
    truth: pd.Series
    classes: list[str]
    origin: str
    simulated: bool = False

    @property
    def nominal(self) -> list[str]:
        return [c for c, dtype in self.features.dtypes.items() if isinstance(dtype, pd.CategoricalDtype)]


def write_dataset(folder: Path, dataset: Dataset) -> None:
    """Write answers.parquet, features.parquet, truth.parquet, schema.json into a new folder."""
    folder.mkdir()
    answers = dataset.answers.sort_values(["repeat", "task", "worker"], kind="stable", ignore_index=True)
    write_table(folder / "answers.parquet", answers, ANSWERS)
    columns = [(c, pa.string() if c in dataset.nominal else pa.float64()) for c in dataset.features.columns]
    features = dataset.features.astype(dict.fromkeys(dataset.nominal, "str")).copy()  # a copy is in one piece
    features = features.rename_axis("task").reset_index()
    write_table(folder / "features.parquet", features, pa.schema([*TASK, *columns]))
    truth = dataset.truth.reindex(dataset.features.index).rename_axis("task").rename("label").reset_index()
    write_table(folder / "truth.parquet", truth, TRUTH)
    workers = pd.Index(sorted(map(str, dataset.answers["worker"].unique())), dtype="str")
    schema = {
        "origin": dataset.origin,
        "simulated": dataset.simulated,
        "classes": dataset.classes,
        "workers": workers[argsort_identifiers(workers)].tolist(),
        "nominal": {c: list(dataset.features[c].cat.categories) for c in dataset.nominal},
    }
    write_json(folder / "schema.json", schema)


def read_dataset(folder: Path) -> Dataset:
    """Read a folder written by `write_dataset`. Raises UserError where a file or column is missing or damaged."""
    for name in ("answers.parquet", "features.parquet", "truth.parquet", "schema.json"):
        if not (folder / name).exists():
            raise UserError(f"{folder}: the file {name} is missing")
    schema = read_json(folder / "schema.json")
    answers = read_table(folder / "answers.parquet", ANSWERS)
    answers["worker"] = answers["worker"].cat.set_categories(schema["workers"])
    answers["label"] = answers["label"].cat.set_categories(schema["classes"])
    features = read_table(folder / "features.parquet", TASK, more_columns=True).set_index("task")
    for column, values in schema["nominal"].items():
        features[column] = pd.Categorical(features[column], categories=values)
    truth = read_table(folder / "truth.parquet", TRUTH).set_index("task")["label"]
    return Dataset(answers, features, truth, schema["classes"], schema["origin"], schema["simulated"])


def repeats(answers: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """The answers of each repeat, without the column."""
    return {int(r): part.drop(columns="repeat") for r, part in answers.groupby("repeat", sort=True)}


def truth_codes(dataset: Dataset) -> np.ndarray:
    """Class position of each task in instance order, int64 (N,); −1 where unknown."""
    return pd.Index(dataset.classes).get_indexer(dataset.truth.reindex(dataset.features.index))
