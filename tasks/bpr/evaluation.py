"""What the forecasts of one panel are worth: BPR, errors and likelihood on the test periods, intervals, comparisons."""

import re
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from tasks.bpr.dataset import Panel
from tasks.bpr.metrics import bpr, bpr_table, chosen
from tasks.bpr.params import Evaluate
from tasks.bpr.resampling import Resamples, nan_mean, resample
from tasks.stage import UserError
from tasks.tables import significant


@dataclass(frozen=True)
class Predictions:
    """What every forecast says of the T validation and test periods, for N runs that differ by their seed.

    A forecast is a baseline (one run) or `<model>.<rule>`; a model is an objective with its epsilon, as `daml0.8`.

    Attributes:
        scores: by forecast, float64 [N, T, S]; the K sites of largest score are chosen.
        means: by baseline and model, float64 [N, T, S], expected counts; only where the forecast has them.
        log_probs: by model, float64 [N, T, S], nats.
        runs: by model, the names of the runs in the order of the first axis.
    """

    scores: dict[str, np.ndarray]
    means: dict[str, np.ndarray]
    log_probs: dict[str, np.ndarray] = field(default_factory=dict)
    runs: dict[str, list[str]] = field(default_factory=dict)

    def model_forecasts(self) -> list[str]:
        """The forecasts that are a model's."""
        return [name for name in self.scores if name.rpartition(".")[0] in self.runs]


def model_name(objective: str, epsilon: float) -> str:
    """An objective with its epsilon.

    >>> model_name("ml", float("nan")), model_name("daml", 1.0), model_name("daml", 0.8)
    ('ml', 'daml1', 'daml0.8')
    """
    return objective if np.isnan(epsilon) else f"{objective}{epsilon:g}"


BASELINES = {  # beside the moving averages, in the order of the reports
    "ridge": "ridge regression",
    "poisson": "Poisson regression",
    "boosted_trees": "boosted trees",
    "empirical_mean": "training periods, mean",
    "empirical_ratio": "training periods, ratio",
    "empirical_topk_ratio": "training periods, top-K ratio",
    "chance": "chance",
}


def moving_average(forecast: str) -> int | None:
    """The length of a moving average by its name, None for other forecasts.

    >>> moving_average("average10"), moving_average("ridge")
    (10, None)
    """
    match = re.fullmatch(r"average(\d+)", forecast)
    return int(match[1]) if match else None


def grids(table: pd.DataFrame, keys: list[str], values: list[str], panel: Panel, where: str) -> dict:
    """{key or tuple of keys: {value: float64 [T, S]}} of a long table; the order of its rows does not matter.

    Raises:
        UserError: a key has not exactly one row for every period and site of the panel.
    """
    shape = len(panel.periods), len(panel.sites)
    row, column = (
        index.get_indexer(table[name].cat.categories.astype("str"))[table[name].cat.codes]
        for index, name in ((panel.periods, "period"), (panel.sites, "site"))
    )
    known = (row >= 0) & (column >= 0)
    cell = row * shape[1] + column
    found = {}
    for key, rows in table.groupby(keys if len(keys) > 1 else keys[0], observed=True, sort=True).indices.items():
        if not known[rows].all() or not np.array_equal(np.sort(cell[rows]), np.arange(shape[0] * shape[1])):
            name = ", ".join(key) if isinstance(key, tuple) else key
            raise UserError(f"{where}: {name}: not one row for every validation and test period and every site")
        order = rows[np.argsort(cell[rows])]
        found[key] = {value: table[value].to_numpy(np.float64)[order].reshape(shape) for value in values}
    return found


