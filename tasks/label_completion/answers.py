"""Answers of workers as sorted integer arrays: the one form in which all algorithms of this method see them."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from tasks.stage import UserError


@dataclass(frozen=True)
class Answers:
    """Encoded answers, sorted by task and then worker, so that no result depends on the order of rows.

    Attributes:
        task, worker, label: int32, shape (n,): positions in `tasks`, `workers`, `classes`.
        weight: float64, shape (n,), each in [0, 1]: how much an answer counts (1 for an observed one).
        task_start: int64, shape (N + 1,): the answers of task i are rows task_start[i] to task_start[i + 1].
        tasks, workers, classes: the identifiers; dtypes of the input are kept.
    """

    task: np.ndarray
    worker: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    task_start: np.ndarray
    tasks: pd.Index
    workers: pd.Index
    classes: pd.Index

    @property
    def shape(self) -> tuple[int, int, int]:
        """(N tasks, R workers, C classes)."""
        return len(self.tasks), len(self.workers), len(self.classes)

    def by_worker(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(worker_start (R + 1,), task (n,), label (n,)): the same answers, sorted by worker and then task."""
        order = np.argsort(self.worker, kind="stable")
        start = np.searchsorted(self.worker[order], np.arange(len(self.workers) + 1)).astype(np.int64)
        return start, self.task[order], self.label[order]

    def votes(self) -> np.ndarray:
        """Weighted number of answers per task and class, float64, shape (N, C)."""
        n_tasks, _, n_classes = self.shape
        flat = self.task.astype(np.int64) * n_classes + self.label
        return np.bincount(flat, self.weight, n_tasks * n_classes).reshape(n_tasks, n_classes)


def encode(
    answers: pd.DataFrame,
    *,
    tasks: pd.Index | None = None,
    classes: Sequence | None = None,
    on_duplicate: Literal["error", "first", "last"] = "error",
    on_unknown_task: Literal["error", "drop"] = "error",
    on_missing: Literal["error", "drop"] = "error",
    where: str = "answers",
) -> Answers:
    """Check and encode a table of answers with columns task, worker, label and, optionally, weight.

    Identifiers may be of any hashable, sortable type, categorical and Arrow-backed columns included; the categories
    of a categorical column are all kept, so a worker without answers can be told. Order of `tasks`: as given, else
    sorted (see `argsort_identifiers`). Order of `classes`: as given, else the categories, else sorted; ties are broken
    in this order.

    Raises:
        UserError: a column lacks; a value is missing; a label is outside `classes`; a task is not in `tasks`; two
            answers of one worker for one task; weights outside [0, 1]; no answers. Rows are counted from 0.
    """
    for name, value, allowed in (
        ("on_duplicate", on_duplicate, ("error", "first", "last")),
        ("on_unknown_task", on_unknown_task, ("error", "drop")),
        ("on_missing", on_missing, ("error", "drop")),
    ):
        if value not in allowed:
            raise UserError(f"{where}: {name}={value!r} is not one of {', '.join(map(repr, allowed))}")
    for column in ("task", "worker", "label"):
        if column not in answers.columns:
            raise UserError(f"{where}: column {column} is missing; there are {', '.join(map(str, answers.columns))}")
        if list(answers.columns).count(column) > 1:
            raise UserError(f"{where}: column {column} appears more than once")
    n_rows = len(answers)
    rows = _complete_rows(answers, on_missing, where)
    if len(rows) < n_rows:
        answers = answers.iloc[rows]
    if answers.empty:
        raise UserError(f"{where}: the table has no {'complete ' if n_rows else ''}rows; at least one answer is needed")

    task, tasks = _codes(answers["task"], where, _distinct(tasks, "tasks", where))
    worker, workers = _codes(answers["worker"], where, None)
    label, classes = _codes(answers["label"], where, _distinct(classes, "classes", where))
    if (label < 0).any():
        at = int(np.argmax(label < 0))
        allowed = ", ".join(map(repr, classes[:20].tolist())) + (", …" if len(classes) > 20 else "")
        raise UserError(
            f"{where}: row {rows[at]}, column label: {_value(answers, 'label', at)} is not one of {allowed}"
        )

    unknown = task < 0
    if unknown.any():
        if on_unknown_task == "error":
            at = int(np.argmax(unknown))
            raise UserError(
                f"{where}: row {rows[at]}, column task: {_value(answers, 'task', at)} has no features "
                f"({int(unknown.sum())} such rows; on_unknown_task='drop' leaves them out)"
            )
        if unknown.all():
            raise UserError(
                f"{where}: none of the {len(unknown)} rows is about a task with features, "
                f"for example {_value(answers, 'task', 0)}; at least one answer is needed"
            )
        warnings.warn(f"{where}: {int(unknown.sum())} rows about tasks without features are left out", stacklevel=3)
        answers, rows = answers[~unknown], rows[~unknown]
        task, worker, label = task[~unknown], worker[~unknown], label[~unknown]

    weight = _weights(answers, rows, where)
    key = task.astype(np.int64) * max(len(workers), 1) + worker
    order = np.argsort(key, kind="stable")
    repeated = np.zeros(len(key), bool)
    repeated[1:] = key[order][1:] == key[order][:-1]
    if repeated.any():
        if on_duplicate == "error":
            at = int(order[np.argmax(repeated)])
            raise UserError(
                f"{where}: row {rows[at]}: worker {_value(answers, 'worker', at)} has more than one answer for task "
                f"{_value(answers, 'task', at)} ({int(repeated.sum())} such rows; "
                "on_duplicate='first' or 'last' keeps one)"
            )
        drop = repeated if on_duplicate == "first" else np.append(repeated[1:], False)
        order = order[~drop]
    task, worker, label, weight = (array[order] for array in (task, worker, label, weight))
    task_start = np.searchsorted(task, np.arange(len(tasks) + 1)).astype(np.int64)
    return Answers(task, worker, label, weight, task_start, tasks, workers, classes)


