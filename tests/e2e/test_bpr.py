"""Decision-aware top-K sites with small parameters: plain DVC, the flow in a second clone, own data, bad data."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from tests.e2e.conftest import Clone, project_copy

pytestmark = pytest.mark.e2e


def own_table() -> pd.DataFrame:
    """30 sites × 8 periods, in no order."""
    generator = np.random.default_rng(0)
    rows = [(f"place{s:02}", 2010 + t, generator.poisson(1 + s / 5)) for s in range(30) for t in range(8)]
    return pd.DataFrame(rows, columns=["where", "year", "cases"]).sample(frac=1, random_state=1)


def small(parameters: dict) -> None:
    parameters |= {"datasets": ["mine", "nine_sites"], "packages": [], "simulated": ["nine_sites"]}
    parameters["simulate"]["periods"] = 40
    mine = {"path": "data/raw/mine.csv", "columns": {"site": "where", "period": "year", "count": "cases"}}
    nine = parameters["panel"]["nine_sites"] | {"valid": 5, "test": 5}
    parameters["panel"] = {"mine": mine | {"k": 5, "lags": 1, "history": 1, "test": 2}, "nine_sites": nine}
    parameters["train"] = {"mine": {"epochs": 20, "seeds": [0, 1]}}
    parameters["evaluate"]["n_resamples"] = 100
    parameters["rank"]["n_samples"] = 50


def prepared(clone: Clone) -> Clone:
    (clone.root / "data/raw").mkdir(parents=True, exist_ok=True)
    own_table().to_csv(clone.root / "data/raw/mine.csv", index=False)
    clone.parameters(small, "bpr")
    return clone


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Clone:
    clone = prepared(project_copy(tmp_path_factory.mktemp("bpr") / "project"))
    clone.run("dvc", "--wait-for-lock", "repro", "bpr")
    clone.git("add", "-A")
    clone.git("commit", "-qm", "small run")
    return clone


def test_everything_is_made(done):
    metrics = json.loads((done.root / "reports/bpr/metrics/mine.json").read_text())
    for forecast in ("average1", "ml.mean", "bpr.delta_ratio", "daml1.ratio"):
        assert 0 < metrics[f"bpr.{forecast}"] <= 1
        assert metrics[f"bpr.{forecast}.low"] <= metrics[f"bpr.{forecast}.high"]
    models = {path.name for path in (done.root / "data/bpr/mine/models").iterdir()}
    assert {"ml-0.safetensors", "bpr-1.safetensors", "daml1-0.safetensors", "runs.parquet", "model.json"} <= models
    page = (done.root / "reports/bpr/index.html").read_text(encoding="utf-8")
    assert "mine" in page
    assert "data:image/png;base64," in page
    assert "average" in (done.root / "reports/bpr/summary.md").read_text(encoding="utf-8")
    assert not list((done.root / "data").rglob("*.partial"))


def test_the_flow_rebuilds_the_same_bytes_from_shuffled_rows_in_a_second_clone(done, tmp_path):
    done.git("clone", "-q", str(done.root), str(tmp_path / "second"))
    second = Clone(tmp_path / "second")
    (second.root / "data/raw").mkdir(parents=True, exist_ok=True)
    shutil.copy(done.root / "data/raw/mine.csv", second.root / "data/raw/mine.csv")
    second.run("flows.bpr", "--workers", "2", "--force", METHODWORKS_WORKERS="2")
    assert second.git("status", "--porcelain") == "", second.git("diff", "--stat")
    before = (second.root / "data/bpr/mine/panel/cells.parquet").read_bytes()
    own_table().sort_values(["cases", "where"]).to_csv(second.root / "data/raw/mine.csv", index=False)
    second.run("dvc", "--wait-for-lock", "repro", "-s", "bpr-panel@mine")
    assert (second.root / "data/bpr/mine/panel/cells.parquet").read_bytes() == before


def test_bad_own_data_stop_the_run_with_one_line_and_nothing_half_written(tmp_path):
    clone = prepared(project_copy(tmp_path / "bad"))
    table = own_table()
    table["cases"] = table["cases"].where(table.index != 7, -1)
    table.to_csv(clone.root / "data/raw/mine.csv", index=False)
    result = clone.run("dvc", "--wait-for-lock", "repro", "bpr-baselines@mine", check=False)
    assert result.returncode != 0
    line = next(line for line in (result.stdout + result.stderr).splitlines() if line.startswith("error: "))
    assert "data/raw/mine.csv" in line
    assert "column cases" in line
    assert "-1" in line
    assert not (clone.root / "data/bpr/mine/panel").exists()


def test_a_feature_of_the_forecast_period_itself_stops_at_the_gate(tmp_path):
    clone = prepared(project_copy(tmp_path / "leak"))
    table = own_table()
    table.assign(calls=2 * table["cases"] + 3).to_csv(clone.root / "data/raw/mine.csv", index=False)
    clone.parameters(lambda p: p["panel"]["mine"].update(features=["calls"]), "bpr")
    result = clone.run("dvc", "--wait-for-lock", "repro", "bpr-train@mine", check=False)
    said = result.stdout + result.stderr
    assert result.returncode != 0
    assert "calls" in said
    assert "gate panel of bpr" in said
    assert not (clone.root / "data/bpr/mine/models").exists()
    assert not (clone.root / "data/bpr/checks/mine/panel.json").exists()
