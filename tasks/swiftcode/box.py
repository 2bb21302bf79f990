"""The supervisor's side of a box: starts it once, hands it jobs, watches limits from outside, reads what comes out.

A box is one bubblewrap with a small Python process (`zygote`) that forks a process for each candidate: the walls towards the
host are built once, and the candidates after each other find an empty box. A box is thrown away after `JOBS` jobs, when a
candidate left anything behind, and at any doubt.
"""

import itertools
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tasks.stage import UserError
from tasks.swiftcode import seccomp
from tasks.swiftcode.cgroups import Group, places
from tasks.swiftcode.isolation import CLEAN, HERE, command_line, python, require, site_folders
from tasks.swiftcode.languages import ENVIRONMENT

JOBS = 500
POLL_S = 0.02
START_S = 30.0  # until a candidate's process runs; longer is a fault of the machine
KILL_S = 10.0  # until all of a candidate is dead
PATIENCE = 3.0  # a candidate that waits for a core gets at most so many times its seconds
PIECE = 1 << 16
TAIL = 2000  # bytes of messages that are kept where the output is not asked for


class HarnessError(UserError):
    """The box or the machine failed, not the candidate: for the user to mend."""


@dataclass(frozen=True)
class Job:
    """One process to run. `kind`: function or script (in the box's Python; `payload`), or program (`argv`).

    `files` are laid into the box's /job before; `stdin` is the standard input; `collect` a path whose content comes back;
    a program with `results` gets the descriptor on which results are sent.
    Seconds are a test: the budget begins anew with each result of a function, and `results` is how many are expected.
    """

    kind: str
    cpu_s: float
    wall_s: float
    memory_mb: float
    output_bytes: int
    pids: int
    file_bytes: int
    payload: bytes = b""
    argv: Sequence[str] = ()
    files: Sequence[tuple[str, bytes, int]] = ()
    stdin: bytes = b""
    collect: str | None = None
    results: bool = False
    core: int | None = None
    poll_s: float = POLL_S


@dataclass
class Outcome:
    """What was seen of a job. `stopped`: why the supervisor ended it (time_limit, output_limit, result), else None.

    `frames`: (kind, content) of messages since the start; `status` as waitpid gives it, None where it was killed.
    Costs are of all processes of the job together, from the start of the candidate to the death of the last.
    """

    stopped: str | None = None
    frames: list[tuple[bytes, bytes]] = field(default_factory=list)
    garbled: bool = False
    status: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    artifact: bytes | None = None
    out_of_memory: bool = False
    out_of_processes: bool = False
    cpu_s: float = 0.0
    wall_s: float = 0.0
    waited_s: float = 0.0
    peak_mb: float = 0.0
    tmu_mb_s: float = 0.0


