"""The gates pass on what the stages write and fail, with the rule named, on each thing that would ruin the next stage."""

import dataclasses
import json
import shutil

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import safetensors.numpy

from tasks import gate
from tasks.bpr import params
from tasks.bpr.arrangement import arrange, lagged
from tasks.bpr.dataset import write_panel
from tasks.bpr.leakage import leak_statistics
from tasks.bpr.public import PUBLIC, public_panel
from tasks.stage import UserError
from tests.bpr.conftest import shared_folder

SITES, PERIODS = 60, 10


@pytest.fixture(scope="module")
def panel():
    """Poisson counts around means that differ by site and wander; history, 6 training periods, validation, 2 test."""
    generator = np.random.default_rng(5)
    level = np.exp(generator.normal(1, 0.7, SITES) + np.cumsum(generator.normal(0, 0.1, (PERIODS, SITES)), axis=0))
    table = pd.DataFrame(
        {
            "site": np.tile([f"s{i:02d}" for i in range(SITES)], PERIODS),
            "period": np.repeat(np.arange(2010, 2010 + PERIODS), SITES),
            "count": generator.poisson(level).ravel(),
            "people": 100.0,
        }
    )
    columns = params.Columns(exposure="people")
    return arrange(
        table, params.Panel(path="t", columns=columns, k=5, lags=2, history=1, valid=1, test=2), where="t", origin="t"
    )


