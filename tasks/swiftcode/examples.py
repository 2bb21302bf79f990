"""Training examples: the prompt that a model is asked with, and the selected program as the answer to it."""

import ast
import copy
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pandas as pd

from tasks.lm.tokens import encode_prompt, encode_response
from tasks.swiftcode import prompts
from tasks.swiftcode.params import ARMS, Finetune

INDENT = " " * 4
IMPORTS = (ast.Import, ast.ImportFrom)


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


def examples(
    tasks: pd.DataFrame, selection: pd.DataFrame, tokenizer, parameters: Finetune, max_tokens: int
) -> Examples:
    """The examples of all arms, by task and language.

    A prompt is what an answer is asked with, without the request for speed: the chat messages, and with
    ``parameters.prefill`` the opening of the answer, which holds the code that is given. The response is the rest of a
    fenced block with the selected program, and the end token. Where the program of one arm cannot be written as an answer
    that begins with the given code (`continued`), all arms of that task answer from the opening of their turn on.

    Tasks of the training split and of ``parameters.kinds`` only. ``counts``: (task, language)s that are trained on
    (`used`), lack the program of an arm (`without_every_arm`), or have more than `max_tokens` tokens in one of the arms
    (`too_long`); of those used, how many are answered from the opening on although there was a prefill (`not_continued`)
    and how many have the same program in all arms (`same_program`).

    Args:
        tasks, selection: TASKS and SELECTION, rows in any order.
        max_tokens: of a prompt with its response.

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
            raise ValueError(
                f"task {name!r} is of split {task['split']}; programs are selected for training tasks only"
            )
        if task["kind"] not in parameters.kinds:
            continue
        if not sources.keys() >= set(ARMS):
            counts["without_every_arm"] += 1
            continue
        prompt, responses, goes_on = _written(task, language, sources, tokenizer, parameters.prefill)
        if len(prompt) + max(map(len, responses.values())) > max_tokens:
            counts["too_long"] += 1
            continue
        counts["used"] += 1
        counts["not_continued"] += parameters.prefill and not goes_on
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
    beside = program.body[ast.get_docstring(program) is not None :]
    beside = [node for node in beside if node is not function and ast.dump(node) not in already]
    if any(_unmovable(node) for node in beside):
        return None
    body = function.body[ast.get_docstring(function) is not None :]
    inside, below = _apart(
        beside, _names(body) - {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    )
    target.body[-1:] = [*inside, *body]  # and so `opening` is the program that the text must be
    opening.body += below
    for write in (partial(_as_written, source), _rewritten):
        lines = [given.rstrip(), *(textwrap.indent(part, INDENT) for part in (*map(ast.unparse, inside), write(body)))]
        text = "\n\n\n".join(["\n".join(lines), *(write([node]) for node in below)])
        if _is(text, opening):
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
    task: Mapping, language: str, sources: dict[str, str], tokenizer, prefill: bool
) -> tuple[list[int], dict[str, list[int]], bool]:
    """(prompt, arm → response, whether the responses go on where the prefill ends)."""
    asked = encode_prompt(tokenizer, prompts.messages(task, language, hint=False))
    begun = prompts.prefill(task, language) if prefill else ""
    texts = {arm: _answer(task, language, source, begun) for arm, source in sources.items()}
    if begun and None not in texts.values():
        asked = [*asked, *encode_response(tokenizer, begun, finished=False)]
    else:
        begun, texts = "", {arm: _fenced(language, source) for arm, source in sources.items()}
    return asked, {arm: encode_response(tokenizer, text) for arm, text in texts.items()}, bool(begun)


def _answer(task: Mapping, language: str, source: str, begun: str) -> str | None:
    """What follows `begun` in an answer that is the program; None where no such answer begins so."""
    if task["kind"] == "function":
        source = continued(source, task["prompt"], task["entry_point"])
    whole = _fenced(language, source) if source is not None else ""
    return whole.removeprefix(begun) if whole.startswith(begun) else None


def _fenced(language: str, source: str) -> str:
    return f"```{language}\n{source.strip()}\n```"


def _whole(given: str) -> str:
    return f"{given.rstrip()}\n{INDENT}pass\n"


def _defines(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == name


def _parameters(function: ast.FunctionDef) -> str:
    """Names, kinds and defaults; annotations change nothing."""
    arguments = copy.deepcopy(function.args)
    for node in ast.walk(arguments):
        if isinstance(node, ast.arg):
            node.annotation = None
    return ast.dump(arguments)


def _unmovable(node: ast.stmt) -> bool:
    """Imports that may stand at the beginning of a module only, or whose names are not told."""
    return isinstance(node, ast.ImportFrom) and (node.module == "__future__" or node.names[0].name == "*")


def _apart(beside: list[ast.stmt], used: set[str]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """(imports of a name that is `used` in the function, statements for below it with the imports that they use)."""
    needed = _names([node for node in beside if not isinstance(node, IMPORTS)])
    inside = [node for node in beside if isinstance(node, IMPORTS) and _bound(node) & used]
    below = [node for node in beside if not isinstance(node, IMPORTS) or _bound(node) & needed]
    return inside, below


def _names(nodes: list[ast.stmt]) -> set[str]:
    return {inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _bound(node: ast.Import | ast.ImportFrom) -> set[str]:
    return {name.asname or name.name.split(".")[0] for name in node.names}


def _as_written(source: str, nodes: list[ast.stmt]) -> str:
    """The lines of consecutive statements, with the comments before them, from the left margin on."""
    lines = source.splitlines()
    begin = min([nodes[0].lineno, *(d.lineno for d in getattr(nodes[0], "decorator_list", []))]) - 1
    while begin and lines[begin - 1].lstrip().startswith("#"):
        begin -= 1
    return textwrap.dedent("\n".join(lines[begin : nodes[-1].end_lineno]))


def _rewritten(nodes: list[ast.stmt]) -> str:
    return "\n".join(map(ast.unparse, nodes))


def _is(text: str, program: ast.Module) -> bool:
    try:
        return ast.dump(ast.parse(text)) == ast.dump(program)
    except SyntaxError:
        return False
