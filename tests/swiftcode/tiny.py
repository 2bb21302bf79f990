"""Small tasks for tests: rows of the project's format, and pools of them."""

import json
from pathlib import Path
from typing import Any

from tasks.swiftcode.folders import SUFFIXES
from tasks.swiftcode.isolation import isolation

UNSAFE = not isolation().contained  # the programs are the tests' own
NAMES = ("add", "double", "largest", "length", "negate", "square")
BODIES = {
    "add": ("x + y", "sum([x, y])"),
    "double": ("x + x", "2 * x"),
    "largest": ("max(x, y)", "x if x > y else y"),
    "length": ("len(str(x))", "sum(1 for _ in str(x))"),
    "negate": ("-x", "0 - x"),
    "square": ("x * x", "x ** 2"),
}


def arguments(name: str) -> str:
    return "x, y" if name in ("add", "largest") else "x"


def source(name: str, body: str) -> str:
    return f"def {name}({arguments(name)}):\n    return {body}\n"


def row(name: str, **changes: Any) -> dict[str, Any]:
    """A function task; its tests are those of plain integers."""
    values = [(3, 4), (5, 1), (7, 7)]
    given = [list(pair) if "," in arguments(name) else [pair[0]] for pair in values]
    reference = eval(f"lambda {arguments(name)}: {BODIES[name][0]}")  # text of this file
    made = {
        "task": name,
        "kind": "function",
        "entry_point": name,
        "prompt": f'def {name}({arguments(name)}):\n    """The {name} of it."""\n',
        "tests": [[a, reference(*a)] for a in given],
        "solutions": [
            {"language": "python", "name": f"way{i}", "source": source(name, body)}
            for i, body in enumerate(BODIES[name])
        ],
    }
    return {key: value for key, value in (made | changes).items() if value is not ...}


def program(**changes: Any) -> dict[str, Any]:
    """A task of reading and writing."""
    made = {
        "task": "total",
        "kind": "stdio",
        "prompt": "Print the sum of the integers that stand in the input.\n",
        "tests": [["1 2\n", "3\n"], ["5\n", "5\n"]],
        "generator": "def generate(size, seed):\n    return ' '.join(str(seed + i) for i in range(size))\n",
        "sizes": {"python": 100},
        "solutions": [{"language": "python", "name": "sum", "source": "print(sum(map(int, input().split())))\n"}],
    }
    return made | changes


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in rows)


def write_pool(folder: Path, *rows: dict[str, Any]) -> Path:
    """The folders of a pool."""
    for one in rows:
        about = dict(one)
        inner = folder / about.pop("task")
        inner.mkdir(parents=True)
        (inner / "prompt.md").write_text(about.pop("prompt"), encoding="utf-8")
        if "generator" in about:
            (inner / "generator.py").write_text(about.pop("generator"), encoding="utf-8")
        names: dict[str, list[str]] = {}
        for solution in about["solutions"]:
            names.setdefault(solution["language"], []).append(solution["name"])
            file = inner / f"{solution['name']}{SUFFIXES[solution['language']]}"
            file.write_text(solution["source"], encoding="utf-8")
        (inner / "task.json").write_text(json.dumps(about | {"solutions": names}), encoding="utf-8")
    return folder
