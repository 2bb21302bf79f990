"""Which tasks are left out of a data set: not usable, risky, standing twice, or too close to what is measured on."""

import ast
import hashlib
import re
import warnings
from collections.abc import Iterable, Sequence

from tasks.swiftcode.task import Task

N_GRAM = 13  # tokens that two prompts may not share (Brown et al., 2020, appendix C)

# Modules that reach files, the network, other processes or memory, or that turn data into code.
RISKY_MODULES = frozenset(
    """
    _io _posixsubprocess _socket _thread aiohttp asyncio atexit boto3 builtins cffi code codecs codeop concurrent ctypes
    dbm dill distutils faulthandler fcntl fileinput flask ftplib glob http httpx imaplib imp importlib joblib linecache
    logging mmap multiprocessing mysql nntplib nt ntpath os paramiko pathlib pdb pickle pip pkgutil platform poplib posix
    posixpath psutil psycopg2 pty pymongo redis requests resource runpy scp select selectors selenium shelve shutil signal
    site smtplib socket socketserver sqlite3 ssl subprocess sysconfig syslog tarfile telnetlib tempfile termios tornado
    tty urllib urllib3 venv webbrowser websocket websockets winreg wsgiref xmlrpc zipapp zipfile zipimport
    """.split()  # noqa: SIM905 - a line for each would be a page
)
RISKY_NAMES = frozenset(
    ["__builtins__", "__import__", "__loader__", "breakpoint", "compile", "delattr", "eval", "exec", "open"]
)
RISKY_MEMBERS = frozenset(["io.FileIO", "io.open"])  # of a module that is none
RISKY_ATTRIBUTES = frozenset(
    ["__builtins__", "__code__", "__globals__", "__subclasses__", "_getframe", "addaudithook", "setprofile", "settrace"]
)


def risky(source: str) -> str | None:
    """The first risky operation of a Python program, with its line; None where there is none.

    A deny list on the syntax tree: imports of `RISKY_MODULES`, uses of `RISKY_NAMES` (opening standard input, ``open(0)``,
    is none) and of `RISKY_ATTRIBUTES`. It keeps unfit tasks out of training data; what protects the machine is the sandbox.

    Raises:
        SyntaxError, ValueError: the source is no program.

    >>> risky("import os.path as p")
    'line 1: import os'
    >>> risky("text = open(0).read()")
    """
    tree = parsed(source)
    stdin = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and _reads_stdin(node)}
    found = [(node.lineno, node.col_offset, what) for node in ast.walk(tree) for what in _risks(node, stdin)]
    if not found:
        return None
    line, _, what = min(found)
    return f"line {line}: {what}"


def _reads_stdin(call: ast.Call) -> bool:
    """Whether a call is one of 0 and nothing else, as ``open(0)`` is."""
    given = [argument.value if isinstance(argument, ast.Constant) else None for argument in call.args]
    return given == [0] and not call.keywords


def _risks(node: ast.AST, stdin: set[int]) -> list[str]:
    if isinstance(node, ast.Import):
        roots = [alias.name.split(".")[0] for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        roots = [(node.module or "").split(".")[0]]
    elif isinstance(node, ast.Name) and node.id in RISKY_NAMES and isinstance(node.ctx, ast.Load):
        return [] if node.id == "open" and id(node) in stdin else [node.id]
    elif isinstance(node, ast.Attribute) and (node.attr in RISKY_ATTRIBUTES or _dotted(node) in RISKY_MEMBERS):
        return [f".{node.attr}"]
    else:
        return []
    return [f"import {root}" for root in roots if root in RISKY_MODULES]


def _dotted(node: ast.Attribute) -> str | None:
    return f"{node.value.id}.{node.attr}" if isinstance(node.value, ast.Name) else None


def unfit(task: Task) -> tuple[str, str] | None:
    """(reason, why) where a task cannot be used as it stands, seen without running it; else None.

    Reasons: does_not_parse (a Python text of it), not_a_function (a solution does not define the entry point at its top
    level, or the prompt does not show its signature), risky.
    """
    texts = [(f"solution {s.name}", s.source) for s in task.solutions if s.language == "python"]
    texts += [("generator", task.generator)] if task.generator is not None else []
    texts += [("tests", task.check)] if task.check is not None else []
    for what, text in texts:
        fault = syntax_fault(text)
        if fault:
            return "does_not_parse", f"{what}: {fault}"
    if task.kind == "function":
        for solution in task.solutions:
            if task.entry_point not in functions(solution.source):
                return "not_a_function", f"solution {solution.name} defines no function {task.entry_point}"
        if not re.search(rf"^def\s+{re.escape(task.entry_point)}\s*\(", task.prompt, re.MULTILINE):
            return "not_a_function", f"the prompt does not show the signature of {task.entry_point}"
    for what, text in texts:
        operation = risky(text)
        if operation:
            return "risky", f"{what}: {operation}"
    return None


def syntax_fault(source: str) -> str | None:
    """What is wrong with a Python text, None where it parses."""
    try:
        parsed(source)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}" if error.lineno else error.msg
    except (ValueError, RecursionError, MemoryError) as error:  # NUL characters; nested too deeply
        return str(error) or "nested too deeply"
    return None


