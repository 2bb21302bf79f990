"""All that a method's flow file needs: current parameters, run options, the engine, a command line."""

import signal
import sys
import threading
from typing import Annotated, Any, TypeVar

import typer
from prefect import Flow, get_client
from pydantic import BaseModel, Field

from flows import ROOT, guard
from flows.engine import run
from tasks.stage import UserError, load_parameters

__all__ = ["Force", "Workers", "current", "main", "run"]

Model = TypeVar("Model", bound=BaseModel)
# Bounds for the run form (Field) and the command line (Option); the form's descriptions come from the flow's docstring.
Workers = Annotated[int, Field(ge=1, le=256), typer.Option(min=1, max=256, help="stages that run at the same time")]
Force = Annotated[bool, typer.Option("--force", help="run every stage, also those that DVC finds unchanged")]


def current(method: str, model: type[Model]) -> Model:
    """The method's section of params.yaml: what its flow runs with unless the run form says otherwise."""
    try:
        return load_parameters(method, model, ROOT / "params.yaml")
    except UserError as error:
        if _on_command_line():
            sys.exit(f"error: {error}")
        raise


def main(flow: Flow) -> None:
    """The command line of one flow: ``--workers``, ``--force``; exit code 0 when all stages are complete."""

    def command(workers: Workers = 2, force: Force = False) -> None:
        sys.exit(start(flow, workers=workers, force=force))

    command.__doc__ = flow.description
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(command)
    app(prog_name=f"python -m flows.{flow.name}")


def start(flow: Flow, **options: Any) -> int:
    """Run a flow in this process; return its exit code. One line on stderr says what went wrong."""
    guard.watch()  # before Prefect starts a temporary server, so that it ends with this process too
    try:
        _connect()
        state = flow(**options, return_state=True)
    except KeyboardInterrupt:
        print(f"{flow.name}: interrupted; the next run goes on from here", file=sys.stderr)
        return 130
    if not state.is_completed():
        print(f"error: {flow.name}: {state.message}", file=sys.stderr)
        return 1
    print(f"{flow.name}: {state.message}", file=sys.stderr)
    return 0


def _connect() -> None:
    """Let Prefect start its temporary server, if it needs one, out of Ctrl-C's reach.

    A terminal sends Ctrl-C to the server too, and the flow could not report its end any more. A process inherits
    the blocked signals of the thread that starts it.
    """

    def connect() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        get_client(sync_client=True)

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join()


def _on_command_line() -> bool:
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name.startswith("flows.")
