"""What the steps of a response are: a rule cuts its text, and every token falls into exactly one step."""

import itertools
import operator
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

Span = tuple[int, int]  # half-open
Rule = str | Callable[[str], Iterable[Span]]

# where a step may begin: after what separates it from the one before, or before its own marker
BLANK_LINE = re.compile(r"\n\s*\n")
NEWLINE = re.compile(r"\n")
STEP_MARKER = re.compile(r"Step \d+:")


class Step(NamedTuple):
    """Half-open spans of one step in the response's text and in its tokens."""

    start_char: int
    end_char: int
    start_token: int
    end_token: int


def segment(text: str, how: Rule = "blank_line") -> list[Span]:
    r"""Cut a text into steps: spans (first character, character after the last) that follow each other without a gap.

    A separator belongs to the step that it closes. A piece of white space alone joins the piece before it, or the
    first step where there is none. An empty text is one empty step, so that a response always has a step.

    Args:
        how: "blank_line": after a line of white space (Windows line ends too); "newline": after each line;
            "step_marker": before each `Step <digits>:`, what stands before the first of them belongs to the first
            step; or a function of the text that returns such spans itself. "token" needs tokens: `response_steps`.

    Raises:
        ValueError: another `how`, or a function's spans do not partition the text; one line.

    Source of the marker: the evaluation code of Yuan et al. (arXiv 2412.01981); the paper defines no steps.

    >>> segment("a = 1\n\nb = 2\n \nc", "blank_line")
    [(0, 7), (7, 15), (15, 16)]
    >>> segment("First.\nStep 1: a\nStep 2: b", "step_marker")
    [(0, 17), (17, 26)]
    """
    if callable(how):
        spans = _checked(how(text), text)
    elif how in ("blank_line", "newline"):
        separator = BLANK_LINE if how == "blank_line" else NEWLINE
        spans = _between([found.end() for found in separator.finditer(text)], len(text))
    elif how == "step_marker":
        spans = _between([found.start() for found in STEP_MARKER.finditer(text)][1:], len(text))
    else:
        allowed = "'blank_line', 'step_marker', 'newline', or a function"
        if how == "token":
            raise ValueError(f"how is 'token', which needs the tokens; allowed here: {allowed}")
        raise ValueError(f"how is {how!r}; allowed: {allowed}")
    return _without_blanks(spans, text)


def response_steps(text: str, offsets: Sequence[Span], how: Rule = "blank_line") -> list[Step]:
    r"""The steps of a response with their tokens: each character and each token lies in exactly one step, in order.

    A token belongs to the step in which its first character that is no white space lies; one of white space alone to
    the step in which it begins; one without characters to the step of the character at its place, which at the end of
    the text (the end token) is the last step. A step that gets no token, because a token reaches over it, joins the
    one before it, or the one after it where it is the first. A response without tokens is one step without tokens.

    Args:
        offsets: (first character, character after the last) of each token in `text`, as `tasks.lm.tokens.
            response_offsets` gives them: end tokens at (length, length).
        how: a rule of `segment`, or "token": each token is a step, the end token too; of several tokens that make up
            one character, one gets the character and the others are steps without characters.

    Raises:
        ValueError: an offset lies outside the text, or what `segment` refuses; one line.

    >>> response_steps("a\n\nb", [(0, 1), (1, 3), (3, 4), (4, 4)], "blank_line")
    [Step(start_char=0, end_char=3, start_token=0, end_token=2), Step(start_char=3, end_char=4, start_token=2, end_token=4)]
    """
    for i, (begin, end) in enumerate(offsets):
        if not 0 <= begin <= end <= len(text):
            allowed = f"spans within the {len(text)} characters of the text"
            raise ValueError(f"offsets[{i}] is ({begin}, {end}); allowed: {allowed}")
    if not len(offsets):
        return [Step(0, len(text), 0, 0)]
    if how == "token":
        ends = [*itertools.accumulate((end for _, end in offsets[:-1]), max), len(text)]
        return [Step(*span, token, token + 1) for token, span in enumerate(itertools.pairwise([0, *ends]))]
    spans = segment(text, how)
    begins = [begin for begin, _ in spans]
    owners = [bisect_right(begins, _first_visible(text, *offset)) - 1 for offset in offsets]
    # tokens come in the text's order; should their offsets overlap oddly, none may go back to a step that is closed
    owners = [*itertools.accumulate(owners, max)]
    opening = [i for i in range(1, len(owners)) if owners[i] > owners[i - 1]]  # tokens; the first opens the first step
    tokens = itertools.pairwise([0, *opening, len(owners)])
    characters = itertools.pairwise([0, *(spans[owners[i]][0] for i in opening), len(text)])
    return [Step(*span, *part) for span, part in zip(characters, tokens, strict=True)]


def _between(cuts: list[int], length: int) -> list[Span]:
    return list(itertools.pairwise([0, *(cut for cut in cuts if cut < length), length]))


def _without_blanks(spans: list[Span], text: str) -> list[Span]:
    joined = [spans[0]]
    for begin, end in spans[1:]:
        # the text so far is blank only while its first step is
        if text[begin:end].isspace() or text[joined[-1][0] : begin].isspace():
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return joined


def _checked(spans: Iterable[Span], text: str) -> list[Span]:
    try:
        spans = [(operator.index(begin), operator.index(end)) for begin, end in spans]
    except (TypeError, ValueError):
        raise ValueError("how returns something else than a list of spans (begin, end) of whole numbers") from None
    at = 0
    for i, (begin, end) in enumerate(spans):
        if begin != at or not (begin < end <= len(text) or len(text) == end == 0):
            raise ValueError(f"how returns ({begin}, {end}) as span {i}; allowed: from {at} to more, up to {len(text)}")
        at = end
    if at != len(text):
        raise ValueError(f"how returns spans up to {at}; allowed: spans that reach the text's end, {len(text)}")
    return spans or [(0, 0)]


def _first_visible(text: str, begin: int, end: int) -> int:
    piece = text[begin:end]
    return begin if not piece or piece.isspace() else end - len(piece.lstrip())
