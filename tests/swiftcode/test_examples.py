"""Training examples: where the loss begins, what the model has been given by then, and the same for all arms."""

import ast
import string

import numpy as np
import pandas as pd
import pytest

from tasks.lm.tiny import build_tokenizer
from tasks.lm.tokens import encode_prompt, encode_response
from tasks.swiftcode.examples import Examples, continued, examples
from tasks.swiftcode.extraction import extract, identity
from tasks.swiftcode.params import ARMS, Finetune
from tasks.swiftcode.prompts import messages, prefill

TOKENIZER = build_tokenizer(list(string.printable))
GIVEN = 'def f(xs: list) -> int:\n    """How many."""\n'
LOOP = "def f(xs):\n    n = 0\n    for _ in xs:\n        n += 1\n    return n\n"
CALL = "def f(xs):\n    return len(xs)\n"
SUM = "def f(xs):\n    return sum(1 for _ in xs)\n"
OUTSIDE = "import functools\n\n\n@functools.cache\ndef f(xs):\n    return len(xs)\n"  # not a body of the given function


def task(name: str = "a", **changes) -> dict:
    made = {"task": name, "split": "train", "kind": "function", "entry_point": "f", "prompt": GIVEN}
    return made | {"languages": ["python"]} | changes


def chosen(name: str = "a", language: str = "python", sources=(SUM, CALL, LOOP)) -> list[dict]:
    """Rows of SELECTION for (random-correct, fastest, slowest); None for an arm without a program."""
    rows: dict[str, list[str]] = {}
    for arm, source in zip(ARMS, sources, strict=True):
        if source is not None:
            rows.setdefault(source, []).append(arm)
    return [{"task": name, "language": language, "source": s, "arms": np.array(a, object)} for s, a in rows.items()] + [
        {"task": name, "language": language, "source": "def f(xs): pass", "arms": np.array([], object)}
    ]


def made(tasks: list[dict], rows: list[dict], max_tokens: int = 10_000, **parameters) -> Examples:
    return examples(pd.DataFrame(tasks), pd.DataFrame(rows), TOKENIZER, Finetune(**parameters), max_tokens)


# ---- prompts and responses


def test_the_response_goes_on_where_a_generated_answer_would_and_ends_with_the_end_token():
    found = made([task()], chosen())
    asked = encode_prompt(TOKENIZER, messages(task(), "python", hint=False))
    asked += encode_response(TOKENIZER, prefill(task(), "python"), finished=False)
    for arm, source in zip(ARMS, (SUM, CALL, LOOP), strict=True):
        (example,) = found.arms[arm]
        assert (example.task, example.language) == ("a", "python")
        assert example.prompt == asked
        assert example.response[-1] == TOKENIZER.eos_token_id
        assert example.response.count(TOKENIZER.eos_token_id) == 1
        text = TOKENIZER.decode(example.response[:-1])
        assert text.endswith("\n```")
        # what the pipeline would make of this answer is the selected program
        program = extract(text, "python", entry_point="f", given=prefill(task(), "python"))
        assert program.startswith(GIVEN.rstrip())
        assert ast.dump(ast.parse(program).body[0].body[1]) == ast.dump(ast.parse(source).body[0].body[0])
    assert TOKENIZER.decode(found.arms["fastest"][0].response[:-1]) == " return len(xs)\n```"


def test_without_prefill_the_whole_block_is_the_response():
    found = made([task()], chosen(), prefill=False)
    assert found.arms["slowest"][0].prompt == encode_prompt(TOKENIZER, messages(task(), "python", hint=False))
    assert TOKENIZER.decode(found.arms["slowest"][0].response[:-1]) == f"```python\n{LOOP}```"
    assert found.counts["not_continued"] == 0


def test_no_prompt_asks_for_speed():
    for prefilled in (False, True):
        text = TOKENIZER.decode(made([task()], chosen(), prefill=prefilled).arms["fastest"][0].prompt)
        assert "fastest" not in text


def test_one_arm_that_cannot_go_on_makes_all_arms_of_the_task_answer_from_the_opening():
    rows = chosen("a", sources=(SUM, OUTSIDE, LOOP)) + chosen("b")
    found = made([task("a"), task("b")], rows)
    assert found.counts["not_continued"] == 1
    for arm, source in zip(ARMS, (SUM, OUTSIDE, LOOP), strict=True):
        assert TOKENIZER.decode(found.arms[arm][0].response[:-1]) == f"```python\n{source}```"
        assert not TOKENIZER.decode(found.arms[arm][0].prompt).endswith("   ")
        assert TOKENIZER.decode(found.arms[arm][1].prompt).endswith("   ")
    prompts = [[e.prompt for e in found.arms[arm]] for arm in ARMS]
    assert prompts[0] == prompts[1] == prompts[2]


@pytest.mark.parametrize("language", ["python", "cpp"])
def test_programs_follow_the_opening_fence_as_they_are(language):
    source = "#include <x>\nint main() { return 0; }" if language == "cpp" else "import sys\nprint(input())"
    about = task(kind="stdio", entry_point=None, prompt="Echo.", languages=[language])
    rows = chosen(language=language, sources=(source,) * 3)
    found = made([about], rows, kinds=["stdio"], languages=[language])
    (example,) = found.arms["fastest"]
    assert TOKENIZER.decode(example.prompt).endswith(f"```{language}\n")
    assert TOKENIZER.decode(example.response[:-1]) == f"{source}\n```"


# ---- which tasks


