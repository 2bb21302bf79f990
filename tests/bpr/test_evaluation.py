"""Intervals and comparisons: by hand, invariant to order, honest where there is little."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from tasks.bpr.evaluation import (
    Predictions,
    describe_panel,
    describe_training,
    evaluate_panel,
    flat,
    gather,
    per_run,
    sites_on_map,
)
from tasks.bpr.metrics import bpr
from tasks.bpr.params import Evaluate
from tasks.bpr.resampling import Periods, Sites, resample
from tasks.stage import UserError
from tests.bpr.results import RULES, categorical, made_up_panel, tables

OPTIONS = Evaluate(n_resamples=200)


def gathered(panel, **options) -> Predictions:
    found = categorical(tables(panel, **options))
    return gather(panel.part("valid", "test"), *(found[n] for n in ("baselines", "runs", "scores", "forecasts")))


def evaluated(panel, predictions, seed=0, options=OPTIONS):
    return evaluate_panel(panel.part("valid", "test"), predictions, np.random.default_rng(seed), options)


@pytest.fixture(scope="module")
def panel():
    return made_up_panel()


@pytest.fixture(scope="module")
def predictions(panel):
    return gathered(panel)


@pytest.fixture(scope="module")
def metrics(panel, predictions):
    return evaluated(panel, predictions)


def test_forecasts_and_their_order(predictions):
    models = ["ml", "bpr", "daml1", "daml0.8"]
    baselines = ["average1", "average2", "average4", "ridge", "chance"]
    assert list(predictions.scores) == baselines + [f"{model}.{rule}" for model in models for rule in RULES]
    assert predictions.model_forecasts() == list(predictions.scores)[len(baselines) :]
    assert list(predictions.means) == [*baselines[:-1], *models]
    assert predictions.runs["daml0.8"] == ["daml0.8-0", "daml0.8-1"]
    assert predictions.scores["ml.mean"].shape == (2, 4, 60)


def test_values_are_those_of_the_metric(panel, predictions, metrics):
    test = panel.part("test")
    best = np.sort(test.counts, axis=1)[:, -test.k :].sum(1)
    for name in ("average2", "daml1.ratio", "chance"):
        shares, reached, pooled = [], [], []
        for run in predictions.scores[name][:, 2:]:
            if name == "chance":
                events = test.k * test.counts.mean(1)
            else:
                events = np.array([y[np.argsort(-r)[: test.k]].sum() for r, y in zip(run, test.counts, strict=True)])
            shares.append(events / best)
            reached.append(events.sum())
            pooled.append(events.sum() / best.sum())
        shares = np.array(shares)
        assert metrics[f"bpr.{name}"] == pytest.approx(shares.mean())
        assert metrics[f"reached.{name}"] == pytest.approx(np.mean(reached))
        assert metrics[f"bpr_pooled.{name}"] == pytest.approx(np.mean(pooled))
        assert metrics[f"bpr.{name}.period_sd"] == pytest.approx(shares.mean(0).std(ddof=1))
        if len(shares) > 1:
            assert metrics[f"bpr.{name}.seed_sd"] == pytest.approx(shares.mean(1).std(ddof=1))
    assert metrics["mae.ml"] == pytest.approx(np.abs(predictions.means["ml"][:, 2:] - test.counts).mean())
    assert metrics["nll.bpr"] == pytest.approx(-predictions.log_probs["bpr"][:, 2:].mean())
    assert "mae.chance" not in metrics
    assert "nll.ridge" not in metrics
    valid = panel.part("valid")
    assert metrics["valid_bpr.ridge"] == pytest.approx(bpr(predictions.scores["ridge"][0, :2], valid.counts, valid.k))
    for key in ("bpr.ml.mean", "bpr_pooled.ml.mean", "mae.ridge", "nll.daml1"):
        assert metrics[f"{key}.low"] <= metrics[key] <= metrics[f"{key}.high"]
        assert metrics[f"{key}.low"] < metrics[f"{key}.high"]


def test_comparison_is_chosen_on_validation_and_never_on_test():
    panel = made_up_panel()
    found = tables(panel)
    later = panel.part("valid", "test")
    truth = later.counts.ravel()
    period = later.periods[later.split == "valid"]
    noisy = np.random.default_rng(3).normal(size=len(truth))
    table = found["baselines"]
    for name, on_validation in (("average1", 0.0), ("average2", 1.0), ("average4", 1.0)):
        here = (table["baseline"] == name).to_numpy()
        is_valid = table.loc[here, "period"].isin(period).to_numpy()
        # average2 is perfect in validation and noise in test, average1 the other way round; average4 is average2's equal
        table.loc[here, "score"] = np.where(is_valid == bool(on_validation), truth, noisy)
    found = categorical(found)
    predictions = gather(later, *(found[n] for n in ("baselines", "runs", "scores", "forecasts")))
    metrics = evaluated(panel, predictions)
    assert metrics["comparison.average"] == "average2"
    assert metrics["comparison.average_best_on_test"] == "average1"
    assert metrics["valid_bpr.average2"] == metrics["valid_bpr.average4"] == 1
    assert {k.split(".minus.")[1].split(".")[0] for k in metrics if k.startswith("difference.")} == {"average2"}
    model = max(predictions.model_forecasts(), key=lambda name: metrics[f"valid_bpr.{name}"])
    assert metrics["comparison.model"] == model


def test_differences_are_paired(panel, metrics):
    average = metrics["comparison.average"]
    for name in ("ridge", "ml.ratio"):
        key = f"difference.{name}.minus.{average}"
        assert metrics[key] == pytest.approx(metrics[f"bpr.{name}"] - metrics[f"bpr.{average}"])
        assert metrics[f"{key}.low"] <= metrics[key] <= metrics[f"{key}.high"]
    assert not [k for k in metrics if k.startswith(("difference.average", "difference.chance"))]
    # a forecast that is the average itself differs by nothing in every resample, though its own interval is wide
    found = categorical(tables(panel))
    table = found["baselines"]
    table.loc[table["baseline"] == "ridge", "score"] = table.loc[table["baseline"] == average, "score"].to_numpy()
    same = evaluated(panel, gather(panel.part("valid", "test"), table))
    key = f"difference.ridge.minus.{average}"
    assert same["comparison.average"] == average
    assert (same[key], same[f"{key}.low"], same[f"{key}.high"]) == (0, 0, 0)
    assert same[f"bpr.{average}.low"] < same[f"bpr.{average}.high"]


def test_the_same_numbers_whatever_the_order_of_rows_and_names(panel, metrics):
    found = {name: table.sample(frac=1, random_state=3) for name, table in categorical(tables(panel)).items()}
    for table in found.values():
        for column in table.select_dtypes("category"):
            table[column] = table[column].cat.reorder_categories(table[column].cat.categories[::-1])
    again = gather(panel.part("valid", "test"), *(found[n] for n in ("baselines", "runs", "scores", "forecasts")))
    assert flat(evaluated(panel, again)) == flat(metrics)
    assert list(evaluated(panel, again)) == list(metrics)
    assert evaluated(panel, again, seed=1)["bpr.ridge.low"] != metrics["bpr.ridge.low"]


def test_chunks_of_resamples_change_nothing(panel, predictions, metrics, monkeypatch):
    monkeypatch.setattr("tasks.bpr.resampling.CHUNK_CELLS", 7 * 48)
    assert flat(evaluated(panel, predictions)) == flat(metrics)


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_intervals_over_sites_have_the_width_of_a_bootstrap(share):
    """Not half of it, as plain percentiles at a share of 0.8: the reason for the factor in `Sites`."""
    generator = np.random.default_rng(0)
    counts = generator.poisson(generator.gamma(0.5, 6, 800), (1, 800)).astype(float)
    scores = (counts + generator.normal(0, 3, counts.shape))[None]
    sites = Sites(counts, 80, generator, Evaluate(n_resamples=1000, share=share))
    value = bpr(scores[0], counts, 80)
    low, high = sites.interval(value, sites.bpr(scores)[0])
    bootstrap = []
    for _ in range(600):
        drawn = generator.integers(0, 800, 800)
        bootstrap.append(bpr(scores[0][:, drawn], counts[:, drawn], 80))
    assert low < value < high
    assert high - low == pytest.approx(2 * 1.96 * np.std(bootstrap), rel=0.2)
    assert sites.k == round(80 * share)


def test_an_interval_is_laid_about_the_value_wherever_the_subsets_lie():
    """With K' = round(K n / S) of few sites, all subsets may be easier to choose from than the whole."""
    sites = Sites(np.ones((1, 60)), 6, np.random.default_rng(0), Evaluate(n_resamples=100))
    drawn = np.linspace(0.4, 0.6, 101)
    assert sites.interval(0.9, drawn) == pytest.approx((0.9 - 2 * 0.095, 0.9 + 2 * 0.095))
    assert np.isnan(sites.interval(np.nan, drawn)).all()
    assert np.isnan(sites.interval(0.9, np.full(100, np.nan))).all()


