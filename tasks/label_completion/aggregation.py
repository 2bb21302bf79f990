"""Truth inference: one label per task from many answers. Every result is independent of the order of rows."""

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numba import njit

from tasks.label_completion.answers import Answers, dtype_with_missing, encode
from tasks.stage import UserError, random_generator

CROWDKIT = ("DawidSkene", "OneCoinDawidSkene", "GLAD", "MACE")
TIE = 1e-12  # scores that differ less are equal up to rounding
FLOOR = 1e-10  # smallest probability of a confusion cell: without it a label never seen vetoes a class for ever


class DegenerateFit(UserWarning):
    """The fitted model explains a class away: it is in the answers, and no task gets it."""


@dataclass(frozen=True)
class Aggregation:
    """Inferred labels.

    Attributes:
        tasks: DataFrame, index task; columns label (dtype of the given labels; missing for a task without answers),
            confidence (float64 in [0, 1]: posterior or share of the weighted votes), tie (bool: several classes share
            the largest score).
        scores: DataFrame (task × class), float64: what the label is the argmax of, rows summing to 1 (0: no answers).
        workers: DataFrame, index worker: answers (int64), agreement (float64: weighted share of the worker's answers that
            equal the inferred label; NaN with answers = 0).
        rounds: iterations done.
    """

    tasks: pd.DataFrame
    scores: pd.DataFrame
    workers: pd.DataFrame
    rounds: int


def aggregate(
    answers: pd.DataFrame,
    method: str = "majority",
    *,
    tasks: Sequence | None = None,
    classes: Sequence | None = None,
    on_duplicate: Literal["error", "first", "last"] = "error",
    on_missing: Literal["error", "drop"] = "error",
    tie_break: Literal["first", "random"] = "first",
    n_iter: int = 50,
    tolerance: float = 1e-6,
    smoothing: float = 0.01,
    seed: int = 0,
) -> Aggregation:
    """Infer one label per task.

    - "majority": the class with the largest weight of answers.
    - "dawid_skene": EM for class priors and one confusion matrix per worker, π_w[l | c], started from the shares of the
      answers; `smoothing` is added to every confusion count. Dawid and Skene, 1979.
    - "iwmv": iterated weighted majority vote, v_w = C a_w − 1 with a_w the agreement of w with the current labels, until
      the labels stay. Li and Yu, 2014.
    - "wawa": one round of weights a_w = agreement with the majority.
    - "gtic": k-means on class shares and the gap of the two largest, started from the purest task of each class,
      clusters matched to classes greedily. After Zhang, Sheng, Li and Wu, 2016.
    - "crowdkit:NAME", NAME in DawidSkene, OneCoinDawidSkene, GLAD, MACE: crowd-kit's aggregator.

    Args:
        answers: columns task, worker, label and, optionally, weight in [0, 1] (crowd-kit's ignore weights).
        tasks: all tasks, also those without answers; default: those of the answers.
        tie_break: "first" class in the order of `classes`, or "random", drawn per task from `seed`. A task without
            answers stays missing, or gets a random class; "dawid_skene" gives it the class with the largest prior.
            "gtic" flags no ties: its clusters settle them.
        n_iter, tolerance: rounds at most, and the change of the mean log-likelihood (or of no label) that ends them.

    Raises:
        UserError: bad input, or a method that does not exist.

    >>> answers = pd.DataFrame({"task": [0, 0, 0, 1], "worker": list("uvwu"), "label": list("aabb")})
    >>> aggregate(answers).tasks.label.tolist()
    ['a', 'b']
    """
    algorithm = _algorithm(method)
    for name, value, allowed in (
        ("tie_break", tie_break, tie_break in ("first", "random")),
        ("n_iter", n_iter, n_iter >= 1),
        ("tolerance", tolerance, tolerance >= 0),
        ("smoothing", smoothing, smoothing >= 0),
        ("seed", seed, seed >= 0),
    ):
        if not allowed:
            raise UserError(f"aggregate: {name}={value!r} is not allowed")
    encoded = encode(
        answers,
        tasks=None if tasks is None else pd.Index(tasks),
        classes=classes,
        on_duplicate=on_duplicate,
        on_missing=on_missing,
    )
    return aggregate_encoded(
        encoded, algorithm, tie_break=tie_break, n_iter=n_iter, tolerance=tolerance, smoothing=smoothing, seed=seed
    )


