"""What is left out of a data set, and how it is divided."""

from collections import Counter
from dataclasses import replace

import pytest

from tasks.swiftcode.filters import contaminated, divide, duplicates, risky, unfit, words
from tasks.swiftcode.task import Solution, task_of
from tests.swiftcode.tiny import NAMES, program, row


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("x = 1\nimport os", "line 2: import os"),
        ("import sys, subprocess as s", "line 1: import subprocess"),
        ("from socket import *", "line 1: import socket"),
        ("from urllib.request import urlopen", "line 1: import urllib"),
        ("import os.path", "line 1: import os"),
        ("import shutil", "line 1: import shutil"),
        ("import ctypes", "line 1: import ctypes"),
        ("def f():\n    def g():\n        import requests", "line 3: import requests"),
        ("open('x', 'w')", "line 1: open"),
        ("open('x')", "line 1: open"),
        ("open(0, 'w')", "line 1: open"),
        ("open(0, mode='w')", "line 1: open"),
        ("open(file=0)", "line 1: open"),
        ("o = open", "line 1: open"),
        ("f(0)\nopen(1)", "line 2: open"),
        ("import io\nio.open('x')", "line 2: .open"),
        ("eval('1')", "line 1: eval"),
        ("list(map(exec, xs))", "line 1: exec"),
        ("__import__('os')", "line 1: __import__"),
        ("compile('1', '', 'eval')", "line 1: compile"),
        ("().__class__.__base__.__subclasses__()", "line 1: .__subclasses__"),
        ("f.__globals__", "line 1: .__globals__"),
        ("import sys\nsys._getframe()", "line 2: ._getframe"),
        ("eval(open('x'))\nimport os", "line 1: eval"),
    ],
)
def test_risky_operations(source, found):
    assert risky(source) == found


@pytest.mark.parametrize(
    "source",
    [
        "import sys, math, re, heapq, collections, threading\nre.compile('x')\nsys.setrecursionlimit(10)",
        "import sys\nsys.stdin.buffer.read()\nsys.stdout.write('x')",
        "print(open(0).read())\ninput()",
        "import io\nio.BytesIO(b'x')",
        "def evaluate(x): ...\nevaluate(3)",
        "door.open()",
        "import osmosis\nfrom . import os",
    ],
)
def test_harmless_operations(source):
    assert risky(source) is None


def task(name="add", **changes):
    return task_of(row(name, **changes), name)


def test_a_task_that_is_fit():
    assert unfit(task()) is None
    assert unfit(task_of(program(), "x")) is None


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (
            replace(task(), solutions=(*task().solutions, Solution("python", "b", "def add(:"))),
            ("does_not_parse", "solution b: line 1: invalid syntax"),
        ),
        (task(generator="x = "), ("does_not_parse", "generator: line 1: invalid syntax")),
        (replace(task(), check="assert ("), ("does_not_parse", "tests: line 1: '(' was never closed")),
        (
            replace(task(), solutions=(*task().solutions, Solution("python", "b", "class add: ..."))),
            ("not_a_function", "solution b defines no function add"),
        ),
        (
            replace(task(), solutions=(Solution("python", "b", "if 1:\n    def add(x, y): ..."),)),
            ("not_a_function", "solution b defines no function add"),
        ),
        (task(prompt="Write add(x, y)."), ("not_a_function", "the prompt does not show the signature of add")),
        (task(prompt="def add_all(x): ..."), ("not_a_function", "the prompt does not show the signature of add")),
        (
            replace(task(), solutions=(*task().solutions, Solution("python", "b", "def add(x): exec(x)"))),
            ("risky", "solution b: line 1: exec"),
        ),
        (task(generator="import os"), ("risky", "generator: line 1: import os")),
        (replace(task(), check="import os"), ("risky", "tests: line 1: import os")),
    ],
)
def test_tasks_that_cannot_be_used(made, expected):
    assert unfit(made) == expected


def test_programs_in_other_languages_are_not_read_as_python():
    made = program()
    made["solutions"].append({"language": "cpp", "name": "b", "source": "int main() { /* import os */ }"})
    assert unfit(task_of(made, "x")) is None


