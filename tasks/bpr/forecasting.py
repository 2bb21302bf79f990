"""Forecasts to compare with: moving averages, regressions on the panel's features, the empirical joint law.

All forecast one step ahead from true counts of the periods before, and none is fitted on validation or test periods
(validation chooses the penalty of the linear regressions).
"""

import numpy as np

from tasks.bpr.dataset import Panel


def moving_average(counts: np.ndarray, n: int) -> np.ndarray:
    """float64 [T, S]: mean of the n periods before each, or of all before where there are fewer; NaN in the first.

    >>> moving_average(np.array([[1.0], [3.0], [5.0]]), 2).ravel().tolist()
    [nan, 1.0, 2.0]
    """
    total = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
    last = np.arange(len(counts))
    first = np.maximum(last - n, 0)
    with np.errstate(invalid="ignore"):
        return (total[last] - total[first]) / (last - first)[:, None]


def regression(panel: Panel, kind: str, *, alphas: list[float], seed: int) -> np.ndarray:
    """Expected counts [T, S] (NaN in history periods) of one of scikit-learn's regressions on the training cells.

    Args:
        kind: ``ridge`` or ``poisson`` (log link) on standardised features, with that penalty among `alphas` that
            forecasts the validation cells best (squared error, Poisson deviance; the larger one of equals), or
            ``boosted_trees``: histogram gradient boosting of the Poisson deviance with scikit-learn's defaults.

    With exposure the rate (events per exposure) is the target and exposure the weight of a cell, which for Poisson is the
    same as an offset. Ridge may forecast less than 0.
    """
    known = panel.split != "history"
    features = panel.features[known]
    shape = features.shape[:2]
    cells = features.reshape(-1, features.shape[2]) if features.shape[2] else np.zeros((shape[0] * shape[1], 1))
    counts = panel.counts[known].ravel()
    exposure = np.ones_like(counts) if panel.exposure is None else panel.exposure[known].ravel()
    split = np.repeat(panel.split[known], shape[1])
    train, valid = split == "train", split == "valid"
    candidates = [_regressor(kind, alpha, seed) for alpha in sorted(alphas, reverse=True)]
    best, least = None, np.inf
    for model in candidates if kind != "boosted_trees" else candidates[:1]:
        weights = {f"{model.steps[-1][0]}__sample_weight": exposure[train]}
        model.fit(cells[train], counts[train] / exposure[train], **weights)
        error = _error(kind, counts[valid], model.predict(cells[valid]) * exposure[valid])
        if best is None or error < least:
            best, least = model, error
    forecast = np.full(panel.counts.shape, np.nan)
    forecast[known] = (best.predict(cells) * exposure).reshape(shape)
    return forecast


def _regressor(kind: str, alpha: float, seed: int):
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import PoissonRegressor, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if kind == "ridge":
        return make_pipeline(StandardScaler(), Ridge(alpha=alpha))
    if kind == "poisson":
        return make_pipeline(StandardScaler(), PoissonRegressor(alpha=alpha, max_iter=1000))
    return make_pipeline(HistGradientBoostingRegressor(loss="poisson", early_stopping=False, random_state=seed))


def _error(kind: str, counts: np.ndarray, forecast: np.ndarray) -> float:
    if kind == "ridge":
        return float(np.mean((counts - forecast) ** 2))
    from scipy.special import xlogy

    forecast = np.maximum(forecast, 1e-12)
    return float(2 * np.mean(xlogy(counts, counts / forecast) - counts + forecast))


def empirical_draws(panel: Panel, n_samples: int, generator: np.random.Generator) -> np.ndarray:
    """Counts [M, S] of the history and training periods, equally likely draws of all sites together.

    With more than `n_samples` periods, so many of them drawn without replacement, in time order.
    """
    rows = np.flatnonzero(np.isin(panel.split, ("history", "train")))
    if len(rows) > n_samples:
        rows = np.sort(generator.choice(rows, n_samples, replace=False))
    return panel.counts[rows]
