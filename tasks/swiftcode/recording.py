"""Tests as data: what a reference solution returns when the tests that are code call it, recorded in the sandbox."""

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tasks.compute import map_blocks
from tasks.swiftcode import sandbox, values
from tasks.swiftcode.filters import parsed
from tasks.swiftcode.params import Limits
from tasks.swiftcode.task import Task

MOST_KEPT = 100  # tests of a task
MOST_RECORDED = 1000  # calls, before those with the same arguments are told
BLOCK = 16  # tasks
CANDIDATE = "candidate"  # how tests that are functions name what they test

# Runs in the sandbox behind the reference, and gives [[[arguments, result], …], what the tests said or None]. The tests get
# the recorder in the reference's place, in a namespace of their own: the reference still calls itself directly. Calls that
# raise, and arguments that cannot be copied or given by position, are no tests.
RECORDER = """

def _recorded_calls(entry_point, check, most):
    import copy
    import inspect
    import random

    random.seed(0)
    scope = dict(globals())
    function, calls = scope[entry_point], []

    def recorder(*arguments, **named):
        before = None
        if len(calls) < most:
            try:
                given = arguments
                if named:
                    bound = inspect.signature(function).bind(*arguments, **named)
                    bound.apply_defaults()
                    given = None if bound.kwargs else bound.args
                before = None if given is None else copy.deepcopy(list(given))
            except Exception:
                before = None
        result = function(*arguments, **named)
        if before is not None:
            try:
                calls.append([before, copy.deepcopy(result)])
            except Exception:
                pass
        return result

    scope[entry_point] = recorder
    try:
        exec(compile(check, "<tests>", "exec"), scope)
    except BaseException as error:
        line, trace = None, error.__traceback__
        while trace is not None:
            line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == "<tests>" else line
            trace = trace.tb_next
        return [calls, f"tests: line {line}: {type(error).__name__} {error.args!r}"[:200]]
    return [calls, None]
"""


class ReferenceFails(Exception):
    """The reference does not pass its own tests; one line says why."""


def record_all(
    tasks: Sequence[Task], limits: Limits, *, unsafe_no_sandbox: bool = False
) -> list[Task | ReferenceFails]:
    """`record` of every task, in their order, over local processes or a cluster; a task that fails is its exception."""
    blocks = [list(tasks[begin : begin + BLOCK]) for begin in range(0, len(tasks), BLOCK)]
    recorded = map_blocks(_record_block, blocks, (limits, unsafe_no_sandbox), description="record tests")
    return [result for block in recorded for result in block]


def _record_block(shared: tuple[Limits, bool], block: Sequence[Task]) -> list[Task | ReferenceFails]:
    limits, unsafe = shared
    results: list[Task | ReferenceFails] = []
    for task in block:
        try:
            results.append(record(task, limits, unsafe_no_sandbox=unsafe))
        except ReferenceFails as fault:
            results.append(fault)
    return results


def record(task: Task, limits: Limits, *, unsafe_no_sandbox: bool = False) -> Task:
    """The task with `tests` in place of `check`: arguments and result of each distinct call, `MOST_KEPT` at most.

    Arguments are those before the call. Calls whose arguments or result are no plain data, or hold a NaN, are left out.
    Unseeded random numbers of the tests are those of seed 0.

    Raises:
        ReferenceFails: an assertion fails, or the reference or its tests raise or go beyond a limit.
        UserError: the sandbox itself fails.
    """
    source = task.references()[0].source + RECORDER
    try:
        ((calls, fault),) = sandbox.call(
            source,
            "_recorded_calls",
            [[task.entry_point, task.check, MOST_RECORDED]],
            limits,
            unsafe_no_sandbox=unsafe_no_sandbox,
        )
    except sandbox.CallError as error:
        said = str(error).removeprefix("_recorded_calls: ")
        raise ReferenceFails(said) from None
    if fault is not None:
        raise ReferenceFails(" ".join(fault.split()))
    tests: dict[str, list] = {}
    for arguments, result in calls:
        if is_data(arguments) and is_data(result):
            tests.setdefault(values.dumps(arguments), [arguments, result])
    kept = list(tests.values())[:MOST_KEPT]
    compare, atol = comparison(task.check, task.entry_point, [result for _, result in kept])
    return replace(task, tests=kept, check=None, compare=compare, atol=atol)


def is_data(value: Any) -> bool:
    """Whether a value can be compared: plain data all through, and equal to itself (no NaN)."""
    if isinstance(value, dict):
        return all(is_data(key) and is_data(inner) for key, inner in value.items())
    if isinstance(value, list | tuple | set):
        return all(is_data(inner) for inner in value)
    return not isinstance(value, values.Other) and value == value


def comparison(check: str, entry_point: str, results: Sequence[Any]) -> tuple[str, float | None]:
    """How results are to be compared, and the absolute tolerance where the tests name one.

    unordered: all results are lists, tuples or sets, and the tests sort each or make it a set. float: the tests compare
    ``abs(…) < tolerance`` (the largest one counts), or a result holds a float. Else exact.

    >>> comparison("assert abs(f(1) - 0.5) < 1e-3", "f", [0.5])
    ('float', 0.001)
    >>> comparison("assert sorted(f(1)) == [1, 2]", "f", [[2, 1]])
    ('unordered', None)
    """
    tree = parsed(check)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    tested = [call for call in calls if _name(call.func) in (entry_point, CANDIDATE)]
    sorted_ones = {
        id(argument)
        for call in calls
        if _name(call.func) in ("sorted", "set", "frozenset", "Counter")
        for argument in call.args
    }
    containers = bool(results) and all(isinstance(result, list | tuple | set) for result in results)
    if containers and tested and all(id(call) in sorted_ones for call in tested):
        return "unordered", None
    tolerances = [found for node in ast.walk(tree) if (found := _tolerance(node)) is not None]
    if tolerances:
        return "float", max(tolerances)
    return ("float" if any(map(_holds_float, results)) else "exact"), None


def _tolerance(node: ast.AST) -> float | None:
    """The tolerance of ``abs(…) < tolerance``."""
    if not (isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE)):
        return None
    left, right = node.left, node.comparators[0]
    if isinstance(left, ast.Call) and _name(left.func) in ("abs", "fabs") and isinstance(right, ast.Constant):
        return float(right.value) if isinstance(right.value, int | float) else None
    return None


def _name(function: ast.expr) -> str | None:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None


def _holds_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_float, [*value.keys(), *value.values()]))
    if isinstance(value, list | tuple | set):
        return any(map(_holds_float, value))
    return isinstance(value, float | complex)
