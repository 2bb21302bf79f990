"""The stage `plot`: pictures with captions and a text, from what the earlier stages write."""

import json
import struct
from pathlib import Path

import pytest

from tasks.report import method
from tasks.swiftcode import figures, plot
from tests.swiftcode import finished

PLOT = ("data", "metrics", "--figures", "figures", "--summary", "summary.md")
FIGURES = ["correctness.png", "speed.png", "differences.png", "selection-small.png", "memory-small.png", "training.png"]
TITLES = [
    "What was run",
    "Correct answers",
    "Time and memory of correct answers",
    "Does the selection make the difference",
    "What was selected",
    "How it was measured",
    "What these data do not show",
]


@pytest.fixture
def filled(workspace):
    workspace.parameters(**finished.SECTIONS)
    finished.write()
    return workspace


def run(workspace) -> dict[str, bytes]:
    code, said = workspace.run(plot, *PLOT)
    assert code == 0, said
    return {"summary.md": Path("summary.md").read_bytes()} | {
        path.name: path.read_bytes() for path in sorted(Path("figures").iterdir())
    }


@pytest.mark.filterwarnings("error")
def test_pictures_captions_and_text_make_a_page(filled):
    found = run(filled)
    captions = json.loads(found["captions.json"])
    assert list(captions) == FIGURES
    assert set(found) == {*FIGURES, "captions.json", "summary.md"}
    for name in FIGURES:
        assert found[name].startswith(method.PNG_SIGNATURE)
        width, height = struct.unpack(">II", found[name][16:24])
        assert 400 < width < 2500
        assert 200 < height < 3000
        assert b"Software" not in found[name][:400]
        assert len(captions[name]["caption"]) > 60
    assert len(method.read_figures(Path("figures"))) == len(FIGURES)
    text = method.prose.render(found["summary.md"].decode(), "swiftcode", method.SECTIONS)
    assert [title for _, title in text.sections] == TITLES
    assert run(filled) == found


def test_every_picture_shows_its_numbers(filled):
    """Other numbers, another picture."""
    before = run(filled)
    finished.write(seed=5)
    after = run(filled)
    assert [name for name in FIGURES if after[name] == before[name]] == []


def test_the_text_reads_both_tables_of_measurements_and_what_was_dropped(filled):
    text = run(filled)["summary.md"].decode()
    runs_of_training = 4 * 3 + (8 + 4) * 3  # baselines, candidates, second copies
    runs_of_test = 12 * (1 + 2 + 1) * 3
    assert f"{runs_of_training + runs_of_test} runs, in 3 rounds" in text
    assert "16 of 19 tasks were kept (left out: duplicate 2, risky 1)" in text
    assert "Memory decides, or overrules time, in 1 of 4." in text
    assert "(SmolLM2-135M-Instruct, 135 million parameters)" in text


def test_one_arm_and_nothing_to_compare(workspace):
    """The control alone: no pair of the claim, no memory to decide, and the text says so."""
    workspace.parameters(**{**finished.SECTIONS, "arms": ["slowest"], "models": {}, "select": {"memory_tie_mb": 100.0}})
    finished.write(arms=("slowest",), n_tasks=1, shares=dict.fromkeys(finished.SHARES, 0.0))
    found = run(workspace)
    assert list(json.loads(found["captions.json"])) == [
        "correctness.png",
        "speed.png",
        "selection-small.png",
        "training.png",
    ]
    text = found["summary.md"].decode()
    assert "**cannot be told**, because there is no arm fastest and no arm random-correct" in text
    assert "There are no two models to compare." in text
    assert "SmolLM2" not in text


def test_two_data_sets_share_the_pictures_over_all(workspace):
    sections = {**finished.SECTIONS, "datasets": ["small", "other"]}
    for name in ("gather", "generate", "finetune", "answers"):
        sections[name] = dict.fromkeys(("small", "other"), finished.SECTIONS[name]["small"])
    workspace.parameters(**sections)
    finished.write()
    finished.write("other", seed=3)
    found = run(workspace)
    own = [f"{kind}-{name}.png" for name in ("small", "other") for kind in ("selection", "memory")]
    assert list(json.loads(found["captions.json"])) == [*FIGURES[:3], *own, "training.png"]
    assert found["selection-small.png"] != found["selection-other.png"]
    text = found["summary.md"].decode()
    assert text.count("**other**\n\n| model |") == 3
    assert "- **other**: " in text


def test_groups_that_are_left_out_of_the_picture_are_counted(filled, monkeypatch):
    monkeypatch.setattr(figures, "MOST_GROUPS", 3)
    caption = json.loads(run(filled)["captions.json"])["selection-small.png"]["caption"]
    assert caption.endswith(" 1 more are not shown, those without a choice first.")


def test_metrics_of_another_run_are_refused(filled):
    Path("metrics/small.json").unlink()
    code, said = filled.run(plot, *PLOT)
    assert (code, said.count("\n")) == (1, 1)
    assert "metrics/small.json" in said
    assert not Path("figures").exists()
