"""Speed of SwiftCode's sandbox, sampling and default run: ``make bench METHOD=swiftcode``.

CPU seconds of all processes; peers run in turn with ours in the same run, so that a machine that slows down slows all. Writes
``reports/swiftcode/benchmark.json``; a bound that is missed is printed as MISSED, exit 1.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.measure import ROOT, row, write
from tests.bench.measure import timed as timed_run

import numpy as np  # isort: skip
import pandas as pd  # isort: skip

from tasks.stage import load_parameters
from tasks.swiftcode import humaneval, values
from tasks.swiftcode.candidates import read_samples
from tasks.swiftcode.estimates import costs
from tasks.swiftcode.params import Limits, Select
from tasks.swiftcode.recording import record_all
from tasks.swiftcode.schemas import BASELINE, MEASUREMENTS, SELECTION
from tasks.swiftcode.selection import tied_times
from tasks.tables import read_table
from tests.bench import swiftcode_lm
from tests.e2e.conftest import project_copy

ROUNDS, COPIES = 3, 2  # of the 164 programs
POOL = ROOT / "data/swiftcode/pool"


def humaneval_jobs(folder: Path) -> list[list]:
    """HumanEval's canonical solutions with their recorded tests."""
    subprocess.run(
        [sys.executable, "-m", "tasks.swiftcode.fetch", "human-eval", "--out", str(folder / "human-eval")],
        check=True,
        cwd=ROOT,
    )
    tasks = record_all(humaneval.read(folder / "human-eval"), Limits())
    return [
        [task.references()[0].source, task.entry_point, values.dumps(task.tests), task.compare, task.atol]
        for task in tasks
    ]


def timed(scheme: str, file: Path, workers: int = 1) -> tuple[float, float, int]:
    """(CPU seconds of all processes, wall seconds, candidates that passed)."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "tests.bench.swiftcode_peers", scheme, str(file), str(workers)]
    done = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.monotonic() - begin, int(done.stdout)


def correctness() -> list[dict]:
    """HumanEval's canonical solutions, judged in different ways; what starting costs (one job) is taken off."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs = humaneval_jobs(folder)
        many, one = folder / "many.json", folder / "one.json"
        many.write_text(json.dumps(jobs * COPIES))
        one.write_text(json.dumps(jobs[:1]))
        count = len(jobs) * COPIES - 1
        spent: dict[str, list[float]] = {}
        for _ in range(ROUNDS):
            for scheme in ("ours", "forked", "fresh", "bubblewrap"):
                cpu, _, passed = timed(scheme, many)
                if passed != len(jobs) * COPIES:
                    raise SystemExit(f"{scheme}: {passed} of {len(jobs) * COPIES} canonical solutions passed")
                spent.setdefault(scheme, []).append((cpu - timed(scheme, one)[0]) / count * 1000)
        best = {scheme: min(found) for scheme, found in spent.items()}
        rows.append(row("HumanEval canonical, isolated from the host, a candidate", best["ours"], "ms CPU", 9))
        rows.append(row("  a forked process each, no isolation (evalplus) / ours", best["forked"] / best["ours"], "×"))
        rows.append(row("  a new interpreter each, no isolation / ours", best["fresh"] / best["ours"], "×"))
        rows.append(row("  a new bubblewrap each / ours", best["bubblewrap"] / best["ours"], "×", -3))
        rows.append(workers(folder, jobs))
    return rows


def workers(folder: Path, jobs: list) -> dict:
    """Candidates a second with two workers against one, starting taken off; of some rounds the best of each."""
    many, one = folder / "more.json", folder / "two.json"
    many.write_text(json.dumps(jobs * 6))
    one.write_text(json.dumps(jobs[:32]))
    rates: dict[int, float] = {1: 0.0, 2: 0.0}
    for _ in range(ROUNDS):
        for n in rates:
            seconds = timed("ours", many, n)[1] - timed("ours", one, n)[1]
            rates[n] = max(rates[n], (len(jobs) * 6 - 32) / seconds)
    return row("  two workers / one worker, candidates a second", rates[2] / rates[1], "×", -1.8)


def selection() -> list[dict]:
    """Of the default run's measurements: is the fast solution chosen, and is the same program twice a tie?

    Solutions of the pool are listed from slow to fast. Groups (task, language) count where the last is measured at least 1.3
    times as fast as the one before; chosen must be that one, or a model's program that is tied with it.
    """
    chosen = read_table(POOL / "selection.parquet", SELECTION)
    samples = read_samples([POOL / "samples.parquet"])
    known = samples[samples["generator"] == "pool"].sort_values("sample")
    groups = right = 0
    for (task, language), part in known.groupby(["task", "language"]):
        group = chosen[(chosen["task"] == task) & (chosen["language"] == language)].set_index("candidate")
        listed = [name for name in part["candidate"] if name in group.index]
        if len(listed) < 2 or group.loc[listed[-2], "time"] < 1.3 * group.loc[listed[-1], "time"]:
            continue
        groups += 1
        right += bool(group.loc[group["selected"], "time"].min() <= 1.05 * group.loc[listed[-1], "time"])
    rows = [row("gap of 1.3 or more among known solutions: the fast one is chosen", right / groups, "share", -1)]
    rows.append(row("  task and language groups of that kind", groups, "groups"))
    tables = [read_table(POOL / f"measurements/{split}.parquet", MEASUREMENTS) for split in ("train", "test")]
    ties = [same_is_tied(group) for table in tables for _, group in table.groupby(["task", "language"], observed=True)]
    rows.append(row("same program measured twice: a tie by the rule of selection", np.mean(ties), "share", -0.95))
    return rows


def same_is_tied(group: pd.DataFrame) -> bool:
    """Whether the two copies of the group's twice measured program would be tied if they were two candidates."""
    twin = group.loc[group["copy"] == 1, "candidate"].iloc[0]
    part = group[group["candidate"].isin([twin, BASELINE])].astype({"candidate": "str"}).copy()
    part.loc[part["copy"] == 1, "candidate"] = f"{twin}-again"
    part["copy"] = 0
    settings = load_parameters("swiftcode.select", Select, ROOT / "params.yaml")
    found = costs(part, seed=settings.seed, n_resamples=settings.n_resamples, confidence=settings.confidence)
    return bool(tied_times(found, settings).all())


def default_run() -> list[dict]:
    """CPU of `dvc repro swiftcode` in a fresh clone with an empty cache of programs and measurements, and a second run."""
    with tempfile.TemporaryDirectory() as folder:
        clone = project_copy(Path(folder) / "plain")
        run = ("dvc", "--wait-for-lock", "repro", "-q", "swiftcode")
        (wall, cpu), (again, _) = (timed_run(clone, *run, METHODWORKS_CACHE=f"{folder}/cache") for _ in range(2))
    return [
        row("dvc repro swiftcode, defaults", cpu, "CPU s", 900),
        row("  wall time", wall, "s"),
        row("  second run, nothing to do", again, "s", 3),
    ]


def main(quick: bool) -> None:
    rows = correctness()
    if (POOL / "base").is_dir():
        rows += swiftcode_lm.rows(POOL / "base")
    if (POOL / "selection.parquet").is_file():
        rows += selection()
    if not quick:
        rows += default_run()
    write("swiftcode", rows)


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
