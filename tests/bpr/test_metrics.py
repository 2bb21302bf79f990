"""BPR with exact ties, the table beside it, and the arguments that are refused."""

import doctest
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.bpr import arguments, metrics
from tasks.bpr.metrics import bpr, bpr_table, chosen


@pytest.mark.parametrize("module", [metrics, arguments])
def test_examples_in_docstrings(module):
    assert doctest.testmod(module).failed == 0


@st.composite
def rows(draw, ties: bool = True):
    """(scores, counts, k) of one period, with many ties where asked."""
    n = draw(st.integers(1, 6))
    level = st.integers(0, 2) if ties else st.integers(0, 10**6)
    scores = draw(st.lists(level, min_size=n, max_size=n, unique=not ties))
    counts = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    return np.array(scores, float), np.array(counts, float), draw(st.integers(1, n))


def over_orders(scores, counts, k) -> list[float]:
    """Events reached for every order of the sites in which equal scores keep their places: brute force."""
    found = []
    for order in itertools.permutations(range(len(scores))):
        best = sorted(order, key=lambda site: -scores[site])[:k]
        found.append(counts[best].sum())
    return found


@given(rows())
def test_ties_are_the_mean_over_all_orders_and_lie_between_worst_and_best(situation):
    scores, counts, k = situation
    best = np.sort(counts)[-k:].sum()
    value = bpr(scores, counts, k)
    if best == 0:
        assert np.isnan(value)
        return
    reached = over_orders(scores, counts, k)
    table = bpr_table(scores, counts, k)
    assert value == pytest.approx(np.mean(reached) / best, rel=1e-12)
    assert table["bpr_low"].item() == pytest.approx(min(reached) / best, rel=1e-12)
    assert table["bpr_high"].item() == pytest.approx(max(reached) / best, rel=1e-12)
    assert 0 <= table["bpr_low"].item() <= value + 1e-15 <= table["bpr_high"].item() + 2e-15 <= 1 + 2e-15


@given(rows(), st.randoms(use_true_random=False))
def test_the_order_of_sites_and_any_increasing_change_of_scores_do_not_matter(situation, random):
    scores, counts, k = situation
    order = random.sample(range(len(scores)), len(scores))
    expected = bpr(scores, counts, k)
    assert bpr(scores[order], counts[order], k) == pytest.approx(expected, nan_ok=True)
    assert bpr(np.exp(scores) - 100, counts, k) == pytest.approx(expected, nan_ok=True)


def test_the_layout_in_memory_changes_no_bit():
    generator = np.random.default_rng(0)
    scores, counts = generator.random((2, 5, 300))
    for name, found in bpr_table(np.asfortranarray(scores), np.asfortranarray(counts), 50).items():
        np.testing.assert_array_equal(found, bpr_table(scores, counts, 50)[name], err_msg=name)


def test_equal_scores_everywhere_are_the_chance_level():
    counts = np.array([[5, 0, 3, 1], [1, 1, 0, 0]])
    expected = 2 * counts.mean(1) / [8, 2]
    np.testing.assert_allclose(bpr(np.full((2, 4), 7.0), counts, 2, reduce=None), expected, rtol=1e-15)
    np.testing.assert_allclose(bpr_table(np.random.default_rng(0).random((2, 4)), counts, 2)["chance"], expected)


def test_all_sites_or_the_true_order_reach_all():
    counts = np.array([3.0, 0, 2, 2])
    assert bpr([0, 1, 2, 3], counts, 4) == 1
    assert bpr(counts, counts, 2) == 1  # ties of the truth do not matter
    assert bpr([1, 0, 0, 0], [0, 0, 0, 9], 2) == pytest.approx(1 / 3)  # fewer sites with events than K


def test_periods_without_events_are_nan_left_out_and_counted():
    counts = np.array([[4, 0, 1], [0, 0, 0], [0, 2, 2]])
    scores = np.array([[1, 2, 3], [1, 2, 3], [3, 2, 1]])
    each = bpr(scores, counts, 1, reduce=None)
    np.testing.assert_array_equal(each, [0.25, np.nan, 0])
    assert bpr(scores, counts, 1) == 0.125
    assert bpr(scores, counts, 1, reduce="pooled") == pytest.approx(1 / 6)
    table = bpr_table(scores, counts, 1)
    assert table["skipped"].tolist() == [False, True, False]
    for name in ("bpr", "bpr_low", "bpr_high", "chance", "coverage"):
        assert np.isnan(table[name]).tolist() == [False, True, False], name
    for reduce in ("mean", "pooled"):
        assert np.isnan(bpr(scores, counts * 0, 1, reduce=reduce))


def test_table():
    table = bpr_table([3, 2, 2, 0], [1, 4, 0, 3], 2)
    expected = {
        "reached": 3, "oracle": 7, "bpr": 3 / 7, "bpr_low": 1 / 7, "bpr_high": 5 / 7, "chance": 4 / 7, "coverage": 3 / 8,
        "skipped": False,
    }  # fmt: skip
    assert list(table) == list(expected)
    for name, value in expected.items():
        assert table[name].shape == (1,)
        assert table[name].item() == pytest.approx(value), name


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_of_periods_without_events():
    bpr_table([[1, 2, 3]], [[0, 0, 0]], 1)


