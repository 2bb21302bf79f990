"""Intervals by the bootstrap over problems: whole problems are drawn again, with all their responses and steps."""

from dataclasses import dataclass

import numpy as np

CHUNK_CELLS = 2**19  # items × resamples looked at together by `auc`, 4 MB an array; changes no result


@dataclass(frozen=True)
class Estimate:
    """A quantity on the problems as they are, and on every resample of them: a float and float64 [R].

    Differences of two estimates of one `Bootstrap` are paired: both saw the same problems each time.
    """

    value: float
    drawn: np.ndarray

    def __sub__(self, other: "Estimate") -> "Estimate":
        return Estimate(self.value - other.value, self.drawn - other.drawn)

    def interval(self, confidence: float) -> tuple[float, float]:
        """The percentile interval; NaN where the value is, or all its resamples are."""
        drawn = self.drawn[np.isfinite(self.drawn)]
        if not len(drawn) or not np.isfinite(self.value):
            return float("nan"), float("nan")
        low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
        return float(low), float(high)


class Bootstrap:
    """R times, P of P problems are drawn with replacement: multinomial weights, the same for all quantities.

    It covers which problems happened to be asked. It does not cover the samples of a problem (they are kept), the
    training (no model is trained again), nor the choice among candidates. Of one problem there is nothing to draw, and
    intervals are NaN. With R = 0 there are values only.
    """

    def __init__(self, n_problems: int, n_resamples: int, generator: np.random.Generator) -> None:
        if n_problems < 1:
            raise ValueError(f"n_problems is {n_problems}; allowed: at least 1")
        drawn = generator.multinomial(n_problems, np.full(n_problems, 1 / n_problems), n_resamples)
        if n_problems == 1:
            drawn = drawn * np.nan
        # [P, 1 + R]; in the first column the problems as they are
        self.weights = np.ascontiguousarray(np.concatenate([np.ones((1, n_problems)), drawn]).T)

    def mean(self, values: np.ndarray) -> Estimate:
        """Mean over problems, float64 [P]; problems with NaN are left out."""
        known = ~np.isnan(values)
        return self.ratio(np.where(known, values, 0.0), known)

    def ratio(self, above: np.ndarray, below: np.ndarray) -> Estimate:
        """Σ above / Σ below over problems, [P] each; NaN where the lower sum is 0."""
        return _estimate(*(np.stack([above, below]).astype(np.float64) @ self.weights))

    def auc(self, scores: np.ndarray, positive: np.ndarray, problem: np.ndarray) -> Estimate:
        """Probability that a positive item scores above a negative one, equal scores counting half; exact.

        Args:
            scores: numbers [items]; NaN counts as lowest.
            positive: booleans [items].
            problem: whole numbers [items]: the problem that an item belongs to.
        """
        scores = np.where(np.isnan(scores), -np.inf, scores)
        order = np.argsort(scores, kind="stable")
        scores, positive, problem = scores[order], positive[order], problem[order]
        # how many negatives have a lower score than a positive item, and how many a lower or equal one
        below, not_above = (np.searchsorted(scores[~positive], scores[positive], side) for side in ("left", "right"))
        wins, pairs = [], []
        size = max(1, CHUNK_CELLS // max(1, len(scores)))
        for begin in range(0, self.weights.shape[1], size):
            weights = self.weights[:, begin : begin + size]
            negatives = np.zeros((len(scores) - len(below) + 1, weights.shape[1]))
            np.cumsum(weights[problem[~positive]], axis=0, out=negatives[1:])  # of whole numbers, so exact
            positives = weights[problem[positive]]
            wins.append(sum(np.einsum("ir,ir->r", positives, negatives[lower]) / 2 for lower in (below, not_above)))
            pairs.append(positives.sum(0) * negatives[-1])
        return _estimate(np.concatenate(wins), np.concatenate(pairs))


def harmonic(a: Estimate, b: Estimate) -> Estimate:
    """2ab / (a + b), 0 where both are 0."""
    first, second = (np.concatenate([[e.value], e.drawn]) for e in (a, b))
    total = first + second
    return _estimate(2 * first * second, np.where(total == 0, 1, total))


def _estimate(above: np.ndarray, below: np.ndarray) -> Estimate:
    values = np.divide(above, below, out=np.full(len(above), np.nan), where=below != 0)
    return Estimate(float(values[0]), values[1:])
