"""The stage `evaluate`: a folder in, one flat file a data set out, the same bytes for the same tables."""

import json
from pathlib import Path

import pytest

from tasks.bpr import evaluate
from tasks.bpr.evaluation import evaluate_panel, flat, gather
from tasks.bpr.params import Evaluate
from tasks.stage import random_generator
from tests.bpr.results import categorical, made_up_panel, tables, write_dataset

PANEL = {"path": "table.csv", "k": 6}
PARAMETERS = {
    **{"datasets": ["large", "small"], "packages": [], "simulated": [], "simulate": {}, "baselines": {}, "rank": {}},
    **{"panel": {"large": PANEL, "small": {**PANEL, "k": 3}}, "train": {"large": {}}, "evaluate": {"n_resamples": 100}},
}


@pytest.fixture
def filled(workspace):
    """`large` with models, `small` with baselines only, though models of an earlier run lie there."""
    workspace.parameters(**PARAMETERS)
    for name, panel in (
        ("large", made_up_panel()),
        ("small", made_up_panel(n_sites=9, n_test=12, k=3, coordinates=False)),
    ):
        write_dataset(Path("data") / name, panel, tables(panel))
    return workspace


def run(workspace):
    code, said = workspace.run(evaluate, "data", "--out", "metrics")
    assert code == 0, said
    return {path.name: path.read_bytes() for path in sorted(Path("metrics").iterdir())}


def test_metrics_of_both_kinds_of_data_sets(filled):
    Path("metrics").mkdir()
    Path("metrics/old.json").write_text("{}")
    found = {name: json.loads(content) for name, content in run(filled).items()}
    assert sorted(found) == ["large.json", "small.json"]
    large, small = found["large.json"], found["small.json"]
    panel = made_up_panel()
    rows = categorical(tables(panel))
    later = panel.part("valid", "test")
    expected = evaluate_panel(
        later,
        gather(later, *(rows[name] for name in ("baselines", "runs", "scores", "forecasts"))),
        random_generator(1, "large"),
        Evaluate(n_resamples=100),
    )
    assert {key: large[key] for key in expected} == flat(expected)
    assert large["data.sites"] == 60
    assert large["training.daml0.8.feasible_share"] == 0.25
    assert not [key for key in small if key.startswith(("nll.", "training.")) or ".ratio" in key]
    assert small["data.interval"] == "over periods"
    assert small["comparison.model"] is None
    for values in found.values():
        assert all(isinstance(value, int | float | str | None) for value in values.values())


def test_same_bytes_again_and_from_shuffled_tables_with_other_hashes(filled):
    expected = run(filled)
    assert run(filled) == expected
    panel = made_up_panel()
    shuffled = {name: table.sample(frac=1, random_state=1) for name, table in tables(panel).items()}
    (Path("data") / "large").rename("data/before")
    write_dataset(Path("data/large"), panel, shuffled)
    done = filled.shell("tasks.bpr.evaluate", "data", "--out", "metrics", PYTHONHASHSEED="77")
    assert done.returncode == 0, done.stderr
    assert {path.name: path.read_bytes() for path in sorted(Path("metrics").iterdir())} == expected


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("baselines.parquet", "data/large/baselines.parquet: not a readable parquet table"),
        ("scores.parquet", "data/large/scores.parquet: not a readable parquet table"),
        ("panel/panel.json", "data/large/panel/panel.json: not valid JSON"),
    ],
)
def test_a_damaged_table_leaves_nothing_behind(part, message, filled):
    path = Path("data/large") / part
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    before = filled.files()
    code, said = filled.run(evaluate, "data", "--out", "metrics")
    assert (code, said.count("\n")) == (1, 1)
    assert message in said
    assert filled.files() == before


def test_models_of_other_runs_are_refused(filled):
    panel = made_up_panel()
    found = tables(panel)
    found["forecasts"] = found["forecasts"][found["forecasts"]["run"] != "ml-0"]
    (Path("data") / "large").rename("data/before")
    write_dataset(Path("data/large"), panel, found)
    code, said = filled.run(evaluate, "data", "--out", "metrics")
    assert code == 1
    assert "data/large/scores.parquet, forecasts.parquet: not of the runs of the trained models; rank again" in said


@pytest.mark.parametrize("change", [{"share": 1.0}, {"n_resamples": 99}, {"confidence": 0.5}, {"years": 3}])
def test_parameters_are_refused(change, filled):
    filled.parameters(**{**PARAMETERS, "evaluate": change})
    code, said = filled.run(evaluate, "data", "--out", "metrics")
    assert (code, said.count("\n")) == (1, 1)
    assert f"params.yaml: bpr.evaluate.{next(iter(change))}: " in said.replace("bpr: evaluate", "bpr.evaluate")
