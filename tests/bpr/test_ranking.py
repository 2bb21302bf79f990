"""Ranking scores from draws and from moments."""

import doctest
import itertools

import numpy as np
import pytest
import torch

from tasks.bpr import ranking
from tasks.bpr.metrics import bpr
from tasks.bpr.ranking import Scores, delta_ratio_scores, mean_scores, ratio_scores, topk_ratio_scores

RULES = {"mean": mean_scores, "ratio": ratio_scores, "topk_ratio": topk_ratio_scores}
LIBRARIES = [np.asarray, torch.from_numpy]


def test_examples_in_docstrings():
    assert doctest.testmod(ranking).failed == 0


def expected_bpr(scores, outcomes, prob, k) -> float:
    """Over all joint outcomes with any event; scores that differ by rounding only are equal."""
    each = bpr(np.tile(scores.round(12), (len(outcomes), 1)), outcomes, k, reduce=None)
    happens = ~np.isnan(each)
    return float(prob[happens] @ each[happens] / prob[happens].sum())


def test_topk_ratio_is_never_worse_on_enumerable_models():
    """3000 laws of five independent sites with two values each, K = 2; also against every pair of sites."""
    generator = np.random.default_rng(3)
    pairs = np.array([[s in pair for s in range(5)] for pair in itertools.combinations(range(5), 2)], dtype=float)
    switches = np.array(list(itertools.product([0, 1], repeat=5)))
    worse = dict.fromkeys(RULES, 0)
    for _ in range(3000):
        values = generator.integers(0, 20, (2, 5))
        share = generator.random(5)
        outcomes = np.take_along_axis(values, switches, axis=0).astype(float)
        prob = np.where(switches == 1, share, 1 - share).prod(1)
        largest = np.sort(outcomes, axis=1)[:, -2:].sum(1)
        happens = largest > 0
        best = (pairs @ (outcomes[happens] * (prob[happens] / largest[happens])[:, None]).sum(0)).max()
        best /= prob[happens].sum()
        for rule, score in RULES.items():
            found = expected_bpr(score(outcomes, 2, weights=prob), outcomes, prob, 2)
            worse[rule] += found < best - 1e-9
    assert worse["topk_ratio"] == 0
    assert worse["mean"] > worse["ratio"] > 0  # or the comparison says nothing


@pytest.mark.parametrize("library", LIBRARIES)
def test_formulas_with_axes_between_draws_and_sites(library):
    draws = np.random.default_rng(0).poisson(1.0, (40, 3, 2, 7))
    draws[:, :, :, 0] += 1
    total, largest = draws.sum(-1, keepdims=True), np.sort(draws, -1)[..., -3:].sum(-1, keepdims=True)
    expected = {
        "mean": draws.mean(0), "ratio": (draws / total).mean(0), "topk_ratio": (draws / largest).mean(0),
    }  # fmt: skip
    for rule, score in RULES.items():
        found = score(library(draws), 3)
        assert type(found) is type(library(draws))
        assert tuple(found.shape) == (3, 2, 7)
        assert str(found.dtype).endswith("float64")
        np.testing.assert_allclose(np.asarray(found), expected[rule], rtol=1e-12)
    np.testing.assert_allclose(ratio_scores(draws, 3, 2), (draws / (2 + total)).mean(0), rtol=1e-12)
    np.testing.assert_allclose(topk_ratio_scores(draws, 3, 2), (draws / (2 + largest)).mean(0), rtol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("rule", ["ratio", "topk_ratio"])
def test_draws_without_events_are_left_out_in_each_period_by_itself(rule, library):
    draws = np.array([[[0, 0], [1, 3]], [[2, 2], [0, 0]], [[0, 0], [0, 0]]])
    np.testing.assert_allclose(RULES[rule](library(draws), 2), [[0.5, 0.5], [0.25, 0.75]])
    assert not np.asarray(RULES[rule](library(draws * 0), 2)).any()  # zeros, not NaN
    # with an offset the denominator is never 0 and all draws count
    np.testing.assert_allclose(RULES[rule](library(draws), 2, 4.0), [[1 / 12, 1 / 12], [1 / 24, 3 / 24]])


@pytest.mark.parametrize("rule", list(RULES))
@pytest.mark.parametrize("library", LIBRARIES)
def test_parts_weights_and_order_of_draws(rule, library, monkeypatch):
    generator = np.random.default_rng(1)
    draws, weights = generator.poisson(0.3, (30, 2, 5)), generator.integers(0, 4, 30)
    repeated = RULES[rule](library(np.repeat(draws, weights, axis=0)), 2)
    weighted = RULES[rule](library(draws), 2, weights=library(weights))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-12)
    parts = Scores(rule, 2)
    parts.add(library(draws[:7]), library(weights[:7]))
    parts.add(library(draws[7:]), library(weights[7:]))
    np.testing.assert_allclose(parts.result(), weighted, rtol=1e-12)
    np.testing.assert_allclose(
        RULES[rule](library(draws[::-1].copy()), 2, weights=library(weights[::-1].copy())), weighted, rtol=1e-12
    )
    monkeypatch.setattr(ranking, "BLOCK", 40)  # four draws at a time
    np.testing.assert_allclose(RULES[rule](library(draws), 2, weights=library(weights)), weighted, rtol=1e-12)


@pytest.mark.parametrize("rule", list(RULES))
def test_permutation_of_sites_in_any_layout(rule):
    generator = np.random.default_rng(2)
    draws, order = generator.poisson(1.0, (20, 9)), generator.permutation(9)  # draws[:, order] is in column order
    np.testing.assert_array_equal(RULES[rule](draws[:, order], 3), RULES[rule](draws, 3)[order])


