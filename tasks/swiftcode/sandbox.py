"""Candidates in the sandbox: `run` one, `judge_many`, or `call` a function there and get its values.

What a candidate did is decided here, outside of the box, from plain data; expected results never enter it.
"""

import atexit
import hashlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from tasks.stage import UserError, describe_validation
from tasks.swiftcode import values
from tasks.swiftcode.box import Box, HarnessError, Outcome, signal_of
from tasks.swiftcode.box import Job as Process
from tasks.swiftcode.comparison import ATOL, COMPARISONS, RTOL, equal_outputs, equal_values
from tasks.swiftcode.languages import PROGRAM, Language, language_of, tool_of, version_of
from tasks.swiftcode.params import Limits

__all__ = ["VERDICTS", "CallError", "HarnessError", "Job", "Limits", "Verdict", "call", "judge_many", "run"]

VERDICTS = (
    "accepted",
    "wrong_answer",
    "runtime_error",
    "compile_error",
    "time_limit",
    "memory_limit",
    "output_limit",
    "process_limit",
    "security",
    "harness_error",
)
ATTEMPTS = 3  # where the box or the machine fails
MB = 1 << 20


class CallError(ValueError):
    """What was called in the sandbox gave no value; one line says why."""


@dataclass(frozen=True)
class Verdict:
    """What became of a candidate.

    Args:
        verdict: one of `VERDICTS`.
        test: number of the test that decided, None where none did.
        message: one line, "" for accepted.
        cpu_s: CPU seconds of all its processes, start-up included.
        wall_s: seconds of the same.
        peak_mb: most memory of all its processes at one time; of several processes the largest.
        tmu_mb_s: integral of memory over time.
        waited_s: of `wall_s`, how long a process was ready to run and had no core.
    """

    verdict: str
    test: int | None = None
    message: str = ""
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_mb: float = 0.0
    tmu_mb_s: float = 0.0
    waited_s: float = 0.0


class Job(NamedTuple):
    """One candidate for `judge_many`."""

    source: str
    language: str
    task: Mapping[str, Any]
    limits: Limits | Mapping[str, Any] | None = None


def run(
    source: str,
    language: str,
    task: Mapping[str, Any],
    limits: Limits | Mapping[str, Any] | None = None,
    *,
    unsafe_no_sandbox: bool = False,
) -> Verdict:
    """Judge one candidate in the sandbox, test by test until the first that fails.

    Args:
        source: the program's text.
        language: one of ``languages.LANGUAGES``.
        task: ``kind`` function (Python only): ``entry_point`` and ``tests`` [[arguments, expected], …], all called in one
            process; ``kind`` stdio: ``tests`` [[stdin, stdout], …], a process each. ``compare``: see `comparison`, with
            ``rtol`` and ``atol`` for float.
        limits: see `params.Limits`; missing ones are its defaults.
        unsafe_no_sandbox: run although the machine cannot isolate; otherwise that is refused.

    Raises:
        UserError: a malformed task or limit, a language that is unknown or not on this machine, or no isolation.
    """
    checked = check_task(task, language)
    allowed = check_limits(limits)
    return _retried(lambda box: _judge(box, source, language_of(language), checked, allowed), unsafe_no_sandbox)


