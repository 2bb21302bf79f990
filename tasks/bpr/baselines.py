"""Stage: the forecasts that every model has to be compared with."""

from pathlib import Path

from tasks import stage
from tasks.bpr.params import Baselines


@stage.command("bpr.baselines", Baselines)
def baselines(parameters: Baselines, panel: Path, *, out: Path) -> None:
    """Scores and expected counts of moving averages, chance, regressions and the empirical law, in validation and test."""
    import numpy as np
    import pandas as pd
    from threadpoolctl import threadpool_limits

    from tasks.bpr import forecasting, ranking
    from tasks.bpr.dataset import read_panel
    from tasks.bpr.schemas import BASELINES
    from tasks.tables import write_table

    data = read_panel(panel)
    later = np.isin(data.split, ("valid", "test"))
    shape = int(later.sum()), len(data.sites)
    forecasts = {}  # name → (scores, means)
    for n in parameters.averages:
        mean = forecasting.moving_average(data.counts, n)[later]
        forecasts[f"average{n}"] = mean, mean
    forecasts["chance"] = np.zeros(shape), np.full(shape, np.nan)
    with threadpool_limits(1):  # the number of threads shall not change a bit
        for kind in stage.progress(parameters.regressions, "baselines"):
            mean = forecasting.regression(data, kind, alphas=parameters.alphas, seed=parameters.seed)[later]
            forecasts[kind] = mean, np.maximum(mean, 0.0)
    generator = stage.random_generator(parameters.seed, "empirical")
    draws = forecasting.empirical_draws(data, parameters.n_samples, generator)
    for rule in ("mean", "ratio", "topk_ratio"):
        score = np.broadcast_to(getattr(ranking, f"{rule}_scores")(draws, data.k), shape)
        forecasts[f"empirical_{rule}"] = score, np.broadcast_to(draws.mean(axis=0), shape)
    keys = {"period": np.repeat(data.periods[later], shape[1]), "site": np.tile(data.sites, shape[0])}
    tables = [
        pd.DataFrame({"baseline": name, **keys, "score": score.ravel(), "mean": mean.ravel()})
        for name, (score, mean) in forecasts.items()
    ]
    write_table(out, pd.concat(tables, ignore_index=True), BASELINES)


if __name__ == "__main__":
    baselines.run()
