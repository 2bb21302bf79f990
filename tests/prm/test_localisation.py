"""First wrong steps: predictions, F1, the best threshold and AUC against brute force and tables made by hand."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.prm.localisation import (
    FalsePositives,
    Localisation,
    chance,
    choose_threshold,
    false_positives,
    first_below,
    first_wrong_auc,
    processbench_f1,
    wrong_steps,
)
from tasks.prm.segmentation import segment

pytestmark = pytest.mark.filterwarnings("error")


@st.composite
def responses(draw, both: bool = False):
    """[(rewards, first wrong step)], with many equal rewards; `both`: with a wrong step and without."""
    lists = st.lists(st.integers(-3, 3).map(lambda level: level / 4), min_size=1, max_size=4)
    found = [(r, draw(st.integers(-1, len(r) - 1))) for r in draw(st.lists(lists, min_size=1, max_size=6))]
    return found + [([draw(st.integers(-3, 3)) / 4], step) for step in (0, -1)] if both else found


def table(found) -> tuple[list[float], list[int], list[int]]:
    """(rewards, lengths, first_wrong)."""
    return list(itertools.chain(*(r for r, _ in found))), [len(r) for r, _ in found], [wrong for _, wrong in found]


def predict(rewards: list[float], threshold: float) -> int:
    return next((i for i, reward in enumerate(rewards) if reward < threshold), -1)


def f1(found, threshold: float) -> float:
    """ProcessBench's F1 as its authors count it."""
    hits = [(wrong, predict(rewards, threshold) == wrong) for rewards, wrong in found]
    erroneous = np.mean([hit for wrong, hit in hits if wrong != -1])
    correct = np.mean([hit for wrong, hit in hits if wrong == -1])
    return 2 * erroneous * correct / (erroneous + correct) if erroneous + correct else 0.0


def test_by_hand():
    # error at step 1, found · error at step 0, found later · no error, none found · no error, one found
    rewards, lengths, first_wrong = [1.0, -1.0, -9.0, 0.5, -0.5, 2.0, -0.1], [3, 2, 1, 1], [1, 0, -1, -1]
    predicted = first_below(rewards, lengths, 0.0)
    assert predicted.tolist() == [1, 1, -1, 0]
    assert predicted.dtype == np.int64
    assert processbench_f1(predicted, first_wrong) == Localisation(0.5, 0.5, 0.5)
    # right: 1.0, 2.0, -0.1; first wrong: -1.0, 0.5; the steps -9.0 and -0.5 follow an error
    assert first_wrong_auc(rewards, lengths, first_wrong) == 5 / 6
    threshold = choose_threshold(rewards, lengths, first_wrong)
    assert threshold == -0.55  # the first error is found, both free responses are left alone: F1 2/3
    assert processbench_f1(first_below(rewards, lengths, threshold), first_wrong) == Localisation(2 / 3, 0.5, 1.0)


def test_the_threshold_itself_is_not_below_it():
    assert first_below([0.5, 0.5], [1, 1], 0.5).tolist() == [-1, -1]
    assert first_below([0.5, 0.25], [2], 0.5).tolist() == [1]


@given(responses(), st.integers(-4, 4))
def test_predictions(found, level):
    rewards, lengths, _ = table(found)
    threshold = level / 4 + 0.1
    assert first_below(rewards, lengths, threshold).tolist() == [predict(r, threshold) for r, _ in found]


@pytest.mark.parametrize("seed", range(30))
def test_no_threshold_is_better_than_the_chosen_one(seed):
    generator = np.random.default_rng(seed)
    found = []
    for wrong in [-1, -1, -1, *generator.integers(0, 3, 6)]:
        rewards = generator.integers(0, 9, max(wrong, 0) + generator.integers(1, 4)) - 4.0
        rewards[wrong] -= 2 * (wrong >= 0)
        found.append((rewards.tolist(), int(wrong)))
    rewards, lengths, first_wrong = table(found)
    chosen = choose_threshold(rewards, lengths, first_wrong)
    reached = processbench_f1(first_below(rewards, lengths, chosen), first_wrong).f1
    assert reached == f1(found, chosen)
    # thresholds at, between and beyond all rewards are all that differ
    assert reached == max(f1(found, level / 2) for level in range(-15, 16))


@given(responses(both=True), st.randoms(use_true_random=False))
def test_the_order_of_responses_does_not_matter(found, random):
    mixed = random.sample(found, len(found))
    assert choose_threshold(*table(mixed)) == choose_threshold(*table(found))
    assert first_wrong_auc(*table(mixed)) == first_wrong_auc(*table(found))


@given(responses())
def test_auc_is_the_share_of_pairs_in_the_right_order(found):
    first = [rewards[wrong] for rewards, wrong in found if wrong >= 0]
    right = [reward for rewards, wrong in found for reward in (rewards if wrong < 0 else rewards[:wrong])]
    pairs = [(a < b) + (a == b) / 2 for a in first for b in right]
    expected = pytest.approx(np.mean(pairs)) if pairs else None
    assert first_wrong_auc(*table(found)) == expected


def test_among_equally_good_thresholds_the_lowest_is_taken():
    # F1 2/3 between 0 and 1, and between 2 and 3
    found = [([0.0], 0), ([1.0], -1), ([3.0], -1), ([2.0], 0)]
    assert f1(found, 0.5) == f1(found, 2.5) == pytest.approx(2 / 3)
    assert choose_threshold(*table(found)) == 0.5