def gather(
    panel: Panel,
    baselines: pd.DataFrame,
    runs: pd.DataFrame | None = None,
    scores: pd.DataFrame | None = None,
    forecasts: pd.DataFrame | None = None,
    *,
    where: str = "",
) -> Predictions:
    """The tables BASELINES and, of trained models, RUNS, SCORES and FORECASTS as arrays.

    Args:
        panel: its validation and test periods only.
        where: the folder of the tables, for errors.

    Raises:
        UserError: a table lacks cells, or SCORES or FORECASTS do not hold exactly the runs of RUNS.
    """
    found = grids(baselines, ["baseline"], ["score", "mean"], panel, f"{where}baselines.parquet")
    names = sorted(found, key=_baseline_order)
    by_score = {name: found[name]["score"][None] for name in names}
    by_mean = {name: found[name]["mean"][None] for name in names if not np.isnan(found[name]["mean"]).any()}
    if runs is None:
        return Predictions(by_score, by_mean)
    scored = grids(scores, ["run", "rule"], ["score"], panel, f"{where}scores.parquet")
    said = grids(forecasts, ["run"], ["mean", "log_prob"], panel, f"{where}forecasts.parquet")
    rules = sorted({rule for _, rule in scored})
    wanted = sorted(runs["run"])
    if sorted(said) != wanted or sorted(scored) != [(run, rule) for run in wanted for rule in rules]:
        raise UserError(f"{where}scores.parquet, forecasts.parquet: not of the runs of the trained models; rank again")
    named = runs.assign(
        run=runs["run"].astype("str"),
        model=[model_name(o, e) for o, e in zip(runs["objective"], runs["epsilon"], strict=True)],
        order=runs["objective"].astype("str").map({"ml": 0, "bpr": 1, "daml": 2}),
    ).sort_values(["order", "epsilon", "seed"], ascending=[True, False, True])
    log_probs, members = {}, {}
    for model, part in named.groupby("model", sort=False):
        members[model] = list(part["run"])
        for rule in rules:
            by_score[f"{model}.{rule}"] = np.stack([scored[run, rule]["score"] for run in members[model]])
        by_mean[model] = np.stack([said[run]["mean"] for run in members[model]])
        log_probs[model] = np.stack([said[run]["log_prob"] for run in members[model]])
    return Predictions(by_score, by_mean, log_probs, members)


def _baseline_order(name: str) -> tuple:
    length = moving_average(name)
    others = list(BASELINES)
    if length is not None:
        return 0, length, name
    return 1, others.index(name) if name in others else len(others), name


def evaluate_panel(
    panel: Panel, predictions: Predictions, generator: np.random.Generator, parameters: Evaluate
) -> dict[str, object]:
    """Flat metrics of one panel's forecasts on its test periods; the keys:

    - `bpr.<forecast>`: mean over the test periods and over the runs of Σ_chosen y / Σ_(K best) y, ties exact, with
      `.low` and `.high` (`resampling`, over `data.interval`), `.seed_sd` over the runs and `.period_sd` over the periods
      (sample deviations); periods without events are left out. `bpr_pooled.<forecast>`: sums over periods divided.
    - `reached.<forecast>`: events at the chosen sites, over all test periods, mean over runs.
    - `mae.<baseline or model>`: |y − mean|; `nll.<model>`: −log probability in nats; means per site and period.
    - `valid_bpr.<forecast>`: as `bpr`, on the validation periods. By it, and never by the test, are chosen
      `comparison.average` (moving average; of equals the shortest) and `comparison.model` (of equals the first);
      `comparison.average_best_on_test` is named only to be known.
    - `difference.<forecast>.minus.<comparison.average>`: of `bpr`, paired, for all forecasts but averages and chance.

    Args:
        panel: its validation and test periods only.
        generator: of the resamples.
    """
    test = panel.split == "test"
    counts, k = panel.counts[test], panel.k
    resamples = resample(counts, k, generator, parameters)
    metrics: dict[str, object] = {"data.interval": f"over {resamples.kind}"}
    valid = {
        name: float(np.mean([bpr(run, panel.counts[~test], k) for run in scores[:, ~test]]))
        for name, scores in predictions.scores.items()
    }
    tested = {
        name: _test_bpr(resamples, scores[:, test], counts, k, name, metrics)
        for name, scores in predictions.scores.items()
    }
    metrics |= {f"valid_bpr.{name}": value for name, value in valid.items()}
    _put_errors(resamples, predictions, counts, test, metrics)
    averages = [name for name in predictions.scores if moving_average(name) is not None]
    metrics["comparison.average"] = average = _best(valid, averages)
    metrics["comparison.average_best_on_test"] = _best({name: t.value for name, t in tested.items()}, averages)
    metrics["comparison.model"] = _best(valid, predictions.model_forecasts())
    if average is not None:
        periods = tested[average].by_period[~np.isnan(tested[average].by_period)]
        metrics["comparison.average_least_period"] = float(periods.min()) if len(periods) else np.nan
        metrics["comparison.average_greatest_period"] = float(periods.max()) if len(periods) else np.nan
        for name, result in tested.items():
            if name not in averages and name != "chance":
                key = f"difference.{name}.minus.{average}"
                value = result.value - tested[average].value
                _put(metrics, key, value, resamples.interval(value, result.drawn - tested[average].drawn))
                metrics[f"{key}.period_sd"] = _deviation(result.by_period - tested[average].by_period)
    return metrics


