"""Costs of the correct candidates of one task: the same large input for all, fresh processes, candidates taking turns.

Each run is a process of its own on a reserved core. In a round every candidate runs once, in random order; so do the
baseline, a program that does nothing (of a function: one that hands back the right answers, which it was given), whose
cost is subtracted later, and one candidate a second time under another name, which shows how much is noise.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from tasks.stage import random_generator
from tasks.swiftcode import sandbox, values
from tasks.swiftcode.box import Box, HarnessError
from tasks.swiftcode.callgrind import count_instructions
from tasks.swiftcode.languages import language_of
from tasks.swiftcode.ledger import Ledger
from tasks.swiftcode.machine import calibrate, machine_name, reserve_core
from tasks.swiftcode.params import Measure
from tasks.swiftcode.sandbox import (
    CallError,
    Verdict,
    box_here,
    cache_folder,
    call,
    judge_function,
    judge_program,
)
from tasks.swiftcode.schemas import BASELINE

POLL_S = 0.005  # memory is sampled so often for its integral
LARGEST_INPUT = 8 << 20  # characters; a larger input costs more to hand over than to work on
EMPTY = {
    "python": "",
    "cpp": "int main() {}\n",
    "javascript": "",
    "java": "public class Main { public static void main(String[] a) {} }\n",
    "rust": "fn main() {}\n",
}
HEADROOM = 3  # limit over the time of a trial: a run in a bad moment takes longer
SMALLER = 8  # instructions are counted on inputs so many times smaller: valgrind is slow


class Program(NamedTuple):
    """One correct candidate; `reference`: the task's known solution, whose answer on the large input is taken as right."""

    language: str
    candidate: str
    source: str
    reference: bool


@dataclass(frozen=True)
class Input:
    """An input of a task at some size, as a task with one test; the expected answer is the reference's."""

    size: int
    task: dict[str, Any]


def measure_task(
    measure: Measure, block: tuple[str, dict[str, Any], str | None, dict[str, int], list[Program]]
) -> list[dict]:
    """Rows of MEASUREMENTS of a task: (name, task as `sandbox.run` takes it, generator's source, sizes, programs)."""
    name, task, generator, sizes, programs = block
    about = [
        "measurements",
        name,
        values.dumps(task),
        generator,
        sizes,
        measure.model_dump(exclude={"unsafe_no_sandbox"}),
        machine_name(),
    ]
    kept = Ledger(cache_folder() / "measurements", about)
    rows = []
    for language in sorted({program.language for program in programs}):
        group = sorted(program for program in programs if program.language == language)
        key = [list(program) for program in group]
        known = kept.get(key)
        if known is None:
            known = _Group(measure, name, task, generator, sizes.get(language, 1), group).rows()
            kept.put(key, known)
        rows += known
    return rows


