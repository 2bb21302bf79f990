"""Accuracies with bootstrap intervals, and the agreement of workers."""

from dataclasses import dataclass

import numpy as np

from tasks.label_completion.answers import Answers


@dataclass(frozen=True)
class Estimate:
    """A value with its interval; `low` and `high` are None where there is nothing to resample."""

    value: float
    low: float | None
    high: float | None


class Bootstrap:
    """Percentile intervals for shares over tasks and repeats, with the same resamples for all quantities.

    Tasks are resampled with replacement and, where there is more than one, repeats independently of them: the interval
    covers the choice of tasks and the draw of workers and answers. Differences of two quantities are therefore paired.
    """

    def __init__(
        self, n_repeats: int, n_tasks: int, generator: np.random.Generator, *, n_resamples: int, confidence: float
    ) -> None:
        self.tasks = _counts(generator, n_resamples, n_tasks)
        self.repeats = _counts(generator, n_resamples, n_repeats) if n_repeats > 1 else np.ones((n_resamples, 1))
        self.tails = [(1 - confidence) / 2, (1 + confidence) / 2]

    def ratio(self, above: np.ndarray, below: np.ndarray | None = None) -> Estimate:
        """Σ above / Σ below over (repeats, tasks), both whole numbers; `below` defaults to 1: a mean over tasks.

        Sums of whole numbers are exact in float64, so the result does not depend on the order in which BLAS adds.
        """
        below = np.ones_like(above) if below is None else below
        total = below.sum()
        if total == 0:
            return Estimate(float("nan"), None, None)
        drawn = self._sums(above) / np.maximum(self._sums(below), 1)
        low, high = np.quantile(drawn, self.tails)
        return Estimate(float(above.sum() / total), float(low), float(high))

    def _sums(self, values: np.ndarray) -> np.ndarray:
        return (self.repeats.T * (values.astype(np.float64) @ self.tasks.T)).sum(0)


def _counts(generator: np.random.Generator, n_resamples: int, n: int) -> np.ndarray:
    return generator.multinomial(n, np.full(n, 1 / n), n_resamples).astype(np.float64)


def krippendorff_alpha(answers: Answers) -> float:
    """Krippendorff's α for nominal labels: 1 − observed / expected disagreement.

    From a table of counts per task and class, O(n + N·C); tasks with one answer are left out, missing answers count
    nothing. 1 for perfect agreement, also if only one class occurs; NaN where no task has two answers.
    Source: Krippendorff, Content Analysis, 2004.
    """
    counts = np.zeros((len(answers.tasks), len(answers.classes)))
    np.add.at(counts, (answers.task, answers.label), 1)
    size = counts.sum(1)
    counts, size = counts[size > 1], size[size > 1]
    if not len(counts):
        return float("nan")
    n = size.sum()
    observed = ((size**2 - (counts**2).sum(1)) / (size - 1)).sum() / n
    by_class = counts.sum(0)
    expected = (n**2 - (by_class**2).sum()) / (n * (n - 1))
    return 1.0 if expected == 0 else float(1 - observed / expected)
