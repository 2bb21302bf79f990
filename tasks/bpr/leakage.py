"""Does a feature know the counts of its own period, or of a later one? Statistics of each feature, for the gate.

A feature is honest if it is fixed before its period begins. Then, given the past, it can hardly be associated with what
is new in the period's counts; a feature made from those counts is.
"""

import re

import numpy as np
import pandas as pd

from tasks.bpr.dataset import Panel

LAGS = 3  # counts of so many periods before are taken as known
MAX_CELLS = 200_000  # more sites are thinned evenly
NOISE = 4.0  # associations within so many standard errors of 0 count as 0
SPEAKING_NAME = re.compile(r"_LEAK$|same_?(year|period|month|week|day)", re.IGNORECASE)


def leak_statistics(panel: Panel) -> pd.DataFrame:
    """One row per feature: columns feature, named, correlation, own_period, next_period, test_mean.

    named: the name itself says that the feature belongs to its own period.
    correlation: |Pearson| with the same period's counts over all cells after history; for a feature that is the same at
        all sites, with the periods' totals over time (at least 5 periods). 0 where the last period's counts do as well.
    own_period, next_period: |partial correlation| of f_t with y_t (y_t+1) over cells, within periods, given the 3 counts
        before y, their mean over all periods before, and f_t-1: the less of that in plain numbers and in signed square
        roots, so that single large counts do not decide. f_t-1 takes away what belongs to the site for good. `own_period`
        is 0 where the feature follows the last period's counts (same statistic, given what was known then) at least as
        well and the association is at most 0.5: a quantity of the last period does so, one of this period does not.
    test_mean: for features that never change, |partial correlation| over sites with the mean count in the test periods
        given the means in history, training and validation: finds averages of the target that include the test.

    Values within 4 standard errors of 0, and those of tables too small for an estimate, are 0.

    Measured on Cook County, cranes, New York and Berlin's 16 counts, with their own features and others made from the
    past (852 honest ones; the limits of the gate were chosen on the same data): own_period at most .203, next_period at
    most .306 (.563 in random panels of few sites), test_mean at most .13. Crashes of the same year in New York:
    own_period .279; moving averages, cumulated sums, shares, ranks and logarithms of the count that include the own
    period: .258 to 1. Found in part only: the own period's count under noise as large as the counts' own standard
    deviation (13 of 35 panels), whether there was any event (7 of 35), growth in per cent (23 of 35). Not found: quantities
    of the same period that are hardly associated with the count, and leaks in the first period.
    """
    panel = _thinned(panel)
    rows = []
    for position, name in enumerate(panel.feature_names):
        feature = panel.features[:, :, position]
        known = feature[panel.split != "history"]
        changes = bool((known != known[:1]).any())
        own = _association(feature, panel, 0)
        if own <= 0.5 and own <= _association(feature, panel, -1):
            own = 0.0
        rows.append(
            {
                "feature": name,
                "named": bool(SPEAKING_NAME.search(name)),
                "correlation": _correlation(feature, panel),
                "own_period": own,
                "next_period": _association(feature, panel, 1),
                "test_mean": 0.0 if changes else _with_test_mean(known[0], panel),
            }
        )
    columns = ["feature", "named", "correlation", "own_period", "next_period", "test_mean"]
    return pd.DataFrame(rows, columns=columns)


def _thinned(panel: Panel) -> Panel:
    step = -(-panel.counts.size // MAX_CELLS)
    if step == 1:
        return panel
    return Panel(
        panel.sites[::step],
        panel.periods,
        panel.split,
        panel.time,
        panel.counts[:, ::step],
        panel.features[:, ::step],
        panel.feature_names,
        None,
        None,
        panel.k,
    )


def _correlation(feature: np.ndarray, panel: Panel) -> float:
    rows = np.flatnonzero(panel.split != "history")
    values = feature[rows]
    if (values == values[:, :1]).all():
        totals = panel.counts.sum(axis=1)
        return _pearson(values[:, 0], totals[rows]) if len(rows) >= 5 else 0.0
    with_own = _pearson(values.ravel(), panel.counts[rows].ravel())
    later = rows[rows > 0]
    with_last = _pearson(feature[later].ravel(), panel.counts[later - 1].ravel())
    return with_own if with_own > with_last + 1e-6 else 0.0


def _pearson(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    product = np.sqrt((a @ a) * (b @ b))
    return float(min(abs(a @ b) / product, 1.0)) if product > 0 else 0.0


def _association(feature: np.ndarray, panel: Panel, ahead: int) -> float:
    """|partial correlation| of f_t with y_t+ahead given what was known before that period, and f_t-1."""
    return min(
        _partial(feature, panel, ahead, scale) for scale in (lambda x: x, lambda x: np.sign(x) * np.sqrt(abs(x)))
    )


def _partial(feature: np.ndarray, panel: Panel, ahead: int, scale) -> float:
    counts, feature = scale(panel.counts), scale(feature)
    present = ~np.isnan(feature).any(axis=1)
    f, y, controls = [], [], []
    for t in np.flatnonzero(panel.split != "history"):
        target = t + ahead
        if not (1 <= target < len(counts) and present[t - 1]):
            continue
        before = [counts[target - lag] for lag in range(1, LAGS + 1) if target >= lag]
        before += [np.zeros(counts.shape[1])] * (LAGS - len(before))
        known = np.stack([*before, counts[:target].mean(axis=0), feature[t - 1]], axis=1)
        f.append(feature[t] - feature[t].mean())
        y.append(counts[target] - counts[target].mean())
        controls.append(known - known.mean(axis=0))
    if not f:
        return 0.0
    return _partial_correlation(np.concatenate(f), np.concatenate(y), np.concatenate(controls), taken=len(f))


def _with_test_mean(feature: np.ndarray, panel: Panel) -> float:
    parts = [panel.counts[panel.split == s].mean(axis=0) for s in ("history", "train", "valid") if s in panel.split]
    controls = np.stack(parts, axis=1)
    test = panel.counts[panel.split == "test"].mean(axis=0)
    return _partial_correlation(feature - feature.mean(), test - test.mean(), controls - controls.mean(axis=0), taken=1)


def _partial_correlation(a: np.ndarray, b: np.ndarray, controls: np.ndarray, *, taken: int) -> float:
    """|correlation| of the residuals; 0 where one is explained in full, or too few cells are left for an estimate.

    `taken`: degrees of freedom that were taken before (means of periods).
    """
    free = len(a) - controls.shape[1] - taken
    if free < 10:
        return 0.0
    controls = controls / np.maximum(controls.std(axis=0), 1e-12)
    rest = []
    for values in (a, b):
        left = values - controls @ np.linalg.lstsq(controls, values, rcond=1e-9)[0]
        if left.std() <= 1e-6 * values.std():
            return 0.0
        rest.append(left)
    found = _pearson(*rest)
    return found if found > NOISE * np.sqrt((1 - found**2) / free) else 0.0
