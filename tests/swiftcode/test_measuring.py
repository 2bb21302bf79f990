"""Measurement: net of start-up, fair to all, noise shown, resumed without measuring again; and instruction counts."""

import os
import select
import shutil
import statistics
import subprocess
import sys

import pytest

from tasks.stage import UserError
from tasks.swiftcode import machine, measuring
from tasks.swiftcode.isolation import isolation
from tasks.swiftcode.languages import is_available
from tasks.swiftcode.measuring import Program, measure_task
from tasks.swiftcode.params import Limits, Measure
from tasks.swiftcode.schemas import BASELINE

pytestmark = pytest.mark.skipif(not isolation().contained, reason=f"no isolation here: {isolation().fault}")

SUM_TO = {
    "kind": "function",
    "entry_point": "f",
    "tests": [[[3], 6], [[0], 0]],
    "compare": "exact",
    "rtol": None,
    "atol": None,
}
GENERATE = "def generate(size, seed):\n    return [size]\n"
SLOW = "def f(n):\n    total = 0\n    for i in range(n + 1):\n        total += i\n    return total\n"
FAST = "def f(n):\n    return n * (n + 1) // 2\n"
BIG = "def f(n):\n    return sum([i for i in range(n + 1)])\n"
PROGRAMS = [
    Program("python", "slow", SLOW, True),
    Program("python", "fast", FAST, False),
    Program("python", "big", BIG, False),
]


@pytest.fixture(autouse=True)
def _anew(monkeypatch, tmp_path):
    monkeypatch.setenv("METHODWORKS_CACHE", str(tmp_path))


def measured(programs=PROGRAMS, task=SUM_TO, generator=GENERATE, sizes=None, **settings):
    settings = {"target_s": 0.03, "rounds": 3, **settings}
    return measure_task(Measure(**settings), ("sum", task, generator, sizes or {"python": 20_000}, programs))


def times(rows, candidate, copy=0) -> list[float]:
    return [row["cpu_s"] for row in rows if (row["candidate"], row["copy"]) == (candidate, copy)]


def test_the_size_grows_until_the_slowest_takes_long_enough_and_all_take_turns():
    rows = measured()
    assert {row["verdict"] for row in rows} == {"accepted"}
    (size,) = {row["size"] for row in rows}
    assert size > 20_000
    assert size % 20_000 == 0
    assert max(times(rows, "slow")) >= 0.01  # .03 in the trial that ended the search, perhaps a slow one
    assert len(times(rows, "slow")) == len(times(rows, "fast")) == len(times(rows, BASELINE)) == 3
    assert len(times(rows, "slow", copy=1)) == 3  # the reference once more: what is noise
    assert statistics.median(times(rows, "slow")) > 3 * statistics.median(times(rows, "fast"))
    assert statistics.median(times(rows, BASELINE)) < 0.01  # nothing of an interpreter's start
    assert all(row["peak_mb"] > 5 for row in rows if row["candidate"] == "big")
    assert {row["machine"] for row in rows} == {machine.machine_name()}
    assert all(row["calibration"] > 0 for row in rows)
    # in a round each runs once, and rounds differ in their order
    orders = [[row["candidate"] for row in rows if row["round"] == number] for number in range(3)]
    assert all(sorted(order) == sorted(orders[0]) for order in orders)
    assert len({tuple(order) for order in orders}) > 1


def test_a_killed_run_goes_on_without_measuring_again(monkeypatch):
    first = measured()
    monkeypatch.setattr(measuring, "judge_function", None)
    assert measured() == first
    with pytest.raises(TypeError):
        measured(repetition=1)  # anew, when that is asked for


def test_a_candidate_that_is_wrong_on_the_large_input_is_no_measurement():
    wrong = Program("python", "wrong", "def f(n):\n    return sum(range(n + 1)) if n < 9 else 1\n", False)
    rows = measured([*PROGRAMS, wrong])
    (row,) = [row for row in rows if row["candidate"] == "wrong"]
    assert row["verdict"] == "wrong_answer"
    assert len(times(rows, "fast")) == 3


def test_the_size_stays_where_every_candidate_is_within_its_limits():
    square = Program("python", "square", "def f(n):\n    return sum(1 for i in range(n + 1) for j in range(i))\n", True)
    linear = Program("python", "linear", FAST, False)
    rows = measured(
        [square, linear], sizes={"python": 64}, target_s=5.0, limits=Limits(cpu_s=0.3, wall_s=5.0), rounds=1
    )
    assert {row["verdict"] for row in rows} == {"accepted"}
    assert max(times(rows, "square")) <= 0.35
    assert max(times(rows, "square")) > 0.02


