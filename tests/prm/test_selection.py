"""Aggregation, best of n, pass@k and votes against enumeration and tables made by hand."""

import itertools
import math
import re
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.prm.selection import (
    aggregate,
    answer_codes,
    best_of_n,
    draw_subsets,
    expected_vote,
    majority,
    pass_at_k,
    weighted_vote,
)

pytestmark = pytest.mark.filterwarnings("error")
NAN, INF = math.nan, math.inf
levels = st.sampled_from([-INF, -2.0, -0.0, 0.0, 1.5, INF, NAN])  # many ties
answers_seen = st.sampled_from(["4", "5", "6", None])


@st.composite
def candidates(draw):
    """(answers, scores, correct, n) of one problem; the same answer has the same label, a missing one is wrong."""
    answers = draw(st.lists(answers_seen, min_size=1, max_size=7))
    scores = draw(st.lists(levels, min_size=len(answers), max_size=len(answers)))
    right = draw(st.sampled_from(["4", "7"]))
    return answers, scores, [answer == right for answer in answers], draw(st.integers(1, len(answers)))


# ---------------------------------------------------------------------------------------------- steps to one score


def test_aggregates_by_hand():
    rewards = [0.5, -2.0, 1.0, -0.25]
    found = {how: aggregate(rewards, how) for how in ("min", "sum", "mean", "last", "prefix_min")}
    assert found == {"min": -2.0, "sum": -0.75, "mean": -0.1875, "last": -0.25, "prefix_min": -1.5}
    assert all(type(value) is float for value in found.values())
    assert aggregate(rewards) == -2.0


@given(
    st.lists(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6), min_size=1, max_size=5),
    st.sampled_from(["min", "sum", "mean", "last", "prefix_min"]),
)
def test_a_table_of_steps_gives_each_response_the_same_bits_as_alone(responses, how):
    table = aggregate(list(itertools.chain(*responses)), how, [len(r) for r in responses])
    assert table.dtype == np.float64
    assert table.tolist() == [aggregate(r, how) for r in responses]
    plain = {
        "min": min,
        "sum": math.fsum,
        "mean": lambda r: math.fsum(r) / len(r),
        "last": lambda r: r[-1],
        "prefix_min": lambda r: min(itertools.accumulate(r)),
    }[how]
    assert table.tolist() == pytest.approx([plain(r) for r in responses], abs=1e-9)


@pytest.mark.parametrize("how", ["min", "sum", "mean", "prefix_min"])
def test_a_missing_reward_makes_the_score_missing_and_no_other(how):
    found = aggregate([1.0, NAN, 2.0, -1.0, 3.0], how, [2, 1, 2])
    assert np.isnan(found).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], "max"), "how is 'max'; allowed: min, sum, mean, last, prefix_min"),
        (([], "min"), "lengths[0] is 0; allowed: at least one step a response"),
        (([1.0, 2.0], "min", [2, 0]), "lengths[1] is 0; allowed: at least one step a response"),
        (([1.0, 2.0], "sum", [1]), "lengths add up to 1; allowed: 2, the number of rewards"),
        (
            ([1.0, 2.0], "sum", [1.0, 1.0]),
            "rewards and lengths are float64 [2] and float64 [2]; allowed: numbers [steps] and whole numbers [responses]",
        ),
        (
            ([[1.0, 2.0]], "sum"),
            "rewards and lengths are float64 [1, 2] and int64 [1]; allowed: numbers [steps] and whole numbers [responses]",
        ),
    ],
)
def test_aggregates_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        aggregate(*arguments)


# ------------------------------------------------------------------------------------------------ pass@k, best of n


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_pass_at_k_is_the_share_of_subsets_with_a_correct_one(correct, data):
    k = data.draw(st.integers(1, len(correct)))
    subsets = [any(chosen) for chosen in itertools.combinations(correct, k)]
    assert pass_at_k(correct, k) == pytest.approx(np.mean(subsets), abs=1e-12)


def test_pass_at_k_by_hand():
    assert pass_at_k([1, 0, 0, 0], 1) == 0.25
    assert pass_at_k([True, True, False, False], 3) == 1
    assert pass_at_k([False] * 5, 5) == 0
    assert pass_at_k([True], 1) == 1
    assert pass_at_k([[1, 0], [0, 0], [1, 1]], 1).tolist() == [0.5, 0, 1]


def best(scores: list[float]) -> int:
    """Index of the best: NaN below all, of equal scores the first."""
    order = range(len(scores))
    return min(order, key=lambda i: (math.isnan(scores[i]), 0 if math.isnan(scores[i]) else -scores[i], i))


