"""The command line of fine-tuning: what its folder holds, what every arm shares, and how it refuses."""

import json
import string

import numpy as np
import pandas as pd
import pytest
import torch

from tasks.lm.adapters import add_lora
from tasks.lm.loading import LanguageModel, digest, load, save
from tasks.lm.tiny import build_model, build_tokenizer
from tasks.lm.tokens import encode_prompt, encode_response
from tasks.swiftcode import finetune
from tasks.swiftcode.params import ARMS
from tasks.swiftcode.prompts import messages, prefill
from tasks.swiftcode.schemas import CURVE, SELECTION, TASKS
from tasks.tables import read_table, write_table

SETTINGS = {
    "epochs": 4,
    "batch": 3,
    "learning_rate": 0.01,
    "lora": {"r": 2, "alpha": 4.0, "targets": ["q_proj", "v_proj"]},
}
PROMPT = 'def {0}(x):\n    """The {0} of it."""\n'
BODIES = ("x + x", "2 * x", "sum([x, x])")  # of the arms
FILES = ["base", "tasks.parquet", "selection.parquet"]


def tasks(n: int = 6) -> pd.DataFrame:
    table = pd.DataFrame({"task": [f"t{i}" for i in range(n)], "split": "train", "kind": "function"})
    table["entry_point"] = table["task"]
    table["prompt"] = [PROMPT.format(name) for name in table["task"]]
    table["languages"] = [["python"]] * n
    return table.assign(tests="[]", compare="exact", rtol=None, atol=None, generator=None, sizes="{}")


def selection(n: int = 6) -> pd.DataFrame:
    rows = [
        {"task": f"t{i}", "arms": [arm], "source": f"def t{i}(x):\n    return {body}{' + 0' * i}\n"}
        for i in range(n)
        for arm, body in zip(ARMS, BODIES, strict=True)
    ]
    table = pd.DataFrame(rows).assign(language="python", origin="pool", count=1, tied=False, choice=True, selected=True)
    table["candidate"] = [f"{i:016x}" for i in range(len(table))]
    numbers = ["time", "time_low", "time_high", "memory_mb", "tmu_mb_s", "ratio"]
    return table.assign(**dict.fromkeys(numbers, 1.0))


@pytest.fixture
def prepared(workspace):
    torch.set_num_threads(1)
    tokenizer = build_tokenizer(list(string.printable))
    model = build_model(tokenizer, hidden=16, layers=1, heads=2, intermediate=16, seed=0, max_positions=400)
    save(LanguageModel(model, tokenizer, ""), workspace.root / "base")
    write(workspace, tasks(), selection())
    workspace.parameters(finetune={"d": SETTINGS})
    return workspace


def write(workspace, asked: pd.DataFrame, chosen: pd.DataFrame) -> None:
    write_table(workspace.root / "tasks.parquet", asked, TASKS)
    write_table(workspace.root / "selection.parquet", chosen, SELECTION)


def content(folder) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_folder_of_an_arm(prepared):
    assert prepared.run(finetune, "d", "fastest", *FILES, "--out", "one") == (0, "")
    base, trained = load(prepared.root / "base"), load(prepared.root / "one")
    about = json.loads((prepared.root / "one/arm.json").read_text())
    assert about["arm"] == "fastest"
    assert about["base"] == trained.model.peft_config["default"].base_model_name_or_path == "base"
    assert about["base_sha256"] == digest(base.model)
    assert about["adapter"] is True
    assert about["counts"]["used"] == 6
    assert about["counts"]["steps"] == 8  # 4 epochs of 2 batches
    assert about["parameters"]["learning_rate"] == 0.01
    curve = read_table(prepared.root / "one/curve.parquet", CURVE)
    assert curve["step"].tolist() == list(range(1, 9))
    assert curve["loss"].tail(2).mean() < curve["loss"].head(2).mean()
    # what was trained on is likelier now, and the end after it
    row = tasks().iloc[0]
    prompt = encode_prompt(base.tokenizer, messages(row, "python", hint=False))
    prompt += encode_response(base.tokenizer, prefill(row, "python"), finished=False)
    response = encode_response(base.tokenizer, " return 2 * x\n```")
    assert about["tasks"][0] == {"task": "t0", "language": "python", "tokens": len(response)}
    assert about["tokens"]["prompt"] == 6 * len(prompt)  # of names of one length
    assert about["tokens"]["longest"] == len(prompt) + len(response) + 4 * 5
    assert about["tokens"]["response"] == about["response_tokens"]["fastest"] == 6 * len(response) + 4 * 15
    assert about["response_tokens"]["slowest"] == about["tokens"]["response"] + 6 * (len(BODIES[2]) - len(BODIES[1]))
    before, after = (nll(one.model, prompt, response) for one in (base, trained))
    assert after.mean() < before.mean()
    assert after[-1] < before[-1]


def nll(model, prompt, response) -> np.ndarray:
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *response]])).logits[0].log_softmax(-1)
    return -np.array([float(logits[len(prompt) - 1 + i, token]) for i, token in enumerate(response)])