def test_all_arms_have_the_tasks_that_every_arm_has_in_the_order_of_their_names():
    tasks = [task(name) for name in "cab"]
    rows = chosen("c") + chosen("b", sources=(SUM, None, LOOP)) + chosen("a", sources=(CALL,) * 3)
    found = made(tasks, rows)
    for arm in ARMS:
        assert [e.task for e in found.arms[arm]] == ["a", "c"]
    assert found.counts == {"used": 2, "without_every_arm": 1, "too_long": 0, "not_continued": 0, "same_program": 1}
    shuffled = made(tasks[::-1], rows[::-1])
    assert shuffled == found


def test_a_task_that_is_too_long_for_one_arm_is_left_out_of_all():
    whole = made([task()], chosen())
    longest = max(len(whole.arms[arm][0]) for arm in ARMS)
    assert whole.lengths() == [longest]
    assert longest == len(whole.arms["slowest"][0]) > len(whole.arms["fastest"][0])
    assert made([task()], chosen(), max_tokens=longest).counts["used"] == 1
    short = made([task()], chosen(), max_tokens=longest - 1)
    assert short.counts["too_long"] == 1
    assert short.counts["used"] == 0
    assert short.arms == {arm: [] for arm in ARMS}


def test_other_languages_are_not_trained_on():
    rows = chosen() + chosen(language="cpp")
    assert [e.language for e in made([task()], rows).arms["fastest"]] == ["python"]


@pytest.mark.parametrize(
    ("tasks", "rows", "said"),
    [
        ([task("b")], chosen("a"), "task 'a' is not in the table of tasks"),
        ([task(split="test")], chosen(), "task 'a' is of split test"),
        (
            [task()],
            chosen() + chosen(sources=(SUM, SUM, LOOP)),
            "task 'a', language python: arm fastest has two programs",
        ),
    ],
)
def test_a_selection_that_does_not_fit_is_told(tasks, rows, said):
    with pytest.raises(ValueError, match=said):
        made(tasks, rows)


# ---- programs behind given code


def run(source: str, *arguments):
    scope: dict = {}
    exec(source, scope)  # text of this file
    return scope["f"](*arguments)


HELPER = """
# of the whole file
import math
from collections import Counter, deque

LIMIT = 3


@__import__("functools").cache
def helper(n):
    return min(n, LIMIT, deque([9]).pop())


def f(xs):
    # the largest count
    counts = Counter(xs)
    return helper(max(counts.values()))
"""


def test_helpers_come_below_and_imports_before_their_use():
    found = continued(HELPER, GIVEN, "f")
    lines = found.splitlines()
    assert found.startswith(GIVEN)
    assert lines[2:5] == [
        "    from collections import Counter, deque",
        "    # the largest count",
        "    counts = Counter(xs)",
    ]
    assert lines.index("from collections import Counter, deque") < lines.index("def helper(n):")  # uses it as well
    assert "import math" not in found  # nothing uses it
    assert run(found, "aabbbbb") == run(HELPER, "aabbbbb") == 3


def test_an_import_does_not_hide_a_parameter_of_the_same_name():
    source = "import xs\ndef f(xs):\n    return len(xs)\n"
    assert continued(source, GIVEN, "f") == f"{GIVEN}    return len(xs)"


def test_own_docstring_and_signature_fall_away_and_comments_stay():
    source = '"""A module."""\ndef f(xs: "list[int]"):\n  """Mine."""\n  # because\n  return len(xs)  # so\n'
    assert continued(source, GIVEN, "f") == f"{GIVEN}    # because\n    return len(xs)  # so"


@pytest.mark.parametrize(
    "source",
    [
        "def f(xs): return len(xs)",
        "def f(xs):\n    text = '''a\nb'''\n    return len(text)",
        "n = 1; m = 2\ndef f(xs): return m",
    ],
)
def test_layouts_that_cannot_be_moved_are_written_anew(source):
    found = continued(source, GIVEN, "f")
    assert found.startswith(GIVEN)
    assert run(found, [1, 2]) == run(source, [1, 2])


def test_what_the_given_code_has_already_is_not_repeated():
    given = f"import math\n\n\ndef half(x):\n    return x / 2\n\n\n{GIVEN}"
    source = "import math\ndef half(x):\n    return x / 2\ndef f(xs):\n    return math.floor(half(len(xs)))\n"
    assert continued(source, given, "f") == f"{given}    return math.floor(half(len(xs)))"


@pytest.mark.parametrize(
    "source",
    [
        "def f(ys):\n    return len(ys)",
        "def f(xs, start=0):\n    return len(xs)",
        "def g(xs):\n    return len(xs)",
        "f = len",
        "async def f(xs):\n    return 1",
        "def f(xs):\n    return 1\ndef f(xs):\n    return 2",
        "from math import *\ndef f(xs):\n    return floor(1.5)",
        "from __future__ import annotations\ndef f(xs):\n    return 1",
        "def f(xs:\n",
        OUTSIDE,
    ],
)
def test_programs_that_are_no_body_of_the_given_function(source):
    assert continued(source, GIVEN, "f") is None


@pytest.mark.parametrize("given", ["def g(xs):\n    'Another.'\n", "Count them.", "", "def f(xs):\n  'Two blanks.'\n"])
def test_given_code_that_no_body_can_follow(given):
    assert continued(CALL, given, "f") is None


def test_defaults_must_be_those_of_the_given_code_and_annotations_need_not():
    given = 'def f(xs: list, n: int = 2) -> int:\n    """How many."""\n'
    assert continued("def f(xs, n=2):\n    return n", given, "f") == f"{given}    return n"
    assert continued("def f(xs, n=3):\n    return n", given, "f") is None


def test_a_program_that_is_written_as_asked_stays_the_candidate_that_it_is():
    source = f"{GIVEN}    return len(xs)\n"
    assert identity(continued(source, GIVEN, "f"), "python") == identity(source, "python")
