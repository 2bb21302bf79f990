"""Runs inside the box: forks a process for every candidate, and ends it with all that it started. Only trusted code.

Started by `box.Box` as the first process of its own namespaces, with the supervisor's socket. A job is
one message with file descriptors; expected results never come here. Imports the standard library and `values` only,
because the box shows nothing else of the project. What it says to the supervisor are counts and exit codes; what a
candidate says goes through pipes that the supervisor reads as untrusted bytes.
"""

from __future__ import annotations

import atexit
import os
import struct
import sys
import threading
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import values

del sys.path[0]
sys.set_int_max_str_digits(0)  # candidates may print integers of any length; CPU time is limited anyway

NOBODY = 65534
SOCKET, RESULT = 3, 4
LARGEST_ARTIFACT = 64 << 20
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG = 4, 36, 1

if sys.argv[1:2] == ["serve"]:  # not where one function runs alone: what it does not need would be counted
    import contextlib
    import ctypes
    import gc
    import io
    import json
    import resource
    import select
    import signal
    import socket
    import zipfile

    # What programs use most: a fork has them already. Nothing here starts a thread.
    import bisect, collections, copy, dataclasses, datetime, decimal, fractions, functools, heapq, itertools, math  # noqa: E401, F401  # isort: skip
    import operator, queue, random, re, statistics, string, typing  # noqa: E401, F401  # isort: skip

    LIBC = ctypes.CDLL(None, use_errno=True)


def main(descriptor: int) -> None:
    if descriptor != SOCKET:
        os.dup2(descriptor, SOCKET, inheritable=False)
        os.close(descriptor)
    control = socket.socket(fileno=SOCKET)
    settings = json.loads(control.recv(1 << 16))
    sys.path[:0] = settings["site"]  # numpy, where candidates may have it
    LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # a candidate of the same user may not look into this process
    if settings["contained"]:
        kill_all = _kill_namespace
    else:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        kill_all = _kill_descendants
    gc.collect()
    gc.freeze()  # the collector would touch, and so copy, every object in every fork
    control.send(b"ready")
    while True:
        message, fds, _, _ = socket.recv_fds(control, 1 << 16, 16)
        if not message:  # the supervisor is gone
            kill_all()
            return
        if message == b"kill":  # came when the candidate had just ended by itself
            continue
        report = _serve(json.loads(message), list(fds), control, settings, kill_all)
        control.send(json.dumps(report).encode())


def _serve(job: dict, fds: list, control: socket.socket, settings: dict, kill_all) -> dict:
    """Run one job to its end, or until the supervisor says `kill`; what is left of it is killed and reaped."""
    before = _children_usage()
    made = []
    try:
        for name, position, mode in job["files"]:
            path = os.path.join(settings["job"], name)
            with open(path, "wb") as file:
                made.append(path)
                file.write(_contents(fds[position]))
            os.chmod(path, mode)
        pid = os.fork()
        if pid == 0:
            _candidate(job, fds, settings)  # does not return
    finally:
        artifact = fds.pop() if "collect" in job else None
        for fd in fds:
            os.close(fd)
    handle = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(control, select.POLLIN)
    killed = False
    while True:
        ready = [fd for fd, _ in poll.poll()]
        if handle in ready:
            break
        control.recv(64)  # the only word that comes during a job is `kill`; an end of file means the same
        killed = True
        break
    os.close(handle)
    status = None
    if not killed:
        status = os.waitpid(pid, 0)[1]
    kill_all()
    usage = _children_usage()
    report = {"status": status, "cpu_s": usage[0] - before[0], "rss_mb": usage[1]}
    if artifact is not None:
        if status == 0:
            report["artifact"] = _collect(job["collect"], artifact)
        os.close(artifact)
        _remove(job["collect"])
    for path in made:
        os.unlink(path)
    report["dirty"] = _dirty(settings)
    return report


def _children_usage() -> tuple:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _contents(fd: int) -> bytes:
    with open(fd, "rb", closefd=False) as file:
        return file.read()