def aggregate_encoded(
    answers: Answers,
    algorithm: str | Callable,
    *,
    tie_break: str,
    n_iter: int,
    tolerance: float,
    smoothing: float,
    seed: int,
) -> Aggregation:
    """As `aggregate`, on encoded answers."""
    if isinstance(algorithm, str):
        algorithm = _algorithm(algorithm)
    options = {"n_iter": n_iter, "tolerance": tolerance, "smoothing": smoothing, "seed": seed}
    wanted = inspect.signature(algorithm).parameters
    scores, rounds = algorithm(answers, **{name: value for name, value in options.items() if name in wanted})
    code, tie = choose_labels(scores, tie_break, seed)
    labels = answers.classes.take(np.maximum(code, 0)).to_series(index=answers.tasks, name="label")
    if (code < 0).any():
        labels = labels.astype(dtype_with_missing(labels.dtype)).mask(code < 0)
    confidence = np.where(code < 0, 0.0, scores[np.arange(len(code)), np.maximum(code, 0)])
    table = pd.DataFrame({"label": labels, "confidence": confidence, "tie": tie}, index=answers.tasks)
    right = (code[answers.task] == answers.label) * answers.weight
    n_workers = len(answers.workers)
    weight = np.bincount(answers.worker, answers.weight, n_workers)
    with np.errstate(invalid="ignore"):
        agreement = np.bincount(answers.worker, right, n_workers) / weight
    workers = pd.DataFrame(
        {"answers": np.bincount(answers.worker, minlength=n_workers), "agreement": agreement}, index=answers.workers
    )
    return Aggregation(table, pd.DataFrame(scores, index=answers.tasks, columns=answers.classes), workers, rounds)


def _algorithm(method: str) -> Callable:
    own = {
        "majority": majority,
        "dawid_skene": dawid_skene,
        "iwmv": iterated_weighted_majority,
        "wawa": weighted_by_agreement,
        "gtic": clustering,
    }
    if method in own:
        return own[method]
    if method.removeprefix("crowdkit:") in CROWDKIT and method.startswith("crowdkit:"):
        return lambda answers, n_iter, seed: _crowdkit(method.removeprefix("crowdkit:"), answers, n_iter, seed)
    allowed = ", ".join([*own, *(f"crowdkit:{name}" for name in CROWDKIT)])
    raise UserError(f"aggregate: method={method!r} is not one of {allowed}")


