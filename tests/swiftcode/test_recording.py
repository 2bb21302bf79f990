"""Tests that are code become data: in the real sandbox, and with one that fails."""

import json
from dataclasses import replace

import pytest

from tasks.stage import UserError
from tasks.swiftcode import sandbox, values
from tasks.swiftcode.params import Limits
from tasks.swiftcode.recording import ReferenceFails, comparison, is_data, record, record_all
from tasks.swiftcode.task import Solution, task_of
from tests.swiftcode.tiny import UNSAFE, row

LIMITS = Limits(cpu_s=1)


def asked(source, check, entry_point="f"):
    made = task_of(row("add"), "line 1")
    return replace(
        made, entry_point=entry_point, check=check, tests=[], solutions=(Solution("python", "reference", source),)
    )


def recorded(source, check):
    return record(asked(source, check), LIMITS, unsafe_no_sandbox=UNSAFE)


def test_arguments_before_the_call_and_results_after_it():
    source = "def f(xs, n=1):\n    xs.append(n)\n    return xs"
    task = recorded(
        source, "xs = [1]\ny = f(xs, 2)\nassert y == [1, 2]\ny.clear()\nassert f([], n=3) == [3]\nassert f([]) == [1]"
    )
    assert task.tests == [[[[1], 2], [1, 2]], [[[], 3], [3]], [[[]], [1]]]
    assert (task.check, task.compare, task.atol) == (None, "exact", None)
    assert sandbox.run(source, "python", task.judged(), LIMITS, unsafe_no_sandbox=UNSAFE).verdict == "accepted"


def test_only_calls_of_the_tests_are_recorded_once_each():
    source = "def f(n):\n    return 1 if n < 2 else n * f(n - 1)"
    assert recorded(source, "assert f(3) == 6\nassert f(3) > 5\nassert f(1) == 1").tests == [[[3], 6], [[1], 1]]


def test_values_that_json_lacks_are_kept_and_told_from_each_other():
    task = recorded("def f(x):\n    return x", "f((1, 2)); f([1, 2]); f({1}); f(1); f(True); f(1.0); f('1')")
    assert [args for args, _ in task.tests] == [[(1, 2)], [[1, 2]], [{1}], [1], [True], [1.0], ["1"]]
    assert [type(result) for _, result in task.tests] == [tuple, list, set, int, bool, float, str]


def test_calls_that_are_no_data_are_left_out():
    source = (
        "def f(x=0, *, k=0):\n    if x == 9:\n        raise ValueError\n    return x if k == 0 else (i for i in 'ab')"
    )
    check = (
        "f(1)\nf(2, k=0)\nf(3, k=1)\nf(float('nan'))\nf(lambda: 1)\nf(open)\nf((i for i in 'ab'))\nf([object()])\n"
        "try:\n    f(9)\nexcept ValueError:\n    pass\nf(4)"
    )
    assert recorded(source, check).tests == [[[1], 1], [[4], 4]]


def test_arguments_and_results_must_both_be_data():
    source = "def f(x):\n    return 1 if callable(x) else x if x > 2 else open"
    assert recorded(source, "f(open)\nf(2)\nf(3)").tests == [[[3], 3]]


def test_arguments_by_name_are_given_by_position():
    source = "def f(a, b=1, c=2):\n    return [a, b, c]"
    assert recorded(source, "f(0, c=5)\nf(c=1, a=2)").tests == [[[0, 1, 5], [0, 1, 5]], [[2, 1, 1], [2, 1, 1]]]


def test_random_tests_are_the_same_every_time():
    check = "import random\nfor _ in range(5):\n    f(random.random())"
    source = "def f(x):\n    return x"
    first = recorded(source, check).tests
    assert first == recorded(source, check).tests
    assert len(first) == 5


def test_many_calls_are_cut():
    source = "def f(x):\n    return x"
    assert [a for a, _ in recorded(source, "for i in range(150): f(i)").tests] == [[i] for i in range(100)]
    assert recorded(source, "for i in range(1500): f(i // 1000)").tests == [[[0], 0]]


def test_helpers_of_the_reference_are_seen_by_the_tests_but_not_hidden_by_them():
    source = "def check(x):\n    return x + 1\ndef f(x):\n    return check(x)"
    task = recorded(source, "def check(candidate):\n    assert candidate(1) == 2\ncheck(f)")
    assert task.tests == [[[1], 2]]