def test_mean_over_sites_has_the_textbook_interval():
    generator = np.random.default_rng(1)
    loss = generator.normal(size=(3, 2, 500))
    sites = Sites(np.ones((2, 500)), 50, generator, Evaluate(n_resamples=2000))
    low, high = sites.interval(float(loss.mean()), sites.mean(loss))
    assert high - low == pytest.approx(2 * 1.96 * loss.mean((0, 1)).std() / np.sqrt(500), rel=0.1)


def test_subsets_of_sites_by_hand():
    counts = np.array([[4.0, 3, 2, 1, 0], [0, 0, 0, 0, 0]])
    sites = Sites(counts, 3, np.random.default_rng(0), Evaluate(n_resamples=100, share=0.6))
    assert (sites.k, sites.sites.shape, sites.scale) == (2, (100, 3), pytest.approx(np.sqrt(1.5)))
    scores = np.array([[[1.0, 1, 1, 1, 1], [1, 1, 1, 1, 1]], [[5, 4, 3, 2, 1], [0, 0, 0, 0, 0]]])
    mean, pooled = sites.bpr(scores)
    for subset, value, together in zip(sites.sites, mean, pooled, strict=True):
        y = np.sort(counts[0, subset])[::-1]
        tied = 2 * y.mean() / y[:2].sum()
        # the second run is perfect; the second period has no events and is left out
        assert value == pytest.approx((tied + 1) / 2)
        assert together == pytest.approx(value)


