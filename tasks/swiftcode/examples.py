"""Training examples: the prompt that a model is asked with, and the selected program as the answer to it."""

import ast
import textwrap
from dataclasses import dataclass

import pandas as pd

from tasks.lm.tokens import encode_response
from tasks.swiftcode import prompts
from tasks.swiftcode.params import ARMS, Finetune


@dataclass(frozen=True)
class Example:
    """Token ids of one (task, language): `prompt` is context only, `response` ends with the end token."""

    task: str
    language: str
    prompt: list[int]
    response: list[int]

    def __len__(self) -> int:
        return len(self.prompt) + len(self.response)


@dataclass(frozen=True)
class Examples:
    """Examples of every arm: the same (task, language)s in the same order with the same prompts, other responses."""

    arms: dict[str, list[Example]]
    counts: dict[str, int]

    def lengths(self) -> list[int]:
        """Of each example, the tokens of the arm where it is longest: what batches are made by, the same for all arms."""
        return [max(map(len, row)) for row in zip(*self.arms.values(), strict=True)]


def examples(tasks: pd.DataFrame, selection: pd.DataFrame, tokenizer, parameters: Finetune) -> Examples:
    """The examples of all arms, by task and language.

    A prompt is what an answer is asked with, without the request for speed: the chat messages, and with
    ``parameters.prefill`` the opening of the answer, which holds the code that is given. The response is the rest of a
    fenced block with the selected program, and the end token. Where the program of one arm cannot be written as an answer
    that begins with the given code (`continued`), all arms of that task answer from the opening of their turn on.

    Tasks of the training split only. ``counts``: (task, language)s that are trained on (`used`), lack the program of an arm
    (`without_every_arm`), or have more than ``parameters.max_tokens`` tokens in one of the arms (`too_long`); of those
    used, how many are answered from the opening on although there was a prefill (`not_continued`) and how many have the
    same program in all arms (`same_program`).

    Args:
        tasks, selection: TASKS and SELECTION, rows in any order.

    Raises:
        ValueError: two programs of one arm for a (task, language), or a task that TASKS does not have.
    """
    chosen = _chosen(selection[selection["language"].isin(parameters.languages)])
    known = tasks.set_index(tasks["task"].astype("str"))
    counts = dict.fromkeys(("used", "without_every_arm", "too_long", "not_continued", "same_program"), 0)
    arms: dict[str, list[Example]] = {arm: [] for arm in ARMS}
    for (name, language), sources in sorted(chosen.items()):
        if name not in known.index:
            raise ValueError(f"task {name!r} is not in the table of tasks")
        task = known.loc[name]
        if task["split"] != "train":
            raise ValueError(f"task {name!r} is of split {task['split']}; programs are selected for training tasks only")
        if set(sources) < set(ARMS):
            counts["without_every_arm"] += 1
            continue
        prompt, responses, continued = _written(task, language, sources, tokenizer, parameters.prefill)
        if len(prompt) + max(map(len, responses.values())) > parameters.max_tokens:
            counts["too_long"] += 1
            continue
        counts["used"] += 1
        counts["not_continued"] += parameters.prefill and not continued
        counts["same_program"] += len(set(sources.values())) == 1
        for arm in ARMS:
            arms[arm].append(Example(name, language, prompt, responses[arm]))
    return Examples(arms, counts)


def continued(source: str, given: str, entry_point: str) -> str | None:
    """A Python program written so that it begins with the `given` code: a signature and docstring; None where it cannot be.

    The program's function follows as the body of the given one. What stands around it in the program comes below it, where
    it is found at the time of the call as well; imports that the function uses open its body, so that a model which writes
    from left to right names them before it needs them. The program's own signature and docstring fall away.

    None where that is not the same program: parameters or defaults other than the given ones, decorators, star imports, a
    function that is not found once, or a layout that does not survive. That it is the same is checked on the syntax trees.

    >>> given = 'def count(xs: list) -> dict:\\n    "How many there are of each."\\n'
    >>> print(continued("from collections import Counter\\ndef count(xs):\\n  return Counter(xs)", given, "count"))
    def count(xs: list) -> dict:
        "How many there are of each."
        from collections import Counter
        return Counter(xs)
    """
    try:
        program, opening = ast.parse(source), ast.parse(_whole(given))
    except (SyntaxError, ValueError, RecursionError):
        return None
    functions = [node for node in program.body if _defines(node, entry_point)]
    if len(functions) != 1 or not opening.body or not _defines(opening.body[-1], entry_point):
        return None
    function, target = functions[0], opening.body[-1]
    if function.decorator_list or _parameters(function) != _parameters(target):
        return None
    already = set(map(ast.dump, opening.body[:-1]))
    around = [node for node in program.body if node is not function and ast.dump(node) not in already]
    if around and around[0] is program.body[0] and ast.get_docstring(program) is not None:
        around = around[1:]
    if any(_unmovable(node) for node in around):
        return None
    body = function.body[ast.get_docstring(function) is not None :]
    inside, below = _apart(around, body)
    expected = [*opening.body[:-1], [*inside, *body], *below]
    for lines in (_as_written(source, function, body), "\n".join(map(ast.unparse, body))):
        text = _composed(given, inside, lines, below)
        if _says(text, expected):
            return text
    return None


def _chosen(selection: pd.DataFrame) -> dict[tuple[str, str], dict[str, str]]:
    """(task, language) → arm → source."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in selection.itertuples():
        for arm in row.arms:
            sources = found.setdefault((str(row.task), str(row.language)), {})
            if sources.setdefault(arm, row.source) != row.source:
                raise ValueError(f"task {row.task!r}, language {row.language}: arm {arm} has two programs")
    return found


def _written(
    task: pd.Series, language: str, sources: dict[str, str], tokenizer, prefill: bool
) -> tuple[list[int], dict[str, list[int]], bool]:
    """(prompt, arm → response, whether the responses go on where the prefill ends)."""
    given = task["prompt"] if task["kind"] == "function" else None
    opening = prompts.prefill(task, language) if prefill else ""
    answers = {arm: prompts.answer(source, language) for arm, source in sources.items()}
    ...


def _whole(given: str) -> str:
    return f"{given.rstrip()}\n    pass\n"


def _defines(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == name


def _parameters(function: ast.FunctionDef) -> str:
    """Names, kinds and defaults; annotations change nothing."""
    arguments = copy.deepcopy(function.args)
    for node in ast.walk(arguments):
        if isinstance(node, ast.arg):
            node.annotation = None
    return ast.dump(arguments)