@pytest.mark.parametrize(
    ("source", "check", "message"),
    [
        ("def f(x):\n    return x", "assert f(1) == 1\nassert f(2) == 3", "tests: line 2: AssertionError ()"),
        ("def f(x):\n    return x", "assert f(2) == 3, 'no\\nway'", r"tests: line 1: AssertionError ('no\nway',)"),
        ("def f(x):\n    return y", "assert f(2)", "tests: line 1: NameError (\"name 'y' is not defined\",)"),
        (
            "def f(x):\n    return f(x)",
            "assert f(2)",
            "tests: line 1: RecursionError ('maximum recursion depth exceeded',)",
        ),
        ("def f(x):\n    exit(0)", "assert f(2)", "tests: line 1: SystemExit (0,)"),
        ("def f(x):\n    while True: pass", "assert f(2)", "time_limit: "),
        ("x = 1 / 0\ndef f(x): ...", "assert f(2)", "runtime_error: ZeroDivisionError: division by zero"),
    ],
)
def test_a_reference_that_fails(source, check, message):
    with pytest.raises(ReferenceFails) as error:
        recorded(source, check)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_failures_stand_where_their_tasks_stood():
    good, bad = asked("def f(x): return x", "f(1)"), asked("def f(x): return x", "assert f(0)")
    found = record_all([good, bad, *[good] * 20], LIMITS, unsafe_no_sandbox=UNSAFE)
    assert [isinstance(one, ReferenceFails) for one in found] == [False, True, *[False] * 20]
    assert found[-1].tests == [[[1], 1]]


def test_a_sandbox_that_fails_is_no_fault_of_the_task(monkeypatch):
    def fail(*_, **__):
        raise sandbox.HarnessError("no box")

    monkeypatch.setattr(sandbox.Box, "run", fail)
    with pytest.raises(UserError, match=r"^the sandbox failed: no box$"):
        record(asked("def f(x): ...", "f(1)"), LIMITS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, True),
        ({"a": [(1, {2.5}, None, b"x")]}, True),
        (float("inf"), True),
        ([float("nan")], False),
        ({"a": {1: values.Other("object")}}, False),
        ({values.Other("object"): 1}, False),
        (({values.Other("object")},), False),
    ],
)
def test_plain_data(value, expected):
    assert is_data(value) is expected


@pytest.mark.parametrize(
    ("check", "results", "expected"),
    [
        ("assert f(1) == 2", [2, "x", (1, [True])], ("exact", None)),
        ("assert f(1) == 0.5", [2, 0.5], ("float", None)),
        ("assert f(1) == [{'a': (0.5,)}]", [[{"a": (0.5,)}]], ("float", None)),
        ("assert f(1) == {0.5: 1}", [{0.5: 1}], ("float", None)),
        ("assert abs(f(1) - 2) < 1e-3\nassert math.fabs(f(2)) <= 0.01", [2], ("float", 0.01)),
        ("assert abs(f(1) - 2) > 1e-3", [2], ("exact", None)),
        ("assert abs(f(1)) < limit", [2], ("exact", None)),
        ("def check(candidate):\n    assert abs(candidate(1)) < 1e-4\ncheck(f)", [2], ("float", 1e-4)),
        ("assert set(f(1)) == {1}", [[1]], ("unordered", None)),
        ("assert sorted(f(1)) == [1]\nassert Counter(f(2)) == x", [[1], (2,)], ("unordered", None)),
        ("def check(candidate):\n    assert sorted(candidate(1)) == [1]\ncheck(f)", [[1]], ("unordered", None)),
        ("assert sorted(f(1)) == [1]\nassert f(2) == [2]", [[1], [2]], ("exact", None)),
        ("assert sorted(f(1)) == ['a']", ["a"], ("exact", None)),
        ("assert sorted(g(1)) == [1]", [], ("exact", None)),
    ],
)
def test_how_results_are_compared(check, results, expected):
    assert comparison(check, "f", results) == expected


def test_the_recorder_adds_nothing_that_json_could_not_hold():
    task = recorded("def f(x):\n    return x", "f('\\ud800'); f(10 ** 5000)")
    assert json.loads(json.dumps(values.dumps(task.tests)))
    assert values.loads(values.dumps(task.tests)) == task.tests
