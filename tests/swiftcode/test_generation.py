"""Rows of answers: which questions are asked, with what random numbers, and which programs come out."""

import numpy as np
import pandas as pd
import pytest
import torch

from tasks.lm.chat import Answer, Chat
from tasks.lm.loading import LanguageModel
from tasks.lm.tiny import build_model, build_tokenizer
from tasks.swiftcode import generation
from tasks.swiftcode.extraction import identity
from tasks.swiftcode.generation import answers, known, questions
from tasks.swiftcode.params import Sampling
from tasks.swiftcode.prompts import SPEED
from tasks.swiftcode.schemas import SAMPLES

SYMBOLS = [
    "```",
    " ```",
    "python",
    "\n",
    "   ",
    " return",
    " 1",
    " 2",
    " x",
    "def",
    " f",
    "(x)",
    ":",
    " print",
    " +",
    "cpp",
]


def task(name: str, **more) -> dict:
    row = {
        "kind": "function",
        "entry_point": "f",
        "prompt": f"def f(x):\n    '{name}'\n",
        "languages": ["python"],
        "split": "train",
    }
    return {"task": name, **row, **more}


TASKS = pd.DataFrame(
    [
        task("twice"),
        task("add"),
        task("lines", kind="stdio", entry_point=None, prompt="Count the lines.", languages=["cpp", "python", "rust"]),
    ]
)


@pytest.fixture
def tiny() -> LanguageModel:
    torch.set_num_threads(1)
    tokenizer = build_tokenizer(SYMBOLS)
    model = build_model(tokenizer, hidden=16, layers=2, heads=2, intermediate=32, seed=1)
    return LanguageModel(model, tokenizer, "tiny")


def drawn(tiny, asked=None, name="small", **options) -> pd.DataFrame:
    options = {"samples": 5, "max_new_tokens": 6, "top_k": 8, "batch": 4, **options}
    return answers(tiny, name, asked or questions(TASKS, ["python"]), Sampling(**options))


def test_questions_are_those_of_the_languages_that_a_task_knows():
    asked = questions(TASKS.sample(frac=1, random_state=1), ["rust", "python", "java"])
    assert [(q.task["task"], q.language) for q in asked] == [
        ("add", "python"),
        ("lines", "python"),
        ("lines", "rust"),
        ("twice", "python"),
    ]


def test_known_solutions_are_rows_of_the_pool():
    solutions = pd.DataFrame(
        {
            "task": ["b", "a", "a"],
            "language": ["python"] * 3,
            "name": ["x", "y", "z"],
            "rank": [0, 1, 0],
            "source": ["x = 1\n", "y", "z"],
        }
    )
    table = known(solutions)
    assert list(table.columns) == SAMPLES.names
    assert list(zip(table["task"], table["sample"], table["source"], strict=True)) == [
        ("a", 0, "z"),
        ("a", 1, "y"),
        ("b", 0, "x = 1\n"),
    ]
    assert (table["generator"] == "pool").all()
    assert list(table["response"]) == list(table["source"])
    assert list(table["candidate"]) == [identity(s, "python") for s in table["source"]]
    assert not table["hint"].any()
    assert list(known(solutions.iloc[:0]).columns) == SAMPLES.names


@pytest.mark.parametrize(("hint", "greedy"), [(False, False), (True, False), (True, True), (False, True)])
def test_odd_samples_are_asked_for_speed_and_a_greedy_one_comes_last(tiny, monkeypatch, hint, greedy):
    calls = []
    right = generation.sample

    def watched(model, prompts, keys, n, **options):
        calls.append(([SPEED in tiny.tokenizer.decode(p) for p in prompts], n, options["temperature"]))
        return right(model, prompts, keys, n, **options)

    # the tiny tokenizer does not know the words of the sentence
    monkeypatch.setattr("tasks.swiftcode.prompts.SPEED", " + + +")
    monkeypatch.setitem(globals(), "SPEED", " + + +")
    monkeypatch.setattr(generation, "sample", watched)
    table = drawn(tiny, hint=hint, greedy=greedy)
    per_task = table.groupby("task")
    assert (per_task["sample"].apply(list).map(lambda s: s == list(range(5 + greedy)))).all()
    assert (table["hint"] == (table["sample"].isin([1, 3]) & hint)).all()
    wanted = [([False] * 3, 3, 0.8), ([True] * 3, 2, 0.8)] if hint else [([False] * 3, 5, 0.8)]
    assert calls == wanted + [([False] * 3, 1, 0.0)] * greedy


def test_samples_do_not_depend_on_other_tasks_their_order_or_the_models_name(tiny):
    whole = drawn(tiny, greedy=True)
    pd.testing.assert_frame_equal(whole, drawn(tiny, greedy=True))
    reordered = drawn(tiny, questions(TASKS, ["python"])[::-1], greedy=True)
    pd.testing.assert_frame_equal(whole, reordered)
    alone = drawn(tiny, questions(TASKS.iloc[:1], ["python"]), name="other", greedy=True, batch=64)
    mine = whole[whole["task"] == "twice"].reset_index(drop=True)
    assert list(alone["response"]) == list(mine["response"])
    assert set(alone["generator"]) == {"other"}
    assert list(drawn(tiny, seed=2)["response"]) != list(drawn(tiny)["response"])