def argsort_identifiers(identifiers: pd.Index) -> np.ndarray:
    """Sorting positions; texts that are all whole numbers sort by number, as their readers expect: 2 before 10.

    >>> argsort_identifiers(pd.Index(["10", "2", "1"])).tolist()
    [2, 1, 0]
    """
    texts = identifiers.tolist()
    if all(isinstance(text, str) and text.isdecimal() for text in texts):
        return np.array(sorted(range(len(texts)), key=lambda at: (int(texts[at]), texts[at])), np.intp)
    return identifiers.argsort()


def dtype_with_missing(dtype):
    """The dtype itself, or for whole numbers and booleans pandas' nullable one: 1 must not become 1.0 beside a gap."""
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_integer_dtype(dtype):
        return pd.array(np.empty(0, dtype)).dtype if isinstance(dtype, np.dtype) else dtype
    return dtype


def _value(answers: pd.DataFrame, column: str, at: int) -> str:
    return repr(answers[column].iloc[[at]].tolist()[0])  # a list holds Python's values: 1, not np.int64(1)


def _distinct(values: Sequence | pd.Index | None, name: str, where: str) -> pd.Index | None:
    if values is None:
        return None
    index = values if isinstance(values, pd.Index) else pd.Index(list(values))
    if index.has_duplicates:
        raise UserError(f"{where}: {name}: {index[index.duplicated()].tolist()[0]!r} is given twice")
    return index


def _complete_rows(answers: pd.DataFrame, on_missing: str, where: str) -> np.ndarray:
    """Positions of the rows without a missing value."""
    missing = answers[["task", "worker", "label"]].isna().to_numpy()
    bad = missing.any(1)
    if bad.any() and on_missing == "error":
        row = int(np.argmax(bad))
        column = ("task", "worker", "label")[int(np.argmax(missing[row]))]
        raise UserError(
            f"{where}: row {row}, column {column}: the value is missing ({int(bad.sum())} such rows; "
            "leave them out: an empty cell is the absence of a row)"
        )
    if bad.any():
        warnings.warn(f"{where}: {int(bad.sum())} rows with a missing value are left out", stacklevel=4)
    return np.flatnonzero(~bad)


def _codes(values: pd.Series, where: str, index: pd.Index | None) -> tuple[np.ndarray, pd.Index]:
    if isinstance(values.dtype, pd.CategoricalDtype):
        if index is None:
            return values.cat.codes.to_numpy().astype(np.int32), values.cat.categories
        position = index.get_indexer(values.cat.categories)
        return position[values.cat.codes.to_numpy()].astype(np.int32), index
    try:
        codes, found = pd.factorize(values)
    except TypeError as error:  # lists and the like
        raise UserError(f"{where}: column {values.name}: values cannot be identifiers: {error}") from None
    found = pd.Index(found)
    try:
        order = argsort_identifiers(found) if index is None else None
    except TypeError:
        types = ", ".join(sorted({type(v).__name__ for v in found}))
        raise UserError(f"{where}: column {values.name} mixes types that have no common order: {types}") from None
    if index is None:
        rank = np.empty(len(found), np.int32)
        rank[order] = np.arange(len(found), dtype=np.int32)
        return rank[codes], found[order]
    return index.get_indexer(found)[codes].astype(np.int32), index


def _weights(answers: pd.DataFrame, rows: np.ndarray, where: str) -> np.ndarray:
    if "weight" not in answers.columns:
        return np.ones(len(answers))
    try:
        weight = pd.to_numeric(answers["weight"]).to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise UserError(
            f"{where}: column weight has type {answers['weight'].dtype}; numbers in [0, 1] are needed"
        ) from None
    bad = ~((weight >= 0) & (weight <= 1))
    if bad.any():
        at = int(np.argmax(bad))
        raise UserError(f"{where}: row {rows[at]}, column weight: {weight[at]} is not in [0, 1]")
    return weight
