"""Outcome labels: the answer that a response gives, and whether it is the right one.

An answer that cannot be read is missing and not correct; a response without its end (cut at the longest length) is
never correct, whatever stands in it.
"""

import re
import threading
from dataclasses import dataclass
from fractions import Fraction

from tasks.prm import chain, reasoning
from tasks.stage import UserError

LONGEST = 400  # characters of a number; Python itself refuses to read whole numbers of more than 4300 digits
LARGEST_EXPONENT = 400


@dataclass(frozen=True)
class Grade:
    """What a response is worth."""

    answer: str | None  # as votes count it: equal texts are equal answers; None where none could be read
    correct: bool
    first_wrong: (
        int | None
    )  # character at which the first wrong step begins, -1: none is, None: this grader knows no steps


def grade(
    grader: str,
    response: str,
    answer: str,
    *,
    finished: bool = True,
    prompt: str | None = None,
    metadata: str | None = None,
) -> Grade:
    """Compare a response's answer with the problem's `answer`, by one of ``params.GRADERS``:

    * ``chain``: the whole number of the last line that begins with ``Answer:``, digit by digit the same; `prompt` is
      needed for the steps (`chain.first_wrong`);
    * ``number``: the last number of the response (`read_number`) has the same value;
    * ``exact``: the response without outer white space is the same text;
    * ``boxed``: the content of the last ``\\boxed{}``, after `normalise`, is the same text;
    * ``math_verify``: equal by the library of this name, which reads LaTeX and plain expressions (only in the main
      thread: it interrupts itself by a signal, after 5 s of reading and 5 s of comparing);
    * ``reasoning_gym``: the score of the generator that made the problem is 1; `metadata` is its entry as JSON. It gets
      the text within the last ``<answer>`` element, else after the last ``Answer:`` of a line, else the whole response.

    Raises:
        ValueError: no such grader; a chain's `prompt` that is none.
        UserError: the library of the grader is not installed.

    >>> grade("number", "that makes 1,000 - 958 = 42.0 in all.", "42")
    Grade(answer='42', correct=True, first_wrong=None)
    """
    first_wrong = None
    if grader == "chain":
        found = _last(_CHAIN_ANSWER, response)
        same = found == answer
        first_wrong = chain.first_wrong(prompt or "", response)
    elif grader == "number":
        value, true = read_number(response), read_number(answer)
        found = None if value is None else str(value)
        same = value == true
    elif grader == "exact":
        found = response.strip() or None
        same = found == answer.strip()
    elif grader == "boxed":
        content = last_boxed(response)
        found = None if content is None else normalise(content) or None
        same = found == normalise(last_boxed(answer) or answer)
    elif grader == "math_verify":
        found, same = _math_verify(response, answer)
    elif grader == "reasoning_gym":
        found = final_text(response) or None
        same = found is not None and reasoning.score(found, metadata) == 1
    else:
        raise ValueError(f"grader {grader!r} is not known")
    return Grade(found, bool(found is not None and same and finished), first_wrong)


def check_problem(grader: str, prompt: str, answer: str) -> None:
    """Refuse a problem that `grade` could never find solved.

    Raises:
        ValueError: no number (grader number); no chain, or another result (grader chain); an empty answer.
    """
    if grader == "number" and read_number(answer) is None:
        raise ValueError(f"answer {answer!r} holds no number, which grader number compares")
    if grader == "chain" and answer != chain.true_answer(prompt):
        raise ValueError(f"answer {answer!r} is not the chain's, which is {chain.true_answer(prompt)}")
    if not (normalise(last_boxed(answer) or answer) if grader == "boxed" else answer.strip()):
        raise ValueError(f"answer {answer!r} is empty for grader {grader}")