class _Group:
    """The candidates of one task in one language."""

    def __init__(
        self,
        measure: Measure,
        name: str,
        task: dict[str, Any],
        generator: str | None,
        size: int,
        programs: Sequence[Program],
    ) -> None:
        self.measure, self.name, self.task, self.generator = measure, name, task, generator
        self.language, self.programs = programs[0].language, programs
        self.box: Box = box_here(measure.unsafe_no_sandbox)
        self.core = reserve_core()
        self.limits = measure.limits
        self.size = max(1, size // SMALLER) if measure.cost == "instructions" else size

    def rows(self) -> list[dict]:
        calibration = self._tried(lambda: calibrate(self.box, self.core))
        used, trials = self._input()
        good = [p for p in self.programs if trials[p.candidate].verdict == "accepted"]
        rows = [
            self._row(program, 0, 0, used.size, trials[program.candidate], None, calibration)
            for program in self.programs
            if program not in good
        ]
        if not good:
            return rows
        twin = min(good, key=lambda p: (not p.reference, p.candidate))
        runs = [(p, 0) for p in good] + [(twin, 1)]
        runs.append((Program(self.language, BASELINE, EMPTY[self.language], False), 0))
        for number in range(self.measure.rounds if self.measure.cost == "cpu" else 1):
            order = random_generator(self.measure.seed, self.name, self.language, number).permutation(len(runs))
            for place in order:
                program, copy = runs[place]
                verdict, count = self._run(program, used)
                rows.append(self._row(program, copy, number, used.size, verdict, count, calibration))
        return rows

    def _input(self) -> tuple[Input, dict[str, Verdict]]:
        """The input on which the slowest candidate takes about as long as wanted, and one trial of each candidate on it.

        The size doubles until then, as long as every candidate stays within the limits; of instructions it is not searched
        for, because times would decide it.
        """
        if self.generator is None:
            used = Input(0, self.task)
            return used, self._trials(used)
        size, best = self.size, None
        for _ in range(self.measure.max_doublings + 1):
            used = self._at(size)
            if used is None:
                break
            trials = self._trials(used)
            slowest = max(v.cpu_s for v in trials.values())
            failed = any(v.verdict != "accepted" for v in trials.values())
            if best is not None and (failed or slowest > self.limits.cpu_s / HEADROOM):
                break  # one size too far
            best = used, trials
            if slowest >= self.measure.target_s or self.measure.cost == "instructions":
                break
            size *= 2
        if best is None:  # the task's own tests are all there is
            used = Input(0, self.task)
            return used, self._trials(used)
        return best

    def _at(self, size: int) -> Input | None:
        """The task at a size; None where generator or reference can make none of that size within the limits."""
        try:
            made = call(self.generator, "generate", [[size, self.measure.seed]], self.limits, **self._unsafe)[0]
        except CallError:
            return None
        if len(values.dumps(made)) > LARGEST_INPUT:
            return None
        test = [list(made) if isinstance(made, tuple) else made, None]
        if self.task["kind"] == "stdio" and not isinstance(made, str):
            return None
        reference = next((p for p in self.programs if p.reference), self.programs[0])
        found = self._answer(reference, test[0])
        if found is None:
            return None
        return Input(size, {**self.task, "tests": [[test[0], found[0]]]})

    @property
    def _unsafe(self) -> dict[str, bool]:
        return {"unsafe_no_sandbox": self.measure.unsafe_no_sandbox}

    def _answer(self, known: Program, given: Any) -> list | None:
        """[what a program gives for an input]; None where it gives nothing within the limits."""
        if self.task["kind"] == "function":
            try:
                return call(known.source, self.task["entry_point"], [given], self.limits, **self._unsafe)
            except CallError:
                return None

        def once() -> list | None:
            job = sandbox.program(self.box, known.source, language_of(self.language), self.limits)
            if isinstance(job, Verdict):
                return None
            outcome = self.box.run(replace(job, stdin=given.encode()))
            if outcome.stopped or outcome.status != 0 or outcome.out_of_memory:
                return None
            return [outcome.stdout.decode("utf-8", "replace")]

        return self._tried(once)

    def _trials(self, used: Input) -> dict[str, Verdict]:
        return {program.candidate: self._judge(program, used) for program in self.programs}

    def _judge(self, program: Program, used: Input) -> Verdict:
        task, answers = self._asked(program, used)
        how = {"core": self.core, "poll_s": POLL_S}
        if task["kind"] == "function":
            return self._tried(
                lambda: judge_function(self.box, program.source, task, self.limits, answers=answers, **how)
            )
        language = language_of(self.language)
        return self._tried(lambda: judge_program(self.box, program.source, language, task, self.limits, **how))

    def _run(self, program: Program, used: Input) -> tuple[Verdict, int | None]:
        if self.measure.cost == "cpu":
            return self._judge(program, used), None
        task, answers = self._asked(program, used)
        return self._tried(
            lambda: count_instructions(self.box, program.source, self.language, task, self.limits, answers=answers)
        )

    def _asked(self, program: Program, used: Input) -> tuple[dict[str, Any], list | None]:
        """The task for a program and, where that is the baseline, what it hands back or prints: the answers, or nothing."""
        if program.candidate != BASELINE:
            return used.task, None
        if self.task["kind"] == "function":
            return used.task, [answer for _, answer in used.task["tests"]]
        return {**used.task, "tests": [[given, ""] for given, _ in used.task["tests"]]}, None

    def _tried(self, work):
        """`work`, again where the box failed."""
        for attempt in range(3):
            try:
                return work()
            except HarnessError:
                if attempt == 2:
                    raise

    def _row(
        self,
        program: Program,
        copy: int,
        number: int,
        size: int,
        verdict: Verdict,
        count: int | None,
        calibration: float,
    ) -> dict:
        costs = {
            k: v
            for k, v in asdict(verdict).items()
            if k in ("verdict", "cpu_s", "wall_s", "peak_mb", "tmu_mb_s", "waited_s")
        }
        return {
            "task": self.name,
            "language": self.language,
            "candidate": program.candidate,
            "copy": copy,
            "round": number,
            "size": size,
            **costs,
            "instructions": count,
            "calibration": calibration,
            "machine": machine_name(),
        }