@given(candidates())
def test_best_of_n_is_the_mean_over_all_subsets(problem):
    _, scores, correct, n = problem
    picked = [s[best([scores[i] for i in s])] for s in itertools.combinations(range(len(scores)), n)]
    assert best_of_n(scores, correct, n) == pytest.approx(np.mean([correct[i] for i in picked]), abs=1e-12)


@given(candidates())
def test_limits_of_best_of_n(problem):
    _, scores, correct, n = problem
    assert best_of_n(scores, correct, 1) == pytest.approx(np.mean(correct), abs=1e-12)
    assert best_of_n(scores, correct, len(correct)) == correct[best(scores)]
    assert best_of_n(correct, correct, n) == pytest.approx(pass_at_k(correct, n), abs=1e-12)
    assert best_of_n(np.zeros(len(correct)), correct, len(correct)) == correct[0]
    assert 0 <= best_of_n(scores, correct, n) <= pass_at_k(correct, n) + 1e-12


def test_best_of_n_by_hand():
    assert best_of_n([3.0, 2.0, 1.0, 0.0], [False, True, True, False], 2) == pytest.approx((0 * 3 + 2 + 1 + 0) / 6)
    assert best_of_n([1.0], [True], 1) == 1
    assert best_of_n([0.0, -0.0], [False, True], 2) == 0  # equal: the first
    assert best_of_n([-0.0, 0.0], [True, False], 2) == 1
    assert best_of_n([NAN, -INF], [False, True], 2) == 1
    assert best_of_n([NAN, NAN, -5.0], [True, True, False], 3) == 0
    assert best_of_n([NAN, NAN], [True, False], 2) == 1  # nothing else there: the first
    assert best_of_n([None, -3.0], [False, True], 2) == 1
    assert best_of_n([2.0, 2.0, 1.0], [True, True, False], 2) == 1  # a sample twice


def test_problems_are_rows_and_their_order_does_not_matter():
    generator = np.random.default_rng(0)
    scores, correct = generator.integers(0, 4, (20, 9)) / 2, generator.random((20, 9)) < 0.4
    for n in (1, 4, 9):
        each = best_of_n(scores, correct, n)
        assert each.shape == (20,)
        assert each.tolist() == [best_of_n(*row, n) for row in zip(scores, correct, strict=True)]
        assert best_of_n(scores[::-1], correct[::-1], n).tolist() == each[::-1].tolist()


@pytest.mark.parametrize("n", [1, 2, 500, 999, 1000])
def test_a_thousand_samples_are_exact(n):
    generator = np.random.default_rng(n)
    scores, correct = generator.permutation(1000).astype(float), generator.random(1000) < 0.01
    rising = correct[np.argsort(scores)]
    exact = sum(Fraction(math.comb(i - 1, n - 1), math.comb(1000, n)) for i in range(1, 1001) if rising[i - 1])
    assert best_of_n(scores, correct, n) == pytest.approx(float(exact), rel=1e-11, abs=1e-300)
    wrong = 1000 - int(correct.sum())
    exact = 1 - Fraction(math.comb(wrong, n), math.comb(1000, n))
    assert pass_at_k(correct, n) == pytest.approx(float(exact), rel=1e-11)
    assert best_of_n(scores, np.ones(1000), n) <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [1, 0], 0), "n is 0; allowed: whole numbers from 1 to 2, the number of samples"),
        (([1.0, 2.0], [1, 0], 3), "n is 3; allowed: whole numbers from 1 to 2, the number of samples"),
        (([1.0, 2.0], [1, 0], 1.0), "n is 1.0; allowed: whole numbers from 1 to 2, the number of samples"),
        (([1.0, 2.0], [1, 0], True), "n is True; allowed: whole numbers from 1 to 2, the number of samples"),
        (([1.0], [1, 0], 1), "scores has shape [1]; allowed: the shape of correct, [2]"),
        (([], [], 1), "correct has shape [0]; allowed: [samples] or [problems, samples], not empty"),
        ((1.0, 1, 1), "correct has shape []; allowed: [samples] or [problems, samples], not empty"),
        (([1.0, 2.0], [1, 2], 1), "correct holds values other than these; allowed: true and false, or 1 and 0"),
        (([1.0, 2.0], [1, None], 1), "correct holds values other than these; allowed: true and false, or 1 and 0"),
        (([1.0, 2.0], [1, NAN], 1), "correct holds values other than these; allowed: true and false, or 1 and 0"),
    ],
)
def test_best_of_n_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        best_of_n(*arguments)


@pytest.mark.parametrize("k", [0, 3, -1])
def test_pass_at_k_refused(k):
    with pytest.raises(ValueError, match=rf"^k is {k}; allowed: whole numbers from 1 to 2, the number of samples$"):
        pass_at_k([1, 0], k)


