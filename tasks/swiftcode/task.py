"""Tasks with their known solutions as they are read, before tests are validated."""

import json
import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from tasks.stage import Parameters as Section
from tasks.stage import UserError
from tasks.swiftcode import values
from tasks.swiftcode.comparison import COMPARISONS
from tasks.swiftcode.params import LANGUAGES, Positive

SPLITS = ("train", "test")
KINDS = ("function", "stdio")
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Solution:
    """A program that is said to solve a task."""

    language: str
    name: str
    source: str


@dataclass(frozen=True)
class Task:
    """A task with its known solutions; the first solution of each language is the reference.

    `check` is Python code that calls the entry point and asserts, from which `recording` makes `tests`; it is None where
    the tests are given. `where` says for messages where the task stands.
    """

    task: str
    where: str
    kind: str
    entry_point: str | None
    prompt: str
    solutions: tuple[Solution, ...]
    tests: list[list] = field(default_factory=list)
    check: str | None = None
    compare: str = "exact"
    rtol: float | None = None
    atol: float | None = None
    split: str | None = None
    generator: str | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)

    def judged(self) -> dict[str, Any]:
        """The task as `sandbox.run` takes it."""
        keys = ("kind", "entry_point", "tests", "compare", "rtol", "atol")
        return {key: getattr(self, key) for key in keys}

    def languages(self) -> list[str]:
        """Languages of its solutions, sorted."""
        return sorted({solution.language for solution in self.solutions})

    def references(self) -> list[Solution]:
        """The first solution of each language."""
        first: dict[str, Solution] = {}
        for solution in self.solutions:
            first.setdefault(solution.language, solution)
        return list(first.values())


def _storable(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank; a text is needed")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("text that UTF-8 can hold (no half of a surrogate pair) is needed") from None
    return text


Text = Annotated[str, AfterValidator(_storable)]
Tolerance = Annotated[float, Field(ge=0)]


class SolutionRow(Section):
    """One solution of a row."""

    language: Literal[LANGUAGES]
    name: Text
    source: Text


class TaskRow(Section):
    """A row of the project's own format. A null is the same as a key that lacks."""

    task: Text
    split: Literal[SPLITS] | None = None
    kind: Literal[KINDS]
    entry_point: Text | None = None
    prompt: Text
    tests: list[list[Any]]
    compare: Literal[COMPARISONS] | None = None
    rtol: Tolerance | None = None
    atol: Tolerance | None = None
    generator: Text | None = None
    sizes: dict[Literal[LANGUAGES], Positive] | None = None
    solutions: list[SolutionRow] = Field(min_length=1)


def task_of(row: Mapping[str, Any], where: str) -> Task:
    """A task from a row of the project's own format (keys of `TaskRow`; values in `tests` as `values` writes them).

    Functions are compared exactly unless `compare` says otherwise, the output of programs word by word.

    Raises:
        UserError: a key lacks, is unknown or has a value that is not allowed; the message begins with `where`.
    """
    read = checked(TaskRow, dict(row), where)
    _check_entry_point(read, where)
    sizes = read.sizes or {}
    if sizes and read.generator is None:
        raise UserError(f"{where}: sizes: there is no generator that could use them; leave them out or give one")
    named, languages = set(), set()
    for number, solution in enumerate(read.solutions):
        key = f"{where}: solutions.{number}"
        languages.add(solution.language)
        if (solution.language, solution.name) in named:
            raise UserError(f"{key}.name: {solution.name!r} is given twice; a name of its own is needed")
        named.add((solution.language, solution.name))
        if read.kind == "function" and solution.language != "python":
            raise UserError(f"{key}.language: {solution.language!r} is not allowed; functions are python's")
    for language in sizes:
        if language not in languages:
            raise UserError(f"{where}: sizes: {language!r} has no solution; there are {', '.join(sorted(languages))}")
    return Task(
        task=read.task,
        where=where,
        kind=read.kind,
        entry_point=read.entry_point,
        prompt=read.prompt,
        solutions=tuple(Solution(s.language, s.name, s.source) for s in read.solutions),
        tests=_tests(read, where),
        compare=read.compare or ("exact" if read.kind == "function" else "tokens"),
        rtol=read.rtol,
        atol=read.atol,
        split=read.split,
        generator=read.generator,
        sizes=sizes,
    )


def _check_entry_point(read: TaskRow, where: str) -> None:
    name = read.entry_point
    if read.kind == "stdio" and name is not None:
        raise UserError(f"{where}: entry_point: {name!r} is not allowed; a program (kind stdio) has none")
    if read.kind == "function" and (name is None or not name.isidentifier() or keyword.iskeyword(name)):
        raise UserError(f"{where}: entry_point: {name!r} is not allowed; the name of the function is needed")


def _tests(read: TaskRow, where: str) -> list[list]:
    tests = []
    for number, test in enumerate(read.tests):
        key = f"{where}: tests.{number}"
        try:
            test = values.loads(json.dumps(test, allow_nan=False))
        except ValueError as error:
            raise UserError(f"{key}: {values.shown(test)} is not allowed: {error}") from None
        if read.kind == "stdio":
            if len(test) != 2 or not all(isinstance(text, str) for text in test):
                raise UserError(f"{key}: {values.shown(test)} is not allowed; [stdin, stdout] is needed, both texts")
        elif len(test) != 2 or not isinstance(test[0], list):
            raise UserError(f"{key}: {values.shown(test)} is not allowed; [[argument, …], expected] is needed")
        tests.append(test)
    return tests


def checked(model: type[Model], content: Any, where: str) -> Model:
    """`content` as the model; UserError names the first fault's key, value and what is allowed."""
    try:
        return model.model_validate(content, strict=True)
    except ValidationError as error:
        fault = error.errors()[0]
    key = ".".join(map(str, fault["loc"]))
    place = f"{where}: {key}" if key else where
    if fault["type"] == "extra_forbidden":
        allowed = (model if len(fault["loc"]) == 1 else SolutionRow).model_fields
        raise UserError(f"{place}: unknown key; allowed are {', '.join(allowed)}")
    if fault["type"] == "missing":
        raise UserError(f"{place}: missing; there are {', '.join(fault['input']) or 'no keys'}")
    why = str(fault["ctx"]["error"]) if fault["type"] == "value_error" else fault["msg"]
    raise UserError(f"{place}: {values.shown(fault['input'])} is not allowed: {why[0].lower()}{why[1:]}")


def read_json_text(text: str, where: str) -> Any:
    """The value of a JSON text. Raises UserError where it is none; NaN and infinities are none."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not valid JSON: {str(error).splitlines()[0]}") from None


def _no_constant(name: str) -> None:
    raise ValueError(f'{name} is not JSON; {{"$float": "…"}} may stand for it in tests')