def choose_labels(scores: np.ndarray, tie_break: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(class per task, −1 where nothing is known and ties are not drawn; tie flags). Equal up to rounding is a tie."""
    best = scores.max(1, keepdims=True)
    tied = scores >= best - TIE
    tie = tied.sum(1) > 1
    code = np.argmax(tied, 1)
    if tie_break == "random":
        draw = random_generator(seed, "ties").random(len(scores))
        rank = np.floor(draw * tied.sum(1)).astype(int)  # the rank-th of the tied classes
        code = np.argmax(np.cumsum(tied, 1) > rank[:, None], 1)
    else:
        code = np.where(best[:, 0] > 0, code, -1)
    return code, tie


def _shares(votes: np.ndarray) -> np.ndarray:
    total = votes.sum(1, keepdims=True)
    return votes / np.where(total > 0, total, 1)


def majority(answers: Answers) -> tuple[np.ndarray, int]:
    """Shares of the weighted answers, float64 (N, C)."""
    return _shares(answers.votes()), 1


def weighted_by_agreement(answers: Answers) -> tuple[np.ndarray, int]:
    """Votes weighted by each worker's agreement with the majority ("worker agreement with aggregate")."""
    return _weighted(answers, _agreement(answers, _winners(answers.votes()))), 2


def iterated_weighted_majority(answers: Answers, *, n_iter: int) -> tuple[np.ndarray, int]:
    """IWMV: v_w = C a_w − 1, until the labels stay. A worker worse than chance counts against what he says."""
    n_classes = len(answers.classes)
    winners = _winners(answers.votes())
    for rounds in range(1, n_iter + 1):
        scores = _weighted(answers, n_classes * _agreement(answers, winners) - 1)
        before, winners = winners, _winners(scores)
        if (before == winners).all():
            break
    return scores, rounds


def _winners(scores: np.ndarray) -> np.ndarray:
    """1 for the class with the largest score of each task, shared equally by tied ones: no class is preferred."""
    tied = scores >= scores.max(1, keepdims=True) - TIE
    return tied / tied.sum(1, keepdims=True)


def _agreement(answers: Answers, winners: np.ndarray) -> np.ndarray:
    n_workers = len(answers.workers)
    total = np.bincount(answers.worker, answers.weight, n_workers)
    same = np.bincount(answers.worker, answers.weight * winners[answers.task, answers.label], n_workers)
    return same / np.where(total > 0, total, 1)


def _weighted(answers: Answers, worker_weight: np.ndarray) -> np.ndarray:
    """Weighted votes as shares; negative ones are shifted to start at 0, tasks without answers stay 0."""
    n_tasks, _, n_classes = answers.shape
    flat = answers.task.astype(np.int64) * n_classes + answers.label
    votes = np.bincount(flat, answers.weight * worker_weight[answers.worker], n_tasks * n_classes)
    votes = votes.reshape(n_tasks, n_classes)
    votes -= np.minimum(votes.min(1, keepdims=True), 0)
    known = np.diff(answers.task_start) > 0
    flat_votes = known & (votes.sum(1) == 0)  # answers that cancel, or weights of 0: known, and tied
    votes[flat_votes] = 1
    return _shares(votes)


def dawid_skene(answers: Answers, *, n_iter: int, tolerance: float, smoothing: float) -> tuple[np.ndarray, int]:
    """Posterior class probabilities of Dawid and Skene's model, float64 (N, C), by EM.

    E: p_ic ∝ π_c Π_{(w, l) of i} π_w[l | c]. M: π_w[l | c] ∝ Σ_i p_ic 1[w said l on i] + smoothing, π_c ∝ Σ_i p_ic.
    Products go over to logarithms every few answers, so that thousands of answers on one task do not underflow.
    Memory: R·C² + N·C numbers, never a dense task × worker × class array.
    """
    n_workers, n_classes = len(answers.workers), len(answers.classes)
    posterior = _shares(answers.votes())
    known = np.diff(answers.task_start) > 0
    cell = (answers.worker.astype(np.int64) * n_classes + answers.label).astype(np.int32)  # row of the counts
    counts = np.zeros((n_workers * n_classes, n_classes))
    _count(answers.task, cell, answers.weight, posterior, counts)
    mass = posterior.sum(0)
    before = -np.inf
    for rounds in range(1, n_iter + 1):
        prior = np.maximum(mass / max(mass.sum(), FLOOR), FLOOR)
        confusion = (counts + smoothing).reshape(n_workers, n_classes, n_classes)
        confusion /= np.maximum(confusion.sum(1, keepdims=True), FLOOR)
        np.maximum(confusion, FLOOR, out=confusion)
        likelihood = _expect(
            answers.task_start, cell, answers.weight, prior, confusion.reshape(counts.shape), posterior, counts, mass
        )
        if abs(likelihood - before) <= tolerance * max(len(posterior), 1):
            break
        before = likelihood
    lost = (answers.votes().sum(0) > 0) & ~np.isin(np.arange(len(answers.classes)), np.argmax(posterior[known], 1))
    if lost.any():
        warnings.warn(
            f"dawid_skene: no task gets {', '.join(map(repr, answers.classes[lost][:5]))} although workers gave it; "
            "the answers are too few for a confusion matrix per worker, or smoothing is too small",
            DegenerateFit,
            stacklevel=4,
        )
    return posterior, rounds


def clustering(answers: Answers, *, n_iter: int) -> tuple[np.ndarray, int]:
    """GTIC-like scores: the share of each task's cluster in its class, and the task's own shares to tell ties apart."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    shares = _shares(answers.votes())
    known = np.flatnonzero(np.diff(answers.task_start) > 0)
    ordered = np.sort(shares[known], 1)
    gap = ordered[:, -1] - (ordered[:, -2] if shares.shape[1] > 1 else 0)
    points = np.column_stack([shares[known], gap])
    used = np.flatnonzero(shares.sum(0) > 0)
    purest = points[[np.argmax(points[:, c]) for c in used]]
    starts = np.unique(purest, axis=0)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct points than clusters is an ordinary case here
        model = KMeans(len(starts), init=starts, n_init=1, max_iter=n_iter).fit(points)
    pull = model.cluster_centers_[:, :-1].copy()
    pull[:, shares.sum(0) == 0] = -1  # a class that nobody gave matches no cluster
    scores = np.zeros_like(shares)
    class_of = np.full(len(pull), -1)
    for _ in range(min(len(pull), len(used))):
        cluster, c = np.unravel_index(np.argmax(pull), pull.shape)
        class_of[cluster] = c
        pull[cluster], pull[:, c] = -1, -1
    scores[known] = 0.5 * shares[known]
    scores[known, class_of[model.labels_]] += 0.5 + 1e-9
    return _shares(scores), int(model.n_iter_)


def _crowdkit(name: str, answers: Answers, n_iter: int, seed: int) -> tuple[np.ndarray, int]:
    """crowd-kit's aggregator on integer codes in canonical order: its ties and EM then do not depend on the rows."""
    from crowdkit import aggregation as crowdkit

    extra = {"random_state": seed} if name == "MACE" else {"silent": True} if name == "GLAD" else {}
    model = getattr(crowdkit, name)(n_iter=n_iter, **extra)
    table = pd.DataFrame({"task": answers.task, "worker": answers.worker, "label": answers.label})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # thousands of pandas' warnings about crowd-kit's own code
        model.fit(table)
    n_tasks, _, n_classes = answers.shape
    probas = model.probas_.reindex(index=range(n_tasks), columns=range(n_classes)).to_numpy(np.float64)
    return np.nan_to_num(probas), n_iter


@njit(cache=True, nogil=True)
def _count(task, cell, weight, posterior, counts):
    for a in range(len(task)):
        for c in range(posterior.shape[1]):
            counts[cell[a], c] += weight[a] * posterior[task[a], c]


@njit(cache=True, nogil=True)
def _expect(task_start, cell, weight, prior, confusion, posterior, counts, mass):
    """E-step into `posterior` and, in the same pass, the counts and class masses (of tasks with answers) of the next
    M-step. Returns the log-likelihood."""
    n_classes = len(prior)
    likelihood = 0.0
    counts[:] = 0.0
    mass[:] = 0.0
    row = np.empty(n_classes)
    level = np.empty(n_classes)
    for i in range(len(task_start) - 1):
        begin, end = task_start[i], task_start[i + 1]
        long = end - begin > 16
        for c in range(n_classes):
            row[c] = prior[c]
            level[c] = 0.0
        for chunk in range(begin, end, 16):  # 17 factors of at least FLOOR stay far from underflow
            if chunk > begin:  # a class far behind after some answers may still win: each keeps its own scale
                for c in range(n_classes):
                    level[c] += np.log(row[c])
                row[:] = 1.0
            for a in range(chunk, min(chunk + 16, end)):
                k, w = cell[a], weight[a]
                if w == 1.0:
                    for c in range(n_classes):
                        row[c] *= confusion[k, c]
                else:
                    for c in range(n_classes):
                        row[c] *= confusion[k, c] ** w
        if long:
            for c in range(n_classes):
                level[c] += np.log(row[c])
            largest = level.max()
            likelihood += largest
            for c in range(n_classes):
                row[c] = np.exp(level[c] - largest)
        total = row.sum()
        likelihood += np.log(total)
        for c in range(n_classes):
            row[c] /= total
            posterior[i, c] = row[c]
            if end > begin:
                mass[c] += row[c]
        for a in range(begin, end):
            k, w = cell[a], weight[a]
            for c in range(n_classes):
                counts[k, c] += w * row[c]
    return likelihood
