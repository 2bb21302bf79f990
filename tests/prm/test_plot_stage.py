"""The stage `plot`: pictures with captions and a text, of data sets of every kind; points and cells at their numbers."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from tasks.prm import evaluate, figures, plot
from tasks.prm.scored import gather
from tasks.report import method
from tests.prm.results import BETAS, by_hand, made_up, write_dataset
from tests.prm.test_evaluate_stage import PARAMETERS, tables
from tests.prm.test_evaluation import PROBLEMS

FIGURES = ["accuracy.png", "steps-sampled.png", "steps-given.png", "kinds.png", "training.png"]
PLOT = ("data", "metrics", "study", "--figures", "figures", "--summary", "summary.md")


@pytest.fixture
def filled(workspace):
    """`sampled` with known steps, `given` without; evaluated; an empty folder for the study."""
    workspace.parameters(**PARAMETERS)
    fill(workspace, tables())
    Path("study").mkdir()
    return workspace


def fill(workspace, found):
    for name, content in found.items():
        if Path("data", name).exists():
            Path("data", name).rename(f"data/before_{name}")
        write_dataset(Path("data") / name, content)
    code, said = workspace.run(evaluate, "data", "--out", "metrics")
    assert code == 0, said


def run(workspace) -> dict[str, bytes]:
    code, said = workspace.run(plot, *PLOT)
    assert code == 0, said
    return {"summary.md": Path("summary.md").read_bytes()} | {
        path.name: path.read_bytes() for path in sorted(Path("figures").iterdir())
    }


@pytest.mark.filterwarnings("error")
def test_pictures_captions_and_text_make_a_page_and_the_study_joins_them(filled):
    found = run(filled)
    captions = json.loads(found["captions.json"])
    assert list(captions) == FIGURES
    assert set(found) == {*FIGURES, "captions.json", "summary.md"}
    for name in FIGURES:
        assert found[name].startswith(method.PNG_SIGNATURE)
        width, height = struct.unpack(">II", found[name][16:24])
        assert 400 < width < 2500
        assert 200 < height < 3000
        assert len(found[name]) < 1_000_000
        assert b"Software" not in found[name][:400]
        assert len(captions[name]["caption"]) > 60
    assert b"## Study" not in found["summary.md"]
    assert len(method.read_figures(Path("figures"))) == len(FIGURES)
    text = method.prose.render(found["summary.md"].decode(), "prm", method.SECTIONS)
    assert [title for _, title in text.sections] == [
        "Responses",
        "Choosing one of several responses",
        "Which step is the first wrong one",
        "What these data do not show",
    ]
    Path("study/study.md").write_text("Text of the study.", encoding="utf-8")
    Path("study/study.png").write_bytes(found["accuracy.png"])
    again = run(filled)
    assert {name: again[name] for name in FIGURES} == {name: found[name] for name in FIGURES}
    assert again["study.png"] == found["accuracy.png"]
    assert list(json.loads(again["captions.json"])) == [*FIGURES, "study.png"]
    assert b"## Study: losses, seeds, beta and adapters\n\nText of the study.\n" in again["summary.md"]


def test_every_picture_shows_its_numbers(filled):
    """Other numbers, another picture."""
    before = run(filled)
    other = {"sampled": made_up(seed=11), "given": made_up(samples=2, known=False, seed=12)}
    for found in other.values():
        found["curves"]["ce"] = found["curves"]["ce"].assign(loss=0.1)
    fill(filled, other)
    after = run(filled)
    assert [name for name in FIGURES if after[name] == before[name]] == []


def test_examples_are_of_the_test_and_have_their_prompts(filled, monkeypatch):
    shown = {}
    monkeypatch.setattr(figures, "strips", lambda name, *rest: shown.update({name: rest}))
    for part in ("accuracy", "kinds", "training"):
        monkeypatch.setattr(figures, part, lambda *_: None)
    run(filled)
    responses, scorer, threshold, prompts, path = shown["sampled"]
    rollouts = tables()["sampled"]["rollouts"]
    assert set(responses.problems) == set(rollouts.loc[rollouts["split"] == "test", "problem"])
    metrics = json.loads(Path("metrics/sampled.json").read_text())
    assert (scorer, threshold) == (metrics["choice.localisation"], metrics[f"choice.threshold.{scorer}"])
    assert shown["given"][2] is None
    assert prompts["p026"] == "Q:p026"
    assert path.name == "steps-sampled.png"
    assert shown["given"][1] == json.loads(Path("metrics/given.json").read_text())["choice.prm"].rpartition(".")[0]


def test_without_known_steps_and_with_one_sample(filled):
    filled.parameters(**{**PARAMETERS, "datasets": ["given"], "problems": {}, "rollouts": {}})
    fill(filled, {"given": made_up(samples=1, known=False)})
    found = run(filled)
    assert list(json.loads(found["captions.json"])) == ["accuracy.png", "steps-given.png", "training.png"]
    assert "On given there are not several responses a problem to choose from." in found["summary.md"].decode()
    assert "which steps of the test responses are wrong is not known." in found["summary.md"].decode()


def test_metrics_of_another_run_are_refused(filled):
    Path("metrics/given.json").unlink()
    code, said = filled.run(plot, *PLOT)
    assert (code, said.count("\n")) == (1, 1)
    assert "metrics/given.json" in said
    assert not Path("figures").exists()


# --- what is drawn


@pytest.fixture
def drawn(monkeypatch):
    found = []
    monkeypatch.setattr(figures, "save", lambda figure, path: found.append(figure))
    return found


def by_hand_responses():
    found = by_hand({"valid": PROBLEMS, "test": PROBLEMS})
    return gather(found["rollouts"], found["steps"], BETAS)["test"]


def metrics_of_selection():
    values = {"choice.prm": "ce.policy.min", "choice.without": "ce.policy.min", "choice.with": "dpo.ratio.sum"}
    values |= {"choice.control": "reference.mean", "test.problems.1": 9, "test.problems.4": 7}
    keys = ["test.pass.4", "test.vote.4.ce.policy.min", "test.best_of.4.ce.policy.min", "test.best_of.4.dpo.ratio.sum"]
    keys += ["test.best_of.4.reference.mean", "test.majority.4", "test.pass.1"]
    for i, key in enumerate(keys):
        values |= {key: 0.9 - i / 10, f"{key}.low": 0.85 - i / 10, f"{key}.high": 0.97 - i / 10}
    return values


def test_accuracies_lie_at_their_numbers(drawn, tmp_path):
    plain = {"test.problems.1": 5, "test.pass.1": 0.5, "choice.n": None}
    figures.accuracy({"here": metrics_of_selection(), "there": plain}, tmp_path / "a.png", 0.9)
    here, there = drawn[0].axes
    assert [label.get_text() for label in here.get_xticklabels()] == ["1\n(9)", "4\n(7)"]
    shown = {container.get_label(): container for container in here.containers}
    expected = {
        "any of n is right (pass@n): the ceiling": 0.9,
        "vote weighted by CE, without reference, lowest step": 0.8,
        "best of n by PRM: CE, without reference, lowest step": 0.7,
        "best of n by PRM: DPO, with reference, sum of steps": 0.6,
        "best of n by control: untrained reference, mean of steps": 0.5,
        "majority": 0.4,
    }
    assert list(shown) == list(expected)
    for label, value in expected.items():
        line, _, bars = shown[label]
        assert line.get_ydata() == pytest.approx([0.3, value])
        assert bars[0].get_segments()[1][:, 1] == pytest.approx([value - 0.05, value + 0.07])
    assert [c.get_label() for c in there.containers] == ["any of n is right (pass@n): the ceiling", "majority"]
    assert "90%" in drawn[0]._suptitle.get_text()


def test_examples_are_the_first_of_their_kind():
    responses = by_hand_responses()
    assert figures.examples(responses) == [("every step right", 0), ("wrong step, wrong answer", 2)]
    found = made_up()
    responses = gather(found["rollouts"], found["steps"], BETAS)["test"]
    shown = figures.examples(responses)
    assert [words for words, _ in shown] == [
        "every step right",
        "wrong step, wrong answer",
        "wrong step, wrong answer",
        "wrong step, right answer",
    ]
    assert len({responses.problem[i] for _, i in shown}) == 4
    _, last = shown[-1]
    assert responses.correct[last]
    assert responses.first_wrong[last] >= 0
    unknown = gather(made_up(known=False)["rollouts"], found["steps"], BETAS)["test"]
    assert [words for words, _ in figures.examples(unknown)] == ["right answer", "wrong answer"]


def test_cells_hold_texts_rewards_and_the_first_wrong_step(drawn, tmp_path):
    responses = by_hand_responses()
    prompts = {"p002": "What is\n$1$?", "p003": "x" * 500}
    figures.strips("here", responses, "ce.ratio", 0.5, prompts, tmp_path / "a.png")
    right, wrong, bar = drawn[0].axes
    assert [text.get_text() for text in right.texts] == ["Step 1:1+1=2", "1.00", "Step 2:1+1=2", "1.00"]
    assert right.get_title(loc="left") == "every step right: What is $1$?"
    said = [text.get_text() for text in wrong.texts]
    assert said == ["Step 1:1+1=2", "0.00", "◂ first wrong step", "Step 2:1+1=2", "0.00"]
    assert len(wrong.get_title(loc="left")) < 150
    edges = [patch.get_edgecolor()[3] > 0 for patch in wrong.patches]
    assert edges == [True, False]
    assert bar.get_ylabel() == "reward of the step (nats × beta)"
    # below the threshold red, above it blue
    (red, _, _, _), (_, _, blue, _) = wrong.patches[0].get_facecolor(), right.patches[0].get_facecolor()
    assert red > wrong.patches[0].get_facecolor()[2]
    assert blue > right.patches[0].get_facecolor()[0]


def test_the_first_wrong_step_of_a_long_response_is_in_sight(drawn, tmp_path):
    policy = -np.arange(1.0, 31)
    long = [[("3", False, 20, policy, policy)], [("2", True, -1, policy, policy)]]
    found = by_hand({"valid": long, "test": long})
    responses = gather(found["rollouts"], found["steps"], BETAS)["test"]
    # steps from the tenth on are longer in this text; where they begin is what the table says
    assert responses.wrong_step(responses.steps["ce"])[0] == 20
    figures.strips("here", responses, "ce.policy", None, dict.fromkeys(responses.problems, "p"), tmp_path / "a.png")
    axis = drawn[0].axes[1]
    assert axis.get_title(loc="left") == "wrong step, wrong answer: p  (steps 14 to 23 of 30)"
    rewards = [t.get_text() for t in axis.texts if t.get_text().startswith("−")]
    assert rewards == [f"−{i:.2f}" for i in range(14, 24)]
    assert [patch.get_edgecolor()[3] > 0 for patch in axis.patches].index(True) == 7


def test_steps_by_kind():
    rewards, is_first_wrong = figures.step_kinds(by_hand_responses(), "ce.policy")
    assert sorted(rewards[is_first_wrong]) == [-4, -3, -2]
    assert sorted(rewards[~is_first_wrong]) == [-1, -1, -1]
