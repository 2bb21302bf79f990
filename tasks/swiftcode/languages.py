"""Programming languages of candidates: how a program is compiled and started inside the box, and what the box must show."""

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tasks.stage import UserError

PROGRAM = "/tmp/program"  # where a compiler writes, inside the box
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Language:
    """One language. `tool` is compiled or started with; of a compiled one `compile` gives the command line.

    Args:
        source: file name of a program's text, from the text.
        compile: (tool, path of the source) → command line that leaves its product in `PROGRAM`; None: nothing to compile.
        artifact: file name of that product when it runs.
        start: (tool, path of the program, memory in MB, file name of its text) → command line; None: the box's own Python
            runs the text.
    """

    name: str
    suffixes: tuple[str, ...]
    tool: str
    source: Callable[[str], str]
    compile: Callable[[str, str], list[str]] | None = None
    artifact: str = "program"
    start: Callable[[str, str, float, str], list[str]] | None = None
    package: str = ""


def _java_file(source: str) -> str:
    found = re.search(r"\bpublic\s+(?:final\s+|abstract\s+)*class\s+(\w+)", source)
    return f"{found.group(1) if found else 'Main'}.java"


def _java_start(tool: str, path: str, memory_mb: float, source: str) -> list[str]:
    # Few helper threads and a small code cache: what the machine's own size would give does not fit into the limits.
    heap = max(16, int(0.6 * memory_mb))
    return [
        os.path.join(os.path.dirname(tool), "java"),
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:ReservedCodeCacheSize=32m",
        "-XX:-UsePerfData",
        "-Xss64m",
        f"-Xmx{heap}m",
        "-cp",
        path,
        source.removesuffix(".java"),
    ]


LANGUAGES = {
    language.name: language
    for language in (
        Language("python", (".py",), "", lambda _: "main.py"),
        Language(
            "cpp",
            (".cpp", ".cc", ".cxx"),
            "g++",
            lambda _: "main.cpp",
            lambda tool, path: [tool, "-O2", "-std=c++17", "-o", PROGRAM, path],
            start=lambda _, path, *__: [path],
            package="g++",
        ),
        Language(
            "javascript",
            (".js", ".mjs"),
            "node",
            lambda _: "main.js",
            start=lambda tool, path, *_: [tool, path],
            package="nodejs",
        ),
        Language(
            "java",
            (".java",),
            "javac",
            _java_file,
            lambda tool, path: [
                tool,
                "-J-XX:+UseSerialGC",
                "-J-XX:TieredStopAtLevel=1",
                "-proc:none",
                "-d",
                PROGRAM,
                path,
            ],
            artifact="program.jar",
            start=_java_start,
            package="default-jdk-headless",
        ),
        Language(
            "rust",
            (".rs",),
            "rustc",
            lambda _: "main.rs",
            lambda tool, path: [tool, "-O", "--edition=2021", "-o", PROGRAM, path],
            start=lambda _, path, *__: [path],
            package="rustc",
        ),
    )
}


def language_of(name: str) -> Language:
    """The language of that name. Raises UserError where it is not known."""
    if name not in LANGUAGES:
        raise UserError(f"language {name!r} is not one of {', '.join(LANGUAGES)}")
    return LANGUAGES[name]


def language_of_file(path: Path) -> Language:
    """The language of a program's file by its suffix. Raises UserError where it is not known."""
    for language in LANGUAGES.values():
        if path.suffix in language.suffixes:
            return language
    known = ", ".join(suffix for language in LANGUAGES.values() for suffix in language.suffixes)
    raise UserError(f"{path}: the suffix {path.suffix!r} is of no known language; known are {known}")


@functools.cache
def tool_of(name: str) -> str:
    """Absolute path of a language's compiler or runtime. Raises UserError where the machine has none."""
    language = language_of(name)
    if name == "python":
        return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    found = shutil.which(language.tool)
    if found is None:
        raise UserError(
            f"language {name}: there is no {language.tool} on this machine (Debian package {language.package})"
        )
    if name == "rust":  # what is on the path may be a switch between toolchains, which needs the user's home
        root = _said([found, "--print", "sysroot"])
        found = os.path.join(root, "bin", "rustc") if root else found
    return os.path.realpath(found)


def is_available(name: str) -> bool:
    """Whether this machine can compile and run a language."""
    try:
        tool_of(name)
    except UserError:
        return False
    return True


@functools.cache
def version_of(name: str) -> str:
    """One line that says which compiler or runtime it is."""
    if name == "python":
        return f"Python {sys.version.split()[0]}"
    return (_said([tool_of(name), "--version"]) or "unknown version").splitlines()[0]


@functools.cache
def runtime_folders() -> tuple[str, ...]:
    """Folders outside /usr that runtimes need, which the box shows read-only at the same place."""
    needed = [sys.base_prefix]
    needed += [
        os.path.dirname(os.path.dirname(tool_of(name))) for name in LANGUAGES if name != "python" and is_available(name)
    ]
    resolved = dict.fromkeys(os.path.realpath(folder) for folder in needed)
    outer = [folder for folder in resolved if not folder.startswith("/usr/") and folder != "/usr"]
    return tuple(folder for folder in outer if folder not in ("/", "/home", "/root"))


def _said(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
