"""Bootstrap weights over tasks."""

import numpy as np
import pytest

from tasks.swiftcode.resampling import draw_weights, interval


def test_rows_of_a_task_are_drawn_together_and_every_draw_has_as_many_tasks():
    tasks = np.array(["b", "a", "b", "c"])
    weights = draw_weights(tasks, 500, np.random.default_rng(1))
    assert weights.shape == (4, 501)
    assert weights[:, 0].tolist() == [1, 1, 1, 1]
    assert (weights[0] == weights[2]).all()
    assert (weights[[0, 1, 3], 1:].sum(0) == 3).all()
    assert weights[1, 1:].mean() == pytest.approx(1, abs=0.1)
    assert weights[1, 1:].std() > 0.5


def test_of_one_task_there_is_no_interval():
    weights = draw_weights(np.array(["a", "a"]), 50, np.random.default_rng(1))
    assert weights.tolist() == [[1], [1]]
    assert np.isnan(interval(np.array([2.0]), 0.95)).all()
    assert draw_weights(np.array([], dtype=str), 50, np.random.default_rng(1)).shape == (0, 1)


def test_the_interval_leaves_equal_tails_and_no_missing_values():
    values = np.concatenate([[50.0], np.arange(101.0), [np.nan, np.inf]])
    assert interval(values, 0.9) == pytest.approx((5, 95))
    assert np.isnan(interval(np.concatenate([[np.nan], np.arange(101.0)]), 0.9)).all()
