"""Arithmetic chains: what is drawn, how often, and which step of a response is the first wrong one."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.lm.tiny import build_tokenizer
from tasks.prm import chain
from tasks.prm.segmentation import segment

PROMPT = "Q:34-3+18*2\n"
WORKED = "Step 1:34-3=31\n\nStep 2:31+18=49\n\nStep 3:49*2=98\n\nAnswer:98"


def draws(operations, number, seed=1, exclude=frozenset()):
    return chain.draw(operations, number, np.random.default_rng(seed), exclude)


def test_the_example_of_the_specification():
    assert chain.solution(PROMPT) == WORKED
    assert chain.replay(PROMPT) == WORKED.split("\n\n")
    assert chain.true_answer(PROMPT) == "98"
    assert chain.first_wrong(PROMPT, WORKED) == -1


@pytest.mark.parametrize("operations", [1, 3, 9])
def test_drawn_problems_follow_the_rules(operations):
    prompts = draws(operations, 500)
    assert len(set(prompts)) == 500
    for prompt in prompts:
        start, *rest = re.fullmatch(r"Q:(\d+)((?:[+*-]\d+)+)\n", prompt).groups()
        pairs = re.findall(r"([+*-])(\d+)", rest[0])
        assert len(pairs) == operations
        assert 10 <= int(start) <= 60
        value = int(start)
        for sign, operand in pairs:
            assert int(operand) in (range(2, 4) if sign == "*" else range(2, 30))
            value = {"+": value + int(operand), "-": value - int(operand), "*": value * int(operand)}[sign]
            assert 0 <= value <= 99
        assert chain.true_answer(prompt) == str(value)


def test_an_operation_is_drawn_again_together_with_its_operand():
    # from 30 every sum and difference and both products are allowed, so nothing is drawn again
    generator = np.random.default_rng(2)
    prompts = [prompt for prompt, _ in itertools.islice(chain.worked(1, generator), 60_000)]
    of_30 = [re.fullmatch(r"Q:30([+*-])(\d+)\n", prompt) for prompt in prompts if prompt.startswith("Q:30")]
    signs = np.array([match[1] for match in of_30])
    assert len(signs) == pytest.approx(60_000 / 51, abs=4 * np.sqrt(60_000 / 51))
    assert [(signs == sign).mean() for sign in "+-*"] == pytest.approx([0.4, 0.4, 0.2], abs=0.06)
    # from 60 the product by 2 is refused as well as that by 3 and sums above 99 cannot be: + and - share all draws
    of_60 = [prompt for prompt in prompts if prompt.startswith("Q:60")]
    assert len(of_60) > 1000
    assert not [prompt for prompt in of_60 if "*" in prompt]
    assert np.mean(["+" in prompt for prompt in of_60]) == pytest.approx(0.5, abs=0.06)


def test_every_symbol_is_in_the_vocabulary():
    tokenizer = build_tokenizer(chain.SYMBOLS)
    for prompt in draws(9, 50):
        text = prompt + chain.solution(prompt)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert tokenizer.unk_token_id not in ids
        assert tokenizer.decode(ids) == text
    ids = tokenizer(WORKED, add_special_tokens=False)["input_ids"]
    assert len(ids) + 1 == 32  # the end token is the one more


def test_the_same_seed_draws_the_same_and_a_longer_list_begins_alike():
    assert draws(3, 50) == draws(3, 2000)[:50]
    assert draws(3, 50) != draws(3, 50, seed=2)


def test_excluded_prompts_are_never_drawn():
    test = set(draws(1, 600, seed=3))
    assert not test & set(draws(1, 600, seed=4, exclude=test))
    solutions = itertools.islice(chain.worked(1, np.random.default_rng(5), test), 20_000)
    seen = {prompt for prompt, _ in solutions}
    assert not seen & test
    assert len(seen) > 1500  # nearly all others came


def test_worked_solutions_belong_to_their_prompts():
    for prompt, solution in itertools.islice(chain.worked(3, np.random.default_rng(6)), 2000):
        assert solution == chain.solution(prompt)
        assert solution.count("\n\n") == 3


@pytest.mark.parametrize("operations", [1, 2])
def test_the_number_of_problems_is_that_of_all_that_can_be_written(operations):
    def count(value, left):
        if not left:
            return 1
        results = [value + n for n in range(2, 30)] + [value - n for n in range(2, 30)] + [value * 2, value * 3]
        return sum(count(result, left - 1) for result in results if 0 <= result <= 99)

    assert chain.n_problems(operations) == sum(count(start, operations) for start in range(10, 61))


def test_more_problems_than_can_be_drawn_are_refused():
    assert len(draws(1, 1365)) == 1365  # half of 2730
    with pytest.raises(ValueError, match=r"1366 different problems are wanted; of 1 operations there are 2730, and"):
        draws(1, 1366)
    with pytest.raises(ValueError, match="1366 different problems"):
        draws(1, 1, exclude=set(map(str, range(1365))))
    with pytest.raises(ValueError, match="1366 different problems"):
        next(chain.worked(1, np.random.default_rng(1), set(map(str, range(1366)))))
    for operations in (0, 10):
        with pytest.raises(ValueError, match=f"operations: {operations} is not allowed; 1 to 9 are"):
            draws(operations, 1)


@pytest.mark.parametrize("prompt", ["", "Q:\n", "Q:34\n", "Q:34-3", "34-3\n", "Q:34/3\n", "Q:34-3\n\n", "Q:3４-3\n"])
def test_what_is_no_chain_is_refused(prompt):
    with pytest.raises(ValueError, match="is not the prompt of a chain"):
        chain.replay(prompt)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (WORKED.replace("49*2=98", "49*2=88"), 33),  # a false result; the answer line is true
        (WORKED.replace("31+18=49", "31+17=48"), 16),  # another operand
        (WORKED.replace("Answer:98", "Answer:99"), 49),
        (WORKED.replace("Step 2", "Step 3"), 16),
        (WORKED.replace("Step 1:", "Step 1: "), 0),
        ("Step 1:34-3=31\n\nAnswer:98", 16),  # an answer before its time
        ("Step 1:34-3=31\n\nStep 2:31+18=49\n\nStep 3:49*2=98", 33),  # no answer: the last step should have gone on
        ("Step 1:34-3=31\n\nStep 2:31+18=49\n\n", 16),
        ("Step 1:34-3=31\n\nStep 2:31+1", 16),  # cut
        ("Answer:98", 0),
        (WORKED + "\n\nStep 4:98+1=99", 60),  # a step more
        (WORKED + "\n\nAnswer:98", 60),
        (WORKED + "\n\nAnswer:98\n\nAnswer:98", 60),
        (WORKED + "\nStep", 49),  # of the answer's block
        ("garbage", 0),
        ("", 0),
        ("\n\n", 0),
        (WORKED.replace("\n\n", "\n"), 0),  # one block
        (WORKED.replace("\n\n", "\n\n\n"), -1),  # one line break more separates as well
        (WORKED + "\n\n", -1),
        ("\n\n" + WORKED, -1),
    ],
)
def test_the_first_wrong_step(response, expected):
    assert chain.first_wrong(PROMPT, response) == expected


@given(st.lists(st.sampled_from([*chain.SYMBOLS, *WORKED.split("\n\n")]), max_size=25).map("".join))
def test_the_first_wrong_step_is_the_beginning_of_one(response):
    found = chain.first_wrong(PROMPT, response)
    if response.strip("\n"):
        inside = [begin <= found < end for begin, end in segment(response, "blank_line")]
        assert sum(inside) == (found >= 0)
        before = [block for block in response[: max(found, 0)].split("\n\n") if block.strip("\n")]
        assert [block.strip("\n") for block in before] == chain.replay(PROMPT)[: len(before)]
    else:
        assert found == 0
