"""Tasks of a user's own file: rows of the project's format, or rows of published instruction data."""

import ast
import hashlib
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tasks.stage import Parameters as Section
from tasks.stage import UserError
from tasks.swiftcode.filters import functions, parsed, syntax_fault
from tasks.swiftcode.task import Solution, Task, Text, checked, read_json_text, task_of
from tasks.swiftcode.values import shown


class Instruction(Section):
    """A row of instruction data as EffiCoder publishes it. A null is the same as a key that lacks."""

    instruction: Text  # code up to the body: imports, signature, docstring
    input: str | None = None
    output: Text  # the whole function
    tests: str | None = None  # assertions, one a line
    task: str | None = None  # the collection that the row is from


class Unusable(NamedTuple):
    """A row that has the right form, yet is no task."""

    task: str
    where: str
    reason: str
    why: str


def read(path: Path) -> tuple[list[Task], list[Unusable]]:
    """Tasks of a file of JSON lines (.jsonl) or of one JSON list (.json), and rows that are none.

    A row with the key `instruction` is published instruction data: its name is made from its content, its tests are still to
    be recorded. Other rows are of the project's own format: `task.TaskRow`.

    Raises:
        UserError: another kind of file, not readable, no rows, a row of neither form, or a name that stands twice.
    """
    tasks: list[Task] = []
    unusable: list[Unusable] = []
    seen: dict[str, str] = {}
    for place, content in _rows(path):
        where = f"{path}: {place}"
        if not isinstance(content, dict):
            raise UserError(f"{where}: {shown(content)} is not allowed; an object is needed")
        if "instruction" in content:
            result = _from_instruction(checked(Instruction, content, where), where, place)
        else:
            result = replace(task_of(content, where), where=place)
            before = seen.setdefault(result.task, place)
            if before != place:
                raise UserError(
                    f"{where}: task: {result.task!r} stands in {before} already; a name of its own is needed"
                )
        (tasks if isinstance(result, Task) else unusable).append(result)
    if not tasks and not unusable:
        raise UserError(f"{path}: there are no rows in it")
    return tasks, unusable


def _rows(path: Path) -> list[tuple[str, Any]]:
    """(where it stands, content) of every row."""
    if path.suffix not in (".json", ".jsonl") or path.is_dir():
        raise UserError(f"{path}: not a file that can be read; allowed: .jsonl, .json")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    if path.suffix == ".jsonl":
        lines = [(f"line {number}", line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
        return [(place, read_json_text(line, f"{path}: {place}")) for place, line in lines]
    content = read_json_text(text, str(path))
    if not isinstance(content, list):
        raise UserError(f"{path}: not a JSON list but {type(content).__name__}; a list of rows is needed")
    return [(f"row {number}", row) for number, row in enumerate(content, start=1)]


def _from_instruction(row: Instruction, where: str, place: str) -> Task | Unusable:
    if row.input and row.input.strip():
        raise UserError(f"{where}: input: {shown(row.input)} is not allowed; an empty text is needed")
    content = json.dumps([row.instruction, row.output, row.tests])
    name = hashlib.sha256(content.encode()).hexdigest()[:12]
    check = row.tests or ""
    for what, text in (("output", row.output), ("tests", check)):
        fault = syntax_fault(text)
        if fault:
            return Unusable(name, place, "does_not_parse", f"{what}: {fault}")
    if not any(isinstance(node, ast.Assert) for node in ast.walk(parsed(check))):
        return Unusable(name, place, "too_few_tests", "there is no assertion")
    entry_point = asserted_function(check, row.output)
    if entry_point is None:
        return Unusable(name, place, "not_a_function", "the tests call no function of the output")
    return Task(
        task=name,
        where=place,
        kind="function",
        entry_point=entry_point,
        prompt=row.instruction,
        solutions=(Solution("python", "output", with_imports(row.output, row.instruction)),),
        check=check,
    )


def asserted_function(check: str, source: str) -> str | None:
    """The function of `source` that the assertions call: the one in most of them, of several the last that is defined.

    >>> asserted_function("assert f(g(1)) == 2; assert f(3) == 4", "def g(x): return x\\ndef f(x): return x + 1")
    'f'
    """
    defined = functions(source)
    called = Counter(
        name
        for statement in ast.walk(parsed(check))
        if isinstance(statement, ast.Assert)
        for name in {call.func.id for call in ast.walk(statement) if _calls_name(call)}
    )
    found = [name for name in defined if called[name]]
    return max(found, key=lambda name: (called[name], defined.index(name))) if found else None


def _calls_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def with_imports(source: str, instruction: str) -> str:
    """The source, after those imports at the top of the instruction's code that it lacks.

    >>> with_imports("def f(x: List): ...", "from typing import List\\ndef f(x: List):\\n    '''Text.'''")
    'from typing import List\\ndef f(x: List): ...'
    """
    if syntax_fault(instruction):
        return source
    imports = [ast.unparse(node) for node in parsed(instruction).body if isinstance(node, ast.Import | ast.ImportFrom)]
    own = {ast.unparse(node) for node in parsed(source).body if isinstance(node, ast.Import | ast.ImportFrom)}
    return "".join(f"{line}\n" for line in imports if line not in own) + source
