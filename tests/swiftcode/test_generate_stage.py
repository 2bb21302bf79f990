"""The stages generate and answer: files in, one table of SAMPLES out."""

import re

import pandas as pd
import pytest
import torch

from tasks.lm.chat import Answer, Chat
from tasks.lm.loading import LanguageModel, save
from tasks.lm.tiny import build_model, build_tokenizer
from tasks.swiftcode import answer, generate
from tasks.swiftcode.schemas import SAMPLES, SOLUTIONS
from tasks.swiftcode.schemas import TASKS as COLUMNS
from tasks.tables import read_table, write_table

SAMPLING = {"samples": 2, "max_new_tokens": 4, "batch": 8, "top_k": 5}
INPUTS = ("base", "tasks.parquet", "solutions.parquet")


def row(name: str, split: str, kind: str = "function", languages=("python",)) -> dict:
    empty = dict.fromkeys(COLUMNS.names)
    entry_point = "f" if kind == "function" else None
    return {
        **empty,
        "task": name,
        "split": split,
        "kind": kind,
        "entry_point": entry_point,
        "prompt": "def f(x):\n    'Doc.'\n",
        "languages": list(languages),
        "tests": "[]",
        "compare": "exact",
    }


@pytest.fixture
def inputs(workspace):
    torch.set_num_threads(1)
    tasks = [
        row("old", "train"),
        row("add", "train"),
        row("new", "test"),
        row("words", "test", "stdio"),
        row("lines", "train", "stdio", ("cpp", "python")),
    ]
    write_table(workspace.root / "tasks.parquet", pd.DataFrame(tasks), COLUMNS)
    solutions = [(t["task"], "python", n, i, f"x = {i}\n") for t in tasks for i, n in enumerate(("slow", "fast"))]
    write_table(workspace.root / "solutions.parquet", pd.DataFrame(solutions, columns=SOLUTIONS.names), SOLUTIONS)
    tokenizer = build_tokenizer(["```", "\n", " ", "return", "x", "def", "1"])
    model = build_model(tokenizer, hidden=16, layers=1, heads=2, intermediate=32, seed=1)
    save(LanguageModel(model, tokenizer, "tiny"), workspace.root / "base")
    return workspace


def keys(table: pd.DataFrame) -> list[tuple]:
    return list(table[["task", "language", "generator", "sample"]].itertuples(index=False, name=None))


def test_known_solutions_of_all_tasks_and_answers_to_training_tasks(inputs):
    generators = {"own": {"kind": "base"}, "again": {"kind": "folder", "path": "base"}}
    inputs.parameters(generate={"mine": {"generators": generators, "sampling": SAMPLING}})
    assert inputs.run(generate, "mine", *INPUTS, "--out", "a.parquet") == (0, "")
    table = read_table(inputs.root / "a.parquet", SAMPLES)
    found = keys(table)
    assert found == sorted(found)
    known = {(t, "python", "pool", i) for t in ("old", "add", "new", "words", "lines") for i in (0, 1)}
    asked = {(t, "python", g, i) for t in ("old", "add") for g in ("own", "again") for i in (0, 1)}  # functions
    assert set(found) == known | asked
    of = table.set_index(table["generator"].astype("str"))
    assert list(of.loc["own", "response"]) == list(of.loc["again", "response"])
    assert inputs.run(generate, "mine", *INPUTS, "--out", "b.parquet")[0] == 0
    assert (inputs.root / "a.parquet").read_bytes() == (inputs.root / "b.parquet").read_bytes()


def test_no_generator_needs_no_model_that_can_be_read(inputs):
    inputs.parameters(generate={"mine": {}})
    (inputs.root / "base" / "model.safetensors").unlink()
    assert inputs.run(generate, "mine", *INPUTS, "--out", "a.parquet")[0] == 0
    assert set(read_table(inputs.root / "a.parquet", SAMPLES)["generator"]) == {"pool"}


def test_languages_of_programs_are_those_asked_for(inputs):
    asked = {"generators": {"own": {}}, "kinds": ["stdio"], "languages": ["cpp"], "sampling": SAMPLING}
    inputs.parameters(generate={"mine": asked})
    assert inputs.run(generate, "mine", *INPUTS, "--out", "a.parquet")[0] == 0
    table = read_table(inputs.root / "a.parquet", SAMPLES)
    assert keys(table[table["generator"] == "own"]) == [("lines", "cpp", "own", 0), ("lines", "cpp", "own", 1)]


def test_a_server_is_asked_with_the_key_of_the_environment(inputs, monkeypatch):
    asked = []

    def sample(self, prompts, keys, n, **options):
        asked.append((self.url, self.model, self.key))
        return [[Answer("```python\ndef f(x):\n    return 1\n```", 3, True)] * n for _ in prompts]

    monkeypatch.setattr(Chat, "sample", sample)
    monkeypatch.setenv("METHODWORKS_API_KEY", "word")
    server = {"kind": "endpoint", "url": "http://127.0.0.1:1/v1", "model": "large"}
    inputs.parameters(generate={"mine": {"generators": {"far": server}, "sampling": SAMPLING}})
    assert inputs.run(generate, "mine", *INPUTS, "--out", "a.parquet")[0] == 0
    assert set(asked) == {("http://127.0.0.1:1/v1", "large", "word")}
    table = read_table(inputs.root / "a.parquet", SAMPLES)
    assert set(table.loc[table["generator"] == "far", "source"]) == {"def f(x):\n    return 1\n"}


@pytest.mark.parametrize(
    ("generators", "message"),
    [
        ({"far": {"kind": "folder", "path": "nowhere"}}, r"generators\.far\.path: nowhere: there is no such folder"),
        ({"pool": {"kind": "base"}}, r"generators: pool .*another name is needed"),
    ],
)
def test_generators_that_cannot_be_are_told(inputs, generators, message):
    inputs.parameters(generate={"mine": {"generators": generators}})
    code, said = inputs.run(generate, "mine", *INPUTS, "--out", "a.parquet")
    assert code == 1
    assert re.search(message, said)
    assert len(said.strip().splitlines()) == 1
    assert not (inputs.root / "a.parquet").exists()


def test_answers_to_the_functions_of_the_test_split(inputs):
    inputs.parameters(answers={"mine": {**SAMPLING, "greedy": True}})
    assert inputs.run(answer, "mine", "fastest", "base", "tasks.parquet", "--out", "answers/fastest.parquet") == (0, "")
    table = read_table(inputs.root / "answers/fastest.parquet", SAMPLES)
    assert keys(table) == [("new", "python", "fastest", i) for i in range(3)]
    assert (table["tokens"] > 0).all()


def test_more_tokens_than_the_model_has_positions_for_are_told(inputs):
    inputs.parameters(answers={"mine": {**SAMPLING, "max_new_tokens": 600}})
    code, said = inputs.run(answer, "mine", "base", "base", "tasks.parquet", "--out", "a.parquet")
    assert code == 1
    assert "params.yaml: swiftcode.answers.mine: " in said
    assert "600 new tokens are more than the model's 512 positions" in said
