"""The stage contract: typed parameters, checked inputs, complete outputs, seeds, progress, one-line errors.

A stage is a module ``tasks/<method>/<verb>.py`` with one function, run as ``python -m tasks.<method>.<verb>``::

    @stage.command("bpr.train", TrainParameters)
    def train(parameters: TrainParameters, panel: Path, *, out: Path) -> None:
        "One sentence: what the stage does."

Positional paths are inputs and must exist; keyword-only paths are outputs. The function receives temporary
siblings for its outputs; they take their real names together, after it has returned. A stage that fails or is
killed leaves nothing behind under an output's name.
"""

import functools
import inspect
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

PARAMETERS_FILE = Path("params.yaml")
Model = TypeVar("Model", bound=BaseModel)


class UserError(Exception):
    """Something that the user can mend: one line that says what, where, and what is allowed."""


class Parameters(BaseModel):
    """Base of all parameter models: unknown keys and other types are refused, values never change after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def _distinct(values: list) -> list:
    if len(set(values)) < len(values):
        raise ValueError("every entry may stand once")
    return values


def _not_reserved(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"the name is needed for another folder; not allowed: {', '.join(RESERVED)}")
    return name


RESERVED = ("checks",)  # folders beside those of the data sets
Distinct = AfterValidator(_distinct)
Name = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", description="letters, digits, - and _"),
    AfterValidator(_not_reserved),
]
Seed = Annotated[int, Field(ge=0, lt=2**63, description="random seed; every named part of a stage gets its own stream")]


def load_parameters(section: str, model: type[Model], file: Path = PARAMETERS_FILE) -> Model:
    """Read one dotted section of ``params.yaml`` through its model.

    Raises:
        UserError: the file or the section is missing, a key is unknown, or a value has a wrong type or range; the
            message names the full key.
    """
    node = read_sections(file)
    for depth, key in enumerate(section.split("."), start=1):
        if not isinstance(node, dict) or key not in node:
            raise UserError(f"{file}: there is no section {'.'.join(section.split('.')[:depth])}")
        node = node[key]
    try:
        return model.model_validate(node if node is not None else {})
    except ValidationError as error:
        raise UserError("; ".join(describe_validation(error, f"{file}: {section}"))) from None


def read_sections(file: Path = PARAMETERS_FILE) -> dict[str, Any]:
    """The sections of ``params.yaml`` by method, unchecked. Raises UserError where it is missing or not a YAML mapping."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{file}: there is no such file here; run from the repository's root") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise UserError(f"{file}: there is no section in it; one per method is needed")
    return content


def describe_validation(error: ValidationError, where: str) -> list[str]:
    """One readable clause for each fault that pydantic found, with the full key."""
    clauses = []
    for fault in error.errors():
        key = ".".join([where, *map(str, fault["loc"])])
        if fault["type"] == "extra_forbidden":
            clauses.append(f"{key}: unknown key")
        elif fault["type"] == "missing":
            clauses.append(f"{key}: missing")
        elif fault["type"] == "value_error":  # of a validator of our own, which says it all
            clauses.append(f"{key}: {fault['ctx']['error']}")
        else:
            clauses.append(f"{key}: {fault['input']!r} is not allowed: {fault['msg'][0].lower()}{fault['msg'][1:]}")
    return clauses


