"""Losses against their formulas written out in numpy, their gradients, and inputs on which other trainers failed."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tasks.prm.losses import ce, dpo, kto, kto_baseline, nca

REWARDS = arrays(np.float64, st.integers(1, 8), elements=st.floats(-30, 30))
ORDER = st.randoms(use_true_random=False)
HUGE = [-1e30, -1e4, -88.8, 88.8, 1e4, 1e30]


def log_sigmoid(x):
    return -np.logaddexp(0, -x)


def reference_ce(h, labels):
    return np.mean(-(labels * log_sigmoid(h) + (1 - labels) * log_sigmoid(-h)))


def reference_dpo(chosen, rejected):
    return np.mean(-log_sigmoid(chosen - rejected))


def reference_nca(chosen, rejected):
    return np.mean(-log_sigmoid(chosen) - log_sigmoid(-chosen) / 2 - log_sigmoid(-rejected) / 2)


def reference_kto(h, labels, z, weight_correct=1.0, weight_wrong=1.0):
    sigmoid = np.exp(log_sigmoid(h - z))
    return np.mean(np.where(labels == 1, weight_correct * (1 - sigmoid), weight_wrong * sigmoid))


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def split(h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels and pairs of the same numbers."""
    return (np.arange(len(h)) % 3 == 0).astype(np.int64), np.roll(h, 1)


def slopes(loss, *rewards) -> list[np.ndarray]:
    leaves = [tensor(r).requires_grad_() for r in rewards]
    loss(*leaves).backward()
    return [leaf.grad.numpy() for leaf in leaves]


LABELS = torch.tensor([1, 0, 0, 1, 1])
SINGLE = {  # of rewards [5]
    "ce": lambda h: ce(h, LABELS),
    "kto": lambda h: kto(h, LABELS, 0.4, weight_correct=1.5, weight_wrong=0.5),
}
PAIRED = {"dpo": dpo, "nca": nca}  # of chosen and rejected rewards


def test_values_where_training_begins():
    zero, labels = torch.zeros(6), torch.tensor([1, 1, 0, 1, 0, 0])
    assert ce(zero, labels).item() == pytest.approx(math.log(2), abs=1e-7)
    assert dpo(zero, zero).item() == pytest.approx(math.log(2), abs=1e-7)
    assert nca(zero, zero).item() == pytest.approx(2 * math.log(2), abs=1e-7)
    assert kto(zero, labels, kto_baseline(zero)).item() == 0.5


@given(REWARDS)
def test_values_are_those_of_the_formulas(h):
    labels, other = split(h)
    close = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(ce(tensor(h), torch.tensor(labels)), reference_ce(h, labels), **close)
    np.testing.assert_allclose(dpo(tensor(h), tensor(other)), reference_dpo(h, other), **close)
    np.testing.assert_allclose(nca(tensor(h), tensor(other)), reference_nca(h, other), **close)
    z = kto_baseline(tensor(other))
    assert z.item() == pytest.approx(max(0.0, other.mean()), abs=1e-12)
    found = kto(tensor(h), torch.tensor(labels), z, weight_correct=1.3, weight_wrong=0.2)
    np.testing.assert_allclose(found, reference_kto(h, labels, z.item(), 1.3, 0.2), **close)


@pytest.mark.parametrize("name", [*SINGLE, *PAIRED])
def test_slopes_are_those_of_finite_differences(name):
    h, other = tensor([0.3, -2.0, 5.0, -0.1, 1.0]), tensor([1.0, 0.2, -3.0, 0.0, 2.0])
    inputs = (h,) if name in SINGLE else (h, other)
    assert torch.autograd.gradcheck({**SINGLE, **PAIRED}[name], [i.requires_grad_() for i in inputs])


@given(arrays(np.float64, 5, elements=st.floats(-20, 20)))
def test_correct_ones_are_pushed_up_and_wrong_ones_down(h):
    correct = LABELS.numpy() == 1
    for loss in SINGLE.values():
        (slope,) = slopes(loss, h)
        assert (slope[correct] < 0).all()
        assert (slope[~correct] > 0).all()
    chosen, rejected = slopes(dpo, h, np.roll(h, 2))
    assert (chosen < 0).all()
    assert (rejected > 0).all()
    np.testing.assert_allclose(chosen, -rejected)  # only the difference counts: both may fall together
    _, rejected = slopes(nca, h, np.roll(h, 2))
    assert (rejected > 0).all()


def test_nca_holds_the_correct_one_at_ln_2():
    chosen, rejected = slopes(nca, [-5.0, 0.0, math.log(2), 1.0, 30.0], [-30.0, -1.0, 0.0, 1.0, 30.0])
    assert np.sign(chosen.round(12)).tolist() == [-1, -1, 0, 1, 1]
    np.testing.assert_allclose(5 * rejected, 0.5 / (1 + np.exp([30.0, 1.0, 0.0, -1.0, -30.0])))


@given(REWARDS, ORDER)
def test_the_order_of_the_elements_is_of_no_account(h, random):
    labels, other = split(h)
    order = list(range(len(h)))
    random.shuffle(order)
    h, other, labels = tensor(h), tensor(other), torch.tensor(labels)
    for loss, first, second in ((ce, h, labels), (dpo, h, other), (nca, h, other)):
        torch.testing.assert_close(loss(first, second), loss(first[order], second[order]))
    torch.testing.assert_close(kto(h, labels, 0.3), kto(h[order], labels[order], 0.3))


