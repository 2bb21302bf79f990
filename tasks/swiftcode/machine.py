"""The machine that measures: its fingerprint, how fast it is just now, and cores that no other measurement uses."""

import fcntl
import functools
import os
import platform
import time
from pathlib import Path

from tasks.swiftcode.box import Box, HarnessError
from tasks.swiftcode.isolation import isolation
from tasks.swiftcode.languages import LANGUAGES, is_available, version_of
from tasks.swiftcode.ledger import digest
from tasks.swiftcode.params import Limits
from tasks.swiftcode.sandbox import cache_folder, judge_function

# Integer arithmetic and memory, as programs use them.
KERNEL = """
def kernel(n):
    table, state = [0] * 4096, 1
    for i in range(n):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        table[state & 4095] += i
    return sum(table) & 1023
"""
ROUNDS = 100_000
REFERENCE_S = 0.0140  # of this kernel on the machine for which the default limits were chosen
_held: list = []  # the lock of this process's core, as long as the process lives


@functools.cache
def fingerprint() -> str:
    """16 hex digits: processor, number of cores, kernel, isolation and runtimes. Times of different ones are not compared."""
    return digest(description())[:16]


@functools.cache
def description() -> dict[str, str]:
    """What `fingerprint` is made of, for people."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "isolation": isolation().said,
        **{name: version_of(name) for name in LANGUAGES if is_available(name)},
    }


def machine_name() -> str:
    """The machine as measurements name it: its fingerprint, and the processor and system for people."""
    found = description()
    return f"{fingerprint()} ({found['processor']}, {found['cores']} cores, {found['system']})"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def calibrate(box: Box, core: int | None = None) -> float:
    """CPU seconds of `KERNEL` in the box, in units of `REFERENCE_S`: the median of three runs."""
    task = {"tests": [[[ROUNDS], 0]], "entry_point": "kernel", "compare": "exact", "rtol": 0.0, "atol": 0.0}
    limits = Limits(cpu_s=60.0, wall_s=600.0)
    times = []
    for _ in range(3):
        verdict = judge_function(box, KERNEL, task, limits, core=core)
        if verdict.verdict not in ("accepted", "wrong_answer"):
            raise HarnessError(f"the calibration kernel: {verdict.verdict}: {verdict.message}")
        times.append(verdict.cpu_s)
    return sorted(times)[1] / REFERENCE_S


def reserve_core() -> int:
    """A core that no other measuring process has, kept until this process ends; waits where all are taken."""
    if _held:
        return _held[0][0]
    cores = sorted(os.sched_getaffinity(0), reverse=True)  # core 0 serves most interrupts
    folder = cache_folder() / "cores"
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        for core in cores:
            file = (folder / str(core)).open("w")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                continue
            _held.append((core, file))
            return core
        time.sleep(0.1)
