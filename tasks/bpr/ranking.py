"""Scores by which sites are ranked, from draws or from moments of the predictive distribution.

A draw is one joint outcome y of all sites in a period. Of all rankings the one by ``E[y_s / topKsum(y)]`` has the
largest expected BPR, for any joint law; ``E[y_s / Σ y]`` bounds it and needs no K; the mean is the best where the
denominator does not vary.

Numpy arrays and torch tensors are taken alike and given back as they came, in double precision. Draws are the first
axis, sites the last, and axes between (periods) are independent of each other.
"""

from typing import Any

import numpy as np

from tasks.bpr.arguments import check_counts, check_k, check_shape

BLOCK = 1 << 20  # numbers that are converted to double precision at once


class Scores:
    """Sums over draws that come in parts, for one rule: the mean over all draws of ``y / denominator(y)``.

    >>> scores = Scores("ratio")
    >>> scores.add(np.array([[1.0, 3.0]]))
    >>> scores.add(np.array([[2.0, 2.0]]))
    >>> scores.result()
    array([0.375, 0.625])
    """

    def __init__(self, rule: str, k: int | None = None, denominator_offset: float = 0.0) -> None:
        """`rule` is "mean", "ratio" or "topk_ratio"; the last needs `k`. Raises ValueError for another value."""
        if rule not in ("mean", "ratio", "topk_ratio"):
            raise ValueError(f"rule is {rule!r}; allowed: mean, ratio, topk_ratio")
        if not 0 <= denominator_offset < float("inf"):
            raise ValueError(f"denominator_offset is {denominator_offset!r}; allowed: finite numbers, not negative")
        self.rule, self.k, self.offset = rule, k, denominator_offset
        self.sums: Any = None
        self.mass: Any = 0.0

    def add(self, samples: Any, weights: Any = None) -> None:
        """Draws [M, ..., S], counts not negative; `weights` [M] where they are not equally likely."""
        if samples.ndim < 2 or 0 in samples.shape:
            raise ValueError(f"samples has shape {list(samples.shape)}; allowed: [draws, ..., sites], not empty")
        check_counts("samples", samples)
        if self.rule == "topk_ratio":
            check_k(self.k, samples.shape[-1])
        if weights is not None:
            check_shape("weights", weights, "the draws", samples.shape[:1])
            check_counts("weights", weights)
        step = max(1, BLOCK // int(np.prod(samples.shape[1:])))
        for start in range(0, len(samples), step):
            part = None if weights is None else weights[start : start + step]
            self._add(_double(samples[start : start + step]), part)

    def _add(self, draws: Any, weights: Any) -> None:
        if self.rule == "mean":
            denominator = draws[..., 0] * 0 + 1
        elif self.rule == "ratio":
            denominator = draws.sum(-1) + self.offset
        else:
            denominator = _sum_of_largest(draws, self.k) + self.offset
        kept = _double(denominator > 0)
        if weights is not None:
            kept = kept * _double(weights).reshape((-1,) + (1,) * (kept.ndim - 1))
        sums = (draws * (kept / (denominator + (denominator == 0)))[..., None]).sum(0)
        self.sums = sums if self.sums is None else self.sums + sums
        self.mass = self.mass + kept.sum(0)

    def result(self) -> Any:
        """Float64 [..., S]; zeros where every draw was left out because its denominator is 0."""
        return self.sums / (self.mass + (self.mass == 0))[..., None]


def mean_scores(samples: Any, k: int | None = None, *, weights: Any = None) -> Any:
    """``E[y_s]``. Optimal for expected BPR where the sum of the K largest counts does not vary.

    Args:
        samples: [M, ..., S], draws of the counts.
        k: not needed; all rules can be called alike.
        weights: [M], probabilities of the draws up to a factor; equal by default.

    Returns:
        Float64 [..., S].

    Raises:
        ValueError: a negative or missing count, or another shape or type.
    """
    return _scores(Scores("mean"), samples, weights)


def ratio_scores(samples: Any, k: int | None = None, denominator_offset: float = 0.0, *, weights: Any = None) -> Any:
    """``E[y_s / (c + Σ_u y_u)]``, the paper's ratio estimator; c is `denominator_offset`.

    Draws without events are left out (c = 0); where all are, the scores are 0. Arguments as for `mean_scores`.
    Source: the ICML 2025 paper on decision-aware top-K (arXiv 2503.05622); its code has c = 1 on real data.

    >>> ratio_scores(np.array([[1, 3], [2, 2], [0, 0]]))
    array([0.375, 0.625])
    """
    return _scores(Scores("ratio", None, denominator_offset), samples, weights)


def topk_ratio_scores(samples: Any, k: int, denominator_offset: float = 0.0, *, weights: Any = None) -> Any:
    """``E[y_s / (c + sum of the k largest y)]``: the k best of it maximise expected BPR exactly (c = 0).

    Draws without events are left out; where all are, the scores are 0. Arguments as for `mean_scores`.

    >>> topk_ratio_scores(np.array([[1, 3, 0], [2, 2, 1]]), 1)
    array([0.66666667, 1.        , 0.25      ])
    """
    return _scores(Scores("topk_ratio", k, denominator_offset), samples, weights)


def delta_ratio_scores(mean: Any, variance: Any, denominator_offset: float = 0.0) -> Any:
    """The ratio score of independent sites without draws, by the second-order delta method.

    ``r_s = m_s/mu - v_s/mu² + m_s V/mu³`` with ``mu = c + Σ m`` and ``V = Σ v``.

    Args:
        mean, variance: floating-point torch tensors [..., S], expected counts and their variances.
        denominator_offset: c.

    Returns:
        Tensor of the type of `mean`, differentiable; 0 where all means are 0. Sums run in double precision.

    Raises:
        ValueError: `mean` and `variance` have different shapes.

    >>> import torch
    >>> delta_ratio_scores(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0]))
    tensor([0.2500, 0.7500])
    """
    import torch

    check_shape("variance", variance, "mean", mean.shape)
    total = mean.sum(-1, keepdim=True, dtype=torch.float64) + denominator_offset
    total = total.where(total > 0, 1.0)
    spread = variance.sum(-1, keepdim=True, dtype=torch.float64)
    of_mean = (1 / total + spread / total**3).to(mean.dtype)
    return mean * of_mean - variance * (1 / total.square()).to(mean.dtype)


def _scores(scores: Scores, samples: Any, weights: Any) -> Any:
    scores.add(samples, weights)
    return scores.result()


def _double(values: Any) -> Any:
    """In double precision and in row order, so that the last bits do not depend on the layout in memory."""
    if isinstance(values, np.ndarray):
        return np.ascontiguousarray(values, np.float64)
    return values.double().contiguous()


def _sum_of_largest(values: Any, k: int) -> Any:
    if isinstance(values, np.ndarray):
        n = values.shape[-1]
        return np.partition(values, n - k, axis=-1)[..., n - k :].sum(-1)
    return values.topk(k).values.sum(-1)
