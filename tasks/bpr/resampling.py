"""Intervals: by subsets of the sites, or by resampled periods where the sites are few and the periods many."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from tasks.bpr.metrics import bpr
from tasks.bpr.params import Evaluate

CHUNK_CELLS = 2**21  # resamples × sites looked at together, 16 MB an array; changes no result
FEW_SITES = 50  # below it there are few different subsets, and they say little
MANY_PERIODS = 10  # from here on periods can be resampled


class Resamples(Protocol):
    """R resamples of one panel's test periods or sites; all quantities see the same ones, so differences are paired."""

    kind: str
    """What is resampled: "sites" or "periods"."""

    def bpr(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """BPR as mean over periods, and pooled, mean over runs, of every resample: float64 [R], for scores [N, T, S]."""

    def mean(self, loss: np.ndarray) -> np.ndarray:
        """Mean of every resample: float64 [R], for a loss [N, T, S]."""

    def interval(self, value: float, drawn: np.ndarray) -> tuple[float, float]:
        """The interval of a value from its resamples [R]; NaN where there is nothing to resample."""


def resample(counts: np.ndarray, k: int, generator: np.random.Generator, parameters: Evaluate) -> Resamples:
    """Of the sites; of the periods where there are fewer than 50 sites and at least 10 periods. Counts: test, [T, S]."""
    n_periods, n_sites = counts.shape
    of_periods = n_sites < FEW_SITES and n_periods >= MANY_PERIODS
    return (Periods if of_periods else Sites)(counts, k, generator, parameters)


class Sites:
    """Intervals by subsets of the sites: the protocol of Heuton et al. (AJE 2024) for panels of any size.

    `n_resamples` times, n = share × S of the S sites are drawn without replacement, and with them all their periods and
    scores; K shrinks in proportion, K' = round(K n / S), so that the choice is as hard as on all sites (the AJE kept
    K = 100 on 1078 of 1328 sites). Nothing is trained again.

    A quantity that is a mean over sites varies between subsets of n of S sites by √((1 − f)/f), f = n/S, of what it
    varies between samples of S sites: by half at a share of 0.8, where the plain percentiles of the AJE protocol are a
    two-thirds interval called 95 % (measured on Cook County: standard deviation of BPR-100 of the five-year average 0.012
    over subsets, 0.023 over bootstrap samples). The delete-d jackknife (Shao & Wu, Annals of Statistics 17, 1989)
    multiplies by √(f/(1 − f)), and so is done here: an interval reaches from value + √(f/(1 − f)) (q_low − q_half)
    to value + √(f/(1 − f)) (q_high − q_half), with the quantiles q of the resampled values. It does not depend much
    on the share, and the rounding of K' does not shift it.

    What it covers: which sites happened to be in the panel, as a sample of many independent ones. What it does not:
    other years (the test periods are fixed, and a year hits all sites together), the training (models are not trained
    again, seeds not drawn again), neighbouring sites that resemble each other, and the choice of the best of several
    forecasts. On few sites there are few different subsets, and it says little.
    """

    kind = "sites"

    def __init__(self, counts: np.ndarray, k: int, generator: np.random.Generator, parameters: Evaluate) -> None:
        n_sites = counts.shape[1]
        size = min(max(1, round(parameters.share * n_sites)), max(1, n_sites - 1))
        self.counts = counts
        self.k = min(max(1, round(k * size / n_sites)), size)
        self.sites = np.empty((parameters.n_resamples, size), np.int32)
        for row in self.sites:
            row[:] = np.sort(generator.choice(n_sites, size, replace=False))
        share = size / n_sites
        self.scale = np.sqrt(share / (1 - share)) if share < 1 else np.nan  # one site: nothing to leave out
        self.levels = _levels(parameters)
        self.oracle = np.stack([self._oracle(row) for row in counts])  # [T, R]

    def bpr(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `Resamples`; ties exact, periods without events in the subset left out."""
        shares = np.stack(
            [[self._bpr(*row) for row in zip(run, self.counts, strict=True)] for run in scores]
        )  # [N, T, R]
        return nan_mean(shares, 1).mean(0), _pooled(shares, self.oracle, axis=1).mean(0)

    def mean(self, loss: np.ndarray) -> np.ndarray:
        """See `Resamples`."""
        by_site = loss.mean((0, 1))
        return np.array([by_site[sites].mean() for sites in self.sites])

    def interval(self, value: float, drawn: np.ndarray) -> tuple[float, float]:
        """See the class."""
        low, half, high = _quantiles(value, drawn, self.levels)
        return float(value + self.scale * (low - half)), float(value + self.scale * (high - half))

    def _bpr(self, scores: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return np.concatenate([bpr(scores[sites], counts[sites], self.k, reduce=None) for sites in self._chunks()])

    def _oracle(self, counts: np.ndarray) -> np.ndarray:
        ends = (np.partition(counts[sites], -self.k, axis=1)[:, -self.k :].sum(1) for sites in self._chunks())
        return np.concatenate(list(ends))

    def _chunks(self) -> Iterator[np.ndarray]:
        size = max(1, CHUNK_CELLS // self.sites.shape[1])
        return (self.sites[i : i + size] for i in range(0, len(self.sites), size))


class Periods:
    """Intervals by resampled periods, for few sites and many periods: the plain percentile bootstrap.

    `n_resamples` times, T of the T test periods are drawn with replacement; the interval reaches from one quantile of the
    resampled values to the other.

    What it covers: other periods of the same sites, as if periods were independent (a slow change over time makes it too
    narrow). What it does not: other sites, the training, and the choice of the best of several forecasts.
    """

    kind = "periods"

    def __init__(self, counts: np.ndarray, k: int, generator: np.random.Generator, parameters: Evaluate) -> None:
        n_periods = len(counts)
        self.counts, self.k = counts, k
        self.periods = generator.integers(0, n_periods, (parameters.n_resamples, n_periods))  # [R, T]
        self.levels = _levels(parameters)
        self.oracle = np.sort(counts, axis=1)[:, -k:].sum(1)  # [T]

    def bpr(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `Resamples`; ties exact, periods without events left out."""
        shares = np.stack([bpr(run, self.counts, self.k, reduce=None) for run in scores])[:, self.periods]  # [N, R, T]
        return nan_mean(shares, 2).mean(0), _pooled(shares, self.oracle[self.periods], axis=2).mean(0)

    def mean(self, loss: np.ndarray) -> np.ndarray:
        """See `Resamples`."""
        return loss.mean((0, 2))[self.periods].mean(1)

    def interval(self, value: float, drawn: np.ndarray) -> tuple[float, float]:
        """See the class."""
        low, _, high = _quantiles(value, drawn, self.levels)
        return float(low), float(high)


def nan_mean(values: np.ndarray, axis: int) -> np.ndarray:
    """Mean over an axis without NaN; NaN where nothing is left."""
    known = ~np.isnan(values)
    number = known.sum(axis)
    return np.where(number > 0, np.where(known, values, 0.0).sum(axis) / np.maximum(number, 1), np.nan)


def _pooled(shares: np.ndarray, oracle: np.ndarray, axis: int) -> np.ndarray:
    above, below = (np.nan_to_num(shares) * oracle).sum(axis), oracle.sum(axis - 1)
    return np.where(below > 0, above / np.where(below > 0, below, 1), np.nan)


def _levels(parameters: Evaluate) -> list[float]:
    return [(1 - parameters.confidence) / 2, 0.5, (1 + parameters.confidence) / 2]


def _quantiles(value: float, drawn: np.ndarray, levels: list[float]) -> np.ndarray:
    drawn = drawn[np.isfinite(drawn)]
    return np.quantile(drawn, levels) if len(drawn) and np.isfinite(value) else np.full(len(levels), np.nan)
