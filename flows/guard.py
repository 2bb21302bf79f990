"""No process outlives a run: every child carries the run's mark in its environment, and a guard clears up.

``watch()`` starts a small process that holds the read end of a pipe. When this process ends in any way, SIGKILL
included, the pipe closes and the guard ends all processes with the mark: stages, their children at any depth
(an environment is inherited across sessions and by orphans), and Prefect's temporary server.
"""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil

VARIABLE = "METHODWORKS_RUN"
GRACE_S = 2.0  # between SIGTERM, on which stages remove half-written outputs, and SIGKILL

_guard: subprocess.Popen | None = None


def watch() -> str:
    """Start the guard of this process, once; return the mark that children must carry (see ``mark``)."""
    global _guard
    if _guard is None:
        # A run inside a stage of another run extends its mark, so that the outer run can clear up both.
        os.environ[VARIABLE] = f"{os.environ.get(VARIABLE, '')}/{uuid.uuid4().hex}"
        _guard = subprocess.Popen(
            [sys.executable, "-m", "flows.guard", os.environ[VARIABLE]],
            cwd=Path(__file__).resolve().parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,  # or a reader of this process's output would wait for the guard too
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C at the terminal must not reach it
        )
    return os.environ[VARIABLE]


def kill(mark: str) -> None:
    """End all processes whose mark begins with ``mark`` (never this one): SIGTERM, after ``GRACE_S`` SIGKILL.

    DVC gets no SIGTERM: it writes dvc.lock in place, and a signal in that moment would leave the file empty. When its
    stage has ended it ends by itself.
    """
    deadline = time.monotonic() + GRACE_S
    told = set()
    while found := [p for p in psutil.process_iter() if p.pid != os.getpid() and _mark_of(p).startswith(mark)]:
        for process in found:
            try:
                if time.monotonic() > deadline:
                    process.kill()
                elif process.pid not in told and "dvc" not in process.cmdline():
                    told.add(process.pid)
                    process.terminate()
            except psutil.Error:
                pass  # it has ended in between
        time.sleep(0.05)


def _mark_of(process: psutil.Process) -> str:
    try:
        return process.environ().get(VARIABLE, "")
    except (psutil.Error, OSError):
        return ""  # somebody else's, ended, or a zombie


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()  # until the pipe closes
    kill(sys.argv[1])