def judge_many(
    jobs: Sequence[Job], *, unsafe_no_sandbox: bool = False, workers: int | None = None, description: str = "judge"
) -> list[Verdict]:
    """`run` for many candidates; verdicts in their order, the same with any number of workers.

    Args:
        workers: local processes; None: as ``METHODWORKS_WORKERS`` or ``METHODWORKS_SCHEDULER`` say (`tasks.compute`).
    """
    from tasks.compute import map_blocks

    jobs = [Job(*job) for job in jobs]
    for job in jobs:
        check_task(job.task, job.language)
        check_limits(job.limits)
    size = max(1, min(16, len(jobs) // 16))
    blocks = [jobs[begin : begin + size] for begin in range(0, len(jobs), size)]
    found = map_blocks(_judge_block, blocks, unsafe_no_sandbox, description=description, workers=workers)
    return [verdict for block in found for verdict in block]


def call(
    source: str,
    entry_point: str,
    calls: Sequence[Sequence[Any]],
    limits: Limits | Mapping[str, Any] | None = None,
    *,
    unsafe_no_sandbox: bool = False,
) -> list[Any]:
    """Values of ``entry_point(*arguments)`` for each list of arguments, computed in the sandbox by Python, in one process.

    Raises:
        CallError: the source does not run, a call fails or takes too much, or a value is no plain data.
        HarnessError: the box or the machine failed three times.
    """
    allowed = check_limits(limits)
    found: list[Any] = []

    def take(_: int, content: bytes) -> bool:
        found.append(values.loads(content.decode("utf-8", "replace")))
        return True

    def compute(box: Box) -> Verdict:
        found.clear()
        outcome = box.run(_function_job(source, entry_point, calls, allowed), take)
        return _function_verdict(outcome, len(calls), None)

    verdict = _retried(compute, unsafe_no_sandbox)
    if verdict.verdict == "harness_error":
        raise HarnessError(f"the sandbox failed: {verdict.message}")
    if verdict.verdict != "accepted":
        raise CallError(f"{entry_point}: {verdict.verdict}: {verdict.message}")
    for value in found:
        if isinstance(value, values.Other):
            raise CallError(f"{entry_point}: gave a value of type {value!s}, which is no plain data")
    return found


def check_task(task: Mapping[str, Any], language: str) -> dict[str, Any]:
    """A task with all its keys. Raises UserError where it is malformed."""
    kind, compare, tests = task.get("kind"), task.get("compare", "exact"), task.get("tests")
    language_of(language)
    tool_of(language)
    if kind not in ("function", "stdio"):
        raise UserError(f"task: kind {kind!r} is not one of function, stdio")
    if kind == "function" and language != "python":
        raise UserError(
            f"task: kind function is for python; a {language} program reads stdin and writes stdout (kind stdio)"
        )
    entry_point = task.get("entry_point")
    if kind == "function" and not (isinstance(entry_point, str) and entry_point.isidentifier()):
        raise UserError(f"task: entry_point {entry_point!r} is not the name of a function")
    if compare not in COMPARISONS:
        raise UserError(f"task: compare {compare!r} is not one of {', '.join(COMPARISONS)}")
    if not isinstance(tests, list | tuple) or not tests:
        raise UserError("task: tests must be a list with at least one [input, expected]")
    for number, test in enumerate(tests):
        if not isinstance(test, list | tuple) or len(test) != 2:
            raise UserError(f"task: tests[{number}] is not [input, expected]")
        if kind == "function" and not isinstance(test[0], list | tuple):
            raise UserError(f"task: tests[{number}]: the input of a function is a list of its arguments")
        if kind == "stdio" and not (isinstance(test[0], str) and isinstance(test[1], str)):
            raise UserError(f"task: tests[{number}]: input and output of a program are texts")
    tolerances = {name: task.get(name) for name in ("rtol", "atol")}
    for name, value in tolerances.items():
        if value is not None and not (isinstance(value, int | float) and value >= 0):
            raise UserError(f"task: {name} {value!r} is not a number of at least 0")
    given = {name: float(value) for name, value in tolerances.items() if value is not None}
    return {
        "kind": kind,
        "entry_point": entry_point,
        "tests": tests,
        "compare": compare,
        "rtol": RTOL,
        "atol": ATOL,
        **given,
    }


def check_limits(limits: Limits | Mapping[str, Any] | None) -> Limits:
    """Limits with all their keys. Raises UserError where one is unknown or not allowed."""
    if isinstance(limits, Limits):
        return limits
    try:
        return Limits.model_validate(dict(limits or {}))
    except ValidationError as error:
        raise UserError("; ".join(describe_validation(error, "limits"))) from None


# ---- one box a process ----

_here = threading.local()


def box_here(unsafe_no_sandbox: bool = False) -> Box:
    """The box of this thread, made when it is first needed and ended with the process."""
    held = getattr(_here, "box", None)
    if held is None or getattr(_here, "process", None) != os.getpid():
        _here.box, _here.process = Box(unsafe_no_sandbox=unsafe_no_sandbox), os.getpid()
        atexit.register(_here.box.close)
    return _here.box


def _judge_block(unsafe_no_sandbox: bool, jobs: Sequence[Job]) -> list[Verdict]:
    return [run(*job, unsafe_no_sandbox=unsafe_no_sandbox) for job in jobs]


def _retried(work: Callable[[Box], Verdict], unsafe_no_sandbox: bool) -> Verdict:
    box = box_here(unsafe_no_sandbox)
    fault = ""
    for _ in range(ATTEMPTS):
        try:
            return work(box)
        except HarnessError as error:
            fault = str(error)
    return Verdict("harness_error", None, fault)


# ---- functions ----


def _judge(box: Box, source: str, language: Language, task: Mapping[str, Any], limits: Limits) -> Verdict:
    if task["kind"] == "function":
        return judge_function(box, source, task, limits)
    return judge_program(box, source, language, task, limits)


def judge_function(
    box: Box, source: str, task: Mapping[str, Any], limits: Limits, *, answers: list | None = None, **more: Any
) -> Verdict:
    """Verdict of a Python function; `more` are fields of `box.Job`.

    With `answers` nothing of the source runs: they are handed back as results. What that costs is what everything costs.
    """
    tests = task["tests"]
    wrong: list[tuple[int, str]] = []

    def compare(number: int, content: bytes) -> bool:
        if number >= len(tests):
            return False
        expected = tests[number][1]
        try:
            found = values.loads(content.decode("utf-8", "strict"))
            right = equal_values(found, expected, task["compare"], task["rtol"], task["atol"])
        except (ValueError, RecursionError):
            found, right = values.Other("not data"), False
        if not right:
            wrong.append((number, f"{values.shown(found)} instead of {values.shown(expected)}"))
        return right

    job = _function_job(source, task["entry_point"], [test[0] for test in tests], limits, answers)
    outcome = box.run(replace(job, **more), compare)
    return _function_verdict(outcome, len(tests), wrong[0] if wrong else None)


def _function_job(
    source: str, entry_point: str, calls: Sequence[Sequence[Any]], limits: Limits, answers: list | None = None
) -> Process:
    payload = {"source": _text(source), "entry_point": entry_point, "calls": [list(arguments) for arguments in calls]}
    if answers is not None:
        payload["answers"] = answers
    return Process(
        "function",
        limits.cpu_s,
        limits.wall_s,
        limits.memory_mb,
        int(limits.output_kb * 1024),
        limits.pids,
        int(limits.file_mb * MB),
        payload=values.dumps(payload).encode(),
    )


def _text(source: str) -> str:
    """Surrogates cannot be sent; a program cannot hold them either."""
    return source.encode("utf-8", "replace").decode()


def _function_verdict(outcome: Outcome, n_tests: int, wrong: tuple[int, str] | None) -> Verdict:
    done = sum(kind == b"R" for kind, _ in outcome.frames)
    ends = {kind: content.decode("utf-8", "replace") for kind, content in outcome.frames if kind != b"R"}
    at = min(done, n_tests - 1) if n_tests else None
    if b"X" in ends:
        raise HarnessError(ends[b"X"])
    stopped = _stopped(outcome)
    if stopped:
        return _verdict(outcome, stopped[0], at, stopped[1])
    if b"C" in ends:
        return _verdict(outcome, "compile_error", None, ends[b"C"])
    if wrong is not None:
        return _verdict(outcome, "wrong_answer", wrong[0], f"test {wrong[0]}: {wrong[1]}")
    if outcome.garbled:
        return _verdict(outcome, "runtime_error", at, "something else than results came where results are sent")
    if b"L" in ends:
        return _verdict(outcome, "output_limit", at, "the result is larger than allowed")
    if b"E" in ends:
        message = ends[b"E"]
        if message.startswith("MemoryError"):
            return _verdict(outcome, "memory_limit", at, message)
        return _verdict(outcome, "process_limit" if outcome.out_of_processes else "runtime_error", at, message)
    if done == n_tests and b"D" in ends:
        return _verdict(outcome, "accepted", None, "")
    ended = signal_of(outcome.status)
    message = f"ended by {ended}" if ended else "ended before the last test"
    return _verdict(outcome, "process_limit" if outcome.out_of_processes else "runtime_error", at, message)


def _stopped(outcome: Outcome) -> tuple[str, str] | None:
    """Verdict and message where a limit or the system-call filter ended the run."""
    if outcome.stopped in ("time_limit", "output_limit"):
        costs = f"{outcome.cpu_s:.2f} s of CPU, {outcome.wall_s:.2f} s"
        return outcome.stopped, costs if outcome.stopped == "time_limit" else "more output than allowed"
    if outcome.out_of_memory:
        return "memory_limit", f"{outcome.peak_mb:.0f} MB"
    if signal_of(outcome.status) == "SIGSYS":
        return "security", "a system call that no task needs"
    return None


def _verdict(outcome: Outcome, verdict: str, test: int | None, message: str) -> Verdict:
    line = " ".join(message.split())
    costs = (outcome.cpu_s, outcome.wall_s, outcome.peak_mb, outcome.tmu_mb_s, outcome.waited_s)
    return Verdict(verdict, test, line[: 3 * values.SHOWN], *costs)


# ---- programs ----


def judge_program(
    box: Box, source: str, language: Language, task: Mapping[str, Any], limits: Limits, **more: Any
) -> Verdict:
    """Verdict of a program that reads stdin and writes stdout; `more` are fields of `box.Job`."""
    started = program(box, source, language, limits)
    if isinstance(started, Verdict):
        return started
    total = Verdict("accepted")
    for number, (stdin, expected) in enumerate(task["tests"]):
        outcome = box.run(replace(started, stdin=stdin.encode("utf-8", "replace"), **more))
        verdict = _program_verdict(outcome, number)
        right = equal_outputs(outcome.stdout, expected, task["compare"], task["rtol"], task["atol"])
        if verdict.verdict == "accepted" and not right:
            message = f"test {number}: printed {_printed(outcome.stdout)} instead of {_printed(expected.encode())}"
            verdict = replace(verdict, verdict="wrong_answer", test=number, message=message)
        total = replace(
            verdict,
            cpu_s=total.cpu_s + verdict.cpu_s,
            wall_s=total.wall_s + verdict.wall_s,
            peak_mb=max(total.peak_mb, verdict.peak_mb),
            tmu_mb_s=total.tmu_mb_s + verdict.tmu_mb_s,
            waited_s=total.waited_s + verdict.waited_s,
        )
        if total.verdict != "accepted":
            break
    return total


def program(box: Box, source: str, language: Language, limits: Limits) -> Process | Verdict:
    """The job that runs a program once, compiled where needed; or the verdict compile_error."""
    common = {
        "cpu_s": limits.cpu_s,
        "wall_s": limits.wall_s,
        "memory_mb": limits.memory_mb,
        "output_bytes": int(limits.output_kb * 1024),
        "pids": limits.pids,
        "file_bytes": int(limits.file_mb * MB),
    }
    text = _text(source)
    if language.start is None:
        return Process("script", payload=values.dumps({"source": text}).encode(), **common)
    tool, name = tool_of(language.name), language.source(text)
    content, given = text.encode(), name
    if language.compile is not None:
        compiled = compile_program(box, content, language, limits)
        if isinstance(compiled, Verdict):
            return compiled
        content, name = compiled, language.artifact
    path = f"{_job_folder(box)}/{name}"
    return Process(
        "program", argv=language.start(tool, path, limits.memory_mb, given), files=[(name, content, 0o755)], **common
    )


def compile_program(box: Box, source: bytes, language: Language, limits: Limits) -> bytes | Verdict:
    """The compiled program, from the cache where the same text was compiled by the same compiler before; else a verdict."""
    tool, name = tool_of(language.name), language.source(source.decode())
    command = language.compile(tool, f"{_job_folder(box)}/{name}")
    if not box.isolation.contained:
        command = [argument.replace(PROGRAM, f"{_job_folder(box)}/made") for argument in command]
    collect = PROGRAM if box.isolation.contained else f"{_job_folder(box)}/made"
    key = hashlib.sha256("\0".join([language.name, version_of(language.name), *command]).encode() + b"\0" + source)
    cached = cache_folder() / "programs" / key.hexdigest()
    if cached.is_file():
        return cached.read_bytes()
    job = Process(
        "program",
        cpu_s=limits.compile_wall_s,
        wall_s=limits.compile_wall_s,
        memory_mb=limits.compile_memory_mb,
        output_bytes=MB,
        pids=max(64, limits.pids),
        file_bytes=64 * MB,
        argv=command,
        files=[(name, source, 0o644)],
        collect=collect,
    )
    outcome = box.run(job)
    stopped = _stopped(outcome)
    if stopped or outcome.artifact is None:
        message = stopped[1] if stopped else _printed(outcome.stderr or outcome.stdout)
        return _verdict(outcome, "compile_error", None, f"{stopped[0]}: {message}" if stopped else message)
    cached.parent.mkdir(parents=True, exist_ok=True)
    partial = cached.with_name(f"{cached.name}.{os.getpid()}.partial")
    partial.write_bytes(outcome.artifact)
    partial.replace(cached)
    return outcome.artifact


def cache_folder() -> Path:
    """Where compiled programs and measurements are kept between runs: ``METHODWORKS_CACHE``, else the user's cache folder."""
    named = os.environ.get("METHODWORKS_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "methodworks"


def _job_folder(box: Box) -> str:
    if box.isolation.contained:
        return "/job"
    if box.scratch is None:
        box.start()
    return box.scratch


def _program_verdict(outcome: Outcome, number: int) -> Verdict:
    ends = {kind: content.decode("utf-8", "replace") for kind, content in outcome.frames}
    if b"X" in ends:
        raise HarnessError(ends[b"X"])
    stopped = _stopped(outcome)
    if stopped:
        return _verdict(outcome, stopped[0], number, stopped[1])
    if b"C" in ends:
        return _verdict(outcome, "compile_error", None, ends[b"C"])
    if outcome.status != 0:
        ended = signal_of(outcome.status)
        how = f"ended by {ended}" if ended else f"exit code {os.waitstatus_to_exitcode(outcome.status or 0)}"
        message = ends.get(b"E") or f"{how}: {_printed(outcome.stderr)}"
        return _verdict(outcome, "process_limit" if outcome.out_of_processes else "runtime_error", number, message)
    return _verdict(outcome, "accepted", None, "")


def _printed(output: bytes) -> str:
    """The end of what a program said, or the begin of what it printed, on one line."""
    text = " ".join(output[:4000].decode("utf-8", "replace").split())
    return repr(text if len(text) <= values.SHOWN else f"{text[: values.SHOWN]}…") if text else "nothing"
