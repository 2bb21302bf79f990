"""Control groups of a candidate: limits of memory and processes, CPU time and peak memory of all its processes together.

Version 2 where its controllers are there, else version 1; of version 1 systems the version 2 hierarchy without controllers,
which many mount beside it, still counts CPU time in microseconds.
"""

import contextlib
import itertools
import os
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MB = 1 << 20
_numbers = itertools.count()


@dataclass(frozen=True)
class Places:
    """Folders under which groups can be made; None where there is none. One folder may serve several purposes."""

    memory: Path | None
    pids: Path | None
    cpu: Path | None
    version: dict[str, int]  # purpose → version of its hierarchy

    @property
    def said(self) -> str:
        have = [f"{name} (v{self.version[name]})" for name in ("memory", "pids", "cpu") if getattr(self, name)]
        return f"cgroups: {', '.join(have)}" if have else "no cgroups"


@cache
def places() -> Places:
    """Where this process may make control groups, found by making some."""
    mounts, paths = _mounted(), _own_paths()
    found: dict[str, Path] = {}
    version: dict[str, int] = {}
    if "unified" in mounts:
        root = mounts["unified"]
        own = root / paths.get("", "/").lstrip("/")
        for folder in dict.fromkeys((own, root)):
            usable = _controllers(folder)
            for purpose in ("memory", "pids", "cpu"):
                # CPU time is counted in every group, whatever controllers it has
                if purpose not in found and (purpose in usable or (purpose == "cpu" and _can_make(folder))):
                    found[purpose], version[purpose] = folder, 2
    for purpose, controller in (("memory", "memory"), ("pids", "pids"), ("cpu", "cpuacct")):
        if purpose not in found and controller in mounts:
            folder = mounts[controller] / paths.get(controller, "/").lstrip("/")
            if _can_make(folder):
                found[purpose], version[purpose] = folder, 1
    for folder in set(found.values()):
        _sweep(folder)
    return Places(found.get("memory"), found.get("pids"), found.get("cpu"), version)


def _mounted() -> dict[str, Path]:
    """controller, or "unified", → mount point."""
    found = {}
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return {}
    for line in lines:
        _, point, kind, options = line.split()[:4]
        if kind == "cgroup2":
            found["unified"] = Path(point)
        elif kind == "cgroup":
            found |= {name: Path(point) for name in options.split(",") if name in ("memory", "pids", "cpuacct")}
    return found


def _own_paths() -> dict[str, str]:
    """controller → path of this process's group; "" stands for version 2."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        _, names, path = line.split(":", 2)
        found |= dict.fromkeys(names.split(","), path)
    return found


def _controllers(folder: Path) -> set[str]:
    """Version 2 controllers that a child of `folder` would have."""
    if not _can_make(folder):
        return set()
    try:
        return set((folder / "cgroup.subtree_control").read_text().split()) & {"memory", "pids"}
    except OSError:
        return set()


def _can_make(folder: Path) -> bool:
    trial = folder / f"methodworks-{os.getpid()}-trial"
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError:
        return False
    return True


def _sweep(folder: Path) -> None:
    """Remove the empty groups that a supervisor left when it was killed."""
    for left in folder.glob("methodworks-*-*"):
        owner = left.name.split("-")[1]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            with contextlib.suppress(OSError):
                left.rmdir()


class Group:
    """The control groups of one candidate: made empty, entered by the candidate itself, removed when all of it is dead."""

    def __init__(self, memory_mb: float, pids: int) -> None:
        self.where = places()
        name = f"methodworks-{os.getpid()}-{next(_numbers)}"
        self.folders: list[str] = []
        self.fds: list[int] = []
        try:
            for place in dict.fromkeys(p for p in (self.where.memory, self.where.pids, self.where.cpu) if p):
                folder = f"{place}/{name}"
                os.mkdir(folder)
                self.folders.append(folder)
                self.fds.append(os.open(f"{folder}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC))
            self.memory, self.pids, self.cpu = (
                f"{place}/{name}" if place else None for place in (self.where.memory, self.where.pids, self.where.cpu)
            )
            self._limit(memory_mb, pids)
        except BaseException:
            self.remove()
            raise

    def _limit(self, memory_mb: float, pids: int) -> None:
        limit = str(int(memory_mb * MB))
        if self.memory and self.where.version["memory"] == 2:
            _write(f"{self.memory}/memory.max", limit)
            _write(f"{self.memory}/memory.swap.max", "0", optional=True)
        elif self.memory:
            _write(f"{self.memory}/memory.limit_in_bytes", limit)
            _write(f"{self.memory}/memory.memsw.limit_in_bytes", limit, optional=True)
        if self.pids:
            _write(f"{self.pids}/pids.max", str(pids))

    def cpu_s(self) -> float | None:
        """CPU seconds of all processes so far, the dead included; None where nothing counts them."""
        if not self.cpu:
            return None
        if self.where.version["cpu"] == 2:
            return int(_field(f"{self.cpu}/cpu.stat", "usage_usec")) / 1e6
        return int(_read(f"{self.cpu}/cpuacct.usage")) / 1e9

    def waited_s(self) -> float:
        """Seconds in which a process of the group was ready to run and had no core; 0 where nothing counts them."""
        if not self.cpu or self.where.version["cpu"] != 2:
            return 0.0
        try:
            return int(_read(f"{self.cpu}/cpu.pressure").split("total=", 1)[1].split()[0]) / 1e6
        except (OSError, IndexError, ValueError):
            return 0.0

    def memory_mb(self) -> float | None:
        """Memory now, page cache and temporary files included."""
        if not self.memory:
            return None
        name = "memory.current" if self.where.version["memory"] == 2 else "memory.usage_in_bytes"
        return int(_read(f"{self.memory}/{name}")) / MB

    def peak_mb(self) -> float | None:
        """The most memory so far. A page counts for the group that touched it first: shared libraries mostly do not."""
        if not self.memory:
            return None
        name = "memory.peak" if self.where.version["memory"] == 2 else "memory.max_usage_in_bytes"
        try:
            return int(_read(f"{self.memory}/{name}")) / MB
        except OSError:  # a kernel before 5.19
            return None

    def out_of_memory(self) -> bool:
        """Whether the kernel killed a process because the limit was reached."""
        if not self.memory:
            return False
        name = "memory.events" if self.where.version["memory"] == 2 else "memory.oom_control"
        return int(_field(f"{self.memory}/{name}", "oom_kill")) > 0

    def out_of_processes(self) -> bool:
        """Whether a process could not be started because the limit was reached."""
        if not self.pids:
            return False
        try:
            return int(_field(f"{self.pids}/pids.events", "max")) > 0
        except OSError:
            return False

    def remove(self) -> None:
        """Remove the groups. Raises OSError where a process is still in one."""
        for fd in self.fds:
            os.close(fd)
        self.fds = []
        for folder in self.folders:
            for attempt in range(100):
                try:
                    os.rmdir(folder)
                    break
                except FileNotFoundError:
                    break
                except OSError:  # the last process is dead but not yet gone
                    if attempt == 99:
                        raise
                    time.sleep(0.001 * (attempt + 1))
        self.folders = []


def _read(path: str) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096).decode()
    finally:
        os.close(fd)


def _field(path: str, name: str) -> str:
    for line in _read(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return value
    return "0"


def _write(path: str, text: str, optional: bool = False) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)
    except OSError:
        if not optional:
            raise
