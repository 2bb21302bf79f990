"""Problems and scores of the optional library reasoning-gym: generators of tasks whose answers a program checks."""

import json
from functools import cache
from types import ModuleType
from typing import Any

from tasks.stage import UserError

ENTRIES_PER_PROBLEM = 4  # looked at, at most, before a generator counts as having no more different questions


def entries(task: str, number: int, *, seed: int, options: dict[str, Any]) -> list[dict[str, Any]]:
    """The first `number` entries (question, answer, metadata) of a generator whose questions differ.

    Raises:
        ValueError: no such generator or option; fewer different questions; an entry that JSON cannot hold, or whose
            own answer does not score 1 after it was written as JSON and read again, so that it could not be graded.
        UserError: reasoning-gym is not installed.
    """
    try:
        data = library().create_dataset(task, size=ENTRIES_PER_PROBLEM * number, seed=seed, **options)
    except (ValueError, TypeError, KeyError, AssertionError) as error:
        raise ValueError(f"reasoning-gym refuses task {task!r} with options {options}: {error}") from None
    found: dict[str, dict] = {}
    for i in range(len(data)):
        if len(found) == number:
            break
        entry = data[i]
        if entry["question"] not in found:
            _check(task, entry)
            found[entry["question"]] = entry
    if len(found) < number:
        raise ValueError(
            f"task {task!r} with options {options} has {len(found)} different questions among {len(data)}; "
            f"{number} are wanted"
        )
    return list(found.values())


def score(answer: str, metadata: str) -> float:
    """What the generator gives an answer to one of its entries (as JSON), from 0 to 1; 0 where its check fails.

    Raises:
        UserError: reasoning-gym is not installed.
    """
    entry = json.loads(metadata)
    scorer = _scorer(entry["metadata"]["source_dataset"])
    try:
        return float(scorer(answer, entry))
    except Exception:  # of a generator's own parser, over whatever a model wrote
        return 0.0


def library() -> ModuleType:
    """The library. Raises UserError where it is not installed."""
    try:
        import reasoning_gym
    except ImportError:
        raise UserError(
            "reasoning_gym needs the package reasoning-gym; "
            "install the project with its extra: pip install -c constraints.txt -e '.[reasoning-gym]'"
        ) from None
    return reasoning_gym


@cache
def _scorer(task: str):
    return library().get_score_answer_fn(task)


def _check(task: str, entry: dict[str, Any]) -> None:
    try:
        text = json.dumps(entry)
    except (TypeError, ValueError) as error:
        raise ValueError(f"task {task!r} cannot be used: JSON cannot hold its entries: {error}") from None
    if not isinstance(entry["answer"], str) or score(entry["answer"], text) != 1:
        raise ValueError(f"task {task!r} cannot be used: its own answer {entry['answer']!r} does not score 1")
