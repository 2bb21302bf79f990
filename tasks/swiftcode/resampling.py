"""Intervals by the bootstrap over tasks: whole tasks are drawn again, in all their languages and with all their answers."""

import numpy as np


def draw_weights(tasks: np.ndarray, n_resamples: int, generator: np.random.Generator) -> np.ndarray:
    """How often each row counts, as it is and in every resample of P tasks: float64 [U, 1 + R], the first column ones.

    It covers which tasks happened to be asked, and not the training (no model is trained again). Differences of two
    quantities with the same weights are paired. Of fewer than two tasks there is nothing to draw, and no resample.

    Args:
        tasks: the task of each row, [U].
    """
    names, of_row = np.unique(tasks, return_inverse=True)
    if len(names) < 2:
        return np.ones((len(tasks), 1))
    drawn = generator.multinomial(len(names), np.full(len(names), 1 / len(names)), n_resamples)
    return np.vstack([np.ones(len(tasks)), drawn[:, of_row]]).T


def interval(values: np.ndarray, confidence: float) -> tuple[float, float]:
    """The percentile interval of a quantity, float64 [1 + R], its value first; NaN where there is no value or resample."""
    drawn = values[1:][np.isfinite(values[1:])]
    if not len(drawn) or not np.isfinite(values[0]):
        return float("nan"), float("nan")
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