@pytest.mark.parametrize("source", ["x = " + "(" * 5000 + ")" * 5000, "x = " + "-" * 100_000 + "1", "x\0"])
def test_deep_nesting_is_a_fault_and_no_crash(source):
    made = replace(task(), solutions=(Solution("python", "a", source),))
    assert unfit(made)[0] == "does_not_parse"


def test_duplicates_differ_in_case_and_space_only_and_test_tasks_are_kept():
    first = task(task="a")
    same = replace(first, task="b", prompt="  " + first.prompt.upper().replace(" ", "\n\n"))
    tested = replace(first, task="c", split="test")
    other_text = replace(first, task="d", prompt=first.prompt + "!")
    other_name = replace(first, task="e", entry_point="sum")
    everything = [same, other_text, first, tested, other_name]
    for order in (everything, everything[::-1]):
        assert {(a.task, b.task) for a, b in duplicates(order)} == {("a", "c"), ("b", "c")}
    assert [(a.task, b.task) for a, b in duplicates([same, first])] == [("b", "a")]


def prompt(text, name="f"):
    return f"def {name}(x):\n    '''{text}'''\n"


TEXT = "one two three four five six seven eight nine ten eleven twelve thirteen"


@pytest.mark.parametrize(
    ("ours", "theirs", "why"),
    [
        (f"a {TEXT} b", f"c, {TEXT.upper()}. d", "shares the words 'one two three"),
        (f"a {TEXT.replace('seven', '7')}", TEXT, None),
        ("The same short text.", "the SAME (short) text", "has the same entry point and docstring"),
        ("The same short text.", "Another short text.", None),
    ],
)
def test_overlap_of_words_or_of_name_and_docstring(ours, theirs, why):
    a = task(task="a", prompt=f"import x\n{prompt(ours, 'add')}")
    b = task(task="b", prompt=prompt(theirs, "add"))
    found = contaminated([task("square"), a], [task("double"), b])
    if why is None:
        assert found == []
    else:
        ((ours, theirs, said),) = found
        assert (ours.task, theirs.task) == ("a", "b")
        assert said.startswith(why)


def test_twelve_words_and_the_same_docstring_of_another_function_are_no_overlap():
    twelve = TEXT.rsplit(" ", 1)[0]
    a = task(task="a", prompt=prompt("x " + twelve, "add"))
    assert contaminated([a], [task(task="b", prompt=prompt("y " + twelve, "add"))]) == []
    assert len(contaminated([a], [task(task="b", prompt=prompt("y " + twelve, "add"))], n=12)) == 1
    c = task("square", prompt=prompt("The text.", "square"))
    assert contaminated([c], [task(prompt=prompt("The text.", "add"))]) == []


def test_functions_without_a_docstring_and_programs_have_no_documentation_in_common():
    a, b = (task(task=name, prompt=f"def add({name}): ...") for name in "ab")
    assert contaminated([a], [b]) == []
    total = task_of(program(), "x")
    other = task_of(program(prompt="Print the sum of integers."), "y")
    assert contaminated([total], [other]) == []
    assert len(contaminated([total], [replace(other, prompt=total.prompt.upper())])) == 1  # all of its words


def test_a_number_with_separators_is_one_word():
    assert words("1 ≤ n ≤ 1,000,000, [1,2]") == ("1", "n", "1,000,000", "1", "2")


def test_splits_are_near_their_share_and_independent_of_order_and_company():
    tasks = [replace(task(), task=str(i)) for i in range(200)]
    splits = divide(tasks, 0.35, 1)
    assert Counter(splits.values()) == {"test": 70, "train": 130}
    assert divide(tasks[::-1], 0.35, 1) == splits
    assert divide(tasks, 0.35, 2) != splits
    fewer = divide(tasks[:190], 0.35, 1)
    assert sum(fewer[name] != splits[name] for name in fewer) <= 10
    given = [replace(t, split="train") for t in tasks[:150]]
    mixed = divide([*given, *tasks[150:]], 0.1, 1)
    assert {mixed[t.task] for t in given} == {"train"}
    assert Counter(mixed.values())["test"] == 5
    assert Counter(divide([task(name) for name in NAMES], 0.01, 1).values()) == {"test": 1, "train": 5}
