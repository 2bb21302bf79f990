"""Pairs, mismatched responses and equal classes: what is drawn, from what, and in what order of rows."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.prm.losses import dpo, nca
from tasks.prm.pairs import balanced, mismatched, pairs
from tasks.stage import random_generator

ROWS = st.lists(st.tuples(st.sampled_from("pqrst"), st.integers(0, 1)), max_size=30)


def columns(rows: list[tuple[str, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([r[0] for r in rows], dtype="U1"), np.array([r[1] for r in rows], dtype=np.int64)


def generator(seed: int = 1) -> np.random.Generator:
    return random_generator(seed, "pairs")


def drawn(ids, labels, max_pairs, seed=1) -> set[tuple[int, int]]:
    found = pairs(ids, labels, max_pairs, generator(seed))
    return set(zip(found.chosen.tolist(), found.rejected.tolist(), strict=True))


def interleaved(ids: np.ndarray, seed: int) -> np.ndarray:
    """Another order of the rows, which keeps that within each problem."""
    rng = np.random.default_rng(seed)
    order = np.empty(len(ids), np.int64)
    slots = rng.permutation(ids)
    for problem in np.unique(ids):
        order[slots == problem] = np.flatnonzero(ids == problem)
    return order


@given(ROWS, st.integers(1, 9))
def test_pairs_are_different_ones_of_one_problem(rows, max_pairs):
    ids, labels = columns(rows)
    found = pairs(ids, labels, max_pairs, generator())
    both = list(zip(found.chosen.tolist(), found.rejected.tolist(), strict=True))
    assert found.chosen.dtype == found.rejected.dtype == np.int64
    assert len(set(both)) == len(both)
    assert (labels[found.chosen] == 1).all()
    assert (labels[found.rejected] == 0).all()
    assert (ids[found.chosen] == ids[found.rejected]).all()
    counts, skipped = Counter(ids[found.chosen].tolist()), 0
    for problem in set(ids.tolist()):
        c, w = ((ids == problem) & (labels == 1)).sum(), ((ids == problem) & (labels == 0)).sum()
        assert counts[problem] == min(c * w, max_pairs)
        skipped += c * w == 0
    assert found.skipped == skipped


def test_no_limit_gives_the_full_cross_product():
    ids, labels = np.array(list("ppppqq")), np.array([1, 0, 1, 0, 0, 0])
    assert drawn(ids, labels, 100) == {(0, 1), (0, 3), (2, 1), (2, 3)}
    assert pairs(ids, labels, 100, generator()).skipped == 1


def test_every_pair_is_drawn_equally_often():
    ids, labels = np.array(["p"] * 7), np.array([1, 1, 1, 0, 0, 0, 0])
    count = Counter(pair for seed in range(600) for pair in drawn(ids, labels, 4, seed))
    assert len(count) == 12
    assert max(abs(n - 200) for n in count.values()) < 5 * (600 * (1 / 3) * (2 / 3)) ** 0.5


@given(ROWS, st.integers(1, 5), st.integers(0, 100))
def test_the_order_of_problems_is_of_no_account(rows, max_pairs, seed):
    ids, labels = columns(sorted(rows))
    order = interleaved(ids, seed)
    moved = drawn(ids[order], labels[order], max_pairs)
    assert {(order[c], order[r]) for c, r in moved} == drawn(ids, labels, max_pairs)
    for how in ("none", "dataset", "problem"):
        kept = balanced(labels[order], ids[order], how, generator())
        assert sorted(order[kept].tolist()) == balanced(labels, ids, how, generator()).tolist()
    if len(set(ids.tolist())) > 1:
        assert order[mismatched(ids[order])].tolist() == mismatched(ids)[order].tolist()


def test_the_seed_decides():
    ids, labels = np.array(["p"] * 16), np.arange(16) % 2
    assert drawn(ids, labels, 8) == drawn(ids, labels, 8)
    assert drawn(ids, labels, 8) != drawn(ids, labels, 8, seed=2)


@pytest.mark.parametrize("loss", [dpo, nca])
def test_one_pass_a_response_gives_the_gradient_of_all_its_pairs(loss):
    """The slope of the mean over pairs, each with its own copies of the rewards, gathered by response."""
    ids, labels = np.array(list("pppppqqqr")), np.array([1, 0, 1, 0, 1, 0, 1, 1, 1])
    found = pairs(ids, labels, 4, generator())
    h = torch.linspace(-1, 2, len(ids), dtype=torch.float64, requires_grad=True)
    loss(h[found.chosen], h[found.rejected]).backward()
    gathered = torch.zeros(len(ids), dtype=torch.float64)
    for c, r in zip(found.chosen, found.rejected, strict=True):
        copies = [h[i].detach().clone()[None].requires_grad_() for i in (c, r)]
        loss(*copies).backward()
        gathered[c] += copies[0].grad[0] / len(found.chosen)
        gathered[r] += copies[1].grad[0] / len(found.chosen)
    torch.testing.assert_close(h.grad, gathered)
    assert h.grad[8] == 0  # of the problem without a wrong response


@given(st.lists(st.sampled_from("pqrst"), max_size=30))
def test_no_response_is_matched_with_its_own_prompt(ids):
    """trl#1911, trl#2554: the batch in reverse matched the middle one of an odd number with itself."""
    ids = np.array(ids, dtype="U1")
    if len(set(ids)) == 1:
        with pytest.warns(UserWarning, match="one problem only"):
            assert mismatched(ids).tolist() == []
        return
    found = mismatched(ids)
    assert found.shape == ids.shape
    assert (ids[found] != ids).all()
    assert len(set(zip(ids.tolist(), ids[found].tolist(), strict=True))) == len(set(ids.tolist()))


