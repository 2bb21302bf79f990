"""The gates pass on what the stages write and fail, with the rule named, on each thing that would ruin the next stage."""

import json
import shutil

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import safetensors.numpy
import safetensors.torch
import torch

from tasks import gate
from tasks.prm import responses
from tasks.prm.chain import draw, solution, true_answer
from tasks.prm.grading import grade
from tasks.prm.schemas import CURVE, PROBLEMS, ROLLOUTS
from tasks.tables import write_table
from tests.prm.test_responses_stage import given_rows, lines

SIZES = {"train": 12, "valid": 4, "test": 6}
SAMPLES = {"train": 4, "valid": 4, "test": 6}


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """problems.parquet and rollouts.parquet of chains; every second response is wrong."""
    folder = tmp_path_factory.mktemp("sampled")
    prompts = iter(draw(3, sum(SIZES.values()), np.random.default_rng(1)))
    problems, rollouts = [], []
    for split in sorted(SIZES):
        for i, prompt in zip(range(SIZES[split]), prompts, strict=False):
            name = f"{split}-{i:05}"
            problem = {"problem": name, "split": split, "prompt": prompt, "answer": true_answer(prompt)}
            problems.append(problem | {"grader": "chain", "metadata": None})
            for sample in range(SAMPLES[split]):
                text = solution(prompt) + "0" * (sample % 2) + "\n\n" * (sample // 2)
                given = grade("chain", text, problem["answer"], prompt=prompt)
                row = {"problem": name, "sample": sample, "split": split, "response": text, "tokens": [5, 6, 2]}
                rollouts.append(row | {"finished": True} | given.__dict__)
    write_table(folder / "problems.parquet", pd.DataFrame(problems), PROBLEMS)
    write_table(folder / "rollouts.parquet", pd.DataFrame(rollouts), ROLLOUTS)
    return folder


@pytest.fixture
def data(sampled, workspace):
    """A copy of the sampled tables as folder data, to be spoilt."""
    return shutil.copytree(sampled, workspace.root / "data")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder such as training leaves it."""
    folder = tmp_path_factory.mktemp("model")
    steps = np.arange(40)
    curve = {"step": steps, "loss": np.linspace(0.7, 0.3, 40), "gradient_norm": 1.0, "learning_rate": 1e-3}
    curve |= {"reward_correct": steps / 40, "reward_wrong": np.where(steps == 3, np.nan, -steps / 40)}
    write_table(folder / "curve.parquet", pd.DataFrame(curve), CURVE)
    (folder / "prm.json").write_text(json.dumps({"beta": 1.0, "loss": "ce"}))
    weights = {"a": torch.ones(3, 4), "b": torch.zeros(5, dtype=torch.bfloat16)}
    safetensors.torch.save_file(weights, folder / "model.safetensors")
    return folder


@pytest.fixture
def model(trained, workspace):
    return shutil.copytree(trained, workspace.root / "model")


def spoil(file, change):
    """Change a table, with its types kept."""
    table = change(pd.read_parquet(file))
    write_table(file, table, pq.read_schema(file))


def at(row, column, value):
    def change(table):
        table[column] = table[column].astype(object)
        table.at[row, column] = value
        return table

    return change


def run(workspace, suite, *inputs):
    """(exit code, what was said, verdict or None)."""
    code, said = workspace.run(gate, "prm", suite, *inputs, "--out", "v.json")
    file = workspace.root / "v.json"
    return code, said, json.loads(file.read_text()) if file.exists() else None


def assert_fails(workspace, suite, inputs, expected):
    code, said, verdict = run(workspace, suite, *inputs)
    assert code == 1
    assert verdict is None
    assert any(line.startswith(expected) for line in said.splitlines()), said
    assert said.splitlines()[-1].startswith(f"error: tasks.gate: gate {suite} of prm: ")


def test_what_the_stages_write_passes(workspace, data, model):
    for suite, inputs in (
        ("problems", ["data/problems.parquet"]),
        ("rollouts", ["data/problems.parquet", "data/rollouts.parquet"]),
        ("models", ["model"]),
    ):
        code, said, verdict = run(workspace, suite, *inputs)
        assert (code, said) == (0, "")
        assert verdict["success"]


def test_given_responses_pass_whatever_their_number(workspace):
    rows = [*given_rows(10, 3), {**given_rows(1, 1)[0], "response": "one more"}]
    rows.append(
        {**given_rows(1, 1)[0], "response": "", "correct": False, "first_wrong": 0}
    )  # an empty one is wrong from 0
    workspace.write("own.jsonl", lines(*rows))
    workspace.parameters(responses={"o": {"path": "own.jsonl"}})
    assert workspace.run(responses, "o", "own.jsonl", "--problems", "p.parquet", "--rollouts", "r.parquet") == (0, "")
    assert run(workspace, "problems", "p.parquet")[:2] == (0, "")
    assert run(workspace, "rollouts", "p.parquet", "r.parquet")[:2] == (0, "")


def test_a_repeated_response_is_counted_and_allowed(workspace, data):
    def repeat(table):
        table.loc[table["problem"] == "train-00000", "response"] = table["response"].iloc[0]
        return table

    spoil(data / "rollouts.parquet", repeat)
    code, said, verdict = run(workspace, "rollouts", "data/problems.parquet", "data/rollouts.parquet")
    assert (code, said) == (0, "")
    rules = [rule for table in verdict["tables"] for rule in table["rules"] if rule["column"] == "duplicated"]
    n_rollouts = sum(SIZES[split] * SAMPLES[split] for split in SIZES)
    assert rules[0]["observed"] == pytest.approx(3 / n_rollouts, rel=1e-5)


# of the first rows: tests 0 to 5, then training from 6
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: t.head(0), "problems: table: table_row_count_to_be_between"),
        (at(1, "problem", "test-00000"), "problems: column problem: column_values_to_be_unique: 2 rows"),
        (at(1, "problem", None), "problems: column problem: column_values_to_not_be_null: 1 rows"),
        (at(1, "prompt", None), "problems: column prompt: column_values_to_not_be_null: 1 rows"),
        (lambda t: at(1, "prompt", t["prompt"][0])(t), "problems: column prompt: column_values_to_be_unique: 2 rows"),
        (at(1, "split", "dev"), "problems: column split: column_values_to_be_in_set"),
        (at(1, "split", None), "problems: column split: column_values_to_not_be_null: 1 rows"),
        (at(1, "grader", "guess"), "problems: column grader: column_values_to_be_in_set"),
        (at(1, "answer", None), "answers to compare with: column answer: column_values_to_not_be_null: 1 rows"),
        (
            lambda t: at(6, "prompt", " " + t["prompt"][0].lower())(t),
            "splits of each prompt: column splits: column_values_to_be_between (max_value=1.0, min_value=1.0): 1 rows",
        ),
        (
            lambda t: t[t["split"] != "valid"],
            "problems of each split: column problems: column_values_to_be_between (min_value=1.0): 1 rows, for example "
            "row 1, split 'valid', problems 0",
        ),
    ],
)
def test_bad_problems_fail(workspace, data, change, expected):
    spoil(data / "problems.parquet", change)
    assert_fails(workspace, "problems", ["data/problems.parquet"], expected)


def of_training(**values):
    def change(table):
        train = table["split"] == "train"
        return table.assign(**{name: table[name].mask(train, value) for name, value in values.items()})

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: t.head(0), "rollouts: table: table_row_count_to_be_between"),
        (at(1, "sample", 0), "rollouts: column problem, sample: compound_columns_to_be_unique: 2 rows"),
        (at(1, "problem", "test-99999"), "rollouts: column problem: column_values_to_be_in_set"),
        (at(1, "split", "train"), "rollouts: column split, split_of_problem: column_pair_values_to_be_equal: 1 rows"),
        (at(1, "response", None), "rollouts: column response: column_values_to_not_be_null: 1 rows"),
        (at(1, "correct", None), "rollouts: column correct: column_values_to_not_be_null: 1 rows"),
        (at(1, "finished", None), "rollouts: column finished: column_values_to_not_be_null: 1 rows"),
        (at(1, "tokens", []), "rollouts: column tokens: column_values_to_be_between (min_value=1.0): 1 rows"),
        (at(1, "tokens", [5, -1]), "rollouts: column least_token: column_values_to_be_between (min_value=0.0): 1 rows"),
        (
            at(1, "first_wrong", -2),
            "rollouts: column first_wrong: column_values_to_be_between (min_value=-1.0): 1 rows",
        ),
        (
            at(1, "first_wrong", 999),
            "rollouts: column characters, first_wrong: column_pair_values_a_to_be_greater_than_b",
        ),
        (
            at(0, "finished", False),
            "correct responses: column finished: column_values_to_be_in_set (value_set=[True]): 1 rows",
        ),
        (
            lambda t: t.assign(correct=False, finished=np.arange(len(t)) % 5 < 2),
            "rollouts: column truncated: column_mean_to_be_between (max_value=0.5): observed 0.6",
        ),
        (of_training(correct=False), "outcomes in training: column correct: column_mean_to_be_between"),
        (of_training(correct=True), "outcomes in training: column correct: column_mean_to_be_between"),
        (lambda t: t[t["split"] != "train"], "outcomes in training: table: table_row_count_to_be_between"),
        (
            lambda t: t[~t["problem"].isin([f"valid-0000{i}" for i in range(3)])],
            "problems with responses, of each split: column answered: column_values_to_be_between",
        ),
        (
            lambda t: t.drop(index=1),
            "samples of each problem: column min, max: column_pair_values_to_be_equal: 1 rows, for example row 0, "
            "split 'test', min 5, max 6",
        ),
    ],
)
def test_bad_rollouts_fail(workspace, data, change, expected):
    spoil(data / "rollouts.parquet", change)
    assert_fails(workspace, "rollouts", ["data/problems.parquet", "data/rollouts.parquet"], expected)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: t.head(0), "curve: table: table_row_count_to_be_between"),
        (at(5, "loss", None), "curve: column loss: column_values_to_not_be_null: 1 rows"),
        (at(5, "loss", np.inf), "curve: column loss: column_values_to_be_between"),
        (at(5, "gradient_norm", np.inf), "curve: column gradient_norm: column_values_to_be_between"),
        (at(5, "reward_wrong", -np.inf), "curve: column reward_wrong: column_values_to_be_between"),
        (at(5, "step", 4), "curve: column step: column_values_to_be_increasing"),
        (
            lambda t: t.assign(loss=t["loss"].to_numpy()[::-1]),
            "loss: column first, last: column_pair_values_a_to_be_greater_than_b: 1 rows",
        ),
        (
            lambda t: t.assign(loss=0.6931),
            "loss: column first, last: column_pair_values_a_to_be_greater_than_b: 1 rows",
        ),
    ],
)
def test_bad_curves_fail(workspace, model, change, expected):
    spoil(model / "curve.parquet", change)
    assert_fails(workspace, "models", ["model"], expected)


@pytest.mark.parametrize(
    "about", ["{}", '{"beta": null}', '{"beta": 0}', '{"beta": -1.0}', '{"beta": Infinity}', '{"beta": "auto"}', "[1]"]
)
def test_bad_betas_fail(workspace, model, about):
    (model / "prm.json").write_text(about)
    assert_fails(workspace, "models", ["model"], "beta: column beta: column_values_to_")


def test_bad_weights_fail(workspace, model):
    bad = np.array([1.0, np.nan, np.inf], dtype=np.float32)
    safetensors.numpy.save_file({"c": bad}, model / "more.safetensors")
    assert_fails(
        workspace,
        "models",
        ["model"],
        "weights: column not_finite: column_values_to_be_in_set (value_set=[0]): 1 rows, for example row 1, "
        "file 'more.safetensors', weights 3, not_finite 2",
    )
    (model / "more.safetensors").write_bytes(b"no")
    code, said, _ = run(workspace, "models", "model")
    assert (code, said.count("\n")) == (1, 1)
    assert "more.safetensors: not readable weights: " in said
    (model / "more.safetensors").unlink()
    (model / "model.safetensors").unlink()
    assert_fails(workspace, "models", ["model"], "weights: table: table_row_count_to_be_between")