# ------------------------------------------------------------------------------------------------------------ votes


@pytest.mark.parametrize(
    ("answers", "winner"),
    [
        (["4", "5", "4"], "4"),
        (["5"], "5"),
        (["5", "4"], "5"),
        (["6", "5", "4", "4", "5"], "5"),  # a tie: seen first, though the other is complete first
        ([None, None, None, "7"], "7"),
        ([None, "5", "4", None, "4"], "4"),
        ([None, NAN, pd.NA], None),
        ([None], None),
        ([4, 5, 5], 5),
        (np.array(["4", "5", "5"]), "5"),
        (pd.Series(["4", None, "5", "5"], index=[3, 2, 1, 0]), "5"),
        (("", "", "4"), ""),
    ],
)
def test_majority_by_hand(answers, winner):
    assert majority(answers) == winner


@pytest.mark.parametrize(
    ("answers", "scores", "winner"),
    [
        (["4", "5", "4"], [-1.0, 3.0, -2.0], "5"),
        (["4", "5", "4"], [0.0, 0.0, 0.0], "4"),
        (["5", "4"], [1.0, 1.0], "5"),
        (["5", "4"], [-0.0, 0.0], "5"),
        (["5", "4"], [NAN, -90.0], "4"),
        (["5", "4"], [NAN, -INF], "5"),  # neither weighs anything: seen first
        (["5", "4"], [NAN, NAN], "5"),
        ([None, "4"], [9.0, -9.0], "4"),
        ([None, None], [9.0, 1.0], None),
        (["4", "5", "5"], [INF, 0.0, 0.0], "4"),
        (["4", "5"], [-2000.0, -1999.0], "5"),  # weights far below the smallest floating-point number
        (["4", "5", "5"], [-2000.0, -2001.0, -2001.0], "4"),  # 1 against 2/e
        (["4", "5", "5", "5"], [-2000.0, -2001.0, -2001.0, -2001.0], "5"),  # 1 against 3/e
        ([None, "4", "5"], [0.0, -2000.0, -1999.0], "5"),
        (["4"], [-3.0], "4"),
        (
            ["4", "5", "4", "5", "5", "4"],
            [0.1, 0.2, 0.3, 0.1, 0.3, 0.2],
            "4",
        ),  # the same weights, added in another order
    ],
)
def test_weighted_vote_by_hand(answers, scores, winner):
    assert weighted_vote(answers, scores) == winner


def test_the_order_of_adding_decides_no_tie():
    orders = [(-2.0, 1.0, 1.5), (1.0, 1.5, -2.0)]
    weights = [sum(1 / (1 + np.exp(-score)) for score in order) for order in orders]
    assert weights[0] != weights[1]  # by rounding
    for first, second in (orders, orders[::-1]):
        assert weighted_vote(["4"] * 3 + ["5"] * 3, [*first, *second]) == "4"


def test_the_scale_decides_between_majority_and_scores():
    answers, scores = ["4", "5", "5"], [3.0, -1.0, -1.0]
    assert weighted_vote(answers, scores) == "4"  # .953 against .538
    assert weighted_vote(answers, scores, scale=0.001) == "5"


@given(candidates())
def test_votes_are_what_counting_says(problem):
    answers, scores, _, _ = problem
    readable = [answer for answer in answers if answer is not None]
    assert majority(answers) == (Counter(readable).most_common(1)[0][0] if readable else None)
    scores = [score if math.isfinite(score) else NAN for score in scores]
    weights = Counter()
    for answer, score in zip(answers, scores, strict=True):
        if answer is not None:
            weights[answer] += 0 if math.isnan(score) else 1 / (1 + math.exp(-score))
    winner = weighted_vote(answers, scores)
    assert (winner is None) == (not readable)
    assert winner is None or weights[winner] == pytest.approx(max(weights.values()), abs=1e-12)


@given(candidates())
def test_expected_votes_are_means_of_votes(problem):
    answers, scores, correct, n = problem
    subsets = draw_subsets(len(answers), n, 40, np.random.default_rng(0))
    assert len(subsets) == math.comb(len(answers), n)  # at most 35: exact
    codes, right = answer_codes(answers), dict(zip(answers, correct, strict=True))
    votes = [right[majority([answers[i] for i in s])] for s in subsets]
    assert expected_vote(codes, correct, subsets) == pytest.approx(np.mean(votes))
    votes = [right[weighted_vote([answers[i] for i in s], [scores[i] for i in s], 0.5)] for s in subsets]
    assert expected_vote(codes, correct, subsets, scores=scores, scale=0.5) == pytest.approx(np.mean(votes))


