"""The filters of a data set in their order: what is left of the tasks that were read, and why the others are not."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tasks.stage import UserError
from tasks.swiftcode import folders, humaneval, ownfile, sandbox, values
from tasks.swiftcode.filters import contaminated, divide, duplicates, unfit
from tasks.swiftcode.inputs import generator_faults
from tasks.swiftcode.params import Gather
from tasks.swiftcode.recording import ReferenceFails, record_all
from tasks.swiftcode.task import SPLITS, Task


def read(parameters: Gather, path: Path) -> tuple[list[Task], list[ownfile.Unusable]]:
    """Tasks of a pool, a package or an own file, and rows that are none. Raises UserError as their readers do."""
    if parameters.source == "file":
        return ownfile.read(path)
    return (folders.read(path) if parameters.source == "pool" else humaneval.read(path)), []


class Gathering:
    """Tasks on their way through the filters; `dropped` has what was left out, by reason."""

    def __init__(self, parameters: Gather, path: Path) -> None:
        self.parameters, self.path = parameters, path
        self.tasks, unusable = read(parameters, path)
        self.read = len(self.tasks) + len(unusable)
        self.dropped: dict[str, list[dict[str, str]]] = {}
        self.solutions_dropped: list[dict[str, str]] = []
        for row in unusable:
            self._note(row.reason, row.task, row.where, row.why)

    def collect(self) -> None:
        """Apply all filters.

        Raises:
            UserError: something is to be dropped of a pool, no task is left for a split, or the sandbox fails.
        """
        self._drop((task, *fault) for task in self.tasks if (fault := unfit(task)) is not None)
        self._record()
        self._drop(
            (task, "too_few_tests", f"{len(task.tests)}; {self.parameters.min_tests} are needed")
            for task in self.tasks
            if len(task.tests) < self.parameters.min_tests
        )
        self._try_generators()
        self._validate()
        # only now, so that of equal tasks one is kept whose reference is right
        self._drop((task, "duplicate", f"of {kept.task} ({kept.where})") for task, kept in duplicates(self.tasks))
        splits = divide(self.tasks, self.parameters.test, self.parameters.seed)
        self.tasks = [replace(task, split=splits[task.task]) for task in self.tasks]
        train, test = ([task for task in self.tasks if task.split == split] for split in SPLITS)
        self._drop((task, "contaminated", f"{why} of {other.task}") for task, other, why in contaminated(train, test))
        for split in SPLITS:
            if not any(task.split == split for task in self.tasks):
                raise UserError(
                    f"{self.path}: no task is left for split {split}, of {self.read} that were read; {self._counts()}"
                )

    def _record(self) -> None:
        """Tests as data in place of tests as code."""
        waiting = [task for task in self.tasks if task.check is not None]
        recorded = record_all(waiting, self.parameters.limits, unsafe_no_sandbox=self.parameters.unsafe_no_sandbox)
        failed = [(t, "reference_fails", str(r)) for t, r in zip(waiting, recorded, strict=True) if _failed(r)]
        self.tasks = [task for task in self.tasks if task.check is None] + [r for r in recorded if not _failed(r)]
        for fault in failed:
            self._note(fault[1], fault[0].task, fault[0].where, fault[2])

    def _try_generators(self) -> None:
        """A generator that makes no input would only be noticed when costs are to be measured."""
        tried = [task for task in self.tasks if task.generator is not None]
        p = self.parameters
        faults = generator_faults(tried, p.limits, p.seed, unsafe_no_sandbox=p.unsafe_no_sandbox)
        self._drop((t, "generator_fails", why) for t, why in zip(tried, faults, strict=True) if why is not None)

    def _validate(self) -> None:
        """Judge every solution; a task whose reference fails is dropped, of others the solutions that fail."""
        pairs = [(task, solution) for task in self.tasks for solution in task.solutions]
        jobs = [
            sandbox.Job(solution.source, solution.language, task.judged(), self.parameters.limits)
            for task, solution in pairs
        ]
        unsafe = self.parameters.unsafe_no_sandbox
        verdicts = sandbox.judge_many(jobs, unsafe_no_sandbox=unsafe, description="validate solutions")
        failed: dict[str, list] = {}
        for (task, solution), found in zip(pairs, verdicts, strict=True):
            place = f"{self.path}: task {task.task}: {solution.language} solution {solution.name}"
            if found.verdict == "harness_error":
                raise UserError(f"{place}: the sandbox failed: {found.message}")
            if found.verdict != "accepted":
                if self.parameters.source == "pool":
                    raise UserError(f"{place}: {found.verdict}: {found.message}; solutions of a pool must be right")
                failed.setdefault(task.where, []).append((solution, found))
        self._drop(
            (task, "reference_fails", f"{solution.language} solution {solution.name}: {found.verdict}: {found.message}")
            for task in self.tasks
            for solution, found in failed.get(task.where, [])
            if solution in task.references()
        )
        for position, task in enumerate(self.tasks):
            wrong = [solution for solution, _ in failed.get(task.where, [])]
            for solution, found in failed.get(task.where, []):
                about = {"task": task.task, "language": solution.language, "name": solution.name}
                self.solutions_dropped.append(about | {"verdict": found.verdict, "why": found.message})
            self.tasks[position] = replace(task, solutions=tuple(s for s in task.solutions if s not in wrong))

    def _drop(self, faults: Iterable[tuple[Task, str, str]]) -> None:
        """Take tasks out and note why; what they are compared by is where they stand, as two may have one name."""
        gone = set()
        for task, reason, why in list(faults):
            if task.where not in gone:
                self._note(reason, task.task, task.where, why)
            gone.add(task.where)
        self.tasks = [task for task in self.tasks if task.where not in gone]

    def _note(self, reason: str, task: str, where: str, why: str) -> None:
        if self.parameters.source == "pool":
            raise UserError(f"{where}: {reason}: {why}; nothing of a pool may be left out")
        self.dropped.setdefault(reason, []).append({"task": task, "where": where, "why": why})

    def _counts(self) -> str:
        counts = {reason: len(tasks) for reason, tasks in sorted(self.dropped.items())}
        return "dropped: " + (", ".join(f"{n} {reason}" for reason, n in counts.items()) or "none")

    # ---- what is written ----

    def task_rows(self) -> list[dict[str, Any]]:
        """Rows of TASKS, sorted by task."""
        same = ("task", "split", "kind", "entry_point", "prompt", "compare", "rtol", "atol", "generator")
        return [
            {name: getattr(task, name) for name in same}
            | {
                "languages": task.languages(),
                "tests": values.dumps(task.tests),
                "sizes": json.dumps(dict(task.sizes), sort_keys=True),
            }
            for task in sorted(self.tasks, key=lambda task: task.task)
        ]

    def solution_rows(self) -> list[dict[str, Any]]:
        """Rows of SOLUTIONS, sorted by task, language and rank."""
        rows = []
        for task in sorted(self.tasks, key=lambda task: task.task):
            for language in task.languages():
                known = [solution for solution in task.solutions if solution.language == language]
                rows += [
                    {"task": task.task, "language": language, "name": s.name, "rank": rank, "source": s.source}
                    for rank, s in enumerate(known)
                ]
        return rows

    def report(self) -> dict[str, Any]:
        """Counts, and everything that was left out, sorted."""
        reasons = {
            reason: sorted(self.dropped[reason], key=lambda one: (one["task"], one["where"]))
            for reason in sorted(self.dropped)
        }
        left_out = sorted(self.solutions_dropped, key=lambda one: (one["task"], one["language"], one["name"]))
        return {"read": self.read, "kept": len(self.tasks), "dropped": reasons, "solutions_dropped": left_out}


def _failed(result: Task | ReferenceFails) -> bool:
    return isinstance(result, ReferenceFails)
