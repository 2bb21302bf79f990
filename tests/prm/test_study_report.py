"""The study's text and picture, from made-up runs."""

import re

import numpy as np
import pytest

from tasks.prm import study_report
from tasks.prm.evaluation import evaluate_responses, flat
from tasks.prm.params import Evaluate
from tasks.prm.scored import gather
from tasks.prm.study_report import Setting, figure, measured, parts, text
from tests.prm.results import made_up


def run(loss, seed, *, beta=1.0, lora=False, value=0.8, with_value=0.7, verdicts=0.0):
    """One run with its accuracies; differences have intervals of ± 0.02 about `verdicts`."""
    metrics = {"choice.n": 8, "choice.without": "w", "choice.with": "r", "choice.control": "c"}
    metrics |= {"test.best_of.8.w": value, "test.best_of.8.r": with_value, "test.best_of.8.c": 0.65}
    metrics |= {"test.majority.8": 0.6, "test.step_auc.reference": 0.6, "test.f1.reference": 0.5}
    for kind, score in (("policy", 0.9), ("ratio", 0.85)):
        metrics |= {f"test.step_auc.{loss}.{kind}": score, f"test.f1.{loss}.{kind}": score - 0.1}
    for a, b in (
        ("without", "majority"),
        ("with", "majority"),
        ("without", "control"),
        ("with", "control"),
        ("with", "without"),
    ):
        key = f"difference.{a}.minus.{b}"
        metrics |= {key: verdicts, f"{key}.low": verdicts - 0.02, f"{key}.high": verdicts + 0.02}
    return {"seed": seed, "loss": loss, "beta": beta, "lora": lora, "metrics": metrics}


@pytest.fixture
def runs():
    found = [run(loss, seed, value=0.8 + 0.01 * seed) for loss in ("dpo", "ce") for seed in (2, 1, 3)]
    found += [run("ce", 1, beta=beta, value=value) for beta, value in ((0.05, 0.55), (3.0, 0.79))]
    return found + [run("ce", seed, lora=True, value=0.8 - 0.01 * seed) for seed in (1, 2)]


def test_settings_and_questions(runs):
    found = parts(runs)
    assert list(found["losses"]) == [Setting("ce", 1.0, False), Setting("dpo", 1.0, False)]
    assert list(found["beta"]) == [Setting("ce", beta, False) for beta in (0.05, 1.0, 3.0)]
    assert list(found["lora"]) == [Setting("ce", 1.0, False), Setting("ce", 1.0, True)]
    assert [r["seed"] for r in found["losses"][Setting("dpo", 1.0, False)]] == [1, 2, 3]
    assert parts(runs[:6])["beta"] == parts(runs[:6])["lora"] == {}


def test_tables_hold_means_and_each_seed(runs):
    said = text(runs)
    assert "| | CE, beta 1 | DPO, beta 1 |\n" in said
    assert "| seeds | 1, 2, 3 | 1, 2, 3 |" in said
    assert "| best of 8, without reference | 0.820 (0.810, 0.820, 0.830) | 0.820 (0.810, 0.820, 0.830) |" in said
    assert "| best of 8, without reference | 0.550 | 0.820 (0.810, 0.820, 0.830) | 0.790 |" in said
    assert "| majority of 8 | 0.600 (0.600, 0.600, 0.600) |" in said
    assert "| without − majority | +0.000 (+0.000, +0.000, +0.000) |" in said
    assert "| step AUC, with | 0.850 (0.850, 0.850, 0.850) |" in said
    assert "| F1, control | 0.500 (0.500, 0.500, 0.500) |" in said
    assert [line for line in said.split("\n") if line.startswith("###")] == [
        "### Losses",
        "### Beta",
        "### Adapters (LoRA) and the whole model",
    ]
    assert text(runs[::-1]) == said
    assert not re.search(r"\b(nan|None|inf)\b", said)


def test_words_follow_the_numbers(runs):
    said = text(runs)
    assert "6 trainings of 2 losses at their usual beta, best of 8" in said
    assert "without against majority 0 better, 0 worse; with against majority 0 better, 0 worse" in said
    assert "They differ by 0.000, no more than the seeds of one loss do (up to 0.020)." in said
    # the betas are compared on the seed that all have: 0.81 at beta 1, not 0.82
    assert "CE by beta, best of 8, seed 1: without the reference 0.05: 0.550, 1: 0.810, 3: 0.790 (highest at 1)" in said
    assert (
        "CE, adapters minus whole model, best of 8, seed by seed: without the reference −0.030 (−0.020, −0.040)" in said
    )
    other = [run("ce", 1, value=0.9, verdicts=0.1), run("ce", 2, value=0.91), run("dpo", 1, value=0.7, verdicts=-0.1)]
    said = text([*other, run("dpo", 2, value=0.71, verdicts=-0.1)])
    assert "without against majority 1 better, 2 worse" in said
    assert (
        "highest CE (0.905), lowest DPO (0.705). They differ by 0.200, more than the seeds of one loss do (up to"
        in said
    )
    assert "###" in said
    assert "### Beta" not in said
    assert "adapters" not in said


def test_metrics_of_the_evaluation_fit():
    found = made_up(losses=("nca",), samples=8)
    responses = gather(found["rollouts"], found["steps"], {"nca": 1.0})
    metrics = flat(evaluate_responses("here", responses, Evaluate(n=[8], n_resamples=20)))
    values = measured({"seed": 1, "loss": "nca", "beta": 1.0, "lora": False, "metrics": metrics})
    assert None not in values.values()
    assert values["with"] == metrics[f"test.best_of.8.{metrics['choice.with']}"]
    assert values["f1_with"] == metrics["test.f1.nca.ratio"]
    assert values["with_without"] == metrics["difference.with.minus.without"]


def test_points_lie_at_their_numbers(runs, monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(study_report, "save", lambda fig, path: drawn.append(fig))
    figure(runs, tmp_path / "a.png")
    losses, beta, lora = drawn[0].axes
    points = [line.get_ydata() for line in losses.get_lines() if line.get_marker() == "o"]
    assert np.array(points).tolist() == pytest.approx(np.array([[0.81, 0.82, 0.83], [0.7] * 3] * 2))
    assert [label.get_text() for label in beta.get_xticklabels()] == [f"CE\nbeta {b}" for b in ("0.05", "1", "3")]
    assert [label.get_text() for label in lora.get_xticklabels()] == ["CE\nbeta 1", "CE\nbeta 1\nadapters"]
    lines = [line.get_ydata()[0] for line in losses.get_lines() if line.get_marker() != "o"]
    assert lines == pytest.approx([0.6, 0.65])


def test_a_picture_is_written_and_the_same_again(runs, tmp_path):
    for name in ("a.png", "b.png"):
        figure(runs[:6], tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.png").stat().st_size < 1_000_000
