"""Implicit PRM with small parameters: plain DVC, the flow in a second clone, own responses with a model of one's own."""

import json
import shutil
from pathlib import Path

import pytest

from tasks.lm.loading import LanguageModel, save
from tasks.lm.tiny import build_model, build_tokenizer
from tests.e2e.conftest import Clone, project_copy

pytestmark = pytest.mark.e2e

CHAIN = {"source": "chain", "operations": 1, "train": 40, "valid": 50, "test": 20}
SMALL = {"hidden": 64, "layers": 2, "heads": 2, "intermediate": 128, "learning_rate": 5e-3, "check_every": 20}


def small(parameters: dict) -> None:
    parameters |= {"models": {}, "packages": [], "ingest": {}}
    parameters |= {"datasets": ["chain", "mine"], "losses": ["dpo"]}
    parameters["problems"] = {"chain": CHAIN}
    parameters["generator"] = {"chain": SMALL | {"max_steps": 600, "pass_at_1": [0.1, 0.9], "check_problems": 50}}
    parameters["rollouts"] = {"chain": {"samples": 8, "test_samples": 8, "max_new_tokens": 24}}
    parameters["responses"] = {"mine": {"path": "data/raw/mine.jsonl", "valid": 0.3, "test": 0.3}}
    several = {"epochs": 20, "batch": 16, "learning_rate": 1e-3}  # few problems have right and wrong responses
    adapter = {"lora": {"r": 2, "alpha": 4.0}, "learning_rate": 0.01, "epochs": 20, "batch": 16}
    parameters["train"] = {"chain": {"dpo": several}, "mine": {"dpo": adapter}}
    parameters["evaluate"] |= {"n": [1, 2, 4], "choose_at": 4, "n_resamples": 100}


def own_responses() -> list[dict]:
    """20 problems × 4 responses; every other one is wrong, in its second step."""
    rows = []
    for i in range(20):
        for j in range(4):
            second = f"{i}+{j}={i + j + j % 2}"
            text = f"{i}+0={i}\n\n{second}"
            wrong = text.index(second) if j % 2 else -1
            rows.append({"prompt": f"{i}+0+{j}", "response": text, "correct": j % 2 == 0, "first_wrong": wrong})
    return [row | {"prompt": row["prompt"].rsplit("+", 1)[0]} for row in rows]


def prepared(clone: Clone) -> Clone:
    raw = clone.root / "data/raw"
    raw.mkdir(parents=True, exist_ok=True)
    (raw / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in own_responses()))
    tokenizer = build_tokenizer([*"0123456789+=", "\n", "\n\n"])
    model = build_model(tokenizer, hidden=16, layers=1, heads=2, intermediate=16, seed=0)
    save(LanguageModel(model, tokenizer, ""), clone.root / "data/prm/mine/generator")
    clone.parameters(small, "prm")
    return clone


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Clone:
    clone = prepared(project_copy(tmp_path_factory.mktemp("prm") / "project"))
    clone.run("dvc", "--wait-for-lock", "repro", "prm")
    clone.git("add", "-A")
    clone.git("commit", "-qm", "small run")
    return clone


def test_everything_is_made(done):
    metrics = json.loads((done.root / "reports/prm/metrics/chain.json").read_text())
    assert 0 < metrics["test.pass.1"] < 1
    assert metrics["choice.prm"].startswith("dpo.")
    page = (done.root / "reports/prm/index.html").read_text(encoding="utf-8")
    assert "data:image/png;base64," in page
    assert "What these data do not show" in (done.root / "reports/prm/summary.md").read_text(encoding="utf-8")
    assert not list((done.root / "data").rglob("*.partial"))
    # own responses: an adapter beside the model that was put there
    assert {file.name for file in (done.root / "data/prm/mine/models/dpo").iterdir()} >= {
        "adapter_model.safetensors",
        "prm.json",
        "README.md",
    }


def test_a_trained_folder_is_a_model_that_transformers_loads_and_score_steps_takes(done):
    from transformers import AutoModelForCausalLM

    from tasks.prm.score import score_steps

    folder = done.root / "data/prm/chain/models/dpo"
    about = json.loads((folder / "prm.json").read_text())
    assert AutoModelForCausalLM.from_pretrained(folder).config.vocab_size == 32
    (scored,) = score_steps(
        ["Q:34-3\n"],
        ["Step 1:34-3=31\n\nAnswer:31"],
        folder,
        done.root / "data/prm/chain/generator",
        beta=about["beta"],
        segment=about["segment"],
    )
    assert len(scored.steps) == 2
    assert scored.scores["sum"] == pytest.approx(sum(step.reward for step in scored.steps))


def test_the_flow_rebuilds_the_same_bytes_in_a_second_clone(done, tmp_path):
    done.git("clone", "-q", str(done.root), str(tmp_path / "second"))
    second = Clone(tmp_path / "second")
    for own in ("data/raw/mine.jsonl", "data/prm/mine/generator"):
        source, target = done.root / own, second.root / own
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    second.run("flows.prm", "--workers", "2", "--force")
    assert second.git("status", "--porcelain") == "", second.git("diff", "--stat")


def test_bad_own_responses_stop_the_run_with_one_line_and_nothing_half_written(tmp_path):
    clone = prepared(project_copy(tmp_path / "bad"))
    file = clone.root / "data/raw/mine.jsonl"
    rows = own_responses()
    rows[6]["correct"] = "yes"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = clone.run("dvc", "--wait-for-lock", "repro", "prm-check-rollouts@mine", check=False)
    assert result.returncode != 0
    line = next(line for line in (result.stdout + result.stderr).splitlines() if line.startswith("error: "))
    assert "data/raw/mine.jsonl" in line
    assert "7" in line
    assert "'yes'" in line
    made = {path.name for path in Path(clone.root / "data/prm/mine").iterdir()}
    assert made == {"generator"}
