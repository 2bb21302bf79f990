"""Which responses are trained on together: pairs of a correct and a wrong one, mismatched ones, equal classes.

All functions take one row a response and give row numbers, so that a trainer passes every response through the model
once, whatever the number of its pairs. Rows may lie in any order of problems: what is drawn depends on the order of
rows within each problem alone.
"""

import warnings
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Pairs(NamedTuple):
    """Rows of correct and of wrong responses, int64 [P] each, by problem; `skipped`: problems of one class only."""

    chosen: np.ndarray
    rejected: np.ndarray
    skipped: int


def pairs(problem_ids: ArrayLike, labels: ArrayLike, max_pairs: int, generator: np.random.Generator) -> Pairs:
    """Up to `max_pairs` different pairs (correct, wrong) of each problem, drawn evenly from all its c × w pairs.

    Args:
        problem_ids: [B], of any type that sorts.
        labels: 1 (correct) or 0 (wrong), [B].

    Raises:
        ValueError: a label is neither 0 nor 1, the lengths differ, or `max_pairs` is below 1.

    >>> found = pairs(["p", "p", "p", "q"], [1, 0, 1, 1], 8, np.random.default_rng(0))
    >>> found.chosen.tolist(), found.rejected.tolist(), found.skipped
    ([0, 2], [1, 1], 1)
    """
    if max_pairs < 1:
        raise ValueError(f"max_pairs: at least 1 is needed, got {max_pairs}")
    groups, correct = _groups(problem_ids, labels)
    chosen, rejected, skipped = [], [], 0
    for rows in groups:
        right, wrong = rows[correct[rows]], rows[~correct[rows]]
        n_pairs = len(right) * len(wrong)
        if not n_pairs:
            skipped += 1
            continue
        drawn = np.sort(generator.choice(n_pairs, min(n_pairs, max_pairs), replace=False, shuffle=False))
        chosen.append(right[drawn // len(wrong)])
        rejected.append(wrong[drawn % len(wrong)])
    return Pairs(_joined(chosen), _joined(rejected), skipped)


def mismatched(problem_ids: ArrayLike) -> np.ndarray:
    """For each row, the row of a response to another problem: the next problem's, in the order of ids, the last one's next
    being the first; the j-th response to a problem gets the next one's j-th, counted round where that has fewer.

    Returns:
        int64 [B]; [0] with a warning where all rows are of one problem, because then nothing is mismatched. A rotation
        of the rows themselves would pair most responses with their own prompt, wherever problems lie together.

    >>> mismatched(["p", "p", "q"]).tolist()
    [2, 2, 0]
    """
    ids = np.asarray(problem_ids)
    _, group, size = np.unique(ids, return_inverse=True, return_counts=True)
    if len(size) < 2:
        if len(ids):
            warnings.warn("a batch holds one problem only: nothing in it is mismatched", stacklevel=2)
        return np.zeros(0, np.int64)
    rows, start = np.argsort(group, kind="stable"), np.cumsum(size) - size
    rank = np.empty(len(ids), np.int64)
    rank[rows] = np.arange(len(ids)) - np.repeat(start, size)
    following = (group + 1) % len(size)
    return rows[start[following] + rank % size[following]]


def balanced(
    labels: ArrayLike,
    problem_ids: ArrayLike,
    how: Literal["none", "dataset", "problem"],
    generator: np.random.Generator,
) -> np.ndarray:
    """Rows that stay when responses of the larger class are dropped at random until both classes are equal in number.

    Args:
        labels: 1 (correct) or 0 (wrong), [B].
        problem_ids: [B], of any type that sorts.
        how: "dataset": equal over all rows; "problem": within each problem, so that one of a single class vanishes;
            "none": all rows stay.

    Returns:
        Ascending int64.

    Raises:
        ValueError: a label is neither 0 nor 1, the lengths differ, or `how` is another.

    >>> balanced([1, 1, 0, 1], ["p", "p", "p", "q"], "problem", np.random.default_rng(0)).tolist()
    [1, 2]
    """
    if how not in ("none", "dataset", "problem"):
        raise ValueError(f"how: none, dataset or problem is allowed, got {how}")
    groups, correct = _groups(problem_ids, labels)
    if how == "dataset":
        groups = [_joined(groups)]
    kept = []
    for rows in groups:
        classes = rows[correct[rows]], rows[~correct[rows]]
        n_kept = min(map(len, classes))
        kept += [rows] if how == "none" else [generator.choice(c, n_kept, replace=False) for c in classes]
    return np.sort(_joined(kept))


def _groups(problem_ids: ArrayLike, labels: ArrayLike) -> tuple[list[np.ndarray], np.ndarray]:
    """Rows of each problem, problems in the order of their ids; labels as bool."""
    ids, labels = np.asarray(problem_ids), np.asarray(labels)
    if ids.shape != labels.shape or ids.ndim != 1:
        raise ValueError(f"problem_ids and labels: one of each a response, got shapes {ids.shape} and {labels.shape}")
    if not np.isin(labels, (0, 1)).all():
        raise ValueError(f"labels: only 0 and 1 are allowed, there is {labels[~np.isin(labels, (0, 1))][0]}")
    _, group, size = np.unique(ids, return_inverse=True, return_counts=True)
    rows = np.argsort(group, kind="stable")
    return np.split(rows, np.cumsum(size)[:-1]) if len(rows) else [], labels == 1


def _joined(rows: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.int64), *rows])
