"""What must hold between the stages of label completion; checked by tasks/gate.py."""

from pathlib import Path

import great_expectations.expectations as gxe
import pandas as pd

from tasks.gate import Check
from tasks.label_completion.dataset import Dataset, read_dataset
from tasks.label_completion.schemas import COMPLETED, VOTES
from tasks.tables import read_table


def _never_null(*columns: str) -> list:
    return [gxe.ExpectColumnValuesToNotBeNull(column=column) for column in columns]


def _unique(*columns: str) -> gxe.ExpectCompoundColumnsToBeUnique:
    return gxe.ExpectCompoundColumnsToBeUnique(column_list=list(columns))


def answers(dataset: Path) -> list[Check]:
    """Before completion: one answer per worker and task, known tasks and classes, usable features, one truth per task."""
    data = read_dataset(dataset)
    tasks = list(data.features.index)
    features = data.features.rename_axis("task").reset_index()
    varying = pd.DataFrame({"varying_columns": [int((data.features.nunique(dropna=True) > 1).sum())]})
    return [
        Check(
            "answers",
            data.answers,
            [
                *_never_null("repeat", "task", "worker", "label"),
                _unique("repeat", "task", "worker"),
                gxe.ExpectColumnValuesToBeInSet(column="task", value_set=tasks),
                gxe.ExpectColumnValuesToBeInSet(column="label", value_set=data.classes),
                gxe.ExpectColumnUniqueValueCountToBeBetween(column="label", min_value=2),
                gxe.ExpectColumnUniqueValueCountToBeBetween(column="worker", min_value=2),
            ],
        ),
        Check(
            "features",
            features,
            [
                *_never_null("task"),
                gxe.ExpectColumnValuesToBeUnique(column="task"),
                gxe.ExpectTableColumnCountToBeBetween(min_value=2),
            ],
        ),
        # without a column that varies all tasks are equally near, and propagation only adds noise
        Check("features that vary", varying, [gxe.ExpectColumnMinToBeBetween(column="varying_columns", min_value=1)]),
        Check(
            "truth",
            data.truth.rename_axis("task").reset_index(),
            [
                *_never_null("task"),
                gxe.ExpectColumnValuesToBeUnique(column="task"),
                gxe.ExpectColumnValuesToBeInSet(column="label", value_set=data.classes),
            ],
        ),
    ]


def completed(dataset: Path, completed: Path, votes: Path) -> list[Check]:
    """After completion: observed labels untouched, one label per cell, votes of every task, distributions not above 1."""
    data = read_dataset(dataset)
    cells = read_table(completed, COMPLETED)
    counts = read_table(votes, VOTES)
    n_workers = len(data.answers["worker"].cat.categories)
    totals = counts.groupby(["method", "repeat", "task"], observed=True, as_index=False).agg(
        votes=("votes", "sum"), soft=("soft", "sum")
    )
    every_cell = totals.assign(expected=n_workers)[totals["method"] != "wslc"]
    checks = [
        Check(
            "votes",
            counts,
            [
                *_never_null("method", "repeat", "task", "class", "votes", "soft"),
                _unique("method", "repeat", "task", "class"),
                gxe.ExpectColumnValuesToBeInSet(column="class", value_set=data.classes),
                gxe.ExpectColumnValuesToBeBetween(column="votes", min_value=0, max_value=n_workers),
                gxe.ExpectColumnValuesToBeBetween(column="soft", min_value=0, max_value=1 + 1e-6),
            ],
        ),
        Check(
            "votes per task",
            totals,
            [
                gxe.ExpectColumnValuesToBeInSet(column="task", value_set=list(data.features.index)),
                gxe.ExpectColumnValuesToBeBetween(column="votes", min_value=0, max_value=n_workers),
                gxe.ExpectColumnValuesToBeBetween(column="soft", min_value=0, max_value=1 + 1e-6),
            ],
        ),
        Check(
            "votes per task of full completions",
            every_cell,
            [gxe.ExpectColumnPairValuesToBeEqual(column_A="votes", column_B="expected")],
            may_be_empty=True,
        ),
    ]
    if len(cells):  # none where only votes were asked for
        checks += _cells(data, cells, totals)
    return checks


def _cells(data: Dataset, cells: pd.DataFrame, totals: pd.DataFrame) -> list[Check]:
    text = {"method": "str", "task": "str", "worker": "str", "label": "str"}
    cells = cells.astype(text | {"margin": "float64"})  # Great Expectations compares float32 value by value: seconds
    totals = totals.astype({"method": "str", "task": "str"})
    methods = pd.DataFrame({"method": sorted(cells["method"].dropna().unique())}, dtype="str")
    given = data.answers.astype({c: "str" for c in text if c != "method"}).merge(methods, how="cross")
    keys = ["method", "repeat", "task"]
    kept = given.merge(cells, on=[*keys, "worker"], how="left", suffixes=("", "_after"))
    number = cells.groupby(keys, as_index=False).size()
    counted = totals.merge(methods).merge(number, on=keys, how="left").fillna({"size": 0})
    return [
        Check(
            "completed",
            cells,
            [
                *_never_null("method", "repeat", "task", "worker", "label", "imputed", "margin"),
                _unique("method", "repeat", "task", "worker"),
                gxe.ExpectColumnValuesToBeInSet(column="task", value_set=list(data.features.index)),
                gxe.ExpectColumnValuesToBeInSet(column="worker", value_set=list(data.answers["worker"].cat.categories)),
                gxe.ExpectColumnValuesToBeInSet(column="label", value_set=data.classes),
                gxe.ExpectColumnValuesToBeBetween(column="margin", min_value=0, max_value=1),
            ],
        ),
        Check(
            "observed answers",
            kept,
            [
                gxe.ExpectColumnPairValuesToBeEqual(column_A="label", column_B="label_after", ignore_row_if="neither"),
                gxe.ExpectColumnValuesToBeInSet(column="imputed", value_set=[False]),
                *_never_null("imputed"),
            ],
        ),
        Check(
            "cells per task",
            counted,
            [gxe.ExpectColumnPairValuesToBeEqual(column_A="size", column_B="votes")],
        ),
    ]
