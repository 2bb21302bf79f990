"""Rows of the project's own format: what is taken over, and what is refused with its key."""

import pytest

from tasks.stage import UserError
from tasks.swiftcode.task import Solution, task_of
from tests.swiftcode.tiny import program, row


def test_every_key_is_taken_over():
    more = {
        "compare": "float",
        "rtol": 0.5,
        "atol": 1,
        "split": "test",
        "tests": [[[{"$tuple": [1]}, 2.0], {"$set": [3]}]],
    }
    task = task_of(row("add", **more, generator="def generate(size, seed): ...", sizes={"python": 3}), "here")
    assert (task.task, task.where, task.kind, task.entry_point, task.split) == (
        "add",
        "here",
        "function",
        "add",
        "test",
    )
    assert task.tests == [[[(1,), 2.0], {3}]]
    assert (task.compare, task.rtol, task.atol, task.generator, task.sizes) == (
        "float",
        0.5,
        1.0,
        "def generate(size, seed): ...",
        {"python": 3},
    )
    assert task.solutions[1] == Solution("python", "way1", "def add(x, y):\n    return sum([x, y])\n")
    assert task.judged() == {
        "kind": "function",
        "entry_point": "add",
        "tests": task.tests,
        "compare": "float",
        "rtol": 0.5,
        "atol": 1.0,
    }


def test_what_is_not_given_has_a_default_and_null_is_not_given():
    empty = dict.fromkeys(("split", "compare", "rtol", "atol", "generator", "sizes"))
    for task in (task_of(row("add"), "x"), task_of(row("add", **empty), "x")):
        assert (task.compare, task.rtol, task.atol, task.split, task.generator, task.sizes) == (
            "exact",
            *[None] * 4,
            {},
        )
    assert task_of(program(), "x").compare == "tokens"


def test_the_first_solution_of_each_language_is_the_reference():
    known = [("python", "a"), ("cpp", "b"), ("python", "c"), ("cpp", "d")]
    solutions = [{"language": language, "name": name, "source": name} for language, name in known]
    task = task_of(program(solutions=solutions), "x")
    assert [s.name for s in task.references()] == ["a", "b"]
    assert task.languages() == ["cpp", "python"]


SOLUTION = {"language": "python", "name": "a", "source": "b"}


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (row("add", task=...), "task: missing; there are kind, entry_point, prompt, tests, solutions"),
        (row("add", task=" "), "task: ' ' is not allowed: it is blank; a text is needed"),
        (row("add", task=7), "task: 7 is not allowed: input should be a valid string"),
        (row("add", prompt="\ud800"), r"prompt: '\ud800' is not allowed: text that UTF-8 can hold"),
        (
            row("add", languages=["python"]),
            "languages: unknown key; allowed are task, split, kind, entry_point, prompt",
        ),
        (row("add", split="dev"), "split: 'dev' is not allowed: input should be 'train' or 'test'"),
        (row("add", kind="class"), "kind: 'class' is not allowed: input should be 'function' or 'stdio'"),
        (row("add", entry_point=None), "entry_point: None is not allowed; the name of the function is needed"),
        (row("add", entry_point="a.b"), "entry_point: 'a.b' is not allowed; the name of the function is needed"),
        (row("add", entry_point="def"), "entry_point: 'def' is not allowed; the name of the function is needed"),
        (program(entry_point="f"), "entry_point: 'f' is not allowed; a program (kind stdio) has none"),
        (row("add", tests={}), "tests: {} is not allowed: input should be a valid list"),
        (row("add", tests=[[[1], 2], [1, 2]]), "tests.1: [1, 2] is not allowed; [[argument, …], expected] is needed"),
        (row("add", tests=[[[1], 2, 3]]), "tests.0: [[1], 2, 3] is not allowed; [[argument, …], expected] is needed"),
        (row("add", tests=[[{"$tuple": [1]}, 2]]), "tests.0: [(1,), 2] is not allowed; [[argument, …]"),
        (row("add", tests=[[[1], {"$what": 2}]]), "tests.0: [[1], {'$what': 2}] is not allowed: $what is not a mark"),
        (row("add", tests=[[[1], float("nan")]]), "tests.0: [[1], nan] is not allowed: "),
        (program(tests=[["1", 1]]), "tests.0: ['1', 1] is not allowed; [stdin, stdout] is needed, both texts"),
        (program(tests=[["1"]]), "tests.0: ['1'] is not allowed; [stdin, stdout] is needed, both texts"),
        (
            row("add", compare="near"),
            "compare: 'near' is not allowed: input should be 'exact', 'float', 'unordered' or",
        ),
        (row("add", rtol=-1), "rtol: -1 is not allowed: input should be greater than or equal to 0"),
        (row("add", atol="1"), "atol: '1' is not allowed: input should be a valid number"),
        (program(sizes={"python": 0}), "sizes.python: 0 is not allowed: input should be greater than or equal to 1"),
        (program(sizes={"lua": 1}), "sizes.lua.[key]: 'lua' is not allowed: input should be 'python', 'cpp'"),
        (program(sizes={"cpp": 1}), "sizes: 'cpp' has no solution; there are python"),
        (program(generator=None), "sizes: there is no generator that could use them; leave them out or give one"),
        (row("add", solutions=[]), "solutions: [] is not allowed: list should have at least 1 item"),
        (
            row("add", solutions=[SOLUTION | {"language": "C"}]),
            "solutions.0.language: 'C' is not allowed: input should",
        ),
        (
            row("add", solutions=[SOLUTION | {"rank": 1}]),
            "solutions.0.rank: unknown key; allowed are language, name, sou",
        ),
        (row("add", solutions=[SOLUTION | {"source": ""}]), "solutions.0.source: '' is not allowed: it is blank"),
        (row("add", solutions=[{"name": "a"}]), "solutions.0.language: missing; there are name"),
        (
            row("add", solutions=[SOLUTION, SOLUTION]),
            "solutions.1.name: 'a' is given twice; a name of its own is needed",
        ),
        (
            row("add", solutions=[SOLUTION, SOLUTION | {"language": "cpp"}]),
            "solutions.1.language: 'cpp' is not allowed; functions are python's",
        ),
    ],
)
def test_what_breaks_the_format_is_refused_with_key_value_and_what_is_allowed(made, message):
    with pytest.raises(UserError) as error:
        task_of(made, "file: line 3")
    assert str(error.value).startswith(f"file: line 3: {message}")
    assert "\n" not in str(error.value)


def test_a_long_value_is_cut():
    with pytest.raises(UserError) as error:
        task_of(row("add", kind="x" * 500), "file")
    assert len(str(error.value)) < 200
