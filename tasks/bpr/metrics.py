"""The share of events that K chosen sites reach of what the best K would have reached (BPR), with exact ties.

Arrays are [S], one period, or [T, S]: T periods (or resamples, or anything else in rows) × S sites.
"""

from typing import Any, Literal

import numpy as np

from tasks.bpr.arguments import check_counts, check_finite, check_k, check_shape


def bpr(scores: Any, counts: Any, k: int, *, reduce: Literal["mean", "pooled"] | None = "mean") -> float | np.ndarray:
    """BPR-K: events at the `k` sites of largest score / events at the `k` sites with most events, in [0, 1].

    Sites with equal scores at the border are chosen at random in thought, and the expectation is exact: with thr the
    k-th largest score, H = {score > thr} and E = {score = thr},

        reached = Σ_H y + (k - |H|) mean_E y,    BPR = reached / (sum of the k largest y)

    so equal scores everywhere give ``k mean(y) / (sum of the k largest y)``. No order of sites and no draw matters.

    Args:
        scores: numeric [S] or [T, S], finite; only their order counts.
        counts: numeric, same shape: events, not negative.
        k: from 1 to S.
        reduce: "mean": mean over the periods that have events; "pooled": Σ_t reached / Σ_t best, one minus the pooled
            relative regret; None: the value of each period, NaN where it has no events.

    Returns:
        A float, NaN where no period has events; with ``reduce=None`` float64 [T], T = 1 for one row.

    Raises:
        ValueError: one line with the argument, the place, the value and what is allowed.

    Source: Heuton et al., American Journal of Epidemiology 2024 (doi 10.1093/aje/kwae343), there with ties at random.

    >>> bpr([0.9, 0.1, 0.5, 0.5], [5, 1, 2, 4], 2)
    0.8888888888888888
    """
    if reduce not in ("mean", "pooled", None):
        raise ValueError(f"reduce is {reduce!r}; allowed: 'mean', 'pooled', None")
    scores, counts = _rows(scores, counts, k)
    reached, best = _reached(scores, counts, k), _largest(counts, k)
    if reduce is None:
        return _share(reached, best)
    if not best.any():
        return float("nan")
    if reduce == "pooled":
        return float(reached.sum() / best.sum())
    return float(_share(reached, best)[best > 0].mean())


def bpr_table(scores: Any, counts: Any, k: int) -> dict[str, np.ndarray]:
    """What `bpr` is made of, for each period; arguments and errors as there.

    Returns:
        Arrays [T], float64 unless said:
        reached: events at the chosen sites, ties in expectation; oracle: at the best k sites in hindsight;
        bpr: reached / oracle; bpr_low, bpr_high: with the worst and the best choice among equal scores;
        chance: of a choice at random, k mean(y) / oracle; coverage: reached / events at all sites;
        skipped (bool): no events, the shares are NaN.
    """
    scores, counts = _rows(scores, counts, k)
    reached, oracle = _reached(scores, counts, k), _largest(counts, k)
    worst, best = (
        np.take_along_axis(counts, np.lexsort((order, -scores), axis=-1)[:, :k], axis=-1).sum(-1)
        for order in (counts, -counts)
    )
    total = counts.sum(-1)
    return {
        "reached": reached,
        "oracle": oracle,
        "bpr": _share(reached, oracle),
        "bpr_low": _share(worst, oracle),
        "bpr_high": _share(best, oracle),
        "chance": _share(k * total / counts.shape[-1], oracle),
        "coverage": _share(reached, total),
        "skipped": oracle == 0,
    }


def chosen(scores: Any, k: int) -> np.ndarray:
    """The `k` sites of largest score, best first, equal scores by the lower index.

    Args:
        scores: numeric [S] or [T, S], finite.

    Returns:
        int64 [T, k], T = 1 for one row.

    Raises:
        ValueError: a score is NaN or infinite, `k` is not in 1..S, or the shape or type is another.

    >>> chosen([0.5, 0.9, 0.5, 0.1], 2)
    array([[1, 0]])
    """
    scores = _matrix(scores, k)
    return np.argsort(-scores, axis=-1, kind="stable")[:, :k].astype(np.int64, copy=False)


def _rows(scores: Any, counts: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    counts = np.asarray(counts)
    check_shape("counts", counts, "scores", np.shape(scores))
    check_counts("counts", counts)
    scores = _matrix(scores, k)
    return scores, np.ascontiguousarray(counts, np.float64).reshape(scores.shape)  # any layout, the same bits


def _matrix(scores: Any, k: int) -> np.ndarray:
    """Float64 [T, S]."""
    scores = np.asarray(scores)
    if scores.ndim not in (1, 2) or not scores.size:
        raise ValueError(f"scores has shape {list(scores.shape)}; allowed: [sites] or [periods, sites], not empty")
    check_k(k, scores.shape[-1])
    check_finite("scores", scores)
    return np.atleast_2d(np.asarray(scores, np.float64))


def _reached(scores: np.ndarray, counts: np.ndarray, k: int) -> np.ndarray:
    n = scores.shape[-1] - k
    threshold = np.partition(scores, n, axis=-1)[:, n : n + 1]
    above, equal = scores > threshold, scores == threshold
    free = k - above.sum(-1)
    return np.where(above, counts, 0).sum(-1) + free * np.where(equal, counts, 0).sum(-1) / equal.sum(-1)


def _largest(counts: np.ndarray, k: int) -> np.ndarray:
    n = counts.shape[-1] - k
    return np.partition(counts, n, axis=-1)[:, n:].sum(-1)


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """NaN where there is nothing to reach; rounding may not take a share above 1."""
    return np.where(whole > 0, np.minimum(part / np.where(whole > 0, whole, 1), 1), np.nan)
