"""Scores of correct and of fast programs, as the field defines them.

Notation: t is a cost of an answer (time, peak memory, or TMU, the integral of memory over time), t* that of the task's
reference solution; n answers were drawn of a task, of which c are correct. Less is better for all costs and their ratios.
"""

from math import comb

import numpy as np


def pass_at_k(n: np.ndarray, correct: np.ndarray, k: int) -> np.ndarray:
    """Probability that one of k answers is correct: 1 − C(n − c, k) / C(n, k), whole numbers [T] → float64 [T].

    The unbiased estimate of Chen et al., 2021 (arXiv 2107.03374). Raises ValueError where a task has fewer than k answers.

    >>> pass_at_k(np.array([4, 4]), np.array([1, 3]), 2).tolist()
    [0.5, 1.0]
    """
    if len(n) and k > min(n):
        raise ValueError(f"k is {k}; allowed: at most {min(n)}, the answers of a task")
    return np.array([1 - comb(int(a - c), k) / comb(int(a), k) for a, c in zip(n, correct, strict=True)])


def mean(values: np.ndarray, weights: np.ndarray | None = None):
    """Σ w_i x_i / Σ w_i over tasks, float64 [T] → a number, or [R] of weights [T, R]; NaN where the weights add to 0.

    Weights say how often each task counts, here and below: of a bootstrap, in every one of R samples.
    """
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
    above, below = values @ weights, weights.sum(0)
    return np.divide(above, below, out=np.full_like(below, np.nan), where=below != 0)[()]


def mean_of_ratios(cost: np.ndarray, reference: np.ndarray, weights: np.ndarray | None = None):
    """(1/T) Σ t_i / t*_i: NET, NMU and NTMU as EffiCoder's code counts them; a slow task weighs no more than another.

    Huang et al., ICML 2025 (arXiv 2410.10209).

    >>> float(mean_of_ratios(np.array([2.0, 3.0]), np.array([1.0, 30.0])))
    1.05
    """
    return mean(cost / reference, weights)


def ratio_of_sums(cost: np.ndarray, reference: np.ndarray, weights: np.ndarray | None = None):
    """Σ t_i / Σ t*_i: NET, NMU and NTMU as EffiBench's code prints them; the tasks of large cost decide.

    Huang et al., NeurIPS 2024 (arXiv 2402.02037).

    >>> float(ratio_of_sums(np.array([2.0, 3.0]), np.array([1.0, 30.0])).round(4))
    0.1613
    """
    return mean(cost, weights) / mean(reference, weights)


def geometric_mean(logs: np.ndarray, weights: np.ndarray | None = None):
    """exp((1/T) Σ ln r_i), from ln r_i: a factor and its inverse cancel, and no task weighs more because it is long.

    >>> float(geometric_mean(np.log([2.0, 0.5])))
    1.0
    """
    return np.exp(mean(logs, weights))


def win_tie_loss(ratio: np.ndarray, tie: float) -> tuple[float, float, float]:
    """Shares of tasks with r < 1 / (1 + tie), between, and r > 1 + tie; they add to 1. NaN of no tasks.

    >>> win_tie_loss(np.array([0.9, 0.96, 1.05, 2.0]), 0.05)
    (0.25, 0.5, 0.25)
    """
    wins, losses = ratio < 1 / (1 + tie), ratio > 1 + tie
    return tuple(float(mean(part)) for part in (wins, ~wins & ~losses, losses))


def share_above(ratio: np.ndarray, limit: float = 5.0) -> float:
    """Share of tasks with r > limit: answers of another order of growth than the reference. NaN of no tasks."""
    return float(mean(ratio > limit))


def differential_performance(cost: np.ndarray, known: np.ndarray, tie: float = 0.0) -> np.ndarray:
    """DPS: per cent of the task's known solutions than which an answer is no slower, costs [A], [K] → float64 [A].

    100 |{j: t ≤ (1 + tie) t_j}| / K. EvalPerf sorts the known solutions from slow to fast into clusters and gives the
    cumulative share of the fastest cluster that is reached, which is this with clusters of one (Liu et al., COLM 2024,
    arXiv 2408.06450).

    >>> differential_performance(np.array([1.0, 3.0, 9.0]), np.array([8.0, 4.0, 2.0, 1.0])).tolist()
    [100.0, 50.0, 0.0]
    """
    return 100 * np.mean(cost[:, None] <= (1 + tie) * known, axis=1)


def efficiency(cost: np.ndarray, known: np.ndarray) -> np.ndarray:
    """ENAMEL's e = max(0, T − t) / (T − t_ref), costs [A], [K] → float64 [A]; 0 where t is NaN (a wrong answer).

    T, the time limit, is twice the time of the slowest known solution, and t_ref that of the fastest: 1 is as fast as the
    fastest, more is faster still. ENAMEL weighs several levels of input size; here is one, of the largest size that was
    measured (Qiu et al., ICLR 2025, arXiv 2406.06647).

    >>> efficiency(np.array([1.0, 3.0, 9.0, np.nan]), np.array([3.0, 1.0])).round(2).tolist()
    [1.0, 0.6, 0.0, 0.0]
    """
    limit = 2 * known.max()
    return np.maximum(0, limit - np.where(np.isnan(cost), np.inf, cost)) / (limit - known.min())


def efficiency_at_k(scores: np.ndarray, k: int) -> float:
    """eff@k of one task: the expected largest score of k answers, Σ_{r ≥ k} C(r − 1, k − 1) / C(n, k) · e_(r).

    e_(1) ≤ … ≤ e_(n) are the scores of all answers of the task, [n]. The unbiased estimate of ENAMEL (Qiu et al., ICLR
    2025, arXiv 2406.06647); of scores 0 and 1 it is pass@k. Raises ValueError where k > n.

    >>> efficiency_at_k(np.array([0.0, 0.0, 1.0, 0.5]), 2)
    0.6666666666666666
    """
    n = len(scores)
    if k > n:
        raise ValueError(f"k is {k}; allowed: at most {n}, the answers of a task")
    ranks = np.arange(1, n + 1)
    weights = np.array([comb(int(r) - 1, k - 1) for r in ranks], dtype=object) / comb(n, k)
    return float(np.sort(scores) @ weights.astype(np.float64))


def beyond(cost: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Mercury's Beyond: (t_max − t) / (t_max − t_min) of the known solutions, clipped to [0, 1]; 0 where t is NaN.

    Costs [A], [K] → float64 [A]; NaN where all known solutions cost the same (Du et al., NeurIPS 2024, arXiv 2402.07844).

    >>> beyond(np.array([0.5, 2.0, 9.0, np.nan]), np.array([3.0, 1.0])).tolist()
    [1.0, 0.5, 0.0, 0.0]
    """
    low, high = known.min(), known.max()
    if low == high:
        return np.full(len(cost), np.nan)
    return np.clip((high - np.where(np.isnan(cost), np.inf, cost)) / (high - low), 0, 1)