def test_hinted_and_plain_samples_of_a_prompt_have_other_random_numbers(tiny, monkeypatch):
    keys = []
    right = generation.sample
    monkeypatch.setattr(generation, "sample", lambda m, p, k, n, **o: keys.append(k) or right(m, p, k, n, **o))
    drawn(tiny, questions(TASKS, ["python", "cpp"]))
    assert len({key for called in keys for key in called}) == 2 * 4


def scripted(monkeypatch, tiny, tokens: list[int]) -> list[dict]:
    """The model answers these tokens, cut after the first end; returns what was asked."""
    asked = []

    def answer(model, prompts, keys, n, *, end, **options):
        asked.extend({"prompt": tiny.tokenizer.decode(prompt), "end": end, **options} for prompt in prompts)
        stop = next((i + 1 for i, t in enumerate(tokens) if t in end), len(tokens))
        return [[generation_sample(tokens[:stop], stop < len(tokens) or tokens[-1] in end)] * n for _ in prompts]

    from tasks.lm.sampling import Sample as generation_sample

    monkeypatch.setattr(generation, "sample", answer)
    return asked


def test_an_answer_continues_the_given_code_and_ends_with_its_block(tiny, monkeypatch):
    text = " return 1\n``` print x"
    tokens = tiny.tokenizer(text, add_special_tokens=False)["input_ids"]
    asked = scripted(monkeypatch, tiny, [*tokens, 2])
    table = drawn(tiny, questions(TASKS, ["python"])[::2], samples=2, hint=False)
    assert list(table["response"]) == [" return 1\n```"] * 4
    assert set(table["tokens"]) == {4}
    assert table["finished"].all()
    assert table["source"][0] == "def f(x):\n    'add'\n    return 1\n"
    assert table["source"][2] == "def f(x):\n    'twice'\n    return 1\n"
    assert table["candidate"].nunique() == 1, "the docstring is no part of it"
    ids = {tiny.tokenizer.convert_tokens_to_ids(t) for t in ("```", " ```", "<eos>")}
    assert set(asked[0]["end"]) == ids
    assert asked[0]["top_k"] == 8
    assert asked[0]["max_new_tokens"] == 6
    assert asked[0]["prompt"].endswith(
        "```python\n" + tiny.tokenizer.decode(tiny.tokenizer("def f(x):\n    'add'\n   ")["input_ids"])
    )


def test_without_prefill_the_answer_is_the_models_own_and_goes_on_to_its_end(tiny, monkeypatch):
    text = "```python\ndef f(x):\n    return 1\n```\n x"
    tokens = tiny.tokenizer(text, add_special_tokens=False)["input_ids"]
    scripted(monkeypatch, tiny, [*tokens, 2])
    table = drawn(tiny, questions(TASKS, ["python"])[:1], samples=1, prefill=False)
    assert list(table["response"]) == [text], "without the end token"
    assert table["tokens"][0] == len(tokens) + 1
    assert table["source"][0] == "def f(x):\n    return 1\n"
    scripted(monkeypatch, tiny, tokens[:3])
    table = drawn(tiny, questions(TASKS, ["python"])[:1], samples=1, prefill=False)
    assert not table["finished"][0]
    assert table["source"][0] is None
    assert table["candidate"][0] is None


def test_programs_continue_their_fence(tiny, monkeypatch):
    tokens = tiny.tokenizer("def x\n```", add_special_tokens=False)["input_ids"]
    scripted(monkeypatch, tiny, tokens)
    table = drawn(tiny, questions(TASKS.iloc[2:], ["cpp"]), samples=1)
    assert table["source"][0] == "def x\n"
    assert table["language"][0] == "cpp"


def test_a_server_is_asked_for_whole_answers(monkeypatch):
    calls = []

    def answer(self, prompts, keys, n, **options):
        calls.append((self, prompts, keys, n, options))
        return [[Answer("```python\ndef f(x):\n    return 1\n```\nSo.", 9, True)] * n for _ in prompts]

    monkeypatch.setattr(Chat, "sample", answer)
    model = Chat("http://127.0.0.1:1/v1", "m")
    table = answers(model, "far", questions(TASKS, ["python"]), Sampling(samples=3, greedy=True, seed=5))
    assert [(n, options["temperature"], options["seed"]) for *_, n, options in calls] == [
        (2, 0.8, 5),
        (1, 0.8, 5),
        (1, 0.0, 5),
    ]
    assert [SPEED in prompts[0][-1]["content"] for _, prompts, *_ in calls] == [False, True, False]
    assert all(prompt[-1]["role"] == "user" for _, prompts, *_ in calls for prompt in prompts)
    assert len(table) == 12
    assert set(table["source"]) == {"def f(x):\n    return 1\n"}
    assert set(table["tokens"]) == {9}
    assert np.array_equal(table["sample"], [0, 1, 2, 3] * 3)
