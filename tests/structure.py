"""Which project modules each stage's code imports, from the import graph; shared by test_structure.py and by people.

``python -m tests.structure`` prints, for every stage of dvc.yaml, the module lines that its `deps` should hold.
"""

import re
from functools import cache
from pathlib import Path

import grimp
import yaml

ROOT = Path(__file__).resolve().parents[1]


@cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph("tasks", cache_dir=None)


def stages() -> dict[str, dict]:
    """Every stage of dvc.yaml by its name, the body of a `foreach` or `matrix` in its place."""
    found = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    return {name: stage.get("do", stage) for name, stage in found.items()}


def entry_modules(command: str) -> list[str]:
    """The modules that a stage's command runs: `python -m X`, and for a gate the method's expectations too."""
    match = re.match(r"python -m (tasks\S*)(?: (\S+))?", command)
    if match is None:
        raise ValueError(f"not a stage command: {command!r}")
    module, argument = match.groups()
    return [module, f"tasks.{argument}.expectations"] if module == "tasks.gate" else [module]


def module_files(command: str) -> set[str]:
    """Files of all project modules that the command's modules import, directly or not, themselves included."""
    modules = set()
    for entry in entry_modules(command):
        if entry not in _graph().modules:
            raise ValueError(f"{entry} is no module of the project; does every folder of it have an __init__.py?")
        modules |= {entry} | _graph().find_upstream_modules(entry)
    packages = {module.rsplit(".", depth)[0] for module in modules for depth in range(1, module.count(".") + 1)}
    return {str(_file(module).relative_to(ROOT)) for module in modules | packages}


def _file(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


if __name__ == "__main__":
    for name, stage in stages().items():
        print(name)
        for file in sorted(module_files(" ".join(stage["cmd"].split()))):
            print(f"      - {file}")
