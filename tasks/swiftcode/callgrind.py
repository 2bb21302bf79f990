"""Instructions that a candidate executes, counted by valgrind's callgrind: slow, but the same number in every run.

Counted are the instructions of the candidate's own process in user space, from the first to the last, interpreter included;
children of the same program count, other programs that it starts do not. The log can be written by the candidate itself, so
that this cost is for programs that mean well; verdicts stay what they are.
"""

import re
import shutil
from dataclasses import replace
from typing import Any

from tasks.stage import UserError
from tasks.swiftcode.box import Box, Job
from tasks.swiftcode.isolation import python
from tasks.swiftcode.languages import language_of
from tasks.swiftcode.params import Limits
from tasks.swiftcode.sandbox import Verdict, judge_function, judge_program

SLOWER = 100  # callgrind against the plain program, at most
MORE_MB = 400  # what valgrind itself needs
LOG = "/tmp/counts"
COLLECTED = re.compile(rb"Collected\s*:\s*(\d+)")


def valgrind() -> str:
    """Path of valgrind. Raises UserError where the machine has none."""
    found = shutil.which("valgrind")
    if found is None:
        raise UserError(
            "cost instructions: there is no valgrind on this machine (Debian package valgrind); cost cpu needs none"
        )
    return found


def count_instructions(
    box: Box, source: str, language: str, task: dict[str, Any], limits: Limits, *, answers: list | None = None
) -> tuple[Verdict, int | None]:
    """Verdict and instruction count of one candidate on a task with one test; no count where it was not accepted.

    Raises:
        UserError: no valgrind, no isolation, or a language that runs on a virtual machine of its own (Java).
    """
    if language == "java":
        raise UserError("cost instructions: valgrind cannot run Java; use cost cpu for it")
    if not box.isolation.contained:
        raise UserError("cost instructions needs a machine that can isolate; use cost cpu")
    longer = limits.model_copy(
        update={
            "cpu_s": limits.cpu_s * SLOWER,
            "wall_s": limits.wall_s * SLOWER,
            "memory_mb": limits.memory_mb + MORE_MB,
        }
    )
    counted = _Counting(box)
    if task["kind"] == "function":
        verdict = judge_function(counted, source, task, longer, answers=answers)
    else:
        verdict = judge_program(counted, source, language_of(language), task, longer)
    return verdict, counted.total if verdict.verdict == "accepted" else None


class _Counting:
    """A box whose candidates run under callgrind; what compiles runs as it is."""

    def __init__(self, box: Box) -> None:
        self.box, self.isolation, self.scratch = box, box.isolation, box.scratch
        self.total = 0

    def run(self, job: Job, *on_result):
        if job.collect is not None:
            return self.box.run(job, *on_result)
        command = [valgrind(), "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--log-file={LOG}"]
        if job.kind == "program":
            argv, files = [*command, *job.argv], job.files
        else:  # the box's Python forks; under valgrind it is a program that starts anew
            argv = [*command, *python(), "/house/zygote.py", job.kind, "/job/payload", str(job.output_bytes)]
            files = [("payload", job.payload, 0o644)]
        counted = replace(job, kind="program", argv=argv, files=files, collect=LOG, results=job.kind == "function")
        outcome = self.box.run(counted, *on_result)
        self.total += sum(int(n) for n in COLLECTED.findall(outcome.artifact or b""))
        return outcome
