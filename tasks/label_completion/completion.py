"""Completion of the task × worker label matrix: the public function of this method."""

from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Literal

import numpy as np
import pandas as pd

from tasks.label_completion.answers import Answers, dtype_with_missing, encode
from tasks.label_completion.graph import Features, nearest_neighbors, prepare_features, reconstruction_weights
from tasks.label_completion.propagation import (
    NO_EVIDENCE,
    Block,
    Graph,
    complete_block,
    propagate_instances,
    worker_blocks,
)
from tasks.label_completion.workers import Similarity, worker_vectors
from tasks.stage import UserError

CLASSES = np.iinfo(np.int16).max  # codes are stored as int16
MATRIX_CELLS = 2**31  # above, a matrix of codes and margins takes more than 12 GB


@dataclass(frozen=True)
class Completion:
    """A completed label matrix, or what was asked for in its place.

    Attributes:
        votes: DataFrame (task × class), int64: number of labels per task after completion, observed ones included.
        soft: DataFrame (task × class), float64: mean over workers of the final label distributions ("instance": the
            task's own distribution); rows of tasks without any evidence are 0.
        worker_vectors: float64 (R, D); zeros for "instance", which knows no workers.
        neighbors, edge_weights: int32 and float64 (N, k): the task graph; None for "wslc".
        labels, imputed, margin (by property): None unless the matrix was asked for.
    """

    answers: Answers
    votes: pd.DataFrame
    soft: pd.DataFrame
    worker_vectors: np.ndarray | None
    neighbors: np.ndarray | None
    edge_weights: np.ndarray | None
    codes: np.ndarray | None = field(repr=False)
    margins: np.ndarray | None = field(repr=False)
    _similarity: Similarity | None = field(repr=False)

    @cached_property
    def labels(self) -> pd.DataFrame | None:
        """task × worker, in the dtype of the given labels; missing where no label could be given (see `complete_labels`)."""
        if self.codes is None:
            return None
        missing = self.codes < 0
        flat = self.answers.classes.take(np.maximum(self.codes.ravel(), 0))
        labels = self._frame(flat.to_numpy().reshape(self.codes.shape))
        if not missing.any():
            return labels
        return labels.astype(dtype_with_missing(flat.dtype)).mask(missing)

    @cached_property
    def imputed(self) -> pd.DataFrame | None:
        """task × worker, bool: True where the label was not given by the worker."""
        if self.codes is None:
            return None
        mask = np.ones(self.codes.shape, bool)
        mask[self.answers.task, self.answers.worker] = False
        return self._frame(mask)

    @cached_property
    def margin(self) -> pd.DataFrame | None:
        """task × worker, float32: largest minus second largest entry of the cell's distribution, 1 where observed."""
        return None if self.margins is None else self._frame(self.margins)

    @cached_property
    def similarity(self) -> np.ndarray | None:
        """Worker similarity S, float64 (R, R), diagonal 0. Made on first use: R² numbers."""
        return None if self._similarity is None else self._similarity.block(0, len(self._similarity.unit))

    def to_answers(self, imputed_weight: float = 1.0) -> pd.DataFrame:
        """The completed matrix as a long table task, worker, label, imputed, margin, weight (cells without label left out).

        `imputed_weight` (0 to 1) tells aggregators how much an imputed label counts; an observed one counts 1.
        """
        if self.codes is None:
            raise UserError("to_answers needs the completed matrix: call complete_labels with return_='matrix'")
        task, worker = np.nonzero(self.codes >= 0)
        imputed = self.imputed.to_numpy()[task, worker]
        code = self.codes[task, worker]
        return pd.DataFrame(
            {
                "task": pd.Categorical.from_codes(task, self.answers.tasks),
                "worker": pd.Categorical.from_codes(worker, self.answers.workers),
                "label": pd.Categorical.from_codes(code, self.answers.classes),
                "imputed": imputed,
                "margin": self.margins[task, worker],
                "weight": np.where(imputed, imputed_weight, 1.0),
            }
        )

    def _frame(self, values: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame(values, index=self.answers.tasks, columns=self.answers.workers, copy=False)


def complete_labels(
    answers: pd.DataFrame,
    features: pd.DataFrame,
    *,
    method: Literal["ldplc", "wslc", "instance"] = "ldplc",
    n_neighbors: int = 5,
    alpha: float = 0.5,
    n_iter: int = 5,
    zero_vector: Literal["neutral", "drop"] = "neutral",
    nominal: Collection[str] = (),
    classes: Sequence | None = None,
    on_duplicate: Literal["error", "first", "last"] = "error",
    on_unknown_task: Literal["error", "drop"] = "error",
    return_: Literal["matrix", "votes", "soft"] = "matrix",
    threads: int = 1,
) -> Completion:
    """Fill the empty cells of the task × worker label matrix.

    - "wslc": similarity-weighted vote of the workers who labelled the task,
      argmax_c Σ_{s ∈ O_i, L_is = c} S_rs.
    - "ldplc": the same vote as a distribution, propagated `n_iter` rounds over the `n_neighbors`-nearest-neighbour graph
      of the tasks with weight `alpha`, observed cells clamped, then argmax.
    - "instance": one distribution per task (the share of its answers), propagated over the same graph; every empty cell
      of a task gets the task's label. As accurate for the tasks' final labels, at 1/R of the cost.

    Ties go to the first class. A cell without any evidence (distribution zero everywhere) has margin 0 and: in LDPLC
    and "instance" the class with the largest sum of the task's distributions over all workers, else the most frequent
    answer; in WSLC no label (missing). With `zero_vector="drop"` WSLC and LDPLC give it the first class, as published.

    Args:
        answers: columns task, worker, label (any sortable types); order of rows is irrelevant.
        features: index = task, in instance order; numeric columns, and those named in `nominal`. Missing values are
            filled by the column's mean or mode. The scale of the columns matters to `edge_weights` (as published).
        zero_vector: similarity of a worker whose vector is zero to all others: 1/2 or, as published, 0.
        classes: all classes, in the order that breaks ties; default: the sorted labels.
        return_: "matrix" (all attributes), or only "votes" or "soft": memory then grows with N·C, not with N·R.
        threads: threads over blocks; changes no bit of the result.

    Returns:
        Completion

    Raises:
        UserError: bad input; the message names table, row, column, value and what is allowed.

    Source: Wu, Jiang, Zhang, Li: "Worker Similarity-Based Label Completion for Crowdsourcing", IEEE Trans. Big Data 11(2),
    2025; "Label Distribution Propagation-based Label Completion for Crowdsourcing", ICML 2025.

    >>> answers = pd.DataFrame({"task": [0, 0, 1, 2, 3], "worker": ["u", "v", "u", "v", "u"], "label": list("aabba")})
    >>> features = pd.DataFrame({"x": [0.0, 0.1, 0.9, 1.0]})
    >>> complete_labels(answers, features, n_neighbors=2).labels.loc[1, "v"]
    'b'
    """
    _check("method", method, ("ldplc", "wslc", "instance"))
    _check("zero_vector", zero_vector, ("neutral", "drop"))
    _check("return_", return_, ("matrix", "votes", "soft"))
    _check("on_duplicate", on_duplicate, ("error", "first", "last"))
    _check("on_unknown_task", on_unknown_task, ("error", "drop"))
    for name, value, least in (("n_neighbors", n_neighbors, 1), ("n_iter", n_iter, 0), ("threads", threads, 1)):
        if not isinstance(value, int | np.integer) or value < least:
            raise UserError(f"complete_labels: {name}={value!r} is not a whole number of at least {least}")
    if not isinstance(alpha, int | float | np.number) or not 0 <= alpha < 1:
        raise UserError(f"complete_labels: alpha={alpha!r} is not a number from 0 to below 1")
    for name, table in (("answers", answers), ("features", features)):
        if not isinstance(table, pd.DataFrame):
            raise UserError(f"complete_labels: {name} is a {type(table).__name__}; a pandas DataFrame is needed")
    prepared = prepare_features(features, nominal)
    encoded = encode(
        answers, tasks=prepared.tasks, classes=classes, on_duplicate=on_duplicate, on_unknown_task=on_unknown_task
    )
    graph = None if method == "wslc" else task_graph(prepared, n_neighbors, threads=threads)
    return complete_encoded(
        encoded,
        prepared,
        graph,
        method=method,
        alpha=alpha,
        n_iter=n_iter,
        zero_vector=zero_vector,
        return_=return_,
        run_blocks=partial(_run_blocks, threads=threads),
    )


def task_graph(features: Features, n_neighbors: int, *, threads: int = 1) -> Graph:
    """Neighbours and reconstruction weights; see `graph`. Depends on the features alone: make it once a data set."""
    neighbors = nearest_neighbors(features, n_neighbors, threads=threads)
    return Graph(neighbors, reconstruction_weights(features, neighbors, threads=threads))


def complete_encoded(
    answers: Answers,
    features: Features,
    graph: Graph | None,
    *,
    method: Literal["ldplc", "wslc", "instance"],
    alpha: float,
    n_iter: int,
    zero_vector: Literal["neutral", "drop"],
    return_: Literal["matrix", "votes", "soft"],
    run_blocks: Callable[[Callable[..., Block], Sequence[tuple[int, int]]], Iterable[Block]],
) -> Completion:
    """As `complete_labels`, on encoded input; `run_blocks` computes the blocks of workers wherever it likes, in order."""
    n_tasks, n_workers, n_classes = answers.shape
    if n_classes > CLASSES:
        raise UserError(f"the answers have {n_classes} classes; at most {CLASSES} are allowed: are these labels?")
    if return_ == "matrix" and n_tasks * n_workers > MATRIX_CELLS:
        raise UserError(
            f"the completed matrix has {n_tasks} × {n_workers} cells, more than {MATRIX_CELLS}; "
            "ask for return_='votes' or 'soft' (stage: output: votes)"
        )
    matrix = return_ == "matrix"
    codes = np.empty((n_tasks, n_workers), np.int16) if matrix else None
    margins = np.empty((n_tasks, n_workers), np.float32) if matrix else None
    observed = np.zeros((n_tasks, n_classes), np.int64)
    np.add.at(observed, (answers.task, answers.label), 1)
    prior = int(np.argmax(observed.sum(0)))

    vectors = similarity = None
    if method == "instance":
        mass = propagate_instances(observed.astype(np.float64), graph, alpha=alpha, n_iter=n_iter)
        label = _task_label(mass, prior)
        votes = observed.copy()
        votes[np.arange(n_tasks), label] += n_workers - observed.sum(1)
        if matrix:
            ordered = np.sort(mass, 1)
            codes[:] = label[:, None]
            margins[:] = (ordered[:, -1] - (ordered[:, -2] if n_classes > 1 else 0))[:, None]
            codes[answers.task, answers.worker] = answers.label
            margins[answers.task, answers.worker] = 1
        soft = mass
    else:
        vectors = worker_vectors(answers, features)
        similarity = Similarity.of(vectors, zero_vector)
        compute = partial(complete_block, answers, similarity, graph, method, alpha=alpha, n_iter=n_iter)
        mass = np.zeros((n_tasks, n_classes))
        votes = np.zeros((n_tasks, n_classes), np.int64)
        empty = np.zeros(n_tasks, np.int64)
        for block in run_blocks(compute, worker_blocks(answers)):
            mass += block.mass
            for c in range(n_classes):
                votes[:, c] += np.count_nonzero(block.label == c, axis=1)
            empty += np.count_nonzero(block.label == NO_EVIDENCE, axis=1)
            if matrix:
                codes[:, block.start : block.stop] = block.label
                margins[:, block.start : block.stop] = block.margin
        if method == "ldplc" or zero_vector == "drop":
            label = np.zeros(n_tasks, np.int64) if zero_vector == "drop" else _task_label(mass, prior)
            votes[np.arange(n_tasks), label] += empty
            if matrix:
                task, worker = np.nonzero(codes == NO_EVIDENCE)
                codes[task, worker] = label[task]
        soft = mass / max(n_workers, 1)

    frame = partial(pd.DataFrame, index=answers.tasks, columns=answers.classes)
    return Completion(
        answers,
        frame(votes),
        frame(soft),
        vectors,
        None if graph is None else graph.neighbors,
        None if graph is None else graph.weights,
        codes,
        margins,
        similarity,
    )


def _task_label(mass: np.ndarray, prior: int) -> np.ndarray:
    """Class with the largest mass of each task, shape (N,); the most frequent answer where there is none."""
    return np.where(mass.max(1) > 0, np.argmax(mass, 1), prior)


def _run_blocks(compute: Callable[..., Block], blocks: Sequence[tuple[int, int]], *, threads: int) -> Iterable[Block]:
    if threads == 1:
        yield from (compute(*block) for block in blocks)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(lambda block: compute(*block), blocks)


def _check(name: str, value: object, allowed: tuple) -> None:
    if value not in allowed:
        raise UserError(f"complete_labels: {name}={value!r} is not one of {', '.join(map(repr, allowed))}")
