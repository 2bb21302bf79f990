"""The authors' code's results with stored draws, and exact enumerations, are met within the stated tolerances."""

import numpy as np
import pytest
import torch

from tasks.bpr.metrics import bpr, chosen
from tasks.bpr.ranking import mean_scores, ratio_scores, topk_ratio_scores
from tasks.bpr.topk import mean_field_top_k, perturbed_bpr, perturbed_top_k


def tensors(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(a) for name, a in arrays.items() if a.dtype.kind in "fi"}


class TestPerturbedTopK:
    """perturbed_topk_small: 64 stored draws for 3 rows of 12 sites."""

    @pytest.mark.parametrize("type_", [torch.float64, torch.float32])
    @pytest.mark.parametrize("noise", ["normal", "gumbel"])
    def test_mask_and_gradient(self, noise, type_, golden):
        stored = tensors(golden("perturbed_topk_small"))
        prefix = "gumbel_" if noise == "gumbel" else ""
        suffix = "_f32" if noise == "normal" and type_ == torch.float32 else ""
        scores = stored["r"].to(type_).requires_grad_()
        mask = perturbed_top_k(
            scores,
            int(stored["K"]),
            sigma=float(stored["sigma"]),
            noise=stored[f"{prefix}noise"].to(type_),
            baseline=False,
            gumbel=noise == "gumbel",
        )
        mask.backward(stored["dy"].to(type_))
        tolerance = 1e-12 if type_ == torch.float64 else 1e-5
        assert mask.dtype == scores.grad.dtype == type_
        for found, name in ((mask, "khot_mean"), (scores.grad, "vjp")):
            expected = stored[f"{prefix}{name}{suffix}"].numpy()
            np.testing.assert_allclose(found.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


class TestPerturbedBPROfCook:
    """perturbed_bpr_cook: two years of 1328 tracts, 50 stored draws."""

    @pytest.fixture
    def stored(self, golden) -> dict[str, torch.Tensor]:
        return tensors(golden("perturbed_bpr_cook"))

    def _run(self, stored, type_, **options):
        scores = stored["r"].to(type_).requires_grad_()
        value = perturbed_bpr(
            scores, stored["y"], 100, sigma=0.001, noise=stored["noise"].to(type_), baseline=False, **options
        )
        value.sum().backward()
        return value.detach(), scores.grad

    @pytest.mark.parametrize("type_", [torch.float32, torch.float64])
    def test_value_and_gradient(self, type_, stored):
        value, gradient = self._run(stored, type_)
        np.testing.assert_allclose(value, stored["perturbed_bpr"], rtol=1e-6)
        # entries that cancel to nearly nothing carry the rounding of the stored single-precision sums
        largest = float(stored["dbpr_dr"].abs().max())
        np.testing.assert_allclose(gradient, stored["dbpr_dr"], rtol=1e-4, atol=2e-6 * largest)

    def test_mask_form_gives_the_same_value_and_gradient(self, stored):
        value, gradient = self._run(stored, torch.float64)
        scores = stored["r"].double().requires_grad_()
        mask = perturbed_top_k(scores, 100, sigma=0.001, noise=stored["noise"].double(), baseline=False)
        other = (mask * stored["y"]).sum(-1) / stored["y"].topk(100).values.sum(-1)
        other.sum().backward()
        np.testing.assert_allclose(value, other.detach(), rtol=1e-12)
        np.testing.assert_allclose(gradient, scores.grad, rtol=1e-9, atol=1e-9)

    def test_hard_bpr(self, stored):
        found = bpr(stored["r"].numpy(), stored["y"].numpy(), 100, reduce=None)
        np.testing.assert_allclose(found, stored["deterministic_bpr"], rtol=1e-6)

    def test_mean_field_limit(self, stored):
        """The published comparison: 0.6983 and 0.6632, against 0.6971 and 0.6652 with 50 draws."""
        mask = mean_field_top_k(stored["r"], 100, sigma=0.001)
        found = (mask * stored["y"]).sum(-1) / stored["y"].topk(100).values.sum(-1)
        np.testing.assert_allclose(found, [0.6983, 0.6632], atol=6e-5)


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_ratio_ranking_of_cook(library, golden):
    """ratio_ranking_cook: 50 draws of two years."""
    stored = golden("ratio_ranking_cook")
    samples, k = library(stored["samples"]), int(stored["K"])
    found = {
        "ratio_plain": ratio_scores(samples, k),
        "ratio_plus1": ratio_scores(samples, k, 1),
        "topk_ratio": topk_ratio_scores(samples, k),
        "mean": mean_scores(samples, k),
    }
    for name, scores in found.items():
        assert type(scores) is type(samples)
        np.testing.assert_allclose(np.asarray(scores), stored[name], rtol=1e-6, err_msg=name)


def test_bpr_values(golden):
    """bpr_values: six cases of ties for several K; NaN where nothing happened."""
    stored = golden("bpr_values")
    assert len(stored["case"]) == 24
    for case, k, expected in zip(stored["case"], stored["K"], stored["exact_tie_bpr"], strict=True):
        found = bpr(stored[f"{case}_score"], stored[f"{case}_y"], int(k))
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=f"{case}, K = {k}")


