"""Tasks of a pool: one folder a task, with its statement, its tests, its generator of inputs and its solutions."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, RootModel

from tasks.stage import Distinct, UserError
from tasks.swiftcode.params import LANGUAGES
from tasks.swiftcode.task import Task, checked, read_json_text, task_of

SUFFIXES = dict(zip(LANGUAGES, (".py", ".cpp", ".js", ".java", ".rs"), strict=True))
ABOUT, PROMPT, GENERATOR = "task.json", "prompt.md", "generator.py"
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]


class Solutions(RootModel[dict[Literal[LANGUAGES], Annotated[list[Name], Field(min_length=1), Distinct]]]):
    """Names of the files by language."""


def read(folder: Path) -> list[Task]:
    """The tasks of all folders in `folder`, named as their folders.

    ``task.json`` has the keys of `task.TaskRow` without `task`, `prompt` and `generator`, which are the folder's name,
    ``prompt.md`` and ``generator.py`` (may be absent); its `solutions` are the names of files without suffix by language,
    from slow to fast, the reference first.

    Raises:
        UserError: no tasks; a file lacks, is not text or is named nowhere; a key of ``task.json`` that is not allowed.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: not a folder; a pool of tasks is needed")
    tasks = [_task(inner) for inner in sorted(folder.iterdir()) if inner.is_dir() and inner.name[0] not in "._"]
    if not tasks:
        raise UserError(f"{folder}: there are no folders of tasks in it")
    return tasks


def _task(folder: Path) -> Task:
    about = folder / ABOUT
    row = read_json_text(_text(about), str(about))
    if not isinstance(row, dict):
        raise UserError(f"{about}: not a JSON object but {type(row).__name__}; one is needed")
    for key, file in (("task", "the folder's name"), ("prompt", PROMPT), ("generator", GENERATOR)):
        if key in row:
            raise UserError(f"{about}: {key}: unknown key; {file} says it")
    if "solutions" not in row:
        raise UserError(f"{about}: solutions: missing; there are {', '.join(row) or 'no keys'}")
    named = checked(Solutions, row["solutions"], f"{about}: solutions").root
    files = {folder / f"{name}{SUFFIXES[language]}": (language, name) for language in named for name in named[language]}
    if folder / GENERATOR in files:
        raise UserError(f"{about}: solutions: python: 'generator' is not allowed; {GENERATOR} makes the inputs")
    _check_no_other_files(folder, {about, folder / PROMPT, folder / GENERATOR, *files})
    row["task"], row["prompt"] = folder.name, _text(folder / PROMPT)
    row["generator"] = _text(folder / GENERATOR) if (folder / GENERATOR).exists() else None
    row["solutions"] = [
        {"language": language, "name": name, "source": _text(file)} for file, (language, name) in files.items()
    ]
    return task_of(row, str(about))


def _check_no_other_files(folder: Path, known: set[Path]) -> None:
    for file in sorted(folder.iterdir()):
        if file not in known and file.name[0] not in "._":
            raise UserError(f"{file}: not named in {ABOUT}; name it under solutions, or remove it")


def _text(file: Path) -> str:
    try:
        text = file.read_bytes().decode("utf-8").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: not readable as UTF-8 text: {error}") from None
    if not text.strip():
        raise UserError(f"{file}: there is nothing in it; a text is needed")
    return text