def test_single_precision_draws_are_summed_in_double():
    draws = np.ones((3, 200_000), np.float32)
    draws[:, 0] = 2.0**25  # in single precision nothing is added to it
    np.testing.assert_allclose(ratio_scores(draws)[1], 1 / (2.0**25 + 199_999), rtol=1e-12)
    np.testing.assert_allclose(ratio_scores(torch.from_numpy(draws))[1], 1 / (2.0**25 + 199_999), rtol=1e-12)


REFUSED = {
    "negative": (np.array([[1.0, 2], [0, -3]]), {}, r"samples[1, 1] is -3; allowed: finite numbers, not negative"),
    "missing": (np.array([[1.0, np.nan]]), {}, r"samples[0, 1] is nan; allowed: finite numbers, not negative"),
    "one axis": (np.array([1.0, 2]), {}, r"samples has shape [2]; allowed: [draws, ..., sites], not empty"),
    "no draw": (np.zeros((0, 2)), {}, r"samples has shape [0, 2]; allowed: [draws, ..., sites], not empty"),
    "K": (np.ones((2, 2)), {"k": 3}, r"k is 3; allowed: whole numbers from 1 to 2, the number of sites"),
    "weights": (np.ones((2, 2)), {"weights": np.ones(3)}, r"weights has shape [3]; allowed: the shape of the draws, [2]"),
    "weight": (np.ones((2, 2)), {"weights": -np.ones(2)}, r"weights[0] is -1; allowed: finite numbers, not negative"),
    "offset": (
        np.ones((2, 2)),
        {"denominator_offset": -1.0},
        r"denominator_offset is -1.0; allowed: finite numbers, not negative",
    ),
}  # fmt: skip


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("fault", list(REFUSED))
def test_refused_in_one_line(fault, library):
    samples, options, message = REFUSED[fault]
    options = {name: library(value) if name == "weights" else value for name, value in options.items()}
    with pytest.raises(ValueError) as error:  # noqa: PT011
        topk_ratio_scores(library(samples), **{"k": 1} | options)
    assert str(error.value) == message


def test_other_types_and_rules_are_refused():
    with pytest.raises(ValueError, match="samples has type <U1; allowed: whole numbers and floating-point numbers"):
        mean_scores(np.array([["1", "2"]]))
    with pytest.raises(ValueError, match=r"samples has type torch\.complex64; allowed"):
        mean_scores(torch.ones(2, 2, dtype=torch.complex64))
    with pytest.raises(ValueError, match="rule is 'median'; allowed: mean, ratio, topk_ratio"):
        Scores("median")


class TestDelta:
    def test_formula(self):
        mean, variance = torch.tensor([[1.0, 2, 3]]).double(), torch.tensor([[0.5, 2, 1]]).double()
        for c in (0.0, 1.0):
            mu, spread = 6 + c, 3.5
            expected = mean / mu - variance / mu**2 + mean * spread / mu**3
            torch.testing.assert_close(delta_ratio_scores(mean, variance, c), expected, rtol=1e-14, atol=0)

    def test_near_the_ratio_of_many_draws(self):
        """300 Poisson sites: within 1 % of the scores of 20000 draws, twice their noise."""
        generator = np.random.default_rng(0)
        mean = np.exp(generator.normal(0, 1, 300))
        draws = generator.poisson(mean, (20_000, 300))
        exact = ratio_scores(draws)
        found = delta_ratio_scores(torch.from_numpy(mean), torch.from_numpy(mean)).numpy()
        noise = draws.std(0) / mean.sum() / np.sqrt(20_000)
        assert np.abs((found - exact) / noise).max() < 4.5
        assert found.sum() == pytest.approx(1)

    def test_the_second_order_matters_where_sites_are_few(self):
        """Two sites, mean 10 and variance 10 or 40: better than the ratio of the means."""
        generator = np.random.default_rng(1)
        draws = np.stack([generator.poisson(10, 400_000), generator.negative_binomial(10 / 3, 0.25, 400_000)], 1)
        exact = ratio_scores(draws)[0]
        found = delta_ratio_scores(torch.tensor([10.0, 10.0]), torch.tensor([10.0, 40.0]))[0].item()
        assert abs(found - exact) < 0.35 * abs(0.5 - exact)

    def test_gradient(self):
        mean = torch.rand(2, 4, dtype=torch.float64).add_(0.5).requires_grad_()
        variance = torch.rand(2, 4, dtype=torch.float64).add_(0.5).requires_grad_()
        assert torch.autograd.gradcheck(delta_ratio_scores, (mean, variance, 1.0))

    def test_single_precision_stays_and_its_sums_are_double(self):
        for n in range(1000, 1040):
            mean = torch.ones(n)
            mean[0] = 2.0**25
            found = delta_ratio_scores(mean, torch.zeros_like(mean))
            assert found.dtype == torch.float32
            assert found[1].item() == np.float32(1 / (2.0**25 + n - 1))

    def test_means_of_zero(self):
        mean = torch.zeros(2, 3, requires_grad=True)
        found = delta_ratio_scores(mean, mean)
        found.sum().backward()
        assert not found.detach().any()
        assert torch.isfinite(mean.grad).all()

    def test_other_shape(self):
        with pytest.raises(ValueError, match=r"^variance has shape \[1, 3\]; allowed: the shape of mean, \[2, 3\]$"):
            delta_ratio_scores(torch.ones(2, 3), torch.ones(1, 3))