@pytest.mark.parametrize("ids", [list("pqrst"), list("rptsq"), list("ppqqrr"), [3, 3, 1, 1, 2, 2]])
def test_problems_with_equally_many_responses_use_each_once(ids):
    found = mismatched(ids)
    assert sorted(found.tolist()) == list(range(len(ids)))
    following = dict(zip(ids, np.asarray(ids)[found].tolist(), strict=True))
    start, seen = ids[0], []
    while not seen or seen[-1] != start:  # one circle through all problems
        seen.append(following[seen[-1] if seen else start])
    assert len(seen) == len(set(ids))


def test_a_batch_of_one_has_nothing_mismatched():
    """LlamaFactory PR#7509."""
    with pytest.warns(UserWarning, match="one problem only"):
        assert mismatched(["p"]).shape == (0,)


@given(ROWS)
def test_balanced_classes_are_equal_in_number_and_lose_no_more_than_needed(rows):
    ids, labels = columns(rows)
    assert balanced(labels, ids, "none", generator()).tolist() == list(range(len(ids)))
    everything = balanced(labels, ids, "dataset", generator())
    fewer = min((labels == 1).sum(), (labels == 0).sum())
    assert (labels[everything] == 1).sum() == (labels[everything] == 0).sum() == fewer
    kept = balanced(labels, ids, "problem", generator())
    for rows in (everything, kept):
        assert rows.dtype == np.int64
        assert (np.diff(rows) > 0).all()
    for problem in set(ids.tolist()):
        mine, left = ids == problem, labels[kept][ids[kept] == problem]
        fewer = min((mine & (labels == 1)).sum(), (mine & (labels == 0)).sum())
        assert (left == 1).sum() == (left == 0).sum() == fewer


def test_the_dropped_ones_are_drawn_evenly():
    ids, labels = np.array(list("ppppp")), np.array([1, 1, 1, 1, 0])
    for how in ("dataset", "problem"):
        count = Counter(balanced(labels, ids, how, generator(seed))[0] for seed in range(400))
        assert sorted(count) == [0, 1, 2, 3]
        assert max(abs(n - 100) for n in count.values()) < 5 * (400 * 0.25 * 0.75) ** 0.5


@pytest.mark.parametrize("label", [-100, 2, 0.5])
def test_labels_other_than_0_and_1_are_refused(label):
    """trl PR#2127: −100, cast to a truth value, is correct."""
    with pytest.raises(ValueError, match=f"only 0 and 1 are allowed, there is {label}"):
        pairs(["p", "p"], [1, label], 8, generator())
    with pytest.raises(ValueError, match=f"only 0 and 1 are allowed, there is {label}"):
        balanced([1, label], ["p", "p"], "none", generator())


def test_arguments_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"got shapes \(2,\) and \(1,\)"):
        pairs(["p", "p"], [1], 8, generator())
    with pytest.raises(ValueError, match="max_pairs: at least 1 is needed, got 0"):
        pairs(["p"], [1], 0, generator())
    with pytest.raises(ValueError, match="none, dataset or problem is allowed, got all"):
        balanced([1], ["p"], "all", generator())