class Box:
    """One box; not for several threads at once. Use as a context manager, or call `close`."""

    def __init__(self, *, unsafe_no_sandbox: bool = False) -> None:
        self.isolation = require(unsafe_no_sandbox)
        self.process: subprocess.Popen | None = None
        self.control: socket.socket | None = None
        self.scratch: str | None = None
        self.jobs = 0

    def __enter__(self) -> "Box":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the box and everything in it."""
        if self.control is not None:
            self.control.close()  # the zygote then kills what is left and ends
            self.control = None
        if self.process is not None:
            try:
                self.process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                self.process.kill()  # what it is the parent of dies with it, and so the whole namespace
                self.process.wait()
            self.process = None
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)
            self.scratch = None
        self.jobs = 0

    def run(self, job: Job, on_result: Callable[[int, bytes], bool] = lambda *_: True) -> Outcome:
        """Run one job. `on_result(number, content)` sees each result as it comes; False from it ends the job.

        Raises:
            HarnessError: the box could not be started or did not answer; nothing can be said of the candidate.
        """
        if self.jobs >= JOBS:
            self.close()
        if self.process is None:
            self.start()
        self.jobs += 1
        try:
            outcome, clean = self._run(job, on_result)
        except (OSError, ValueError, KeyError, struct.error) as error:
            self.close()
            raise HarnessError(f"{type(error).__name__}: {error}") from None
        except BaseException:
            self.close()
            raise
        if not clean:
            self.close()
        return outcome

    def start(self) -> None:
        """Build the box now; `run` does so by itself. Raises HarnessError where it cannot be built."""
        contained = self.isolation.contained
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        theirs_fd = theirs.fileno()
        if contained:
            command = [*command_line(self.isolation.bubblewrap, self.isolation.root), *python(), "/house/zygote.py"]
            paths = {"job": "/job", "home": "/tmp", "clean": CLEAN, "site": ["/site"] if site_folders() else []}
        else:
            self.scratch = tempfile.mkdtemp(prefix="methodworks-")
            command = [*python(), str(HERE / "zygote.py")]
            paths = {"job": self.scratch, "home": self.scratch, "clean": (self.scratch,), "site": [str(HERE)]}
        self.process = subprocess.Popen(
            [*command, "serve", str(theirs_fd)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[theirs_fd],
            env=ENVIRONMENT if not contained else {},
            start_new_session=True,
        )
        theirs.close()
        self.control = ours
        ours.settimeout(START_S)
        filtered = seccomp.program() if contained else None
        settings = {
            **paths,
            "contained": contained,
            "drop": contained and self.isolation.root,
            "filter": filtered.hex() if filtered else None,
            "environment": ENVIRONMENT,
        }
        try:
            ours.send(json.dumps(settings).encode())
            if ours.recv(64) != b"ready":
                raise OSError("it ended at once")
        except OSError as error:
            self.process.kill()
            said = self.process.stderr.read(PIECE).decode("utf-8", "replace").strip()
            self.close()
            raise HarnessError(f"the box did not start: {said.splitlines()[-1] if said else error}") from None
        finally:
            if self.process is not None:
                self.process.stderr.close()

    def _run(self, job: Job, on_result: Callable[[int, bytes], bool]) -> tuple[Outcome, bool]:
        group = Group(job.memory_mb, job.pids)
        fds: list[int] = []
        reading: dict[str, int] = {}
        try:
            held = _memory_file(job.stdin) if job.stdin else os.open(os.devnull, os.O_RDONLY)
            fds.append(held)
            for name in ("stdout", "stderr", "results"):
                read, write = os.pipe()
                os.set_blocking(read, False)
                reading[name] = read
                fds.append(write)
            fds.append(_memory_file(job.payload))
            files = []
            for name, content, mode in job.files:
                files.append((name, len(fds), mode))
                fds.append(_memory_file(content))
            cgroups = list(range(len(fds), len(fds) + len(group.fds)))
            fds += [os.dup(fd) for fd in group.fds]
            message = {
                "kind": job.kind,
                "argv": list(job.argv),
                "environment": ENVIRONMENT,
                "files": files,
                "cgroups": cgroups,
                "results": job.results,
                "core": job.core,
                "result_bytes": job.output_bytes,
                "limits": {"file_bytes": job.file_bytes, "processes": 0 if places().pids else job.pids},
            }
            artifact = None
            if job.collect:
                artifact = os.memfd_create("artifact", os.MFD_CLOEXEC)
                fds.append(os.dup(artifact))
                message["collect"] = job.collect
            socket.send_fds(self.control, [json.dumps(message).encode()], fds)
            for fd in fds:
                os.close(fd)
            fds = []
            watch = _Watch(job, group, self, reading, on_result)
            report = watch.until_dead()
            outcome = watch.outcome(report)
            if artifact is not None:
                size = report.get("artifact", -1)
                outcome.artifact = os.pread(artifact, size, 0) if size >= 0 else None
                os.close(artifact)
            return outcome, not report["dirty"]
        finally:
            for fd in (*fds, *reading.values()):
                os.close(fd)
            try:
                group.remove()
            except OSError:  # something is alive in it
                self.close()
                group.remove()


class _Watch:
    """The life of one job, seen from outside."""

    def __init__(self, job: Job, group: Group, box: Box, reading: dict[str, int], on_result) -> None:
        self.job, self.group, self.box, self.on_result = job, group, box, on_result
        self.names = {fd: name for name, fd in reading.items()}
        self.seen = Outcome()
        self.kept = {"stdout": bytearray(), "stderr": bytearray(), "results": bytearray()}
        self.counted = dict.fromkeys(self.kept, 0)
        self.number = 0
        self.begun: float | None = None
        self.mark_wall = self.mark_cpu = self.mark_waited = 0.0
        self.memory: list[tuple[float, float]] = []

    def until_dead(self) -> dict:
        """Watch until the zygote reports that all is dead; its report."""
        control = self.box.control.fileno()
        poll = select.poll()
        for fd in (*self.names, control):
            poll.register(fd, select.POLLIN)
        born = looked = time.monotonic()
        killed = None
        while True:
            for fd, _ in poll.poll(self.job.poll_s * 1000):
                if fd == control:
                    return self._last(json.loads(self.box.control.recv(1 << 16)))
                if not self._read(fd):
                    poll.unregister(fd)
            now = time.monotonic()
            if self.begun is None and now - born > START_S:
                raise OSError("the candidate's process did not start")
            if killed is not None:
                if now - killed > KILL_S:
                    raise OSError("the candidate could not be ended")
                continue
            if self.begun is not None and now - looked >= self.job.poll_s and self.seen.stopped is None:
                looked = now
                self._limits(now)
            if self.seen.stopped is not None:
                self.box.control.send(b"kill")
                killed = now

    def outcome(self, report: dict) -> Outcome:
        seen, group = self.seen, self.group
        seen.status = report["status"]
        cpu, peak = group.cpu_s(), group.peak_mb()
        seen.cpu_s = report["cpu_s"] if cpu is None else cpu
        seen.wall_s = 0.0 if self.begun is None else self.ended - self.begun
        seen.waited_s = group.waited_s()
        seen.peak_mb = report["rss_mb"] if peak is None else peak
        seen.out_of_memory |= group.out_of_memory()
        seen.out_of_processes = group.out_of_processes()
        seen.stdout, seen.stderr = bytes(self.kept["stdout"]), bytes(self.kept["stderr"])
        seen.tmu_mb_s = self._integral()
        return seen

    def _last(self, report: dict) -> dict:
        self.ended = time.monotonic()
        for fd in self.names:
            while self.seen.stopped is None and self._read(fd):
                pass
        return report

    def _read(self, fd: int) -> bool:
        """Take a piece; False where there is none now, or none will come."""
        try:
            piece = os.read(fd, PIECE)
        except BlockingIOError:
            return False
        if not piece:
            return False
        name = self.names[fd]
        self.counted[name] += len(piece)
        kept = self.kept[name]
        if name == "results":
            kept += piece
            self._frames(kept)
            return True
        if self.counted["stdout"] + self.counted["stderr"] > self.job.output_bytes:
            self.seen.stopped = self.seen.stopped or "output_limit"
        kept += piece
        if self.job.kind == "function" or self.job.results or name == "stderr":
            del kept[:-TAIL]
        return True

    def _frames(self, kept: bytearray) -> None:
        begin = 0
        while len(kept) - begin >= 5 and not self.seen.garbled:
            length, kind = struct.unpack_from(">I", kept, begin)[0], bytes(kept[begin + 4 : begin + 5])
            if not 1 <= length <= 2 * self.job.output_bytes + 64 or kind not in b"SRDECLX":
                self.seen.garbled = True
                self.seen.stopped = self.seen.stopped or "result"
                break
            if len(kept) - begin < 4 + length:
                break
            self._frame(kind, bytes(kept[begin + 5 : begin + 4 + length]))
            begin += 4 + length
        del kept[:begin]

    def _frame(self, kind: bytes, content: bytes) -> None:
        now = time.monotonic()
        if kind == b"S" and self.begun is None:
            self.begun = self.mark_wall = now
            return
        if kind == b"R":
            more = self.seen.stopped is None and self.on_result(self.number, content)
            self.number += 1
            self.mark_wall, self.mark_cpu, self.mark_waited = now, self.group.cpu_s() or 0.0, self.group.waited_s()
            if not more:
                self.seen.stopped = self.seen.stopped or "result"
            content = b""
        self.seen.frames.append((kind, content))

    def _limits(self, now: float) -> None:
        cpu = self.group.cpu_s()
        memory = self.group.memory_mb()
        if cpu is None or memory is None:
            polled = _descendants(self.box.process.pid)
            cpu = polled[0] if cpu is None else cpu
            if memory is None:
                memory = polled[1]
                if memory > self.job.memory_mb:
                    self.seen.out_of_memory, self.seen.stopped = True, "memory_limit"
        self.memory.append((now - self.begun, memory))
        wall = now - self.mark_wall
        starved = min(self.group.waited_s() - self.mark_waited, (PATIENCE - 1) * self.job.wall_s)
        if cpu - self.mark_cpu > self.job.cpu_s or wall - starved > self.job.wall_s:
            self.seen.stopped = "time_limit"

    def _integral(self) -> float:
        """MB·s by trapezoids; of runs too short for samples, peak × time."""
        seen = self.seen
        if len(self.memory) < 5:
            return seen.peak_mb * seen.wall_s
        points = [(0.0, 0.0), *self.memory, (seen.wall_s, self.memory[-1][1])]
        return sum((t1 - t0) * (m0 + m1) / 2 for (t0, m0), (t1, m1) in itertools.pairwise(points))


def _memory_file(content: bytes) -> int:
    """A file in memory, opened for reading from its begin."""
    fd = os.memfd_create("job", os.MFD_CLOEXEC)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(fd, left) :]
        return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(fd)


def _descendants(pid: int) -> tuple[float, float]:
    """(CPU seconds, MB resident) of the box's processes but for its own two: where no cgroup counts them."""
    import psutil

    cpu = memory = 0.0
    try:
        inside = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return 0.0, 0.0
    for process in inside[1:] if len(inside) > 1 else []:
        try:
            times = process.cpu_times()
            cpu += times.user + times.system + times.children_user + times.children_system
            memory += process.memory_info().rss / (1 << 20)
        except psutil.Error:
            continue
    return cpu, memory


def signal_of(status: int | None) -> str | None:
    """Name of the signal that ended a process; None where it ended by itself."""
    if status is None or not os.WIFSIGNALED(status):
        return None
    try:
        return signal.Signals(os.WTERMSIG(status)).name
    except ValueError:
        return f"signal {os.WTERMSIG(status)}"