def test_bpr_values_of_the_authors_where_no_scores_are_tied(golden):
    stored = golden("bpr_values")
    seen = 0
    for case, k, expected in zip(stored["case"], stored["K"], stored["torch_topk_bpr"], strict=True):
        scores = stored[f"{case}_score"]
        if len(set(scores)) == len(scores):
            seen += 1
            np.testing.assert_allclose(bpr(scores, stored[f"{case}_y"], int(k)), expected, rtol=1e-6)
    assert seen == 16


class TestToyOfNineSites:
    """toy9_exact: 64 joint outcomes with their probabilities."""

    RULES = (("mean", mean_scores), ("ratio", ratio_scores), ("topk_ratio", topk_ratio_scores))

    def test_scores(self, golden):
        stored = golden("toy9_exact")
        for rule, score in self.RULES:
            for k in stored["K"]:
                found = score(stored["outcomes"], int(k), weights=stored["prob"])
                expected = stored[f"topk_ratio_K{k}" if rule == "topk_ratio" else rule]
                np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_expected_bpr(self, golden):
        stored = golden("toy9_exact")
        for rule, score in self.RULES:
            for k, expected in zip(stored["K"].tolist(), stored[f"bpr_{rule}"], strict=True):
                # the last digit of sums may split sites that are equal; their order matters to no expectation here
                scores = score(stored["outcomes"], k, weights=stored["prob"]).round(12)
                each = bpr(np.tile(scores, (64, 1)), stored["outcomes"], k, reduce=None)
                assert stored["prob"] @ each == pytest.approx(expected, rel=1e-12)

    def test_the_printed_values(self, golden):
        stored = golden("toy9_exact")
        np.testing.assert_allclose(stored["bpr_mean"], [0.1, 0.2228, 0.6311], atol=5e-5)
        np.testing.assert_allclose(stored["bpr_optimal"], [0.5434, 0.6303, 0.8171], atol=5e-5)


def test_counterexample_where_ratio_is_not_the_best_rule(golden):
    """ranking_counterexample: E[BPR-1] is 0.50 by ratio and by mean, 0.53 by topk_ratio."""
    stored = golden("ranking_counterexample")
    outcomes, prob = stored["outcomes"], stored["prob"]
    for rule, score, site, expected in (
        ("mean", mean_scores, 0, 0.50),
        ("ratio", ratio_scores, 0, 0.50),
        ("topk_ratio", topk_ratio_scores, 1, 0.53),
    ):
        scores = score(outcomes, 1, weights=prob)
        np.testing.assert_allclose(scores, stored[rule], rtol=1e-8)
        assert chosen(scores, 1).item() == site
        assert prob @ bpr(np.tile(scores, (2, 1)), outcomes, 1, reduce=None) == pytest.approx(expected)
