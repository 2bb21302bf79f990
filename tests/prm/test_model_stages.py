"""The command lines between problems and steps: generator, rollouts, reference, train, score."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import load_file, save_file

from tasks import gate
from tasks.lm.loading import LanguageModel, load, save
from tasks.lm.logprobs import token_log_probs
from tasks.lm.optimisation import Optimizer
from tasks.lm.tiny import build_model, build_tokenizer
from tasks.prm import generator, problems, reference, rollouts, score, supervision, train
from tasks.prm.chain import SYMBOLS, draw, solution, true_answer
from tasks.prm.dataset import read_log_probs, read_rollouts, token_digest
from tasks.prm.params import Generator
from tasks.prm.schemas import CURVE, PROBLEMS, ROLLOUTS, STEPS
from tasks.stage import UserError, random_generator
from tasks.tables import read_table, write_table

SHAPE = {"hidden": 16, "layers": 1, "heads": 2, "intermediate": 16}
FILES = ["p.parquet", "r.parquet"]
TRAINED = ["generator", *FILES, "l.safetensors"]


@pytest.fixture
def tiny(workspace) -> LanguageModel:
    tokenizer = build_tokenizer(SYMBOLS)
    model = LanguageModel(build_model(tokenizer, seed=0, **SHAPE), tokenizer, "")
    save(model, workspace.root / "generator")
    return model


@pytest.fixture
def prepared(workspace, tiny):
    """18 problems × 4 responses, right and wrong in turn, with their reference log-probabilities."""
    prompts = draw(1, 18, random_generator(0))
    splits = ["test"] * 4 + ["train"] * 10 + ["valid"] * 4
    asked = pd.DataFrame({"problem": [f"{s}-{i:02}" for i, s in enumerate(splits)], "split": splits, "prompt": prompts})
    asked = asked.assign(answer=[true_answer(p) for p in prompts], grader="chain", metadata=None)
    write_table(workspace.root / "p.parquet", asked, PROBLEMS)
    rows = []
    for row, j in itertools.product(asked.itertuples(), range(4)):
        text = solution(row.prompt) if j % 2 else solution(row.prompt)[:-1] + "?"
        rows.append(
            {"problem": row.problem, "sample": j, "split": row.split, "response": text, "tokens": None}
            | {"finished": True, "answer": text[-2:], "correct": bool(j % 2), "first_wrong": -1}
        )
    write_table(workspace.root / "r.parquet", pd.DataFrame(rows), ROLLOUTS)
    workspace.parameters(
        scoring={}, train={"c": {loss: {"batch": 8, "epochs": 3} for loss in ("ce", "dpo", "nca", "kto")}}
    )
    assert workspace.run(reference, "generator", *FILES, "--out", "l.safetensors") == (0, "")
    return workspace


# ---- generator


def test_the_generator_stops_within_the_range_and_is_the_same_twice(workspace):
    settings = {**SHAPE, "max_steps": 4, "check_every": 2, "check_problems": 5, "pass_at_1": [0.0, 1.0]}
    workspace.parameters(
        problems={"c": {"operations": 1, "train": 5, "valid": 6, "test": 5}}, generator={"c": settings}
    )
    assert workspace.run(problems, "c", "--out", "p.parquet")[0] == 0
    for out in ("one", "two"):
        status, said = workspace.run(generator, "c", "p.parquet", "--out", out)
        assert status == 0
        assert "2 steps, validation pass@1" in said
    for file in (workspace.root / "one").iterdir():
        assert file.read_bytes() == (workspace.root / "two" / file.name).read_bytes(), file.name
    assert load(workspace.root / "one").tokenizer.decode([8]) == "Step 1:"


def test_a_generator_that_stays_outside_the_range_is_one_line_and_no_folder(workspace):
    settings = {**SHAPE, "max_steps": 2, "check_every": 2, "check_problems": 5, "pass_at_1": [0.9, 0.95]}
    workspace.parameters(
        problems={"c": {"operations": 1, "train": 5, "valid": 6, "test": 5}}, generator={"c": settings}
    )
    workspace.run(problems, "c", "--out", "p.parquet")
    status, said = workspace.run(generator, "c", "p.parquet", "--out", "g")
    assert status == 1
    assert "pass@1 was 0.000 after 2 steps" in said.splitlines()[-1]
    assert not (workspace.root / "g").exists()


def test_worked_solutions_are_known_of_chains_only(prepared):
    asked = read_table(prepared.root / "p.parquet", PROBLEMS).astype({"grader": "str"}).assign(grader="number")
    write_table(prepared.root / "q.parquet", asked, PROBLEMS)
    prepared.parameters(generator={"c": SHAPE})
    status, said = prepared.run(generator, "c", "q.parquet", "--out", "data/c/g")
    assert status == 1
    assert "arithmetic chains only" in said


def test_a_jump_over_the_range_is_gone_through_again_in_smaller_steps():
    """Accuracy 0 up to step 13, then 1 within three steps: looks every 8 steps would jump over .5."""
    tokenizer = build_tokenizer(SYMBOLS)
    model = build_model(tokenizer, seed=0, **SHAPE)
    counter = Counter(model)
    parameters = Generator(max_steps=40, check_every=8, pass_at_1=[0.4, 0.6], learning_rate=1e-4)
    looks = supervision.train_until(
        model, counter.batches(), lambda: np.clip((counter.steps() - 12) / 4, 0, 1), parameters
    )
    assert looks[-1].step == 14
    assert looks[-1].pass_at_1 == 0.5
    # the same batches in the same order, and the weights of a run that looked at step 14 straight away
    assert counter.taken[:8] == counter.taken[:8]
    other = build_model(tokenizer, seed=0, **SHAPE)
    optimizer = Optimizer(
        other.parameters(), learning_rate=1e-4, steps=40, warmup=30, betas=(0.9, 0.98), weight_decay=0.01
    )
    for number in range(14):
        supervision._step(other, optimizer, [counter.solution(number)])
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, other.state_dict()[name]), name


def test_a_single_step_over_the_range_is_refused():
    model = build_model(build_tokenizer(SYMBOLS), seed=0, **SHAPE)
    counter = Counter(model)
    parameters = Generator(max_steps=40, check_every=8, pass_at_1=[0.4, 0.6], learning_rate=1e-4)
    with pytest.raises(UserError, match=r"never within pass_at_1 \[0.4, 0.6\]"):
        supervision.train_until(model, counter.batches(), lambda: float(counter.steps() > 12), parameters)


class Counter:
    """Batches by number, and how many of them the model's weights have seen: from the embedding's norm along a run."""

    def __init__(self, model) -> None:
        self.model, self.taken, self.seen = model, [], {}
        run = build_model(build_tokenizer(SYMBOLS), seed=0, **SHAPE)
        optimizer = Optimizer(
            run.parameters(), learning_rate=1e-4, steps=40, warmup=30, betas=(0.9, 0.98), weight_decay=0.01
        )
        for number in range(24):
            self.seen[self._mark(run)] = number
            supervision._step(run, optimizer, [self.solution(number)])

    def solution(self, number: int) -> tuple[list[int], list[int]]:
        return [1, 4], [8, 20 + number % 9, 2]

    def batches(self):
        for number in itertools.count():
            self.taken.append(number)
            yield [self.solution(number)]

    def steps(self) -> int:
        return self.seen[self._mark(self.model)]

    def _mark(self, model) -> bytes:
        return model.model.embed_tokens.weight.detach().numpy().tobytes()


# ---- rollouts


def test_rollouts_are_graded_samples_and_the_same_twice(workspace, tiny):
    workspace.parameters(
        problems={"c": {"operations": 1, "train": 3, "valid": 4, "test": 5}},
        rollouts={"c": {"samples": 2, "test_samples": 3, "max_new_tokens": 6}},
    )
    workspace.run(problems, "c", "--out", "p.parquet")
    for out in ("r.parquet", "again.parquet"):
        assert workspace.run(rollouts, "c", "p.parquet", "generator", "--out", out) == (0, "")
    assert (workspace.root / "r.parquet").read_bytes() == (workspace.root / "again.parquet").read_bytes()
    found = read_table(workspace.root / "r.parquet", ROLLOUTS)
    assert found.groupby("split", observed=True).size().to_dict() == {"test": 15, "train": 6, "valid": 8}
    assert found["tokens"].map(len).between(1, 6).all()
    ends = found["tokens"].map(lambda ids: ids[-1] == tiny.tokenizer.eos_token_id)
    assert (ends == found["finished"]).all()
    for row in found.itertuples():
        assert row.response == tiny.tokenizer.decode([i for i in row.tokens if i != 2])


def test_long_prompts_are_left_out_and_counted(workspace, tiny):
    workspace.parameters(
        problems={"c": {"operations": 2, "train": 10, "valid": 10, "test": 10}},
        rollouts={"c": {"samples": 1, "test_samples": 1, "max_new_tokens": 2, "max_prompt_tokens": 9}},
    )
    workspace.run(problems, "c", "--out", "p.parquet")
    status, said = workspace.run(rollouts, "c", "p.parquet", "generator", "--out", "r.parquet")
    asked = read_table(workspace.root / "p.parquet", PROBLEMS)
    lengths = asked["prompt"].map(lambda p: len(tiny.tokenizer(p)["input_ids"]) + 1)
    assert 0 < (lengths > 9).sum() < len(asked)
    assert status == 0
    assert f"{(lengths > 9).sum()} of 30 prompts have more than 9 tokens" in said
    assert len(read_table(workspace.root / "r.parquet", ROLLOUTS)) == (lengths <= 9).sum()
    workspace.parameters(rollouts={"c": {"max_prompt_tokens": 3}})
    status, said = workspace.run(rollouts, "c", "p.parquet", "generator", "--out", "none.parquet")
    assert status == 1
    assert "a larger max_prompt_tokens is needed" in said
    workspace.parameters(rollouts={"c": {"max_new_tokens": 600}})
    status, said = workspace.run(rollouts, "c", "p.parquet", "generator", "--out", "none.parquet")
    assert status == 1
    assert "more than the model's 512 positions" in said
    assert not (workspace.root / "none.parquet").exists()


# ---- reference


def test_the_cache_holds_what_a_fresh_pass_finds_and_is_the_same_twice(prepared, tiny):
    assert prepared.run(reference, "generator", *FILES, "--out", "again.safetensors") == (0, "")
    first, second = ((prepared.root / name).read_bytes() for name in ("l.safetensors", "again.safetensors"))
    assert first == second
    data = read_rollouts(prepared.root / "p.parquet", prepared.root / "r.parquet", tiny.tokenizer)
    cached = read_log_probs(prepared.root / "l.safetensors", tokens=token_digest(data))
    for i in (0, 17, 71):
        fresh = token_log_probs(tiny.model, [data.prompts[i]], [data.responses[i]])[0]
        np.testing.assert_allclose(cached[i], fresh, atol=1e-5)


@pytest.mark.parametrize("change", ["model", "tokens", "damaged", "no metadata", "lengths"])
def test_a_stale_or_damaged_cache_is_refused(prepared, tiny, change):
    cache = prepared.root / "l.safetensors"
    if change == "model":
        tiny.model.lm_head.weight.data[5] += 1
        save(tiny, prepared.root / "generator")
    elif change == "tokens":
        table = read_table(prepared.root / "r.parquet", ROLLOUTS)
        table.loc[0, "response"] = "Answer:1"
        write_table(prepared.root / "r.parquet", table, ROLLOUTS)
    elif change == "damaged":
        cache.write_bytes(cache.read_bytes()[:100])
    else:
        arrays = load_file(cache)
        if change == "lengths":
            arrays["lengths"] = arrays["lengths"][:-1]
            import safetensors

            with safetensors.safe_open(cache, framework="numpy") as file:
                save_file(arrays, cache, metadata=file.metadata())
        else:
            save_file(arrays, cache)
    status, said = prepared.run(train, "c", "ce", *TRAINED, "--out", "m")
    assert status == 1
    assert said.splitlines()[-1].startswith("error: tasks.prm.train: l.safetensors: ")
    assert not (prepared.root / "m").exists()


def test_a_response_of_an_unknown_problem_is_named(prepared):
    table = read_table(prepared.root / "r.parquet", ROLLOUTS).astype({"problem": "str"})
    table.loc[3, "problem"] = "nobody"
    write_table(prepared.root / "r.parquet", table, ROLLOUTS)
    status, said = prepared.run(reference, "generator", *FILES, "--out", "x.safetensors")
    assert status == 1
    assert "r.parquet: problem 'nobody' is not among those of p.parquet" in said


# ---- train and score


@pytest.mark.parametrize("loss", ["ce", "dpo", "nca", "kto"])
def test_a_trained_model_is_a_whole_folder_the_same_twice_and_passes_its_gate(prepared, loss):
    for out in ("m", "again"):
        status, said = prepared.run(train, "c", loss, *TRAINED, "--out", out)
        assert status == 0, said
    for file in (prepared.root / "m").iterdir():
        assert file.read_bytes() == (prepared.root / "again" / file.name).read_bytes(), file.name
    about = json.loads((prepared.root / "m/prm.json").read_text())
    assert (about["loss"], about["beta"], about["reference"]) == (loss, 1.0, "generator")
    assert about["counts"]["responses"] == 40
    assert about["counts"]["used_correct"] == 20
    assert about["counts"]["duplicates"] == 20
    assert str(prepared.root) not in (prepared.root / "m/README.md").read_text()
    curve = read_table(prepared.root / "m/curve.parquet", CURVE)
    start = {"ce": np.log(2), "dpo": np.log(2), "nca": 2 * np.log(2), "kto": 0.5}[loss]
    assert curve["loss"][0] == pytest.approx(start, abs=1e-4)
    assert curve["loss"].iloc[-1] < start - 1e-3
    assert prepared.run(gate, "prm", "models", "m", "--out", "v.json")[0] == 0


def test_scores_are_step_sums_of_both_models(prepared, tiny):
    assert prepared.run(train, "c", "ce", *TRAINED, "--out", "m")[0] == 0
    status, said = prepared.run(score, "m", *FILES, "l.safetensors", "--out", "s.parquet")
    assert status == 0, said
    steps = read_table(prepared.root / "s.parquet", STEPS)
    assert steps.groupby(["problem", "sample"], observed=True).ngroups == 32  # validation and test only
    assert not steps["problem"].astype("str").str.startswith("train").any()
    data = read_rollouts(prepared.root / "p.parquet", prepared.root / "r.parquet", tiny.tokenizer)
    trained = load(prepared.root / "m").model
    for i in (0, 70):
        row = data.table.iloc[i]
        mine = steps[(steps["problem"] == row["problem"]) & (steps["sample"] == row["sample"])]
        for column, model in (("policy", trained), ("reference", tiny.model)):
            values = token_log_probs(model, [data.prompts[i]], [data.responses[i]])[0]
            sums = [values[s.start_token : s.end_token].sum() for s in mine.itertuples()]
            np.testing.assert_allclose(mine[column], sums, atol=1e-4)
        assert mine["end_token"].iloc[-1] == len(data.responses[i])
        assert mine["end_char"].iloc[-1] == len(row["response"])


def test_training_reads_the_training_split_only(prepared):
    prepared.run(train, "c", "ce", *TRAINED, "--out", "m")
    table = read_table(prepared.root / "r.parquet", ROLLOUTS)
    table["correct"] = table["correct"].where(table["split"] == "train", ~table["correct"])
    write_table(prepared.root / "r.parquet", table, ROLLOUTS)
    prepared.run(train, "c", "ce", *TRAINED, "--out", "other")
    name = "model.safetensors"
    assert (prepared.root / "m" / name).read_bytes() == (prepared.root / "other" / name).read_bytes()


def test_one_class_of_outcomes_is_refused_in_one_line(prepared):
    table = read_table(prepared.root / "r.parquet", ROLLOUTS).assign(correct=True)
    write_table(prepared.root / "r.parquet", table, ROLLOUTS)
    for loss in ("ce", "dpo"):
        status, said = prepared.run(train, "c", loss, *TRAINED, "--out", "m")
        assert status == 1
        assert "40 of 40 responses are correct; both kinds are needed" in said
    assert not (prepared.root / "m").exists()


def test_long_responses_are_cut_and_count_as_wrong(prepared):
    prepared.parameters(train={"c": {"ce": {"batch": 8, "max_tokens": 12}}})
    status, said = prepared.run(train, "c", "ce", *TRAINED, "--out", "m")
    lengths = read_rollouts(prepared.root / "p.parquet", prepared.root / "r.parquet", build_tokenizer(SYMBOLS))
    long = [len(r) > 12 for r, s in zip(lengths.responses, lengths.table["split"], strict=True) if s == "train"]
    if all(long):
        assert status == 1
    else:
        assert f"{sum(long)} responses of more than 12 tokens are cut" in said
        assert json.loads((prepared.root / "m/prm.json").read_text())["counts"]["cut"] == sum(long)


def test_an_adapter_is_written_with_its_base_and_loads(prepared):
    prepared.parameters(
        scoring={}, train={"c": {"dpo": {"batch": 8, "epochs": 3, "lora": {"r": 2}, "learning_rate": 0.01}}}
    )
    status, said = prepared.run(train, "c", "dpo", *TRAINED, "--out", "m")
    assert status == 0, said
    config = json.loads((prepared.root / "m/adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "generator"
    assert not (prepared.root / "m/model.safetensors").exists()
    assert prepared.run(score, "m", *FILES, "l.safetensors", "--out", "s.parquet")[0] == 0
    steps = read_table(prepared.root / "s.parquet", STEPS)
    assert (steps["policy"] != steps["reference"]).any()