def test_few_sites_and_many_periods_are_resampled_by_period():
    counts = np.random.default_rng(0).poisson(5, (12, 7)).astype(float)
    assert isinstance(resample(counts, 3, np.random.default_rng(0), OPTIONS), Periods)
    assert isinstance(resample(counts[:9], 3, np.random.default_rng(0), OPTIONS), Sites)
    assert isinstance(resample(np.ones((12, 50)), 3, np.random.default_rng(0), OPTIONS), Sites)
    panel = made_up_panel(n_sites=8, n_test=12, k=3)
    metrics = evaluated(panel, gathered(panel), options=Evaluate(n_resamples=2000))
    assert metrics["data.interval"] == "over periods"
    for key in ("bpr.ml.ratio", f"difference.ml.ratio.minus.{metrics['comparison.average']}"):
        width = metrics[f"{key}.high"] - metrics[f"{key}.low"]
        assert width == pytest.approx(2 * 1.96 * metrics[f"{key}.period_sd"] * np.sqrt(11 / 12 / 12), rel=0.15)


def test_pooled_share_of_resampled_periods_by_hand():
    counts = np.array([[9.0, 1], [0, 1], [0, 0]])
    scores = np.array([[[0.0, 1], [0, 1], [0, 1]]])
    periods = Periods(counts, 1, np.random.default_rng(0), Evaluate(n_resamples=100))
    mean, pooled = periods.bpr(scores)
    for drawn, value, together in zip(periods.periods, mean, pooled, strict=True):
        n = [(drawn == t).sum() for t in range(3)]
        if n[0] + n[1]:
            assert value == pytest.approx((n[0] / 9 + n[1]) / (n[0] + n[1]))
            assert together == pytest.approx((n[0] + n[1]) / (9 * n[0] + n[1]))
        else:
            assert np.isnan([value, together]).all()


def test_periods_without_events_are_left_out_and_counted():
    panel = made_up_panel(n_test=3)
    metrics = evaluated(panel, gathered(panel))
    panel.counts[-1] = 0
    emptied = evaluated(panel, gathered(panel))
    described = flat(describe_panel(panel))
    assert described["data.test_periods_without_events"] == 1
    assert 0 < emptied["bpr.ridge"] < 1
    assert emptied["bpr.ridge"] != metrics["bpr.ridge"]
    later = panel.part("valid", "test")
    kept = dataclasses.replace(
        later, periods=later.periods[:-1], split=later.split[:-1], time=later.time[:-1], counts=later.counts[:-1]
    )
    whole = gathered(panel)
    cut = dataclasses.replace(
        whole,
        **{
            part: {name: values[:, :-1] for name, values in getattr(whole, part).items()}
            for part in ("scores", "means", "log_probs")
        },
    )
    same = evaluate_panel(kept, cut, np.random.default_rng(0), OPTIONS)
    for key in ("bpr.ridge", "bpr.ridge.low", "bpr_pooled.ml.mean.high", "reached.average1", "bpr.ml.ratio.seed_sd"):
        assert emptied[key] == pytest.approx(same[key])
    assert emptied["mae.ridge"] != same["mae.ridge"]


