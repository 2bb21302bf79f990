"""Ways to run one candidate after the other on its tests, as a process of its own that can be timed as a whole.

``python -m tests.bench.swiftcode_peers SCHEME JOBS.json WORKERS``; JOBS are [source, entry_point, tests as `values` text,
compare, atol]. Prints how many passed. The peers are written here from how those systems work; only ours and bubblewrap
decide outside the candidate's process and isolate it from the host.
"""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tasks.swiftcode import values
from tasks.swiftcode.comparison import equal_values

LIMITS = {"cpu_s": 10.0, "wall_s": 60.0, "memory_mb": 512}
RUNNER = """
import json, sys
payload = json.load(sys.stdin)
scope = {"__name__": "candidate"}
exec(payload["source"], scope)
sys.path.insert(0, payload["house"])
import values
tests = values.loads(payload["tests"])
results = [scope[payload["entry_point"]](*arguments) for arguments, _ in tests]
sys.stdout.write(values.dumps(results))
"""


def ours(jobs: list, workers: int) -> int:
    """A zygote in a box for each worker; what `judge_many` does."""
    from tasks.swiftcode.sandbox import Job, judge_many

    tasks = [
        {"kind": "function", "entry_point": name, "tests": values.loads(tests), "compare": compare, "atol": atol}
        for _, name, tests, compare, atol in jobs
    ]
    made = [Job(job[0], "python", task, LIMITS) for job, task in zip(jobs, tasks, strict=True)]
    return sum(verdict.verdict == "accepted" for verdict in judge_many(made, workers=workers))


def forked(jobs: list, workers: int) -> int:
    """A forked process and shared memory for each candidate, compared in the candidate's process; no isolation (evalplus)."""
    context = multiprocessing.get_context("fork")
    passed = 0
    for job in jobs:
        flag, details = context.Value("i", 0), context.Array("b", 200)
        process = context.Process(target=_in_process, args=(job, flag, details))
        process.start()
        process.join(timeout=60)
        if process.is_alive():
            process.kill()
        passed += flag.value
    return passed


def _in_process(job: list, flag, details) -> None:
    import resource
    import signal

    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        signal.setitimer(signal.ITIMER_REAL, 60)
        source, name, tests, compare, atol = job
        scope: dict = {}
        exec(source, scope)
        for place, (arguments, expected) in enumerate(values.loads(tests)):
            if not equal_values(scope[name](*arguments), expected, compare, atol=atol or 0.0):
                return
            details[place] = 1
        flag.value = 1
        os.chdir("/")


def fresh(jobs: list, workers: int) -> int:
    """A new interpreter for each candidate; no isolation."""
    return _fresh(jobs, [])


def bubblewrap(jobs: list, workers: int) -> int:
    """A new bubblewrap with a new interpreter for each candidate."""
    from tasks.swiftcode.isolation import command_line, isolation

    found = isolation()
    return _fresh(jobs, command_line(found.bubblewrap, found.root))


def _fresh(jobs: list, box: list[str]) -> int:
    from tasks.swiftcode.languages import tool_of

    house = "/house" if box else str(Path(values.__file__).parent)
    passed = 0
    for source, name, tests, compare, atol in jobs:
        payload = json.dumps({"source": source, "entry_point": name, "tests": tests, "house": house})
        command = [*box, tool_of("python"), "-I", "-S", "-c", RUNNER]
        done = subprocess.run(command, input=payload, capture_output=True, text=True, timeout=60)
        found = values.loads(done.stdout) if done.returncode == 0 else []
        wanted = values.loads(tests)
        passed += len(found) == len(wanted) and all(
            equal_values(value, expected, compare, atol=atol or 0.0)
            for value, (_, expected) in zip(found, wanted, strict=True)
        )
    return passed


SCHEMES: dict[str, Callable[[list, int], int]] = {
    "ours": ours,
    "forked": forked,
    "fresh": fresh,
    "bubblewrap": bubblewrap,
}

if __name__ == "__main__":
    scheme, path, workers = sys.argv[1:]
    print(SCHEMES[scheme](json.loads(Path(path).read_text()), int(workers)))