def _kill_namespace() -> None:
    """Every other process of the pid namespace, whose first process this is; the kernel's -1 misses no fork in between."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    _reap()


def _kill_descendants() -> None:
    """Where there is no namespace: descendants until none is left. A program that forks faster than this may get away."""
    for _ in range(100):
        parents = {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/stat", "rb") as file:
                        parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
                except (OSError, ValueError, IndexError):
                    pass
        found, generation = set(), {os.getpid()}
        while generation:
            generation = {pid for pid, parent in parents.items() if parent in generation} - found
            found |= generation
        if not found:
            break
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        _reap()


def _reap() -> None:
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _dirty(settings: dict) -> bool:
    """Whether the candidate left something that the next one could find."""
    if any(os.listdir(folder) for folder in settings["clean"]):
        return True
    for name in ("shm", "sem", "msg"):
        try:
            with open(f"/proc/sysvipc/{name}", "rb") as file:
                if file.read().count(b"\n") > 1:
                    return True
        except OSError:
            pass
    return False


def _collect(path: str, out: int) -> int:
    """Copy what a compiler made, a file or the classes below a folder, to `out`; its number of bytes, -1 where it is none.

    All that could have made it is dead; links are not followed.
    """
    try:
        is_folder = os.path.isdir(path) and not os.path.islink(path)
        content = _archive(path) if is_folder else _regular(path)
    except (OSError, ValueError):
        return -1
    with open(out, "wb", closefd=False) as file:
        file.write(content)
    return len(content)


def _regular(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        if not os.path.isfile(f"/proc/self/fd/{fd}") or os.fstat(fd).st_size > LARGEST_ARTIFACT:
            raise ValueError
        return file.read(LARGEST_ARTIFACT)


def _archive(folder: str) -> bytes:
    held, size = io.BytesIO(), 0
    with zipfile.ZipFile(held, "w") as archive:
        for here, folders, names in os.walk(folder):
            folders.sort()
            for name in sorted(names):
                content = _regular(os.path.join(here, name))
                size += len(content)
                if size > LARGEST_ARTIFACT:
                    raise ValueError
                entry = zipfile.ZipInfo(os.path.relpath(os.path.join(here, name), folder))
                archive.writestr(entry, content)
    return held.getvalue()


def _remove(path: str) -> None:
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            for here, folders, names in os.walk(path, topdown=False):
                for name in names:
                    os.unlink(os.path.join(here, name))
                for name in folders:
                    os.rmdir(os.path.join(here, name))
            os.rmdir(path)
        else:
            os.unlink(path)
    except OSError:
        pass  # what stays is seen as dirt


# ---- from here on: in the candidate's process ----


def alone(kind: str, path: str, limit: int) -> None:
    """A function or script as a program of its own, for tools that must see its process from the begin."""
    with open(path, "rb") as file:
        payload = values.loads(file.read().decode())
    if kind == "function":
        _function(payload, limit)
    _script(payload["source"])


def _candidate(job: dict, fds: list, settings: dict) -> None:
    try:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.setsid()
        for position, target in ((0, 0), (1, 1), (2, 2), (3, RESULT)):
            os.dup2(fds[position], target, inheritable=target < 3)
        payload = values.loads(_contents(fds[4]).decode()) if job["kind"] != "program" else None
        groups = [fds[i] for i in job["cgroups"]]
        _confine(job, groups, settings)
        os.closerange(RESULT + 1, 4096)
        os.close(SOCKET)
        os.chdir(settings["home"])
        _frame(b"S")
        if job["kind"] == "function":
            _function(payload, job["result_bytes"])
        elif job["kind"] == "script":
            _script(payload["source"])
        else:
            os.set_inheritable(RESULT, job["results"])
            os.execve(job["argv"][0], job["argv"], job["environment"])
    except BaseException as error:
        _frame(b"X", _said(error))
    finally:
        os._exit(70)


def _confine(job: dict, groups: list, settings: dict) -> None:
    limits = job["limits"]
    for name, soft, hard in (
        ("CORE", 0, 0),
        ("NOFILE", 256, 256),
        ("FSIZE", limits["file_bytes"], limits["file_bytes"]),
        ("STACK", 64 << 20, 64 << 20),
    ):
        kind = getattr(resource, f"RLIMIT_{name}")
        ceiling = resource.getrlimit(kind)[1]
        if ceiling != resource.RLIM_INFINITY:  # a machine's own lower limit stays
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        resource.setrlimit(kind, (soft, hard))
    if limits["processes"]:  # only where no cgroup counts them
        resource.setrlimit(resource.RLIMIT_NPROC, (limits["processes"], limits["processes"]))
    if job["core"] is not None:
        os.sched_setaffinity(0, {job["core"]})
    for fd in groups:
        os.write(fd, b"0")  # this process; checked with the rights of who opened the file
    if settings["drop"]:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)  # all capabilities go with it
    LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # else the process could not open its own /proc/self/fd
    if settings["filter"]:
        _filter(bytes.fromhex(settings["filter"]))


def _filter(program: bytes) -> None:
    """Install a seccomp filter: `program` are struct sock_filter, written by `seccomp.program`."""

    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    held = Program(len(program) // 8, program)
    call, set_mode_filter, speculation_allowed = _SECCOMP[os.uname().machine], 1, 4
    if LIBC.syscall(call, set_mode_filter, speculation_allowed, ctypes.byref(held)):
        raise OSError(ctypes.get_errno(), "seccomp")


_SECCOMP = {"x86_64": 317, "aarch64": 277}


def _frame(kind: bytes, content: bytes = b"", write=os.write) -> None:
    """One message of the run to the supervisor: length, kind, content."""
    left = memoryview(struct.pack(">I", len(content) + 1) + kind + content)
    while left:
        left = left[write(RESULT, left) :]


def _said(error: BaseException) -> bytes:
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:
        text = "an exception that cannot be told"
    return text.encode("utf-8", "replace")[:500]


def _function(payload: dict, limit: int) -> None:
    """Call the entry point once for every list of arguments, in this one process, and send each result."""
    frame, dumps, said, leave = _frame, values.dumps, _said, os._exit  # as they are before the candidate's code runs
    too_large = values.TooLarge
    module = types.ModuleType("candidate")
    sys.modules["candidate"] = module
    if "answers" in payload:  # the baseline: hands back what is right, and so costs what everything else costs
        answers = iter(payload["answers"])
        module.__dict__[payload["entry_point"]] = lambda *_: next(answers)
    else:
        _load(payload["source"], module)
    function = module.__dict__.get(payload["entry_point"])
    if function is None:
        frame(b"E", f"NameError: there is no {payload['entry_point']!r}".encode())
        leave(1)
    for arguments in payload["calls"]:
        try:
            text = dumps(function(*arguments), limit)
        except too_large:
            frame(b"L")
            leave(1)
        except BaseException as error:
            frame(b"E", said(error))
            leave(1)
        frame(b"R", text.encode())
    frame(b"D")
    leave(0)


def _script(source: str) -> None:
    """Run a program as `python main.py` would, with the real standard streams."""
    module = types.ModuleType("__main__")
    module.__dict__["__file__"] = "main.py"
    sys.modules["__main__"] = module
    sys.argv = ["main.py"]
    code = 0
    try:
        _load(source, module)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException:
        code = code or 1
    os._exit(code & 0xFF)


def _load(source: str, module: types.ModuleType) -> None:
    frame, said, leave = _frame, _said, os._exit
    try:
        code = compile(source, "main.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError) as error:
        frame(b"C", said(error))
        leave(1)
    try:
        exec(code, module.__dict__)
    except SystemExit:
        if module.__name__ == "__main__":
            raise
        frame(b"E", b"SystemExit before the first test")
        leave(1)
    except BaseException as error:
        frame(b"E", said(error))
        leave(1)


if __name__ == "__main__":
    # One name for the module, whoever imports it.
    sys.modules["zygote"] = sys.modules["__main__"]
    if sys.argv[1] == "serve":
        main(int(sys.argv[2]))
    else:
        alone(sys.argv[1], sys.argv[2], int(sys.argv[3]))