def test_nothing_to_reach_in_validation_or_test():
    panel = made_up_panel()
    panel.counts[panel.split == "valid"] = 0
    metrics = flat(evaluated(panel, gathered(panel)))
    assert metrics["comparison.average"] is None
    assert metrics["comparison.model"] is None
    assert metrics["comparison.average_best_on_test"] is not None
    assert not [key for key in metrics if key.startswith("difference.")]
    assert sites_on_map(panel.part("valid", "test"), gathered(panel)) is None
    panel = made_up_panel()
    panel.counts[panel.split == "test"] = 0
    metrics = flat(evaluated(panel, gathered(panel)))
    assert metrics["bpr.ridge"] is metrics["bpr.ridge.low"] is metrics["bpr_pooled.ridge"] is None
    assert metrics["reached.ridge"] == 0


def test_every_site_chosen_or_only_one():
    panel = made_up_panel(n_sites=60, k=60)
    metrics = evaluated(panel, gathered(panel))
    assert metrics["bpr.chance"] == metrics["bpr.ridge.low"] == metrics["bpr.ridge.high"] == 1
    single = made_up_panel(n_sites=1, k=1)
    single.counts[:] = 2
    metrics = flat(evaluated(single, gathered(single)))
    assert metrics["bpr.ridge"] == 1
    assert metrics["bpr.ridge.low"] is None


def test_infinite_likelihood_is_stored_as_missing(panel):
    predictions = gathered(panel)
    predictions.log_probs["ml"][0, 2, 0] = -np.inf
    metrics = flat(evaluated(panel, predictions))
    assert metrics["nll.ml"] is metrics["nll.ml.low"] is metrics["nll.ml.seed_sd"] is None
    assert metrics["nll.bpr"] is not None


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        ("baselines", lambda t: t.iloc[1:], "baselines.parquet: average1: not one row for every"),
        ("baselines", lambda t: pd.concat([t, t.iloc[:1]]), "baselines.parquet: average1: not one row for every"),
        ("scores", lambda t: t[t["run"] != "ml-1"], "not of the runs of the trained models; rank again"),
        ("scores", lambda t: t[(t["run"] != "ml-1") | (t["rule"] != "mean")], "not of the runs of the trained models"),
        ("forecasts", lambda t: t[t["run"] != "bpr-0"], "not of the runs of the trained models; rank again"),
        ("forecasts", lambda t: t[t["site"] != "s005"], "forecasts.parquet: bpr-0: not one row for every"),
        (
            "baselines",
            lambda t: t.assign(site=t["site"].cat.rename_categories({"s000": "other"})),
            "average1: not one row",
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused(panel, table, change, message):
    found = categorical(tables(panel))
    found[table] = change(found[table])
    with pytest.raises(UserError, match=message):
        gather(panel.part("valid", "test"), *(found[n] for n in ("baselines", "runs", "scores", "forecasts")))


def test_description_of_data_and_training(panel):
    described = describe_panel(panel)
    test = panel.part("test")
    assert described["data.chance"] == pytest.approx(bpr(np.zeros(test.counts.shape), test.counts, test.k))
    assert described["data.test_oracle"] == np.sort(test.counts, axis=1)[:, -6:].sum()
    assert (described["data.train_periods"], described["data.valid_periods"], described["data.test_periods"]) == (
        2,
        2,
        2,
    )
    training = describe_training(categorical(tables(panel))["runs"])
    assert training["training.daml0.8.feasible_share"] == 0.25  # none and one of two periods
    assert training["training.daml0.8.seeds"] == 2
    assert "training.ml.feasible_share" not in training


def test_points_of_runs_and_the_map(panel, predictions):
    later = panel.part("valid", "test")
    rows = per_run(later, predictions)
    assert len(rows) == 4 * 2 * 3
    row = rows[(rows["run"] == "daml0.8-1") & (rows["rule"] == "ratio")].iloc[0]
    assert row["bpr"] == pytest.approx(bpr(predictions.scores["daml0.8.ratio"][1, 2:], later.counts[2:], 6))
    assert row["nll"] == pytest.approx(-predictions.log_probs["daml0.8"][1, 2:].mean())
    drawn = sites_on_map(later, predictions)
    best = rows.loc[rows["valid_bpr"].idxmax()]
    assert (drawn["forecast"], drawn["run"]) == (f"{best['model']}.{best['rule']}", f"(run {best['run']})")
    assert drawn["period"] == later.periods[-1]
    assert drawn["chosen"].sum() == drawn["best"].sum() == 6
    assert set(np.sort(later.counts[-1])[::-1][:6]) == set(later.counts[-1][drawn["best"]])
    without = gather(later, categorical(tables(panel))["baselines"])
    assert sites_on_map(later, without)["forecast"].startswith("average")
    later.counts[-1] = 0  # a copy of the panel's
    assert sites_on_map(later, predictions)["period"] == later.periods[-2]