@dataclass(frozen=True)
class _Tested:
    value: float
    drawn: np.ndarray  # [R]
    by_period: np.ndarray  # [T]


def _test_bpr(resamples: Resamples, scores, counts, k: int, name: str, metrics: dict) -> _Tested:
    by_run = np.stack([bpr(run, counts, k, reduce=None) for run in scores])  # [N, T]
    drawn, drawn_pooled = resamples.bpr(scores)
    value = float(nan_mean(by_run, 1).mean())
    _put(metrics, f"bpr.{name}", value, np.clip(resamples.interval(value, drawn), 0.0, 1.0))
    if len(scores) > 1:
        metrics[f"bpr.{name}.seed_sd"] = _deviation(nan_mean(by_run, 1))
    metrics[f"bpr.{name}.period_sd"] = _deviation(by_run.mean(0))
    pooled = float(np.mean([bpr(run, counts, k, reduce="pooled") for run in scores]))
    _put(metrics, f"bpr_pooled.{name}", pooled, np.clip(resamples.interval(pooled, drawn_pooled), 0.0, 1.0))
    metrics[f"reached.{name}"] = float(np.mean([bpr_table(run, counts, k)["reached"].sum() for run in scores]))
    return _Tested(value, drawn, by_run.mean(0))


def _put_errors(resamples: Resamples, predictions: Predictions, counts, test, metrics: dict) -> None:
    losses = {f"mae.{name}": np.abs(mean[:, test] - counts) for name, mean in predictions.means.items()}
    losses |= {f"nll.{name}": -log_prob[:, test] for name, log_prob in predictions.log_probs.items()}
    for key, loss in losses.items():
        value = float(loss.mean())
        _put(metrics, key, value, resamples.interval(value, resamples.mean(loss)))
        if len(loss) > 1:
            metrics[f"{key}.seed_sd"] = _deviation(loss.mean((1, 2)))


def _put(metrics: dict, key: str, value: float, interval) -> None:
    metrics[key] = value
    metrics[f"{key}.low"], metrics[f"{key}.high"] = map(float, interval)


def _deviation(values: np.ndarray) -> float:
    values = values[np.isfinite(values)]
    return float(values.std(ddof=1)) if len(values) > 1 else np.nan


def _best(values: dict[str, float], names: list[str]) -> str | None:
    """The name of the largest value, of equals the first; None where no value is known."""
    known = [name for name in names if not np.isnan(values[name])]
    return max(known, key=values.__getitem__) if known else None


def describe_panel(panel: Panel) -> dict[str, object]:
    """`data.*`: sizes of the whole panel, and what could be reached in its test periods."""
    test = panel.part("test")
    table = bpr_table(np.zeros_like(test.counts), test.counts, panel.k)
    return {
        "data.origin": panel.origin,
        "data.sites": len(panel.sites),
        "data.k": panel.k,
        "data.features": len(panel.feature_names),
        **{f"data.{part}_periods": int((panel.split == part).sum()) for part in ("history", "train", "valid", "test")},
        "data.test_periods_without_events": int((test.counts.sum(1) == 0).sum()),
        "data.test_events": float(test.counts.sum()),
        "data.test_oracle": float(table["oracle"].sum()),
        "data.test_share_of_cells_without_events": float((test.counts == 0).mean()),
        "data.chance": float(nan_mean(table["bpr"], 0)),
    }


