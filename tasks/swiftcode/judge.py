"""Judge programs by hand: ``python -m tasks.swiftcode.judge FILE…``, in the sandbox, with the tests of a task.

The task is ``--task FILE``, else found beside each program: ``manifest.json`` (its entry for the file) or ``task.json`` (as
the folders of the pool have it).
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from tasks.stage import UserError
from tasks.swiftcode import values
from tasks.swiftcode.isolation import require
from tasks.swiftcode.languages import language_of_file
from tasks.swiftcode.sandbox import Job, check_limits, check_task, judge_many


def judge(
    files: Annotated[list[Path], typer.Argument(help="programs; the suffix says the language", metavar="FILE…")],
    task: Annotated[
        Path | None, typer.Option(help="JSON with kind, entry_point, tests, compare and perhaps limits")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="candidates at the same time")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON list")] = False,
    unsafe_no_sandbox: Annotated[
        bool,
        typer.Option("--unsafe-no-sandbox", help="run although this machine cannot isolate: trusted programs only"),
    ] = False,
) -> None:
    """Run programs in the sandbox and print a verdict for each; exit code 1 where one is not what its task expects.

    A task may name an `expected_verdict` (and some that are `also_acceptable`); without it, `accepted` is expected.
    """
    print(require(unsafe_no_sandbox).said, file=sys.stderr)
    read = [_read(file, task) for file in files]
    jobs = [job for _, job, _ in read]
    verdicts = judge_many(jobs, unsafe_no_sandbox=unsafe_no_sandbox, workers=workers)
    width = max(len(str(file)) for file in files)
    lines, as_expected = [], True
    for (file, _, expected), verdict in zip(read, verdicts, strict=True):
        right = verdict.verdict in expected
        as_expected &= right
        lines.append({"file": str(file), **asdict(verdict), "as_expected": right})
        if not as_json:
            costs = f"{verdict.cpu_s:8.3f} s CPU {verdict.wall_s:7.2f} s {verdict.peak_mb:7.1f} MB"
            more = "" if right else f"  (expected: {' or '.join(expected)})"
            print(f"{file!s:{width}}  {verdict.verdict:13}  {costs}  {verdict.message}{more}".rstrip())
    if as_json:
        print(json.dumps(lines, indent=1))
    sys.exit(0 if as_expected else 1)


def _read(file: Path, task: Path | None) -> tuple[Path, Job, list[str]]:
    if not file.is_file():
        raise UserError(f"{file}: there is no such file")
    entry, limits = _entry(file, task)
    where = task or file
    language = entry.get("language") or language_of_file(file).name
    try:
        judged = check_task(entry["task"], language)
        job = Job(file.read_bytes().decode("utf-8", "replace"), language, judged, check_limits(limits))
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    expected = [entry.get("expected_verdict", "accepted"), *entry.get("also_acceptable", [])]
    return file, job, expected


def _entry(file: Path, task: Path | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The task's description for a file, with "task" in it, and limits."""
    manifest = file.parent / "manifest.json"
    if task is None and manifest.is_file():
        content = _json(manifest)
        for entry in content.get("programs", []):
            if entry.get("file") == file.name:
                return entry, {**content.get("default_limits", {}), **entry.get("limits", {})}
        raise UserError(f"{manifest}: there is no entry for {file.name} under programs; name its task with --task")
    found = task or file.parent / "task.json"
    if not found.is_file():
        raise UserError(
            f"{file}: no task for it: name it with --task, or lay manifest.json or task.json beside the program"
        )
    content = _json(found)
    entry = content if "task" in content else {"task": content}
    return entry, content.get("limits", {})


def _json(path: Path) -> dict[str, Any]:
    try:
        content = values.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: not a JSON object")
    return content


def main() -> None:
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(judge)
    try:
        app(prog_name="python -m tasks.swiftcode.judge")
    except (UserError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
