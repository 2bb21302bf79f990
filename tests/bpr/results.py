"""A made-up panel with its tables as the earlier stages would write them: what the results' tests read."""

from pathlib import Path

import numpy as np
import pandas as pd

from tasks.bpr.dataset import Panel, write_panel
from tasks.bpr.schemas import BASELINES, EPOCHS, FORECASTS, RUNS, SCORES
from tasks.tables import write_table

RULES = ("mean", "ratio", "topk_ratio")
OBJECTIVES = (("ml", None), ("bpr", None), ("daml", 1.0), ("daml", 0.8))


def made_up_panel(n_sites: int = 60, n_test: int = 2, k: int = 6, seed: int = 0, coordinates: bool = True) -> Panel:
    """2 training, 2 validation and `n_test` test periods, Poisson counts of very different sites."""
    generator = np.random.default_rng(seed)
    rate = generator.gamma(0.6, 5, n_sites)
    n_periods = 4 + n_test
    return Panel(
        pd.Index([f"s{i:03d}" for i in range(n_sites)], name="site"),
        pd.Index([str(2000 + t) for t in range(n_periods)], name="period"),
        np.array(["train", "train", "valid", "valid"] + ["test"] * n_test),
        np.arange(n_periods, dtype=float),
        generator.poisson(rate, (n_periods, n_sites)).astype(float),
        generator.normal(size=(n_periods, n_sites, 1)),
        ["x"],
        None,
        generator.normal(size=(n_sites, 2)) if coordinates else None,
        k,
        "made up",
    )


def tables(panel: Panel, noise: dict[str, float] | None = None, seeds=(0, 1), rules=RULES) -> dict[str, pd.DataFrame]:
    """BASELINES, RUNS, SCORES, FORECASTS and EPOCHS; a score is the later count plus `noise` × a normal draw.

    `noise` is by baseline and by model ("ml", "daml0.8"); 0 chooses the best sites in hindsight.
    """
    noise = {"average1": 5, "average2": 3, "average4": 4, "ridge": 3, **(noise or {})}
    later = panel.part("valid", "test")
    cells = pd.MultiIndex.from_product([later.periods, later.sites]).to_frame(index=False, name=["period", "site"])
    generator = np.random.default_rng(7)
    shape = later.counts.shape

    def scores(size: float) -> np.ndarray:
        return (later.counts + size * generator.normal(size=shape)).ravel()

    baselines = []
    for name in ("average1", "average2", "average4", "ridge"):
        score = scores(noise[name])
        baselines.append(cells.assign(baseline=name, score=score, mean=np.maximum(score, 0)))
    baselines.append(cells.assign(baseline="chance", score=0.0, mean=np.nan))
    runs, scored, forecasted, epochs = [], [], [], []
    for objective, epsilon in OBJECTIVES:
        model = objective if epsilon is None else f"{objective}{epsilon:g}"
        for seed in seeds:
            run = f"{model}-{seed}"
            runs.append(
                {
                    **{"run": run, "objective": objective, "epsilon": epsilon, "seed": seed, "kept_epoch": 10},
                    **{"last_train_bpr": 0.9, "last_train_bpr_least": 0.8, "last_train_nll": 1.5},
                    **{"feasible_periods": None if epsilon is None else seed, "train_periods": 2},
                }
            )
            for rule in rules:
                scored.append(cells.assign(run=run, rule=rule, score=scores(noise.get(model, 3))))
            mean = np.maximum(scores(1.0), 0.1)
            log_prob = -generator.gamma(2, 1, len(cells))
            forecasted.append(cells.assign(run=run, mean=mean, variance=mean, log_prob=log_prob))
            for epoch in (0, 10, 20):
                epochs.append(
                    {
                        **{
                            "run": run,
                            "epoch": epoch,
                            "loss": 1.0,
                            "train_nll": 2 - epoch / 40,
                            "train_bpr": 0.5 + epoch / 60,
                        },
                        **{"train_bpr_least": 0.4, "valid_nll": 2.1, "valid_bpr": 0.6, "sigma": 0.1},
                    }
                )
    runs = pd.DataFrame(runs).astype({"feasible_periods": "Int32"})
    return {
        "baselines": pd.concat(baselines, ignore_index=True),
        "runs": runs,
        "scores": pd.concat(scored, ignore_index=True),
        "forecasts": pd.concat(forecasted, ignore_index=True),
        "epochs": pd.DataFrame(epochs),
    }


def categorical(found: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables as `read_table` gives them: texts as categories."""
    texts = ("run", "rule", "period", "site", "baseline", "objective")
    return {
        name: table.astype({column: "category" for column in texts if column in table}).astype(
            {"epsilon": "float64"} if "epsilon" in table else {}
        )
        for name, table in found.items()
    }


def write_dataset(folder: Path, panel: Panel, found: dict[str, pd.DataFrame]) -> None:
    """All files of a data set's folder."""
    (folder / "models").mkdir(parents=True)
    write_panel(folder / "panel", panel)
    write_table(folder / "baselines.parquet", found["baselines"], BASELINES)
    write_table(folder / "models/runs.parquet", found["runs"], RUNS)
    write_table(folder / "models/epochs.parquet", found["epochs"], EPOCHS)
    write_table(folder / "scores.parquet", found["scores"], SCORES)
    write_table(folder / "forecasts.parquet", found["forecasts"], FORECASTS)
