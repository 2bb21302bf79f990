"""What all benchmarks share: CPU seconds, memory, rows with bounds, the default run of a method, the file of results."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tasks  # noqa: F401  (one BLAS thread and one kernel baseline, before numpy and torch)

ROOT = Path(__file__).resolve().parents[2]


def cpu_seconds(function: Callable[[], object], runs: int = 5) -> float:
    """Smallest CPU time of several runs, after one that is not counted."""
    function()
    best = float("inf")
    for _ in range(runs):
        begin = time.process_time()
        function()
        best = min(best, time.process_time() - begin)
    return best


def reset_peak() -> None:
    """Let VmHWM of this process count from here."""
    Path("/proc/self/clear_refs").write_text("5")


def memory_mb(field: str) -> float:
    """Of this process; not ru_maxrss, which a child takes over from its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def pipeline(method: str, bound: float) -> list[dict]:
    """The default run in a fresh clone: CPU of plain `dvc repro`, a second run, and the flow with two workers."""
    from tests.e2e.conftest import project_copy

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        clone = project_copy(Path(folder) / "plain")
        clone.run("dvc", "--wait-for-lock", "repro", "-q", method)  # compiles; not counted
        plain, cpu = timed(clone, "dvc", "--wait-for-lock", "repro", "-q", "--force", method)
        again, _ = timed(clone, "dvc", "--wait-for-lock", "repro", "-q", method)
        flow, _ = timed(clone, f"flows.{method}", "--workers", "2", "--force")
        rows.append(row(f"dvc repro {method}, defaults", cpu, "CPU s", bound))
        rows.append(row("  second run, nothing to do", again, "s", 3))
        rows.append(row("  wall time of plain dvc repro", plain, "s"))
        rows.append(row("  flow with 2 workers, with Prefect's start, / plain dvc repro", flow / plain, "×", 1))
        changed = clone.git("status", "--porcelain")
        rows.append(row("  tracked files changed by the three runs", len(changed.splitlines()), "files", 0.5))
    return rows


def timed(clone, *command: str, **environment: str) -> tuple[float, float]:
    """(wall seconds, CPU seconds of the process and all that it waited for)."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    clone.run(*command, **environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - begin, cpu


def row(name: str, value: float, unit: str, bound: float | None = None) -> dict:
    """One line of the table. `bound`: at most this, or at least −bound where it is negative."""
    value = float(value)
    met = None if bound is None else value >= -bound if bound < 0 else value <= bound
    wanted = "" if bound is None else f"{'≥' if bound < 0 else '≤'} {abs(bound):g}"
    print(
        f"{name:<75} {value:>10.3g} {unit:<6} {wanted:<8} {'' if met is None else 'met' if met else 'MISSED'}",
        flush=True,
    )
    return {"name": name.strip(), "value": float(f"{value:.3g}"), "unit": unit, "wanted": wanted, "met": met}


def write(method: str, rows: list[dict]) -> None:
    """Write ``reports/<method>/benchmark.json`` and exit: 1 where a bound is missed."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    result = {"machine": f"{cpu}, {os.cpu_count()} CPUs", "commit": commit.stdout.strip(), "rows": rows}
    out = ROOT / f"reports/{method}/benchmark.json"
    out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.exit(any(r["met"] is False for r in rows))