def read_number(text: str) -> Fraction | None:
    """The last number of a text, exactly; None where there is none, or one too long to be meant.

    Understood: a sign that nothing is subtracted from (``3-4`` ends with 4, ``x = -4`` with -4), thousands
    (``1,234.5``), decimals, exponents (``1.5e3``) and fractions of two numbers (``3/4``); dollar and percent signs are
    passed over.

    >>> [str(read_number(text)) for text in ("1,234.50 $", "-3/4", "3-4", "2, 3", "none", "1e999999")]
    ['2469/2', '-3/4', '4', '3', 'None', 'None']
    """
    matches = list(_NUMBER.finditer(text.replace("\N{MINUS SIGN}", "-")))
    if not matches or len(matches[-1][0]) > LONGEST:
        return None
    sign, above, below = matches[-1].groups()
    parts = [_exact(above), _exact(below or "1")]
    if None in parts or parts[1] == 0:
        return None
    value = parts[0] / parts[1]
    return -value if sign == "-" else value


def last_boxed(text: str) -> str | None:
    """What stands within the last ``\\boxed{}``, its braces balanced; None where there is none or it does not close.

    >>> last_boxed(r"first \\boxed{1}, then \\boxed{\\frac{1}{2}}.")
    '\\\\frac{1}{2}'
    """
    begin = text.rfind("\\boxed{")
    if begin < 0:
        return None
    begin += len("\\boxed{")
    depth = 1
    for brace in _BRACE.finditer(text, begin):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return text[begin : brace.start()]
    return None


def normalise(latex: str) -> str:
    """LaTeX without what does not change its meaning: spaces, ``$``, ``\\left``, ``\\right``, the size of fractions, a
    final full stop.

    >>> normalise(r"$\\left( \\dfrac{1}{2},\\, 3 \\right).$")
    '(\\\\frac{1}{2},3)'
    """
    text = re.sub(r"\\(?:left|right)(?![a-zA-Z])", "", latex)
    text = re.sub(r"\\[dt]frac(?![a-zA-Z])", r"\\frac", text)
    text = re.sub(r"\\[,;:! ]|\\q?quad(?![a-zA-Z])|[\s$~]", "", text)
    return text.removesuffix(".")


def final_text(response: str) -> str:
    """The part of a response that is its answer, see `grade`: reasoning_gym.

    >>> final_text("so\\nAnswer: 4 + 4\\n"), final_text("I think <answer> 8 </answer>."), final_text(" 8 ")
    ('4 + 4', '8', '8')
    """
    for pattern in (_ELEMENT, _ANSWER_LINE):
        found = _last(pattern, response)
        if found is not None:
            return found.strip()
    return response.strip()


_CHAIN_ANSWER = re.compile(r"^Answer:(?:(-?[0-9]+)$)?", re.MULTILINE)
_DIGITS = r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NUMBER = re.compile(rf"(?:(?<![\w)\].])([+-]))?\$?({_DIGITS})(?:/({_DIGITS}))?")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_ELEMENT = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_ANSWER_LINE = re.compile(r"^Answer:(.*)$", re.MULTILINE)


def _last(pattern: re.Pattern, text: str) -> str | None:
    """The group of the last match; None where there is no match or the last one lacks its group."""
    found = None
    for match in pattern.finditer(text):
        found = match[1]
    return found


def _exact(number: str) -> Fraction | None:
    mantissa, _, exponent = number.lower().replace(",", "").partition("e")
    # an exponent of a billion would fill the memory
    if exponent and (len(exponent) > 6 or abs(int(exponent)) > LARGEST_EXPONENT):
        return None
    return Fraction(mantissa) * Fraction(10) ** int(exponent or 0)


def _math_verify(response: str, answer: str) -> tuple[str | None, bool]:
    try:
        from math_verify import parse, verify
    except ImportError:
        raise UserError(
            "grader math_verify needs the package math-verify; "
            "install the project with its extra: pip install -c constraints.txt -e '.[math-verify]'"
        ) from None
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("grader math_verify: its library sets signals and so grades in the main thread only")
    # plain LaTeX is read only inside a box or dollar signs; without them \frac12 is nothing and 9^{9} is 9
    true = answer if "\\boxed" in answer or "$" in answer else f"\\boxed{{{answer}}}"
    try:
        found = parse(response)
        texts = [
            part for part in found if isinstance(part, str)
        ]  # the expressions themselves can take forever to print
        return normalise(texts[-1]) if texts else None, bool(verify(parse(true), found))
    except Exception:  # of sympy and antlr, over whatever a model wrote
        return None, False
