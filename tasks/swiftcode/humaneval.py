"""Tasks of HumanEval (Chen et al., 2021, arXiv 2107.03374) as its package publishes them."""

from pathlib import Path

from tasks.stage import Parameters as Section
from tasks.stage import UserError
from tasks.swiftcode.task import Solution, Task, Text, checked, read_json_text

FILE = "HumanEval.jsonl"


class Row(Section):
    """A published row."""

    task_id: Text
    prompt: Text
    entry_point: Text
    canonical_solution: Text
    test: Text


def read(folder: Path) -> list[Task]:
    """The tasks of a folder that `fetch` has written, their tests still to be recorded.

    `test` defines ``check(candidate)``; it is called with the entry point. The reference is prompt + canonical solution,
    as the prompt may define functions that the solution or the tests use.

    Raises:
        UserError: there is no such file in the folder, a line is not a row of it, or a task stands twice.
    """
    path = folder / FILE
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not readable: {error}") from None
    tasks: dict[str, Task] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}: line {number}"
        row = checked(Row, read_json_text(line, where), where)
        if row.task_id in tasks:
            raise UserError(f"{where}: task_id: {row.task_id!r} stands there already; a name of its own is needed")
        tasks[row.task_id] = _task(row, f"line {number}")
    if not tasks:
        raise UserError(f"{path}: there are no tasks in it")
    return list(tasks.values())


def _task(row: Row, where: str) -> Task:
    return Task(
        task=row.task_id,
        where=where,
        kind="function",
        entry_point=row.entry_point,
        prompt=row.prompt,
        solutions=(Solution("python", "canonical", row.prompt + row.canonical_solution),),
        check=f"{row.test}\n\ncheck({row.entry_point})\n",
    )
