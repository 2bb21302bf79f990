"""The stages train and rank: the same bytes every time, wherever the runs are computed."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tasks.bpr import prediction, rank, train
from tasks.bpr.dataset import read_panel, write_panel
from tasks.bpr.params import Rank
from tasks.bpr.prediction import rule_scores
from tasks.bpr.schemas import EPOCHS, FORECASTS, RUNS, SCORES
from tasks.bpr.training import batch_of, read_models
from tasks.tables import read_table
from tests.bpr.test_training import make_panel
from tests.workspace import Workspace

TRAIN = {"epochs": 20, "epsilons": [0.5, 0.9], "seeds": [0, 3]}
RUN_NAMES = [f"{name}-{seed}" for name in ("ml", "bpr", "daml0.5", "daml0.9") for seed in (0, 3)]
RANK = ("panel", "models", "--scores", "scores.parquet", "--forecasts", "forecasts.parquet")


@pytest.fixture
def ready(workspace: Workspace) -> Workspace:
    write_panel(Path("panel"), make_panel(exposure=True))
    workspace.parameters(train={"small": TRAIN}, rank={"n_samples": 50})
    return workspace


def good(answer: tuple[int, str]) -> None:
    assert answer[0] == 0, answer[1]


def run_both(workspace: Workspace) -> dict[str, bytes]:
    good(workspace.run(train, "small", "panel", "--out", "models"))
    good(workspace.run(rank, *RANK))
    return {str(path): path.read_bytes() for path in [*Path("models").iterdir(), *Path().glob("*.parquet")]}


def test_the_same_bytes_for_any_number_of_workers_and_any_random_state(ready, monkeypatch):
    first = run_both(ready)
    assert len(first) == 8 + 3 + 2
    monkeypatch.setenv("METHODWORKS_WORKERS", "2")
    torch.manual_seed(1)
    np.random.seed(1)
    assert run_both(ready) == first


def test_what_the_stages_write(ready):
    run_both(ready)
    runs, epochs = read_table(Path("models/runs.parquet"), RUNS), read_table(Path("models/epochs.parquet"), EPOCHS)
    assert runs["run"].tolist() == RUN_NAMES
    assert runs["epsilon"].isna().tolist() == [True] * 4 + [False] * 4
    assert runs["feasible_periods"].isna().tolist() == [True] * 4 + [False] * 4
    assert epochs.groupby("run", observed=True)["epoch"].agg(list).map(lambda e: e == [0, 10, 20]).all()
    scores, forecasts = read_table(Path("scores.parquet"), SCORES), read_table(Path("forecasts.parquet"), FORECASTS)
    assert len(scores) == 8 * 4 * 3 * 20  # runs × rules × periods × sites
    assert not scores.duplicated(["run", "rule", "period", "site"]).any()
    assert scores["period"].unique().tolist() == ["p004", "p005", "p006"]
    assert len(forecasts) == 8 * 3 * 20
    assert (forecasts["variance"] > 0).all()
    assert (forecasts["log_prob"] < 0).all()
    keys = ["run", "period", "site"]
    both = (
        scores[scores["rule"] == "mean"]
        .astype(dict.fromkeys(keys, str))
        .merge(forecasts.astype(dict.fromkeys(keys, str)), on=keys)
    )
    assert len(both) == len(forecasts)
    np.testing.assert_array_equal(both["score"], both["mean"])


def test_the_models_come_back(ready):
    good(ready.run(train, "small", "panel", "--out", "models"))
    panel = read_panel(Path("panel"))
    about, standardizer, models = read_models(Path("models"), panel)
    assert about["features"] == ["a", "b"]
    test = panel.part("test")
    for name, model in models:
        assert (name, model.n_sites) in {(run, 20) for run in RUN_NAMES}
        mean = model.mean(batch_of(test, standardizer)).detach().numpy()
        # at starts of about the mean count, and with exposure: more people, more events
        assert np.corrcoef(mean.ravel(), test.exposure.ravel())[0, 1] > 0.5


def test_rules_share_their_draws_and_runs_do_not(ready):
    good(ready.run(train, "small", "panel", "--out", "models"))
    panel = read_panel(Path("panel"))
    _, standardizer, models = read_models(Path("models"), panel)
    (_, model), batch = next(models), batch_of(panel.part("test"), standardizer)
    both = rule_scores(model, batch, 5, Rank(n_samples=30, rules=["topk_ratio", "ratio"]), "ml-0")
    alone = rule_scores(model, batch, 5, Rank(n_samples=30, rules=["ratio"]), "ml-0")
    np.testing.assert_array_equal(both["ratio"], alone["ratio"])
    assert list(both) == ["topk_ratio", "ratio"]
    other = rule_scores(model, batch, 5, Rank(n_samples=30, rules=["ratio"]), "ml-1")
    assert not np.array_equal(other["ratio"], alone["ratio"])
    more = rule_scores(model, batch, 5, Rank(n_samples=30, rules=["ratio"], seed=1), "ml-0")
    assert not np.array_equal(more["ratio"], alone["ratio"])


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_draws_in_parts_have_the_same_law(ready, monkeypatch, offset):
    """And the ratio of NB1 is mean / total, exactly (offset 0), so it is known what comes out."""
    good(ready.run(train, "small", "panel", "--out", "models"))
    panel = read_panel(Path("panel"))
    _, standardizer, models = read_models(Path("models"), panel)
    (_, model), batch = next(models), batch_of(panel.part("test"), standardizer)
    sizes, sample = [], type(model(batch)).sample

    def watched(law, n, generator):
        sizes.append(n)
        return sample(law, n, generator)

    monkeypatch.setattr(type(model(batch)), "sample", watched)
    monkeypatch.setattr(prediction, "CHUNK_CELLS", 300 * 40)
    found = rule_scores(model, batch, 5, Rank(n_samples=20_000, rules=["ratio"]), "ml-0", offset)["ratio"]
    assert sizes == [300] * 66 + [200]
    mean = model.mean(batch).detach().numpy()
    gap = np.abs(found - mean / mean.sum(1, keepdims=True)).max()
    assert gap < 0.005 if offset == 0 else gap > 0.005
    closed = rule_scores(model, batch, 5, Rank(rules=["delta_ratio"]), "ml-0", offset)["delta_ratio"]
    np.testing.assert_allclose(closed, found, atol=0.002)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sites": 21}, "trained on other sites"),
        ({"features": ["a", "c"]}, "trained on other features"),
        ({"exposure": False}, "trained with exposure"),
    ],
)
def test_a_panel_that_does_not_fit_is_refused(ready, change, message):
    good(ready.run(train, "small", "panel", "--out", "models"))
    other = make_panel(change.get("sites", 20), exposure=change.get("exposure", True))
    other.feature_names[:] = change.get("features", ["a", "b"])
    write_panel(Path("other"), other)
    code, said = ready.run(rank, "other", *RANK[1:])
    assert code == 1
    assert message in said
    assert said.count("\n") == 1
    assert not Path("scores.parquet").exists()


@pytest.mark.parametrize("content", [b"", b"nonsense", None])
def test_a_damaged_model_is_refused(ready, content):
    good(ready.run(train, "small", "panel", "--out", "models"))
    file = Path("models/bpr-3.safetensors")
    if content is None:  # of another model
        about = json.loads(Path("models/model.json").read_text())
        about["model"]["site_effects"] = False
        Path("models/model.json").write_text(json.dumps(about))
        file = Path("models/ml-0.safetensors")
    else:
        file.write_bytes(content)
    code, said = ready.run(rank, *RANK)
    assert code == 1
    assert str(file) in said
    assert said.count("\n") == 1


def test_a_missing_feature_is_one_line(ready):
    cells = pd.read_parquet("panel/cells.parquet")
    cells.loc[3, "a"] = np.nan
    cells.to_parquet("panel/cells.parquet", index=False)
    code, said = ready.run(train, "small", "panel", "--out", "models")
    assert code == 1
    assert said.startswith("error: tasks.bpr.train: feature a of site s003 in period p000 is nan")
    assert not Path("models").exists()
