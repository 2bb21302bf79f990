"""Scores on numbers that can be checked by hand, in both definitions where there are two."""

from itertools import combinations

import numpy as np
import pytest

from tasks.swiftcode import metrics

COST = np.array([2.0, 3.0, 0.5])
REFERENCE = np.array([1.0, 30.0, 0.5])


@pytest.mark.parametrize(("n", "c", "k"), [(5, 0, 2), (5, 2, 2), (5, 4, 3), (5, 5, 1), (1, 1, 1)])
def test_pass_at_k_is_the_share_of_all_subsets_that_hold_a_correct_answer(n, c, k):
    correct = [True] * c + [False] * (n - c)
    expected = np.mean([any(subset) for subset in combinations(correct, k)])
    assert metrics.pass_at_k(np.array([n]), np.array([c]), k)[0] == pytest.approx(expected)


def test_of_fewer_answers_than_k_there_is_no_score():
    with pytest.raises(ValueError, match="k is 3; allowed: at most 2"):
        metrics.pass_at_k(np.array([4, 2]), np.array([0, 0]), 3)
    with pytest.raises(ValueError, match="k is 3; allowed: at most 2"):
        metrics.efficiency_at_k(np.array([0.0, 1.0]), 3)


def test_the_two_definitions_of_relative_cost():
    assert metrics.mean_of_ratios(COST, REFERENCE) == pytest.approx((2 + 0.1 + 1) / 3)
    assert metrics.ratio_of_sums(COST, REFERENCE) == pytest.approx(5.5 / 31.5)
    assert metrics.mean(COST) == pytest.approx(5.5 / 3)


def test_weights_count_tasks_that_often():
    weights = np.array([[1, 2], [1, 0], [1, 1]])
    repeated = [0, 0, 2]
    for how in (metrics.mean_of_ratios, metrics.ratio_of_sums):
        expected = [how(COST, REFERENCE), how(COST[repeated], REFERENCE[repeated])]
        assert how(COST, REFERENCE, weights) == pytest.approx(expected)
    assert metrics.geometric_mean(np.log(COST), weights)[1] == pytest.approx((2 * 2 * 0.5) ** (1 / 3))


def test_geometric_mean_of_factors_and_inverses_is_one():
    assert metrics.geometric_mean(np.log([4.0, 0.25, 10.0, 0.1])) == pytest.approx(1)
    assert metrics.geometric_mean(np.log([2.0, 8.0])) == pytest.approx(4)


def test_no_tasks_have_no_score():
    none = np.empty(0)
    values = [metrics.mean_of_ratios(none, none), metrics.ratio_of_sums(none, none), metrics.geometric_mean(none)]
    values += [*metrics.win_tie_loss(none, 0.05), metrics.share_above(none)]
    assert np.isnan(values).all()
    assert np.isnan(metrics.mean(none, np.empty((0, 3)))).tolist() == [True] * 3


def test_the_tie_band_is_symmetric_in_the_ratio():
    ratio = np.array([1.04, 1 / 1.04, 1.06, 1 / 1.06, 3.0])
    assert metrics.win_tie_loss(ratio, 0.05) == (0.2, 0.4, 0.4)
    assert metrics.win_tie_loss(1 / ratio, 0.05) == (0.4, 0.4, 0.2)
    assert metrics.win_tie_loss(np.ones(2), 0.0) == (0, 1, 0)


def test_share_above_five():
    assert metrics.share_above(np.array([5.0, 5.1, 0.1, 60.0])) == 0.5


def test_dps_is_the_share_of_known_solutions_that_are_reached():
    known = np.array([10.0, 1.0, 2.0, 10.0, 5.0])
    scores = metrics.differential_performance(np.array([0.5, 1.04, 5.0, 10.1, 11.0]), known, 0.05)
    assert scores.tolist() == [100, 100, 60, 40, 0]
    assert metrics.differential_performance(np.array([1.04]), known).tolist() == [80]


def test_efficiency_is_one_at_the_fastest_and_zero_at_twice_the_slowest_known_solution():
    known = np.array([4.0, 2.0])
    scores = metrics.efficiency(np.array([2.0, 8.0, 5.0, 20.0, 1.0, np.nan]), known)
    assert scores == pytest.approx([1, 0, 0.5, 0, 7 / 6, 0])
    assert metrics.efficiency(np.array([3.0]), np.array([3.0])).tolist() == [1]  # one known solution: T = 2 t_ref


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_efficiency_at_k_is_the_mean_of_the_best_over_all_subsets(k):
    scores = np.array([0.9, 0.0, 0.4, 0.0, 1.2])
    expected = np.mean([max(subset) for subset in combinations(scores, k)])
    assert metrics.efficiency_at_k(scores, k) == pytest.approx(expected)


def test_efficiency_at_k_of_zeros_and_ones_is_pass_at_k():
    scores = np.array([1.0, 0, 0, 1, 0, 0])
    assert metrics.efficiency_at_k(scores, 2) == pytest.approx(metrics.pass_at_k(np.array([6]), np.array([2]), 2)[0])


def test_beyond_is_clipped_and_of_equal_solutions_unknown():
    known = np.array([1.0, 5.0, 2.0])
    assert metrics.beyond(np.array([0.1, 1.0, 4.0, 5.0, 9.0, np.nan]), known).tolist() == [1, 1, 0.25, 0, 0, 0]
    assert np.isnan(metrics.beyond(np.array([1.0, np.nan]), np.array([2.0, 2.0]))).all()