def test_rounding_takes_no_share_above_1():
    for seed in range(300):
        counts = np.random.default_rng(seed).random(9)
        assert bpr(counts, counts, 7) <= 1


def test_many_equal_scores_keep_their_order():
    scores = np.random.default_rng(0).integers(0, 3, 1000)
    order = sorted(range(1000), key=lambda site: (-scores[site], site))
    assert chosen(scores, 1000).tolist() == [order]


def test_chosen_sites_are_best_first_and_ties_go_to_the_lower_index():
    found = chosen(np.array([[1.0, 3, 1, 2, 1], [0, 0, 0, 0, 0]]), 4)
    assert found.dtype == np.int64
    assert found.tolist() == [[1, 3, 0, 2], [0, 1, 2, 3]]


@given(rows(ties=False))
def test_chosen_sites_reach_what_bpr_says(situation):
    scores, counts, k = situation
    table = bpr_table(scores, counts, k)
    assert counts[chosen(scores, k)[0]].sum() == table["reached"].item()


@pytest.mark.parametrize("kind", [np.int16, np.uint8, np.float32, bool, list])
def test_numeric_types_and_lists_are_taken(kind):
    scores, counts = [0, 1, 0, 1], [1, 1, 0, 0]
    if kind is not list:
        scores, counts = np.array(scores).astype(kind), np.array(counts).astype(kind)
    assert bpr(scores, counts, 2) == 0.5
    assert chosen(scores, 2).tolist() == [[1, 3]]


GOOD = np.arange(6.0).reshape(2, 3)
NUMERIC = "whole numbers and floating-point numbers"


def changed(value: float) -> np.ndarray:
    array = GOOD.copy()
    array[1, 2] = value
    return array


REFUSED = {
    "negative count": (GOOD, changed(-1), 2, r"counts[1, 2] is -1; allowed: finite numbers, not negative"),
    "missing count": (GOOD, changed(np.nan), 2, r"counts[1, 2] is nan; allowed: finite numbers, not negative"),
    "infinite count": (GOOD, changed(np.inf), 2, r"counts[1, 2] is inf; allowed: finite numbers, not negative"),
    "missing score": (changed(np.nan), GOOD, 2, r"scores[1, 2] is nan; allowed: finite numbers"),
    "infinite score": (changed(-np.inf), GOOD, 2, r"scores[1, 2] is -inf; allowed: finite numbers"),
    "one row": (GOOD[0], changed(-1)[1], 2, r"counts[2] is -1; allowed: finite numbers, not negative"),
    "K of 0": (GOOD, GOOD, 0, r"k is 0; allowed: whole numbers from 1 to 3, the number of sites"),
    "K above S": (GOOD, GOOD, 4, r"k is 4; allowed: whole numbers from 1 to 3, the number of sites"),
    "K not whole": (GOOD, GOOD, 2.0, r"k is 2.0; allowed: whole numbers from 1 to 3, the number of sites"),
    "K no number": (GOOD, GOOD, True, r"k is True; allowed: whole numbers from 1 to 3, the number of sites"),
    "other shape": (GOOD, GOOD[:1], 2, r"counts has shape [1, 3]; allowed: the shape of scores, [2, 3]"),
    "column": (GOOD[0], GOOD[0][:, None], 2, r"counts has shape [3, 1]; allowed: the shape of scores, [3]"),
    "three axes": (GOOD[None], GOOD[None], 2, r"scores has shape [1, 2, 3]; allowed: [sites] or [periods, sites], not empty"),
    "no site": ([], [], 1, r"scores has shape [0]; allowed: [sites] or [periods, sites], not empty"),
    "text": (GOOD, GOOD.astype(str), 2, rf"counts has type <U32; allowed: {NUMERIC}"),
    "objects": (GOOD.astype(object), GOOD, 2, rf"scores has type object; allowed: {NUMERIC}"),
}  # fmt: skip


@pytest.mark.parametrize("function", [bpr, bpr_table])
@pytest.mark.parametrize("fault", list(REFUSED))
def test_refused_in_one_line(fault, function):
    scores, counts, k, message = REFUSED[fault]
    with pytest.raises(ValueError) as error:  # noqa: PT011
        function(scores, counts, k)
    assert str(error.value) == message


def test_refused_by_chosen_and_by_the_kind_of_mean():
    with pytest.raises(ValueError, match=r"^scores\[1, 2\] is nan; allowed: finite numbers$"):
        chosen(changed(np.nan), 1)
    with pytest.raises(ValueError, match=r"^k is 4; allowed: whole numbers from 1 to 3, the number of sites$"):
        chosen(GOOD, 4)
    with pytest.raises(ValueError, match=r"^reduce is 'sum'; allowed: 'mean', 'pooled', None$"):
        bpr(GOOD, GOOD, 1, reduce="sum")
