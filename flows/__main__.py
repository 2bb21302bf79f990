"""``python -m flows [METHOD] --workers 2 [--force]``: every method, or one, through the engine."""

import importlib
import sys
from pathlib import Path
from typing import Annotated

import typer
from prefect import flow
from prefect.states import State

from flows import ROOT
from flows.method import Force, Workers, run, start
from tasks.stage import UserError, read_sections


@flow(name="all_methods")
def all_methods(workers: Workers = 2, force: Force = False) -> State:
    """Every stage of every method."""
    return run(None, None, workers, force)


def methods() -> list[str]:
    """Those with a section in params.yaml and a file in flows/."""
    sections = read_sections(ROOT / "params.yaml")
    return sorted(name for name in sections if (Path(__file__).parent / f"{name}.py").exists())


def command(
    method: Annotated[str, typer.Argument(help="all methods when not given")] = "",
    workers: Workers = 2,
    force: Force = False,
) -> None:
    """Run every method, or one, in parallel; what has not changed is not run again."""
    try:
        known = methods()
    except UserError as error:
        sys.exit(f"error: {error}")
    if not method:
        sys.exit(start(all_methods, workers=workers, force=force))
    if method not in known:
        print(f"error: there is no method {method}; methods in params.yaml: {', '.join(known)}", file=sys.stderr)
        sys.exit(2)
    module = importlib.import_module(f"flows.{method}")
    sys.exit(start(getattr(module, method), workers=workers, force=force))


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(command)
    app(prog_name="python -m flows")
