"""The study of the public panels: its stage with a small budget on the real tables, and its text from made-up numbers."""

import json
import re
from pathlib import Path

import pytest

from tasks.bpr import study
from tasks.bpr.params import Baselines, Evaluate, Rank, Train
from tasks.bpr.public import PUBLIC
from tasks.bpr.study_report import OTHERS, PUBLISHED, TITLES, text
from tests.bpr.conftest import shared_folder
from tests.bpr.test_plot_stage import differing, made_up_metrics

SMALL = {
    "train": Train(objectives=["ml", "daml"], epsilons=[0.8], seeds=[0, 1], epochs=2),
    "rank": Rank(rules=["mean", "ratio"], n_samples=4),
    "baselines": Baselines(averages=[5, 7, 10], regressions=["ridge"], n_samples=10),
    "evaluate": Evaluate(n_resamples=100),
}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Two runs of the stage's function with a small budget: their folders."""
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "SETTINGS", SMALL)
        patch.delenv("METHODWORKS_WORKERS", raising=False)
        for name in ("first", "second"):
            study.study(shared_folder("data"), out=folder / name)
    return folder


def test_the_public_tables_give_the_known_baselines_and_the_same_bytes_twice(done):
    found = json.loads((done / "first/study.json").read_text())
    assert list(found) == list(PUBLIC)
    known = {
        "cook_county_overdose": ("average5", 0.8197),
        "aransas_cranes": ("average10", 0.3773),
        "nyc_pedestrian_injury": ("average7", 0.7925),
    }
    for name, (average, value) in known.items():
        assert found[name][f"bpr.{average}"] == pytest.approx(value, abs=5e-5)
        assert found[name]["nll.daml0.8"] is not None
        assert found[name]["bpr.ml.ratio.seed_sd"] is not None
    assert found["cook_county_overdose"]["data.test_oracle"] == 669 + 698
    for part in ("study.json", "study.md", "study.png"):
        assert (done / "first" / part).read_bytes() == (done / "second" / part).read_bytes()
        assert (done / "first" / part).stat().st_size < 300_000


def test_text_of_the_small_study_names_every_panel(done):
    said = (done / "first/study.md").read_text()
    for title in TITLES.values():
        assert f"### {title}" in said
    assert "| average of 5 | 0.820 [" in said
    assert not re.search(r"\b(nan|None|inf)\b", said)


def test_a_missing_table_is_named(workspace):
    Path("tables").mkdir()
    code, text_said = workspace.run(study, "tables", "--out", "out")
    assert (code, text_said.count("\n")) == (1, 1)
    assert "tables/cook_county_overdose/data.parquet: there is no such file; the study needs all of" in text_said
    assert not Path("out").exists()


def made_up_study(**changes) -> dict:
    plain = {
        **made_up_metrics(),
        **{f"bpr_pooled.{f}": 0.7 for f in ("average5", "ridge", "ml.ratio", "bpr.ratio", "daml1.ratio")},
    }
    return {name: {**plain, **changes} for name in PUBLIC}


def test_text_puts_published_numbers_beside_ours():
    said = text(made_up_study(**{"bpr.daml1.ratio.seed_sd": 0.0123}), 0.95)
    assert "| average of 5 | 0.800 [0.760, 0.840] | 0.80 | 0.700 | – | 0.99 | – |" in said
    assert "| DAML ε = 1, ratio | 0.800 [0.760, 0.840] ± 0.012 | 0.80 | 0.700 | 2.000 | 1.12 | 3.000 |" in said
    assert "| BPR only, ratio | 0.800 [0.760, 0.840] | 0.41 | 0.700 | 2.000 | 40495 | 2.000 |" in said
    assert "BPR 0.900 in training at the last epoch; an independent implementation reached 0.873 (+0.027)" in said
    assert said.count("Published results of other methods") == len(OTHERS) == len(PUBLISHED)


def test_text_follows_the_numbers():
    plain, better = text(made_up_study(), 0.95), text(made_up_study(**differing("daml1.ratio", 0.06)), 0.95)
    assert "undecided on cook_county_overdose, aransas_cranes, nyc_pedestrian_injury" in plain
    assert "0 are better outside the interval and 0 worse" in plain
    assert "better on cook_county_overdose, aransas_cranes, nyc_pedestrian_injury" in better
    assert "3 are better outside the interval and 0 worse" in better
    lower = text(made_up_study(**{"training.daml1.last_bpr": 0.7}), 0.95)
    assert "BPR 0.700 in training at the last epoch; an independent implementation reached 0.874 (−0.174)" in lower
