"""What a model is asked for a task, and how its answer may begin."""

import ast
from collections.abc import Mapping

FENCE = "```"
TITLES = {"python": "Python", "cpp": "C++", "javascript": "JavaScript", "java": "Java", "rust": "Rust"}
FUNCTION = (
    "Complete this {title} function. Keep the code that is given as it is, and answer with the whole function in one fenced"
    " {language} code block."
)
PROGRAM = (
    "Write a complete {title} program for this task. It reads standard input and writes standard output. Answer with the"
    " whole program in one fenced {language} code block."
)
SPEED = "Prefer the asymptotically fastest algorithm, and use little memory."
INDENT = " " * 4


def messages(task: Mapping, language: str, *, hint: bool) -> list[dict[str, str]]:
    """Chat messages that ask for a program: one of the user, with the instruction and the task's prompt.

    Args:
        task: `kind` and `prompt`, as in TASKS.
        hint: ask for speed and little memory too, in a sentence after the prompt.
    """
    request = FUNCTION if task["kind"] == "function" else PROGRAM
    prompt = task["prompt"].strip()
    if task["kind"] == "function":
        prompt = f"{FENCE}{language}\n{prompt}\n{FENCE}"
    parts = [request.format(title=TITLES[language], language=language), prompt, *([SPEED] if hint else [])]
    return [{"role": "user", "content": "\n\n".join(parts)}]


def prefill(task: Mapping, language: str) -> str:
    """The beginning of an answer: the fence, and of a function the code that is given up to one blank before its body.

    The last blank is left to the model, because the usual tokenizers write it together with the word that follows; small
    models which are given it close the block at once.

    >>> prefill({"kind": "function", "prompt": "def f(x: int) -> int:\\n    'Twice x.'\\n"}, "python")
    "```python\\ndef f(x: int) -> int:\\n    'Twice x.'\\n   "
    >>> prefill({"kind": "stdio", "prompt": "Add two numbers."}, "cpp")
    '```cpp\\n'
    """
    opening = f"{FENCE}{language}\n"
    if task["kind"] != "function":
        return opening
    given = task["prompt"].strip()
    return f"{opening}{given}\n{_indentation(given)[:-1]}"


def _indentation(given: str) -> str:
    """Of the docstring, which the body must share; else four blanks."""
    try:
        first = ast.parse(given).body[-1].body[0]
    except (SyntaxError, ValueError, LookupError, AttributeError):  # a function without a docstring has no body yet
        return INDENT
    return given.split("\n")[first.lineno - 1][: first.col_offset] or INDENT