def test_without_a_generator_the_tests_are_the_input():
    rows = measured(generator=None)
    assert {row["size"] for row in rows} == {0}


def test_a_generator_that_fails_leaves_the_tests():
    rows = measured(generator="def generate(size, seed):\n    raise ValueError\n")
    assert {row["size"] for row in rows} == {0}


STDIO = {
    "kind": "stdio",
    "entry_point": None,
    "tests": [["3\n", "6\n"]],
    "compare": "tokens",
    "rtol": None,
    "atol": None,
}
LINES = "def generate(size, seed):\n    return f'{size}\\n'\n"
PRINTS = "print(sum(range(int(input()) + 1)))\n"


def test_programs_are_measured_too_and_the_baseline_is_an_empty_program():
    programs = [Program("python", "sum", PRINTS, True)]
    if is_available("cpp"):
        loop = "#include <iostream>\nint main() { long n, s = 0; std::cin >> n; for (long i = 1; i <= n; i++) s += i ^ (s & 1) ^ (s & 1); std::cout << s; }\n"
        programs.append(Program("cpp", "loop", loop, True))
    rows = measured(programs, task=STDIO, generator=LINES, sizes={"python": 500_000, "cpp": 10_000_000})
    assert {row["verdict"] for row in rows} == {"accepted"}
    for language in {program.language for program in programs}:
        group = [row for row in rows if row["language"] == language]
        assert len(times(group, BASELINE)) == 3
        name = "sum" if language == "python" else "loop"
        assert min(times(group, name)) > max(times(group, BASELINE))


def test_cpu_time_of_children_counts():
    source = """
import os
def f(n):
    if os.fork() == 0:
        total = sum(i * i for i in range(n))
        os._exit(0)
    os.wait()
    return n * (n + 1) // 2
"""
    rows = measured(
        [PROGRAMS[1]._replace(reference=True), Program("python", "hides", source, False)], sizes={"python": 500_000}
    )
    assert min(times(rows, "hides")) > 0.01


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind on this machine")
def test_instruction_counts_are_the_same_in_every_run(monkeypatch, tmp_path):
    first = measured(PROGRAMS[:2], cost="instructions", sizes={"python": 80_000})
    monkeypatch.setenv("METHODWORKS_CACHE", str(tmp_path / "other"))
    second = measured(PROGRAMS[:1], cost="instructions", sizes={"python": 80_000})
    counts, again = ({(r["candidate"], r["copy"]): r["instructions"] for r in rows} for rows in (first, second))
    assert again == {key: counts[key] for key in again}
    assert counts["slow", 0] == counts["slow", 1]  # the same code, at another time of the round
    base = counts[BASELINE, 0]
    assert counts["slow", 0] - base > 10 * (counts["fast", 0] - base) > 0
    assert {row["size"] for row in first} == {10_000}  # an eighth
    assert len(first) == 4  # one round


@pytest.mark.skipif(shutil.which("valgrind") is None or not is_available("cpp"), reason="no valgrind or compiler")
def test_instructions_of_programs(monkeypatch):
    loop = '#include <cstdio>\nint main() { long n, s = 0; scanf("%ld", &n); for (volatile long i = 1; i <= n; i++) s += i; printf("%ld", s); }\n'
    rows = measured(
        [Program("cpp", "loop", loop, True)], task=STDIO, generator=LINES, sizes={"cpp": 80_000}, cost="instructions"
    )
    counts = {row["candidate"]: row["instructions"] for row in rows}
    assert 10_000 * 4 < counts["loop"] - counts[BASELINE] < 10_000 * 40


def test_instructions_need_valgrind(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(UserError, match="there is no valgrind on this machine"):
        measured(PROGRAMS[:2], cost="instructions")


def test_every_measuring_process_has_a_core_of_its_own(tmp_path):
    cores = sorted(os.sched_getaffinity(0))[:2]
    code = "from tasks.swiftcode.machine import reserve_core; print(reserve_core(), flush=True); input()"
    started = [
        subprocess.Popen(
            ["taskset", "-c", ",".join(map(str, cores)), sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(len(cores) + 1)
    ]
    try:
        first, waiting = [], list(started)
        while len(first) < len(cores):
            ready, _, _ = select.select([process.stdout for process in waiting], [], [], 60)
            assert ready
            for process in [process for process in waiting if process.stdout in ready]:
                first.append(int(process.stdout.readline()))
                waiting.remove(process)
        assert sorted(first) == cores
        (last,) = waiting
        assert not select.select([last.stdout], [], [], 0.5)[0]  # no core is left
        ended = next(process for process in started if process is not last)
        ended.communicate("\n")
        assert int(last.stdout.readline()) in cores  # now there is one
    finally:
        for process in started:
            process.kill()
            process.wait()