@pytest.fixture(scope="module")
def written(panel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("panel") / "panel"
    write_panel(folder, panel)
    return folder


@pytest.fixture
def folder(written, workspace):
    """A copy of the panel's folder as data/panel, to be spoilt."""
    return shutil.copytree(written, workspace.root / "data/panel")


def spoil(file, change):
    """Change a table, with its types kept."""
    schema = pq.read_schema(file)
    table = change(pd.read_parquet(file))
    import pyarrow as pa

    pq.write_table(pa.Table.from_pandas(table, schema, preserve_index=False), file)


def with_feature(panel, name, values):
    """The panel with one feature [T, S] more."""
    features = np.concatenate([panel.features, values[:, :, None].astype(np.float64)], axis=2)
    return dataclasses.replace(panel, features=features, feature_names=[*panel.feature_names, name])


def check(workspace, suite="panel", *more):
    return workspace.run(gate, "bpr", suite, "data/panel", *more, "--out", "data/verdict.json")


def test_a_good_panel_passes(workspace, folder):
    assert check(workspace) == (0, "")
    verdict = json.loads((workspace.root / "data/verdict.json").read_text())
    tables = {table["table"] for table in verdict["tables"]}
    assert {"cells", "periods", "k", "events of each split", "features that know the counts to forecast"} <= tables


def cells(change):
    return "cells.parquet", change


def set_cells(rows, column, value):
    def change(table):
        table.loc[rows, column] = value
        return table

    return cells(change)


def without_events(split):
    first, last = {"train": (1, 7), "valid": (7, 8), "test": (8, 10)}[split]
    return set_cells(slice(first * SITES, last * SITES - 1), "count", 0.0)


def replace_periods(column, values):
    return "periods.parquet", lambda table: table.assign(**{column: values})


BAD = [
    (set_cells(61, "count", -1.0), "cells: column count: column_values_to_be_between (max_value="),
    (set_cells(61, "count", np.nan), "cells: column count: column_values_to_not_be_null: 1 rows"),
    (set_cells(61, "count", np.inf), "cells: column count: column_values_to_be_between (max_value="),
    (set_cells(61, "count", 1.5), "counts: column fraction: column_values_to_be_in_set (value_set=[0.0]): 1 rows"),
    (set_cells(61, "exposure", 0.0), "cells: column exposure: column_values_to_be_between (max_value="),
    (set_cells(61, "lag1", np.nan), "features after history: column lag1: column_values_to_not_be_null: 1 rows"),
    (set_cells(61, "lag1", np.inf), "features after history: column lag1: column_values_to_be_between"),
    (set_cells(61, "site", "s00"), "cells: column site, period: compound_columns_to_be_unique: 2 rows"),
    (
        cells(lambda t: t.drop(index=61)),
        "rows of each period: column rows, sites: column_pair_values_to_be_equal: 1 rows",
    ),
    (
        cells(lambda t: t[t["period"] != "2012"]),
        "rows of each period: table: table_row_count_to_equal (value=10): observed 9",
    ),
    (set_cells(61, "site", "other"), "cells: column site: column_values_to_be_in_set"),
    (set_cells(61, "period", "1999"), "cells: column period: column_values_to_be_in_set"),
    (without_events("train"), "events of each split: column events: column_values_to_be_between"),
    (without_events("valid"), "events of each split: column events: column_values_to_be_between"),
    (without_events("test"), "events of each split: column events: column_values_to_be_between"),
    (
        replace_periods("split", ["history", *["train"] * 5, "valid", "train", "test", "test"]),
        "periods: column order: column_values_to_be_increasing: 1 rows, for example row 7, period '2017'",
    ),
    (replace_periods("split", ["train"] * 10), "events of each split: column events: column_values_to_be_between"),
    (
        replace_periods("split", ["other", *["train"] * 6, "valid", "test", "test"]),
        "periods: column split: column_values_to_be_in_set",
    ),
    (replace_periods("time", [0.0, 1, 2, 3, 4, 5, 5, 7, 8, 9]), "periods: column time: column_values_to_be_increasing"),
    (("sites.parquet", lambda t: pd.concat([t, t[:1]])), "sites: column site: column_values_to_be_unique: 2 rows"),
]


@pytest.mark.parametrize(("fault", "message"), BAD, ids=[f"{i}-{m[:50]}" for i, (_, m) in enumerate(BAD)])
def test_a_bad_panel_is_refused_with_the_rule(workspace, folder, fault, message):
    name, change = fault
    spoil(folder / name, change)
    code, said = check(workspace)
    assert code == 1
    assert any(line.startswith(message) for line in said.splitlines()), said
    assert not (workspace.root / "data/verdict.json").exists()


@pytest.mark.parametrize(
    ("k", "message"),
    [(0, "k: column k: column_values_to_be_between"), (61, "k: column sites, k: column_pair_values_a_to_be_greater")],
)
def test_k_must_be_a_number_of_sites(workspace, folder, k, message):
    file = folder / "panel.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "k": k}))
    code, said = check(workspace)
    assert code == 1
    assert said.startswith(message)


def test_a_period_without_events_may_be(workspace, folder):
    spoil(folder / "cells.parquet", set_cells(slice(3 * SITES, 4 * SITES - 1), "count", 0.0)[1])
    assert check(workspace) == (0, "")


# --- leaks


def made_from_own_period(y):
    generator = np.random.default_rng(0)
    return {
        "equal": y,
        "affine": 3 - 2 * y,
        "moving average": (y + lagged(y, 1) + lagged(y, 2)) / 3,
        "cumulated": np.cumsum(y, axis=0),
        "growth": y - lagged(y, 1),
        "rank": np.argsort(np.argsort(y, axis=1), axis=1),
        "logarithm": np.log1p(y),
        "share": y / y.sum(axis=1, keepdims=True),
        "part": generator.binomial(y.astype(int), 0.7),
        "noisy": y + generator.normal(0, y.std() / 2, y.shape),
        "next period": np.concatenate([y[1:], y[:1]]),
        "mean over all periods": np.tile(y[1:].mean(axis=0), (len(y), 1)),
        "total": np.repeat(y.sum(axis=1), y.shape[1]).reshape(y.shape),
    }


def known_before(y):
    generator = np.random.default_rng(0)
    return {
        "last": lagged(y, 1),
        "moving average": (lagged(y, 1) + lagged(y, 2) + lagged(y, 3)) / 3,
        "cumulated": np.cumsum(lagged(y, 1), axis=0),
        "growth": lagged(y, 1) - lagged(y, 2),
        "largest": np.maximum.accumulate(lagged(y, 1), axis=0),
        "of other things last period": lagged(generator.binomial(y.astype(int) * 3, 0.5).astype(float), 1),
        "mean of training": np.tile(y[1:7].mean(axis=0), (len(y), 1)),
        "place": np.tile(generator.normal(size=y.shape[1]), (len(y), 1)),
        "time": np.repeat(np.arange(len(y)), y.shape[1]).reshape(y.shape),
        "constant": np.ones(y.shape),
        "noise": generator.normal(size=y.shape),
    }


LIMITS = {"correlation": 0.999, "own_period": 0.25, "next_period": 0.75, "test_mean": 0.5}


def flagged(statistics):
    over = {column: statistics[column] > limit for column, limit in LIMITS.items()}
    return statistics["named"] | pd.DataFrame(over).any(axis=1)


@pytest.mark.parametrize("name", list(made_from_own_period(np.ones((10, 2)))))
def test_features_of_their_own_period_are_found(panel, name):
    statistics = leak_statistics(with_feature(panel, "x", made_from_own_period(panel.counts)[name]))
    assert flagged(statistics).tolist() == [False, False, True]


@pytest.mark.parametrize("name", list(known_before(np.ones((10, 2)))))
def test_features_known_before_their_period_pass(panel, name):
    statistics = leak_statistics(with_feature(panel, "x", known_before(panel.counts)[name]))
    assert not flagged(statistics).any()


@pytest.mark.parametrize("name", ["crashes_LEAK", "crashes_same_year", "Same_Period_calls"])
def test_a_name_that_says_it_is_enough(panel, name):
    noise = np.random.default_rng(0).normal(size=panel.counts.shape)
    assert leak_statistics(with_feature(panel, name, noise))["named"].tolist() == [False, False, True]


def test_the_gate_names_the_leaking_column(workspace, panel):
    values = np.cumsum(panel.counts, axis=0)
    write_panel(workspace.root / "panel", with_feature(panel, "so_far", values))
    code, said = workspace.run(gate, "bpr", "panel", "panel", "--out", "verdict.json")
    assert code == 1
    rule = "features that know the counts to forecast: column own_period: column_values_to_be_between (max_value=0.25, "
    assert said.startswith(
        f"{rule}min_value=0.0): 1 rows, for example row 2, feature 'so_far', named False, correlation "
    )
    assert not (workspace.root / "verdict.json").exists()


@pytest.mark.parametrize("name", PUBLIC)
def test_the_public_features_pass_and_crashes_of_the_same_year_do_not(name):
    table = pd.read_parquet(shared_folder("data") / name / "data.parquet")
    panel = public_panel(table, name)
    if name == "nyc_pedestrian_injury":
        leak = table.pivot(index="period", columns="site", values="crashes_same_year_LEAK")
        leak.columns = leak.columns.astype(str)
        panel = with_feature(panel, "crashes", leak[panel.sites].to_numpy())
    statistics = leak_statistics(panel).set_index("feature")
    honest = statistics.drop(index="crashes", errors="ignore")
    # half-way between the limit and what honest features reach: a change of method that eats the margin shows here
    assert honest["own_period"].max() < 0.2
    assert honest["next_period"].max() < 0.3
    assert honest["test_mean"].max() < 0.2
    assert not flagged(honest).any()
    if "crashes" in statistics.index:
        assert flagged(statistics)["crashes"]
        assert statistics.loc["crashes", "own_period"] > 0.27


def test_large_panels_are_thinned_and_still_tell(panel, monkeypatch):
    monkeypatch.setattr("tasks.bpr.leakage.MAX_CELLS", 300)
    statistics = leak_statistics(with_feature(panel, "x", panel.counts))
    assert flagged(statistics).tolist() == [False, False, True]


def test_counts_that_never_change_are_no_leak_of_their_lags(panel):
    still = np.tile(panel.counts[:1], (PERIODS, 1))
    statistics = leak_statistics(with_feature(dataclasses.replace(panel, counts=still), "x", still))
    assert not flagged(statistics).any()


@pytest.mark.parametrize(("n_sites", "n_periods"), [(3, 4), (8, 6)])
def test_small_panels_raise_no_alarm(n_sites, n_periods):
    generator = np.random.default_rng(0)
    size = n_sites * n_periods
    for _ in range(20):
        rows = pd.DataFrame(
            {
                "site": np.tile([f"s{i}" for i in range(n_sites)], n_periods),
                "period": np.repeat(range(n_periods), n_sites),
                "count": generator.poisson(3, size),
                "x": generator.normal(size=size),
            }
        )
        small = arrange(rows, params.Panel(path="t", k=1, lags=1, features=["x"]), where="t")
        assert not flagged(leak_statistics(small)).any()


# --- models


@pytest.fixture(scope="module")
def trained(panel, tmp_path_factory):
    from tasks.bpr.training import fit_all, write_models

    settings = params.Train(objectives=["ml", "daml"], epsilons=[0.5], seeds=[0], epochs=2, validate_every=1)
    folder = tmp_path_factory.mktemp("models") / "models"
    write_models(folder, panel, settings, fit_all(panel, settings))
    return folder


@pytest.fixture
def models(folder, trained, workspace):
    return shutil.copytree(trained, workspace.root / "data/models")


def test_good_models_pass(workspace, models):
    assert check(workspace, "models", "data/models") == (0, "")


def set_run(column, value):
    def change(table):
        table[column] = table[column].where(table["run"] != "ml-0", value)
        return table

    return change


BAD_MODELS = [
    ("runs.parquet", set_run("last_train_bpr", 1.5), "runs: column last_train_bpr: column_values_to_be_between"),
    ("runs.parquet", set_run("last_train_nll", np.inf), "runs: column last_train_nll: column_values_to_be_between"),
    (
        "runs.parquet",
        set_run("feasible_periods", 7),
        "runs: column train_periods, feasible_periods: column_pair_values_a_to",
    ),
    ("runs.parquet", set_run("kept_epoch", 3), "parameters of each run: column last, kept: column_pair_values_a_to"),
    ("epochs.parquet", set_run("train_bpr", -0.1), "epochs: column train_bpr: column_values_to_be_between"),
    ("epochs.parquet", set_run("valid_bpr", np.nan), "epochs: column valid_bpr: column_values_to_not_be_null: 3 rows"),
    ("epochs.parquet", set_run("valid_nll", np.nan), "epochs: column valid_nll: column_values_to_not_be_null: 3 rows"),
    ("epochs.parquet", set_run("loss", np.inf), "epochs: column loss: column_values_to_be_between"),
    ("epochs.parquet", set_run("epoch", 0), "epochs: column run, epoch: compound_columns_to_be_unique: 3 rows"),
    (
        "epochs.parquet",
        lambda t: t[t["run"] != "ml-0"],
        "parameters of each run: column looks: column_values_to_be_between",
    ),
    ("epochs.parquet", set_run("run", "ml-9"), "epochs: column run: column_values_to_be_in_set"),
]


@pytest.mark.parametrize(("file", "change", "message"), BAD_MODELS)
def test_bad_models_are_refused_with_the_rule(workspace, models, file, change, message):
    spoil(models / file, change)
    code, said = check(workspace, "models", "data/models")
    assert code == 1
    assert any(line.startswith(message) for line in said.splitlines()), said
    assert not (workspace.root / "data/verdict.json").exists()


def test_missing_and_infinite_parameters_are_refused(workspace, models):
    file = models / "ml-0.safetensors"
    tensors = {name: array.copy() for name, array in safetensors.numpy.load_file(file).items()}
    next(iter(tensors.values())).ravel()[:1] = np.nan
    safetensors.numpy.save_file(tensors, file)
    code, said = check(workspace, "models", "data/models")
    assert code == 1
    assert "parameters of each run: column not_finite: column_values_to_be_in_set" in said
    file.unlink()
    code, said = check(workspace, "models", "data/models")
    assert code == 1
    assert "parameters of each run: column parameters: column_values_to_be_between" in said
    file.write_bytes(b"no")
    code, said = check(workspace, "models", "data/models")
    assert code == 1
    assert said.startswith("error: tasks.gate: data/models/ml-0.safetensors: not a readable model: ")


def test_models_of_another_panel_are_refused(trained, panel, workspace):
    from tasks.bpr.expectations import models as suite

    other = dataclasses.replace(panel, sites=pd.Index([f"t{i:02d}" for i in range(SITES)], name="site"))
    write_panel(workspace.root / "other", other)
    with pytest.raises(UserError, match="trained on other sites"):
        suite(workspace.root / "other", trained)