def test_a_loss_is_the_mean_of_those_of_its_elements():
    h, other = tensor([0.3, -2.0, 5.0, -0.1, 1.0]), tensor([1.0, 0.2, -3.0, 0.0, 2.0])
    for loss, second in ((ce, LABELS), (dpo, other), (nca, other)):
        alone = torch.stack([loss(h[i : i + 1], second[i : i + 1]) for i in range(5)])
        torch.testing.assert_close(loss(h, second), alone.mean())
    alone = torch.stack([kto(h[i : i + 1], LABELS[i : i + 1], 0.3) for i in range(5)])
    torch.testing.assert_close(kto(h, LABELS, 0.3), alone.mean())


def test_rewards_and_baseline_are_on_one_scale():
    """z is in units of h: beta (log-ratio − KL), and a shift of both changes nothing. ce and nca have a zero of their own."""
    h, other = tensor([0.3, -2.0, 5.0, -0.1, 1.0]), tensor([1.0, 0.2, -3.0, 0.0, 2.0])
    torch.testing.assert_close(kto(h + 7, LABELS, 7.4), kto(h, LABELS, 0.4))
    torch.testing.assert_close(dpo(h + 7, other + 7), dpo(h, other))
    assert ce(h + 7, LABELS) > ce(h, LABELS) + 1
    assert nca(h + 7, other + 7) > nca(h, other) + 1


def test_both_weights_scale_their_own_class():
    h, correct = tensor([0.3, -2.0, 5.0, -0.1, 1.0]), LABELS == 1
    n = correct.sum().item()
    parts = [n * kto(h[correct], LABELS[correct], 0.4), (5 - n) * kto(h[~correct], LABELS[~correct], 0.4)]
    torch.testing.assert_close(
        kto(h, LABELS, 0.4, weight_correct=3.0, weight_wrong=0.5), (3.0 * parts[0] + 0.5 * parts[1]) / 5
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_huge_rewards_have_finite_losses_and_slopes(dtype):
    """Sigmoid and then a logarithm would be −inf, or clamped without a slope."""
    h = torch.tensor(HUGE, dtype=dtype, requires_grad=True)
    for label in (0, 1):
        labels = torch.full((len(HUGE),), label)
        for loss in (ce(h, labels), dpo(h, -h), dpo(-h, h), nca(h, -h), nca(-h, h), kto(h, labels, 0.0)):
            (slope,) = torch.autograd.grad(loss, h)
            assert loss.isfinite()
            assert slope.isfinite().all()
    (slope,) = torch.autograd.grad(ce(h, torch.ones(len(HUGE))), h)
    np.testing.assert_allclose(len(HUGE) * slope[:3], -1.0)  # a wrong verdict, however sure, can be unlearned


def test_kto_of_sure_and_right_verdicts_keeps_its_digits():
    for label, reward in ((1, 40.0), (0, -40.0)):
        h = torch.tensor([reward], dtype=torch.float64, requires_grad=True)
        loss = kto(h, torch.tensor([label]), 0.0)
        loss.backward()
        assert loss.item() == pytest.approx(math.exp(-40), rel=1e-9, abs=0)
        assert h.grad.item() == pytest.approx((1 - 2 * label) * math.exp(-40), rel=1e-9, abs=0)


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("label", [0, 1])
def test_empty_batches_and_those_of_one_class_are_finite(n, label):
    """trl#1447, OpenRLHF#509: the mean over no chosen, rejected or mismatched response was 0/0."""
    h = torch.zeros(n, requires_grad=True)
    labels = torch.full((n,), label)
    for loss in (ce(h, labels), dpo(h, h * 2), nca(h, h * 2), kto(h, labels, kto_baseline(h[:0]))):
        loss.backward()
        assert loss.isfinite()
        assert h.grad.isfinite().all()
        if n == 0:
            assert loss.item() == 0.0
    assert h.grad.shape == (n,)


def test_an_ignored_label_is_refused_and_not_read_as_correct():
    """trl PR#2127: −100, cast to a truth value, made a correct example of everything."""
    with pytest.raises(ValueError, match="only 0 and 1 are allowed, there is -100"):
        ce(torch.zeros(2), torch.tensor([1, -100]))
    with pytest.raises(ValueError, match=r"there is 0\.5"):
        kto(torch.zeros(2), torch.tensor([0.5, 1.0]), 0.0)


def test_labels_of_any_type_are_the_same():
    h, labels = tensor([0.3, -2.0]), torch.tensor([1, 0])
    for dtype in (torch.bool, torch.int32, torch.float32):
        assert torch.equal(ce(h, labels.to(dtype)), ce(h, labels))
        assert torch.equal(kto(h, labels.to(dtype), 0.1), kto(h, labels, 0.1))


@pytest.mark.parametrize("loss", [ce, dpo, nca, lambda h, labels: kto(h, labels, 0.0)])
def test_shapes_that_would_broadcast_are_refused(loss):
    with pytest.raises(ValueError, match=r"shapes differ: \[3\] and \[3, 1\]"):
        loss(torch.zeros(3), torch.zeros(3, 1))


def test_the_baseline_has_no_slope_and_keeps_its_digits():
    drift = torch.tensor([0.5, 0.7], requires_grad=True)
    h = torch.zeros(2, requires_grad=True)
    assert not kto_baseline(drift).requires_grad
    kto(h, torch.tensor([1, 0]), drift.mean()).backward()
    assert drift.grad is None
    assert h.grad is not None
    np.testing.assert_allclose(
        kto(tensor([0.0]), torch.tensor([1]), 0.1), reference_kto(np.zeros(1), np.ones(1), 0.1), rtol=1e-14
    )
