"""Steps partition a response's characters and tokens, whatever stands in it."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tasks.prm.segmentation import Step, response_steps, segment
from tests.workspace import shared_folder

RULES = ("blank_line", "step_marker", "newline")
PIECES = ["\n", "\n\n", "\r\n", "\r\n\r\n", " ", "\t", "\x85", "\u2003", "\u200b"]  # the last one is no white space
PIECES += ["Step 1:", "Step 12:", "Step :", "a", "1+2=3.", "é", "e\u0301", "\U0001f469\u200d\U0001f467"]
texts = st.one_of(st.text(max_size=30), st.lists(st.sampled_from(PIECES), max_size=12).map("".join))


@st.composite
def tokenised(draw):
    """(text, offsets): a text cut anywhere, some tokens without characters, an end token or none."""
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))  # equal cuts: a token without characters
    offsets = list(itertools.pairwise([0, *cuts, len(text)]))
    return text, offsets + [(len(text), len(text))] * draw(st.integers(0, 1))


def assert_partition(spans: list[tuple[int, int]], length: int) -> None:
    assert spans[0][0] == 0
    assert spans[-1][1] == length
    assert all(left[1] == right[0] for left, right in itertools.pairwise(spans))


@given(texts, st.sampled_from(RULES))
@example("", "blank_line")
@example("\n\n \n\n", "blank_line")
@example("Step 1:", "step_marker")
@example("a\r\n\r\n", "newline")
def test_steps_partition_the_text_and_none_is_blank(text, how):
    spans = segment(text, how)
    assert_partition(spans, len(text))
    assert all(begin < end for begin, end in spans) or spans == [(0, 0)]
    if text.strip():
        assert all(text[begin:end].strip() for begin, end in spans)
    else:
        assert spans == [(0, len(text))]
    # a second cut of a step finds nothing more to cut in it
    assert all(len(segment(text[begin:end], how)) == 1 for begin, end in spans)


@given(texts)
def test_newlines_and_markers_cut_where_the_text_says(text):
    lines = [line for line in text.split("\n") if line.strip()]
    assert len(segment(text, "newline")) == max(len(lines), 1)
    blocks = [block for block in re.split(r"\n\s*\n", text) if block.strip()]
    assert len(segment(text, "blank_line")) == max(len(blocks), 1)
    assert len(segment(text, "step_marker")) == max(len(re.findall(r"Step \d+:", text)), 1)


@pytest.mark.parametrize(
    ("how", "text", "steps"),
    [
        ("blank_line", "", [""]),
        ("blank_line", "one", ["one"]),
        ("blank_line", "a\n\nb\n\nc", ["a\n\n", "b\n\n", "c"]),
        ("blank_line", "a\nb\n\nc", ["a\nb\n\n", "c"]),
        ("blank_line", "a\r\n\r\nb", ["a\r\n\r\n", "b"]),
        ("blank_line", "a\n \t\n\n\n  b", ["a\n \t\n\n\n", "  b"]),
        ("blank_line", "\n\na\n\nb\n\n", ["\n\na\n\n", "b\n\n"]),
        ("blank_line", "a\n\n \u2003", ["a\n\n \u2003"]),
        ("blank_line", " \n\n ", [" \n\n "]),
        ("newline", "a\nb\r\nc", ["a\n", "b\r\n", "c"]),
        ("newline", "a\n\n\nb\n", ["a\n\n\n", "b\n"]),
        ("step_marker", "Step 1: a\nStep 2: b", ["Step 1: a\n", "Step 2: b"]),
        ("step_marker", "So:\n\nStep 1: a. Step 2: as in step 1: b", ["So:\n\nStep 1: a. ", "Step 2: as in step 1: b"]),
        ("step_marker", "Step one: a\n\nStep : b", ["Step one: a\n\nStep : b"]),
        ("step_marker", "Step 1:Step 2:", ["Step 1:", "Step 2:"]),
    ],
)
def test_by_hand(how, text, steps):
    assert [text[begin:end] for begin, end in segment(text, how)] == steps


def test_a_rule_of_ones_own():
    def sentences(text):
        cuts = [found.end() for found in re.finditer(r"\.\s", text)]
        return np.array(list(itertools.pairwise([0, *cuts, len(text)])))  # numpy integers are whole numbers too

    assert segment("One. Two. Three", sentences) == [(0, 5), (5, 10), (10, 15)]
    assert segment("a b", lambda text: [(0, 1), (1, 2), (2, 3)]) == [(0, 2), (2, 3)]
    assert segment("", lambda text: []) == [(0, 0)]
    assert segment("", lambda text: [(0, 0)]) == [(0, 0)]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([(0, 2)], "how returns spans up to 2; allowed: spans that reach the text's end, 4"),
        ([], "how returns spans up to 0; allowed: spans that reach the text's end, 4"),
        ([(0, 2), (3, 4)], "how returns (3, 4) as span 1; allowed: from 2 to more, up to 4"),
        ([(0, 3), (2, 4)], "how returns (2, 4) as span 1; allowed: from 3 to more, up to 4"),
        ([(0, 2), (2, 2), (2, 4)], "how returns (2, 2) as span 1; allowed: from 2 to more, up to 4"),
        ([(0, 5)], "how returns (0, 5) as span 0; allowed: from 0 to more, up to 4"),
        ([(0, 4.0)], "how returns something else than a list of spans (begin, end) of whole numbers"),
        ([0, 4], "how returns something else than a list of spans (begin, end) of whole numbers"),
        (["one"], "how returns something else than a list of spans (begin, end) of whole numbers"),
        (None, "how returns something else than a list of spans (begin, end) of whole numbers"),
    ],
)
def test_a_rule_that_does_not_partition_is_refused(found, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        segment("text", lambda text: found)


def test_unknown_rules_are_refused():
    with pytest.raises(
        ValueError, match=r"^how is 'word'; allowed: 'blank_line', 'step_marker', 'newline', or a function$"
    ):
        segment("text", "word")
    with pytest.raises(ValueError, match=r"^how is 'token', which needs the tokens; allowed here: 'blank_line', "):
        segment("text", "token")
    with pytest.raises(ValueError, match=r"^how is 'word'; "):
        response_steps("text", [(0, 4)], "word")


@given(tokenised(), st.sampled_from([*RULES, "token"]))
def test_every_character_and_every_token_lies_in_one_step_and_no_step_lacks_tokens(response, how):
    text, offsets = response
    steps = response_steps(text, offsets, how)
    assert_partition([(step.start_char, step.end_char) for step in steps], len(text))
    assert_partition([(step.start_token, step.end_token) for step in steps], len(offsets))
    assert all(step.start_token < step.end_token for step in steps)
    # the partition is what makes the steps' rewards add up to the response's
    rewards = np.random.default_rng(len(text)).normal(size=len(offsets))
    assert sum(rewards[s.start_token : s.end_token].sum() for s in steps) == pytest.approx(rewards.sum())


@given(tokenised(), st.sampled_from(RULES))
def test_tokens_lie_in_the_step_of_their_first_visible_character(response, how):
    text, offsets = response
    borders = {begin for begin, _ in segment(text, how)}
    for step in response_steps(text, offsets, how):
        assert step.start_char in borders  # steps are whole pieces of the text
        for begin, end in offsets[step.start_token : step.end_token]:
            visible = next((i for i in range(begin, end) if not text[i].isspace()), begin)
            assert step.start_char <= visible
            assert visible < step.end_char or visible == len(text)


@given(texts, st.sampled_from(RULES), st.booleans())
def test_one_token_a_character_changes_no_step(text, how, finished):
    offsets = [(i, i + 1) for i in range(len(text))] + [(len(text), len(text))] * finished
    steps = response_steps(text, offsets, how)
    assert [(step.start_char, step.end_char) for step in steps] == segment(text, how)
    assert len(steps) == len(segment(text, how))


@pytest.mark.parametrize(
    ("text", "tokens", "steps"),
    [
        ("", [], [(0, 0, 0, 0)]),
        ("", [""], [(0, 0, 0, 1)]),  # only the end token
        ("ab", [], [(0, 2, 0, 0)]),
        ("a.\n\nb", ["a", ".\n\n", "b", ""], [(0, 4, 0, 2), (4, 5, 2, 4)]),  # the mark and its separator in one token
        ("a\n\nb", ["a", "\n", "\n", "b"], [(0, 3, 0, 3), (3, 4, 3, 4)]),
        ("a\n\n b", ["a", "\n\n ", "b"], [(0, 3, 0, 2), (3, 5, 2, 3)]),  # white space over the border closes the step
        ("a\n\nb", ["a", "\n", "\nb"], [(0, 3, 0, 2), (3, 4, 2, 3)]),  # the next step's first visible character
        ("a\n\nb\n\nc", ["a\n\nb\n\n", "c"], [(0, 6, 0, 1), (6, 7, 1, 2)]),  # a token over a whole step
        ("a\n\nb\n\nc", ["a\n\nb\n\nc", ""], [(0, 6, 0, 1), (6, 7, 1, 2)]),  # the end token stays with the last step
        ("a\n\nb\n\n", ["a", "\n\n", "b", "\n\n", ""], [(0, 3, 0, 2), (3, 6, 2, 5)]),
        ("a\n\nb", ["a", "\n\n", "", "", "b"], [(0, 3, 0, 2), (3, 4, 2, 5)]),  # parts of one character
    ],
)
def test_tokens_by_hand(text, tokens, steps):
    ends = list(itertools.accumulate(map(len, tokens)))
    offsets = list(itertools.pairwise([0, *ends]))
    assert response_steps(text, offsets) == [Step(*step) for step in steps]


def test_a_step_without_a_token_joins_a_neighbour():
    text = "a\n\nb\n\nc"
    assert response_steps(text, [(3, 6), (6, 7)]) == [Step(0, 6, 0, 1), Step(6, 7, 1, 2)]  # the first: the next one
    assert response_steps(text, [(0, 3), (6, 7)]) == [Step(0, 6, 0, 1), Step(6, 7, 1, 2)]  # the others: the one before
    assert response_steps(text, [(0, 3)]) == [Step(0, 7, 0, 1)]


def test_no_token_goes_back_to_a_closed_step():
    assert response_steps("a\n\nb", [(3, 4), (0, 1), (4, 4)]) == [Step(0, 4, 0, 3)]


def test_each_token_is_a_step():
    assert response_steps("😀a", [(0, 1), (0, 1), (1, 2), (2, 2)], "token") == [
        Step(0, 1, 0, 1), Step(1, 1, 1, 2), Step(1, 2, 2, 3), Step(2, 2, 3, 4),
    ]  # fmt: skip
    assert response_steps("ab ", [(0, 1), (1, 2)], "token") == [Step(0, 1, 0, 1), Step(1, 3, 1, 2)]
    assert response_steps("", [], "token") == [Step(0, 0, 0, 0)]
    assert response_steps("", [(0, 0)], "token") == [Step(0, 0, 0, 1)]


@pytest.mark.parametrize("offset", [(0, 5), (-1, 2), (3, 2)])
def test_offsets_outside_the_text_are_refused(offset):
    message = rf"^offsets\[1\] is \({offset[0]}, {offset[1]}\); allowed: spans within the 4 characters of the text$"
    with pytest.raises(ValueError, match=message):
        response_steps("text", [(0, 1), offset], "token")


def test_published_solutions_are_cut_as_their_annotators_cut_them():
    table = pd.read_parquet(shared_folder("data", "prm") / "champ_steps.parquet")
    assert len(table) == 540
    for row in table.itertuples():
        how = "blank_line" if re.search(r"\n\s*\n", row.text.strip()) else "newline"
        spans = segment(row.text, how)
        assert [row.text[begin:end].strip() for begin, end in spans] == list(row.steps), row.solution_id
