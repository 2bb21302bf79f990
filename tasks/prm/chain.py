"""Arithmetic chains: problems of a few operations whose every step can be checked.

A start number and some operations, worked strictly from left to right (no precedence)::

    Q:34-3+18*2              the prompt, and a line break

    Step 1:34-3=31           the worked solution: one step an operation, blank lines between
    Step 2:31+18=49
    Step 3:49*2=98
    Answer:98

A problem is drawn from left to right: the start is uniform on 10..60; an operation is + or − with probability 0.4 each
and × with 0.2; operands are uniform on 2..29 for + and −, on 2..3 for ×; an operation (with its operand) whose result
would leave 0..99 is drawn again. No two prompts are the same problem, so sets of prompts make splits.
"""

import operator
import re
from collections.abc import Collection, Iterator
from functools import cache

import numpy as np

# every text that prompts and worked solutions are made of; ? lets a generator be asked for what is unknown
SYMBOLS = ["Q:", "Answer:", "\n", "\n\n", *(f"Step {i}:" for i in range(1, 10)), *"0123456789", *"+-*=?"]
MAX_OPERATIONS = 9
STARTS = range(10, 61)
RESULTS = range(0, 100)
CHOICES = "+-+-*"  # drawn with equal probability
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
OPERANDS = {"+": range(2, 30), "-": range(2, 30), "*": range(2, 4)}
BLOCK = 1024  # problems drawn at a time: one at a time is many times slower


def draw(
    operations: int, number: int, generator: np.random.Generator, exclude: Collection[str] = frozenset()
) -> list[str]:
    """`number` different prompts, none of them in `exclude` (a set, else slow), in the order in which they were drawn.

    Raises:
        ValueError: `operations` outside 1..9, or more prompts taken (excluded ones too) than half of those there are:
            drawing again and again would not end.

    >>> draw(2, 2, np.random.default_rng(1))
    ['Q:34+21-8\\n', 'Q:36-23-3\\n']
    """
    _check(operations, number + len(exclude))
    found: dict[str, None] = {}
    for prompt in _stream(operations, generator):
        if len(found) == number:
            break
        if prompt not in exclude:
            found[prompt] = None
    return list(found)


def worked(
    operations: int, generator: np.random.Generator, exclude: Collection[str] = frozenset()
) -> Iterator[tuple[str, str]]:
    """Prompts with worked solutions without end, drawn independently (a problem may come again), none in `exclude`.

    Raises:
        ValueError: as `draw`, at the first one.
    """
    _check(operations, len(exclude))
    for prompt in _stream(operations, generator):
        if prompt not in exclude:
            yield prompt, solution(prompt)


@cache
def n_problems(operations: int) -> int:
    """How many different problems there are.

    >>> [n_problems(k) for k in (1, 2, 3)]
    [2730, 142068, 7284428]
    """
    ways = np.ones(len(RESULTS), dtype=object)  # continuations of each intermediate result; whole numbers of any size
    for _ in range(operations):
        ways = np.array([sum(ways[r] for r in _results(value)) for value in RESULTS], dtype=object)
    return int(sum(ways[start] for start in STARTS))


def solution(prompt: str) -> str:
    """The worked solution.

    >>> solution("Q:34-3+18*2\\n")
    'Step 1:34-3=31\\n\\nStep 2:31+18=49\\n\\nStep 3:49*2=98\\n\\nAnswer:98'
    """
    return "\n\n".join(replay(prompt))


def replay(prompt: str) -> list[str]:
    """The true steps and, last, the line of the answer.

    Raises:
        ValueError: not the prompt of a chain of 1 to 9 operations.

    >>> replay("Q:34-3\\n")
    ['Step 1:34-3=31', 'Answer:31']
    """
    match = _PROMPT.fullmatch(prompt)
    if match is None:
        raise ValueError(f"{prompt!r} is not the prompt of a chain, such as 'Q:34-3+18*2\\n'")
    value, steps = int(match[1]), []
    for i, (sign, operand) in enumerate(_OPERATION.findall(match[2]), start=1):
        result = OPERATIONS[sign](value, int(operand))
        steps.append(f"Step {i}:{value}{sign}{operand}={result}")
        value = result
    return [*steps, f"Answer:{value}"]


def true_answer(prompt: str) -> str:
    """The final result, in digits. Raises ValueError as `replay`."""
    return replay(prompt)[-1].removeprefix("Answer:")


def first_wrong(prompt: str, response: str) -> int:
    """The character of `response` at which the first wrong step begins; -1 where none is wrong.

    Steps are the blocks of lines between blank lines. The first one whose text differs from the true one is wrong, be
    it a false result, a false operand, garbage, a step more after the answer or an answer before the last operation.
    Where all steps are true but some lack (or the answer), the last one is wrong: it ends where it should have gone on.
    A response without any block is wrong from 0.

    Raises:
        ValueError: as `replay`.

    >>> first_wrong("Q:34-3+2\\n", "Step 1:34-3=31\\n\\nStep 2:31+2=34\\n\\nAnswer:34")
    16
    """
    true, begin, n_steps = replay(prompt), 0, 0
    for i, block in enumerate(_BLOCK.finditer(response)):
        begin, n_steps = block.start(), i + 1
        if i >= len(true) or block[0] != true[i]:
            return begin
    return -1 if n_steps == len(true) else begin


_PROMPT = re.compile(r"Q:([0-9]{1,2})((?:[+*-][0-9]{1,2}){1,9})\n")
_OPERATION = re.compile(r"([+*-])([0-9]+)")
_BLOCK = re.compile(r"[^\n]+(?:\n[^\n]+)*")


def _check(operations: int, taken: int) -> None:
    if not 1 <= operations <= MAX_OPERATIONS:
        raise ValueError(f"operations: {operations} is not allowed; 1 to {MAX_OPERATIONS} are")
    if 2 * taken > n_problems(operations):
        raise ValueError(
            f"{taken} different problems are wanted; of {operations} operations there are {n_problems(operations)}, "
            "and at most half of them can be used"
        )


def _results(value: int) -> list[int]:
    """The allowed results of every operation on a value."""
    found = [OPERATIONS[sign](value, operand) for sign, operands in OPERANDS.items() for operand in operands]
    return [result for result in found if result in RESULTS]


def _stream(operations: int, generator: np.random.Generator) -> Iterator[str]:
    """Prompts without end, a block of arrays at a time."""
    while True:
        value = generator.integers(STARTS.start, STARTS.stop, BLOCK)
        columns = [value.tolist()]
        for _ in range(operations):
            signs, operands = np.zeros((2, BLOCK), dtype=np.int64)
            result = np.full(BLOCK, -1)
            while len(again := np.flatnonzero((result < RESULTS.start) | (result >= RESULTS.stop))):
                signs[again] = generator.integers(len(CHOICES), size=len(again))
                operands[again], result[again] = _apply(signs[again], value[again], generator)
            columns += [[CHOICES[i] for i in signs], operands.tolist()]
            value = result
        for parts in zip(*columns, strict=True):
            yield f"Q:{''.join(map(str, parts))}\n"


def _apply(signs: np.ndarray, value: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(operands, results) of an operation each."""
    low, high = np.array([[OPERANDS[sign].start, OPERANDS[sign].stop] for sign in CHOICES]).T
    operands = generator.integers(low[signs], high[signs])
    return operands, np.choose(signs, [OPERATIONS[sign](value, operands) for sign in CHOICES])