def command(section: str | None, model: type[Model] | None = None) -> Callable[[Callable[..., None]], Callable]:
    """Turn a stage function into a command line; see the module's docstring.

    The returned object is the function itself with one attribute more, ``run()``, which parses ``sys.argv``,
    executes the stage and exits: 0 when the outputs are complete, 1 with one line on stderr for a user's error.
    ``section`` is the stage's part of ``params.yaml``; ``{name}`` in it stands for an argument. None: no parameters.
    """

    def decorate(function: Callable[..., None]) -> Callable:
        signature = inspect.signature(function)
        names = list(signature.parameters)[1:] if model else list(signature.parameters)
        outputs = [n for n in names if signature.parameters[n].kind is inspect.Parameter.KEYWORD_ONLY]

        @functools.wraps(function)
        def execute(**paths: Any) -> None:
            for name in names:
                if name not in outputs:
                    for path in _paths(paths[name]):
                        if not path.exists():
                            raise UserError(f"{path}: there is no such input file or folder")
            leading = (load_parameters(section.format(**paths), model),) if model else ()
            with complete_outputs({name: paths[name] for name in outputs}) as temporary:
                function(*leading, **{**paths, **temporary})

        execute.__signature__ = signature.replace(parameters=[_cli(signature.parameters[n]) for n in names])
        function.run = functools.partial(_run, execute, function.__module__)
        function.section = section
        return function

    return decorate


def _paths(value: Any) -> list[Path]:
    values = value if isinstance(value, list | tuple) else [value]
    return [v for v in values if isinstance(v, Path)]


def _cli(parameter: inspect.Parameter) -> inspect.Parameter:
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
        annotation = Annotated[parameter.annotation, typer.Option(help="output")]
    else:
        annotation = Annotated[parameter.annotation, typer.Argument(help="input")]
    return parameter.replace(annotation=annotation)


def _run(execute: Callable[..., None], module: str) -> None:
    # Defaults to plain SystemExit, so that `finally` blocks run and half-written outputs are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    name = sys.modules[module].__spec__.name if module == "__main__" else module
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(execute)
    try:
        app(prog_name=f"python -m {name}")
    except (UserError, OSError) as error:  # a full disk, a folder that may not be written to: not a fault of the code
        print(f"error: {name}: {error}", file=sys.stderr)
        sys.exit(1)


class complete_outputs:
    """Context manager: temporary siblings for outputs; all are renamed when the block ends well, none otherwise."""

    def __init__(self, outputs: dict[str, Path]) -> None:
        self.outputs = outputs
        self.temporary = {n: p.with_name(f".{p.name}.{os.getpid()}.partial") for n, p in outputs.items()}

    def __enter__(self) -> dict[str, Path]:
        for path in self.outputs.values():
            path.parent.mkdir(parents=True, exist_ok=True)
            for left in path.parent.glob(f".{path.name}.*.partial"):  # of a run that was killed
                _remove(left)
        return self.temporary

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            missing = [str(self.outputs[n]) for n, p in self.temporary.items() if not p.exists()]
            if missing:
                self._clear()
                raise RuntimeError(f"the stage ended without writing {', '.join(missing)}")
            for name, path in self.temporary.items():
                if self.outputs[name].is_dir():
                    shutil.rmtree(self.outputs[name])
                path.replace(self.outputs[name])
        else:
            self._clear()

    def _clear(self) -> None:
        for path in self.temporary.values():
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def progress(items: Iterable, description: str, total: int | None = None) -> Iterator:
    """Iterate with a progress bar on a terminal, and with a line every ten seconds in a log."""
    from tqdm import tqdm

    if sys.stderr.isatty():
        yield from tqdm(items, desc=description, total=total)
        return
    total = len(items) if total is None and hasattr(items, "__len__") else total
    begin = last = time.monotonic()
    for done, item in enumerate(items):
        now = time.monotonic()
        if now - last >= 10:
            last = now
            print(f"{description}: {done}/{total or '?'} after {now - begin:.0f} s", file=sys.stderr, flush=True)
        yield item


def random_generator(seed: int, *keys: int | str):  # -> numpy.random.Generator; numpy only where it is needed
    """A generator for one named purpose: ``SeedSequence(seed, spawn_key=keys)``, text keys by their UTF-8 bytes.

    Streams of different keys are independent, so results do not depend on the order in which blocks are computed.

    >>> bool(random_generator(1, "iris", 0).random() == random_generator(1, "iris", 0).random())
    True
    """
    import numpy as np

    spawn = [part for key in keys for part in ([key] if isinstance(key, int) else [len(key), *key.encode()])]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=spawn))