def test_rewards_one_bit_apart_are_told_apart():
    for low in (np.nextafter(1.0, 0), 1.0):  # their middle is rounded up and down
        rewards, lengths, first_wrong = [low, np.nextafter(low, 2), 0.0, 3.0], [1, 1, 1, 1], [0, -1, 0, 0]
        threshold = choose_threshold(rewards, lengths, first_wrong)
        assert first_below(rewards, lengths, threshold).tolist() == [0, -1, 0, -1]


def test_one_kind_of_response_alone_decides_nothing():
    assert choose_threshold([1.0, 2.0], [1, 1], [0, 0]) is None
    assert choose_threshold([1.0, 2.0], [1, 1], [-1, -1]) is None
    assert choose_threshold([], [], []) is None
    assert first_wrong_auc([1.0, 2.0], [1, 1], [0, 0]) is None
    assert first_wrong_auc([1.0, 2.0], [1, 1], [-1, -1]) is None
    assert first_wrong_auc([], [], []) is None
    assert processbench_f1([0, 1], [0, 0]) == Localisation(None, 0.5, None)
    assert processbench_f1([0, -1], [-1, -1]) == Localisation(None, None, 0.5)
    assert processbench_f1([], []) == Localisation(None, None, None)
    assert choose_threshold([1.0, 1.0], [1, 1], [0, -1]) == 1.0  # nothing to choose from, but a number


def test_f1_is_0_and_no_error_where_nothing_is_found():
    assert processbench_f1([-1, -1], [0, -1]) == Localisation(0.0, 0.0, 1.0)
    assert processbench_f1([1, 0], [0, -1]) == Localisation(0.0, 0.0, 0.0)


@given(responses(both=True))
def test_chance_is_the_mean_of_all_guesses(found):
    _, lengths, first_wrong = table(found)
    guesses = [np.mean([guess == wrong for guess in range(-1, len(r))]) for r, wrong in found]
    wrong = np.array(first_wrong) >= 0
    expected = chance(lengths, first_wrong)
    assert expected.erroneous == pytest.approx(np.mean(np.array(guesses)[wrong]))
    assert expected.correct == pytest.approx(np.mean(np.array(guesses)[~wrong]))


def test_characters_are_mapped_to_steps():
    text = "a = 1\n\nb = 3\n\nc"
    starts = [begin for begin, _ in segment(text)]
    assert starts == [0, 7, 14]
    expected = [-1] + [0] * 7 + [1] * 7 + [2]
    characters = [-1, *range(len(text))]
    found = wrong_steps(characters, starts * len(characters), [3] * len(characters))
    assert found.tolist() == expected
    # of steps that begin at the same character (several tokens that make up one), the last one has it
    assert wrong_steps([1, 0], [0, 1, 1, 0], [3, 1]).tolist() == [2, 0]


def test_right_answers_with_a_wrong_step():
    scores, correct, first_wrong = [1.0, 2.0, 3.0, 4.0, 0.0], [True, True, True, True, False], [1, -1, 0, -1, 0]
    assert false_positives(scores, correct, first_wrong) == FalsePositives(2, 0.5, 0.75)
    assert false_positives([1.0], [False], [-1]) == FalsePositives(0, None, None)
    assert false_positives([1.0, 2.0], [True, True], [-1, -1]) == FalsePositives(0, 0.0, None)
    assert false_positives([1.0], [True], [0]) == FalsePositives(1, 1.0, None)


WHOLE, ONE_EACH = "allowed: whole numbers", "allowed: one for each of the"
THREE = "scores, correct and first_wrong have shapes"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: first_below([1.0, np.nan], [1, 1], 0), "rewards[1] is nan; allowed: finite numbers"),
        (lambda: first_below([1.0], [1, 1], 0), "lengths add up to 2; allowed: 1, the number of rewards"),
        (lambda: first_below([1.0], [1, 0], 0), "lengths[1] is 0; allowed: at least one step a response"),
        (lambda: choose_threshold([1.0, 2.0], [2], [2]), "first_wrong[0] is 2; allowed: up to 1, the last step, or -1"),
        (lambda: first_wrong_auc([1.0, 2.0], [2], [-2]), f"first_wrong[0] is -2; {WHOLE} from 0, or -1 for none"),
        (lambda: first_wrong_auc([1.0, 2.0], [2], [np.nan]), f"first_wrong is float64 [1]; {WHOLE} [responses]"),
        (lambda: first_wrong_auc([1.0, 2.0], [2], [0, 0]), f"first_wrong has 2 entries; {ONE_EACH} 1 responses"),
        (lambda: processbench_f1([0], [0, 1]), f"predicted has 1 entries; {ONE_EACH} 2 responses"),
        (lambda: processbench_f1([0.0], [0]), f"predicted is float64 [1]; {WHOLE} [responses]"),
        (lambda: chance([1], [1]), "first_wrong[0] is 1; allowed: up to 0, the last step, or -1"),
        (lambda: wrong_steps([-2], [0], [1]), f"characters[0] is -2; {WHOLE} from 0, or -1 for none"),
        (lambda: wrong_steps([0], [0, 1], [1]), "lengths add up to 1; allowed: 2, the number of rewards"),
        (lambda: false_positives([1.0], [True, True], [0]), f"{THREE} [1], [2] and [1]; allowed: [responses], the same"),
    ],
)  # fmt: skip
def test_refused(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