def parsed(source: str) -> ast.Module:
    """The syntax tree of a Python text, without Python's warnings about it. Raises SyntaxError or ValueError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def functions(source: str) -> list[str]:
    """Names of the functions that a Python program defines at its top level, in its order."""
    return [node.name for node in parsed(source).body if isinstance(node, ast.FunctionDef)]


def duplicates(tasks: Iterable[Task]) -> list[tuple[Task, Task]]:
    """(task, the one that is kept) of tasks whose text (but for case and space) and entry point are another's.

    Of equal ones a test task is kept before others, then the one whose name is first.
    """
    kept: dict[tuple, Task] = {}
    found = []
    for task in sorted(tasks, key=lambda t: (t.split != "test", t.task, t.where)):
        key = (" ".join(task.prompt.casefold().split()), task.entry_point)
        if key in kept:
            found.append((task, kept[key]))
        else:
            kept[key] = task
    return found


def contaminated(tasks: Iterable[Task], held_out: Sequence[Task], n: int = N_GRAM) -> list[tuple[Task, Task, str]]:
    """(task, held-out task, why) of `tasks` that give away one of `held_out`.

    A task does that where its prompt shares `n` words in a row with the other's (shorter prompts: where they have the same
    words), or where entry point and docstring are the same.
    """
    by_words: dict[tuple, Task] = {}
    by_docstring: dict[tuple, Task] = {}
    for task in sorted(held_out, key=lambda t: t.task):
        for gram in _grams(words(task.prompt), n):
            by_words.setdefault(gram, task)
        by_docstring.setdefault(_documented(task), task)
    by_docstring.pop(None, None)
    found = []
    for task in tasks:
        shared = next((gram for gram in _grams(words(task.prompt), n) if gram in by_words), None)
        documented = _documented(task)
        if shared is not None:
            found.append((task, by_words[shared], f"shares the words {' '.join(shared)!r}"))
        elif documented in by_docstring:
            found.append((task, by_docstring[documented], "has the same entry point and docstring"))
    return found


def words(text: str) -> tuple[str, ...]:
    """Words of a text, without case, space and punctuation; a number with separators is one word.

    >>> words("Return  x_1 + 2,000!")
    ('return', 'x_1', '2,000')
    """
    return tuple(re.findall(r"\d+(?:,\d{3})+\b|\w+", text.casefold()))


def _grams(tokens: tuple[str, ...], n: int) -> list[tuple[str, ...]]:
    return [tokens[i : i + n] for i in range(max(1, len(tokens) - n + 1))] if tokens else []


def _documented(task: Task) -> tuple | None:
    """(entry point, words of its docstring); None where the prompt has none."""
    if task.kind != "function" or syntax_fault(task.prompt):
        return None
    for node in parsed(task.prompt).body:
        if isinstance(node, ast.FunctionDef) and node.name == task.entry_point:
            docstring = words(ast.get_docstring(node) or "")
            return (task.entry_point, docstring) if docstring else None
    return None


def divide(tasks: Iterable[Task], test: float, seed: int) -> dict[str, str]:
    """A split for every task: its own where it has one; of the others the nearest whole number to the share `test`, yet one
    at least, are test tasks.

    They go in the order of a hash of seed and name, so a task's split depends neither on the order of the tasks nor, but
    for those at the border, on which others there are.
    """
    splits = {task.task: task.split for task in tasks}
    undivided = [name for name, split in splits.items() if split is None]
    order = sorted(undivided, key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).hexdigest())
    n_test = max(1, round(test * len(order)))
    return splits | {name: "test" if i < n_test else "train" for i, name in enumerate(order)}