def describe_training(runs: pd.DataFrame) -> dict[str, object]:
    """`training.<model>.*`, means over seeds of RUNS: BPR in training at the last epoch, periods that reach epsilon."""
    found: dict[str, object] = {}
    models = [model_name(o, e) for o, e in zip(runs["objective"], runs["epsilon"], strict=True)]
    for model, part in runs.assign(model=models).sort_values("seed").groupby("model", sort=True):
        found |= {
            f"training.{model}.seeds": len(part),
            f"training.{model}.last_bpr": float(part["last_train_bpr"].mean()),
            f"training.{model}.last_least_period": float(part["last_train_bpr_least"].mean()),
            f"training.{model}.last_nll": float(part["last_train_nll"].mean()),
            f"training.{model}.kept_epoch": float(part["kept_epoch"].mean()),
        }
        if part["epsilon"].notna().all():
            found[f"training.{model}.feasible_share"] = float((part["feasible_periods"] / part["train_periods"]).mean())
    return found


def per_run(panel: Panel, predictions: Predictions) -> pd.DataFrame:
    """One row per run and rule: model, run, rule, `valid_bpr`, test `bpr`, test `nll` (nats per site and period).

    Args:
        panel: its validation and test periods only.
    """
    test = panel.split == "test"
    rows = []
    for forecast in predictions.model_forecasts():
        model, rule = forecast.rsplit(".", 1)
        for i, run in enumerate(predictions.runs[model]):
            scores = predictions.scores[forecast][i]
            rows.append(
                {
                    "model": model,
                    "run": run,
                    "rule": rule,
                    "valid_bpr": bpr(scores[~test], panel.counts[~test], panel.k),
                    "bpr": bpr(scores[test], panel.counts[test], panel.k),
                    "nll": float(-predictions.log_probs[model][i][test].mean()),
                }
            )
    return pd.DataFrame(rows, columns=["model", "run", "rule", "valid_bpr", "bpr", "nll"])


def flat(metrics: dict[str, object]) -> dict[str, object]:
    """Metrics as they are stored: floats with 6 significant digits, None where there is no (finite) value."""
    return {
        key: (significant(value) if np.isfinite(value) else None) if isinstance(value, float) else value
        for key, value in metrics.items()
    }


def sites_on_map(panel: Panel, predictions: Predictions) -> dict | None:
    """Sites chosen for the last test period with events, by the run and rule with the largest validation BPR.

    Without models, by the moving average of largest validation BPR. Of equals, the first is taken.

    Args:
        panel: its validation and test periods only.

    Returns:
        `coordinates` float64 [S, 2]; `chosen` bool [S]; `best` bool [S], the K sites with most events (fewer where fewer
        had any); `forecast`, `run` ("(run daml1-3)", empty without models) and `period`, texts. None where no period
        of the test has events, or none of the validation.
    """
    test, has_events = panel.split == "test", panel.counts.sum(1) > 0
    if not (test & has_events).any() or not (~test & has_events).any():
        return None
    period = int(np.flatnonzero(test & has_events)[-1])
    names = predictions.model_forecasts() or [n for n in predictions.scores if moving_average(n) is not None]
    candidates = [(name, run) for name in names for run in range(len(predictions.scores[name]))]
    forecast, run = max(
        candidates, key=lambda c: bpr(predictions.scores[c[0]][c[1]][~test], panel.counts[~test], panel.k)
    )
    counts = panel.counts[period]
    mine, best = (np.zeros(len(counts), bool) for _ in range(2))
    mine[chosen(predictions.scores[forecast][run, [period]], panel.k)[0]] = True
    best[chosen(counts[None], panel.k)[0]] = True
    named = predictions.runs.get(forecast.rpartition(".")[0])
    return {
        "coordinates": panel.coordinates,
        "chosen": mine,
        "best": best & (counts > 0),
        "forecast": forecast,
        "run": f"(run {named[run]})" if named else "",
        "period": str(panel.periods[period]),
    }
