"""The schedule, the batches, and a step that refuses to go where numbers end."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.lm.optimisation import Optimizer, length_batches


@given(st.lists(st.integers(1, 60), max_size=300), st.integers(1, 40))
def test_every_item_is_in_exactly_one_batch(lengths, size):
    batches = length_batches(lengths, size, np.random.default_rng(0))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert all(1 <= len(batch) <= size for batch in batches)


def test_batches_hold_similar_lengths_and_differ_between_epochs():
    lengths = np.random.default_rng(0).integers(20, 52, 2000)
    generator = np.random.default_rng(1)
    first, second = length_batches(lengths, 32, generator), length_batches(lengths, 32, generator)
    padded = sum(len(b) * lengths[b].max() for b in first)
    assert padded / lengths.sum() < 1.05
    assert {tuple(sorted(b)) for b in first} != {tuple(sorted(b)) for b in second}
    order = [lengths[b].mean() for b in first]
    assert order != sorted(order)  # not from short to long


def test_a_step_with_a_number_that_is_none_leaves_the_weights():
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = Optimizer([weight], learning_rate=0.1, steps=10)
    optimizer.step((weight**2).sum())
    before = weight.detach().clone()
    with pytest.raises(FloatingPointError, match="step 2: loss nan"):
        optimizer.step((weight * float("nan")).sum())
    assert torch.equal(weight, before)


def test_gradients_are_clipped_and_the_schedule_is_followed():
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = Optimizer([weight], learning_rate=0.1, steps=4, warmup=2, final=0.0, clip=1.0)
    rates = []
    for _ in range(4):
        norm, rate = optimizer.step(1000 * weight.sum())
        assert norm == 1000
        rates.append(round(rate, 4))
    assert rates == [0.05, 0.1, 0.1, 0.05]
    # Adam moves by the learning rate whatever the gradient's size: the sum of them
    assert float(weight.detach()) == pytest.approx(-sum(rates), rel=1e-3)
