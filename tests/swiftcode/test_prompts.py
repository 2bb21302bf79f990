"""What a model is asked, and how its answer begins."""

import ast

import pytest

from tasks.swiftcode.params import LANGUAGES
from tasks.swiftcode.prompts import SPEED, messages, prefill

FUNCTION = {
    "kind": "function",
    "prompt": 'def twice(x: int) -> int:\n    """Return twice x.\n\n    >>> twice(2)\n    4\n    """\n',
}
PROGRAM = {"kind": "stdio", "prompt": "Add the two numbers on the line.\n"}


@pytest.mark.parametrize("hint", [False, True])
def test_a_function_is_asked_for_with_its_code_and_for_speed_on_request_only(hint):
    (message,) = messages(FUNCTION, "python", hint=hint)
    assert message["role"] == "user"
    assert f"```python\n{FUNCTION['prompt'].strip()}\n```" in message["content"]
    assert "Python function" in message["content"]
    assert (SPEED in message["content"]) == hint


def test_a_program_is_asked_for_with_its_statement_in_words():
    (message,) = messages(PROGRAM, "cpp", hint=False)
    assert "complete C++ program" in message["content"]
    assert message["content"].endswith(PROGRAM["prompt"].strip()), "the statement is no code"
    assert "one fenced cpp code block" in message["content"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_a_name(language):
    (message,) = messages(PROGRAM, language, hint=True)
    assert "{" not in message["content"]
    assert prefill(PROGRAM, language) == f"```{language}\n"


@pytest.mark.parametrize(
    "given",
    [
        FUNCTION["prompt"],
        "def f(x):\n    '''Deeper\n            text'''\n\n",
        "import math\n\n\ndef helper():\n    return 1\n\n\ndef f(x):\n  'Two blanks.'",
        "def f(x):\n\t'A tab.'",
        "def f(x):\n",
        "def f(x: int) -> int:",
    ],
)
def test_a_body_behind_the_prefill_is_the_functions_own(given):
    begun = prefill({"kind": "function", "prompt": given}, "python")
    assert begun.startswith("```python\n" + given.strip())
    blank = "\t" if "\t" in given else " "
    tree = ast.parse(begun.removeprefix("```python\n") + f"{blank}return 7\n")
    assert ast.unparse(tree.body[-1].body[-1]) == "return 7"