def test_a_vote_of_one_is_pass_at_1_whatever_can_be_read():
    correct = [True, False, True, False]
    each = draw_subsets(4, 1, 4, np.random.default_rng(0))
    for answers in (["4", "4", None, "5"], [None] * 4):
        assert expected_vote(answer_codes(answers), correct, each) == 0.5
        assert expected_vote(answer_codes(answers), correct, each, scores=[1, NAN, 2, 3]) == 0.5


def test_the_first_candidate_with_the_winning_answer_is_the_result():
    everyone = [[0, 1, 2]]
    assert expected_vote([0, 1, 1], [False, True, False], everyone) == 1
    assert expected_vote([0, 1, 1], [True, False, True], everyone) == 0
    assert expected_vote([-1, -1, -1], [True, False, False], everyone) == 1


def test_problems_vote_in_rows_of_their_own():
    generator = np.random.default_rng(1)
    codes = answer_codes(generator.choice(np.array(["4", "5", "6", None]), (30, 8)))
    scores, correct = generator.normal(size=(30, 8)), generator.random((30, 8)) < 0.5
    subsets = draw_subsets(8, 3, 20, generator)
    for given_scores in (None, scores):
        each = expected_vote(codes, correct, subsets, scores=given_scores)
        rows = [None] * 30 if given_scores is None else scores
        alone = [expected_vote(c, r, subsets, scores=s) for c, r, s in zip(codes, correct, rows, strict=True)]
        assert each.shape == (30,)
        assert each.tolist() == alone


def test_subsets_are_all_or_random_ones():
    generator = np.random.default_rng(0)
    assert draw_subsets(4, 4, 1, generator).tolist() == [[0, 1, 2, 3]]
    assert draw_subsets(4, 1, 4, generator).tolist() == [[0], [1], [2], [3]]
    assert draw_subsets(4, 2, 6, generator).tolist() == [list(s) for s in itertools.combinations(range(4), 2)]
    found = draw_subsets(6, 3, 19, generator)  # there are 20
    assert found.shape == (19, 3)
    assert (np.diff(found, axis=1) > 0).all()
    many = draw_subsets(30, 3, 4000, generator)
    assert np.bincount(many.ravel(), minlength=30) == pytest.approx(400, rel=0.25)  # five standard errors
    twice = [draw_subsets(9, 4, 50, np.random.default_rng(3)).tolist() for _ in range(2)]
    assert twice[0] == twice[1]


def test_random_subsets_estimate_the_expectation():
    generator = np.random.default_rng(2)
    codes = answer_codes(generator.choice(np.array(["4", "5", "6"]), (40, 10)))
    correct = codes == codes[:, :1]
    every = expected_vote(codes, correct, draw_subsets(10, 5, 252, generator)).mean()
    some = expected_vote(codes, correct, draw_subsets(10, 5, 100, generator)).mean()
    assert some == pytest.approx(every, abs=0.03)


OTHERS = " holds values other than these; allowed: whole numbers"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: majority([]), "answers has shape [0]; allowed: [candidates], not empty"),
        (lambda: majority([["4"], ["5"]]), "answers has shape [2, 1]; allowed: [candidates], not empty"),
        (lambda: weighted_vote(["4", "5"], [1.0]), "scores has shape [1]; allowed: the shape of answers, [2]"),
        (lambda: weighted_vote(["4"], [1.0], 0), "scale is 0; allowed: finite numbers above 0"),
        (lambda: weighted_vote(["4"], [1.0], NAN), "scale is nan; allowed: finite numbers above 0"),
        (lambda: draw_subsets(3, 4, 9, None), "n is 4; allowed: whole numbers from 1 to 3, the number of samples"),
        (lambda: draw_subsets(3, 2, 0, None), "count is 0; allowed: whole numbers from 1"),
        (lambda: expected_vote([0], [1, 0], [[0]]), "codes has shape [1]; allowed: the shape of correct, [2]"),
        (lambda: expected_vote([0, 9], [1, 0], [[0]]), f"codes{OTHERS} from -1 to 1"),
        (lambda: expected_vote(["a", "b"], [1, 0], [[0]]), f"codes{OTHERS} from -1 to 1"),
        (lambda: expected_vote([0, 1], [1, 0], [[2]]), f"subsets{OTHERS} from 0 to 1"),
        (lambda: expected_vote([0, 1], [1, 0], [0]), "subsets has shape [1]; allowed: [subsets, n], not empty"),
        (lambda: expected_vote([0, 1], [1, 0], [[0]], scores=3), "scores has shape []; allowed: the shape of answers, [2]"),
    ],
)  # fmt: skip
def test_votes_refused(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