def test_the_same_bytes_twice_whatever_the_order_of_rows_and_others_for_another_arm(prepared):
    assert prepared.run(finetune, "d", "fastest", *FILES, "--out", "one") == (0, "")
    assert prepared.run(finetune, "d", "slowest", *FILES, "--out", "other") == (0, "")
    write(prepared, tasks().iloc[::-1], selection().iloc[::-1])
    torch.manual_seed(5)
    assert prepared.run(finetune, "d", "fastest", *FILES, "--out", "two") == (0, "")
    one, two, other = (content(prepared.root / name) for name in ("one", "two", "other"))
    assert one == two
    assert sorted(one) == ["README.md", "adapter_config.json", "adapter_model.safetensors", "arm.json", "curve.parquet"]
    assert one["adapter_model.safetensors"] != other["adapter_model.safetensors"]


def test_all_arms_see_the_same_tasks_in_the_same_batches(prepared, monkeypatch):
    from tasks.swiftcode import tuning

    taken: list[list[str]] = []
    plain = tuning.mean_nll
    monkeypatch.setattr(tuning, "mean_nll", lambda m, batch: taken.append([e.task for e in batch]) or plain(m, batch))
    # programs whose order by length is another one in every arm
    lengths = {arm: np.random.default_rng(i).permutation(6) for i, arm in enumerate(ARMS)}
    chosen = selection()
    chosen["source"] = [
        f"def {row.task}(x):\n    return x{' + 0' * (3 * lengths[row.arms[0]][int(row.task[1:])])}\n"
        for row in chosen.itertuples()
    ]
    write(prepared, tasks(), chosen)
    for arm in ARMS:
        assert prepared.run(finetune, "d", arm, *FILES, "--out", arm) == (0, "")
    assert len(taken) == 24
    assert taken[:8] == taken[8:16] == taken[16:]


def test_the_whole_model_may_be_trained(prepared):
    prepared.parameters(finetune={"d": SETTINGS | {"lora": None}})
    for out in ("one", "two"):
        assert prepared.run(finetune, "d", "slowest", *FILES, "--out", out) == (0, "")
    assert content(prepared.root / "one") == content(prepared.root / "two")
    trained = load(prepared.root / "one")
    assert not hasattr(trained.model, "peft_config")
    assert digest(trained.model) != digest(load(prepared.root / "base").model)
    about = json.loads((prepared.root / "one/arm.json").read_text())
    assert about["adapter"] is False
    assert about["base_sha256"] == digest(load(prepared.root / "base").model)


def test_tasks_that_lack_an_arm_or_are_too_long_are_told_and_left_out(prepared):
    chosen = selection()
    chosen.loc[0, "source"] = f"def t0(x):\n    return x{' + 0' * 80}\n"  # more than the model has positions for
    write(prepared, tasks(), chosen.drop(index=5))
    status, said = prepared.run(finetune, "d", "fastest", *FILES, "--out", "one")
    assert status == 0
    assert said == "note: left out of every arm: 1 (task, language)s lack a program of some arm, 1 are too long\n"
    about = json.loads((prepared.root / "one/arm.json").read_text())
    assert [row["task"] for row in about["tasks"]] == ["t2", "t3", "t4", "t5"]
    prepared.parameters(finetune={"d": SETTINGS | {"max_tokens": 8}})
    status, said = prepared.run(finetune, "d", "fastest", *FILES, "--out", "two")
    assert status == 1
    assert "selection.parquet: no task to train on in python: 1 (task, language)s lack" in said
    assert said.endswith("5 are too long\n")


def refused(workspace, said: str, arm: str = "fastest") -> None:
    status, told = workspace.run(finetune, "d", arm, *FILES, "--out", "bad")
    assert status == 1
    assert said in told.splitlines()[-1]
    assert not (workspace.root / "bad").exists()


def test_what_cannot_be_trained_is_one_line(prepared):
    refused(prepared, "arm 'quickest' is not one of random-correct, fastest, slowest", arm="quickest")
    write(prepared, tasks(), selection().iloc[:0])
    refused(prepared, "selection.parquet: no task to train on in python: 0 (task, language)s lack")
    write(prepared, tasks(3), selection())
    refused(prepared, "selection.parquet: task 't3' is not in the table of tasks")
    write(prepared, tasks(), selection())
    prepared.parameters(finetune={"d": SETTINGS | {"lora": {"targets": ["queries"]}}})
    refused(prepared, "'queries' is the name of no layer")


def test_a_model_that_has_an_adapter_is_refused(prepared):
    base = load(prepared.root / "base")
    adapted = add_lora(base.model, r=2, alpha=4.0, targets=["q_proj"], seed=1)
    save(LanguageModel(adapted, base.tokenizer, ""), prepared.root / "adapter")
    for lora in (SETTINGS["lora"], None):
        prepared.parameters(finetune={"d": SETTINGS | {"lora": lora}})
        status, said = prepared.run(finetune, "d", "fastest", "adapter", *FILES[1:], "--out", "bad")
        assert status == 1
        assert "adapter: is an adapter; every arm starts from a whole model" in said


def test_weights_that_are_not_finite_are_one_line(prepared):
    base = load(prepared.root / "base")
    base.model.model.norm.weight.data.fill_(float("nan"))
    save(LanguageModel(base.model, base.tokenizer, ""), prepared.root / "base")
    refused(prepared, "step 1: loss nan")
