"""Losses and the two estimators of the gradient of BPR."""

import itertools

import numpy as np
import pytest
import torch

from tasks.bpr.model import Batch, NegativeBinomial, NegativeBinomialLaw, PoissonLaw
from tasks.bpr.objective import Objective, Target, delta_scores
from tasks.bpr.params import Train

COUNTS = np.array([[3.0, 0, 1, 7, 2], [1, 2, 0, 4, 0], [0, 6, 2, 2, 1]])
WEIGHT = torch.tensor([5.0, 10.0, 20.0], dtype=torch.float64)
MONTE_CARLO = {"estimator": "monte_carlo", "n_samples": 50, "n_perturbations": 50}


def model_and_batch(counts: np.ndarray = COUNTS) -> tuple[NegativeBinomial, Batch]:
    n_periods, n_sites = counts.shape
    model = NegativeBinomial(n_sites, 2)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.5, generator=generator)
    features = torch.randn(n_periods, n_sites, 2, generator=generator, dtype=torch.float64)
    return model, Batch(features, torch.arange(n_periods, dtype=torch.float64))


def step(kind: str, epsilon: float | None = None, counts: np.ndarray = COUNTS, seed: int = 0, **params):
    """(value, gradient of all parameters, loss) of one step."""
    model, batch = model_and_batch(counts)
    loss = Objective(kind, Train(**params), epsilon).loss(
        model(batch),
        Target.of(counts, 2),
        weight=WEIGHT[: len(counts)],
        log_prior=model.log_prior(),
        generator=torch.Generator().manual_seed(seed),
    )
    loss.value.backward()
    gradient = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    return loss.value.item(), torch.nn.utils.parameters_to_vector(gradient), loss


def test_likelihood_is_the_posterior_of_all_periods():
    """Per site: Σ_t mean_s −log p, and the prior once in T S log densities."""
    model, batch = model_and_batch()
    log_density = model.log_prob(torch.from_numpy(COUNTS), batch).sum() + model.log_prior()
    np.testing.assert_allclose(step("ml")[0], -log_density.item() / COUNTS.shape[1], rtol=1e-12)


@pytest.mark.parametrize("estimator", [{}, MONTE_CARLO])
@pytest.mark.parametrize("constraint", ["hard", "smoothed"])
@pytest.mark.parametrize("aggregate", ["every", "mean"])
def test_a_slack_constraint_leaves_maximum_likelihood(estimator, constraint, aggregate):
    value, gradient, _ = step("ml")
    slack = step("daml", 1e-3, margin=0.0, constraint=constraint, aggregate=aggregate, **estimator)
    assert slack[0] == value
    assert torch.equal(slack[1], gradient)


@pytest.mark.parametrize("constraint", ["hard", "smoothed"])
def test_daml_adds_the_violated_periods(constraint):
    hard, smoothed = step("daml", 1.0)[2].hard, step("daml", 1.0)[2].smoothed
    reached = hard if constraint == "hard" else smoothed
    epsilon = float(reached.detach().sort().values[1]) + 1e-3
    violated = reached.detach() < epsilon
    assert violated.sum() == 2
    value, gradient, loss = step("daml", epsilon, margin=0.0, constraint=constraint)
    expected = (WEIGHT * (epsilon - reached.detach()).clamp_min(0)).sum() + loss.nll.sum()
    model, _ = model_and_batch()
    np.testing.assert_allclose(value, (expected - model.log_prior() / COUNTS.shape[1]).item(), rtol=1e-12)
    model, batch = model_and_batch()
    objective = Objective("bpr", Train(), None)
    only = objective.loss(model(batch), Target.of(COUNTS, 2), weight=torch.where(violated, WEIGHT, 0.0)).value
    only.backward()
    part = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    torch.testing.assert_close(gradient, step("ml")[1] + torch.nn.utils.parameters_to_vector(part))


def test_the_margin_moves_the_aim_but_not_above_one():
    target, reached = Target.of(COUNTS, 2), torch.tensor([0.8, 0.805, 0.9], dtype=torch.float64)
    torch.testing.assert_close(
        Objective("daml", Train(margin=0.01), 0.8).shortfall(reached, target),
        torch.tensor([0.01, 0.005, 0.0], dtype=torch.float64),
    )
    full = torch.ones(3, dtype=torch.float64) - 1e-12
    assert not Objective("daml", Train(margin=0.01), 1.0).shortfall(full, target).any()


def test_the_mean_may_be_held_in_place_of_every_period():
    target, reached = Target.of(COUNTS, 2), torch.tensor([0.5, 0.9, 1.0], dtype=torch.float64)
    shortfall = {
        a: Objective("daml", Train(margin=0.0, aggregate=a), 0.75).shortfall(reached, target) for a in ("every", "mean")
    }
    torch.testing.assert_close(shortfall["every"], torch.tensor([0.25, 0.0, 0.0], dtype=torch.float64))
    assert not shortfall["mean"].any()
    strict = Objective("daml", Train(margin=0.0, aggregate="mean"), 0.9).shortfall(reached, target)
    torch.testing.assert_close(strict, torch.full((3,), 0.1, dtype=torch.float64))


@pytest.mark.parametrize("kind", ["ml", "bpr", "daml"])
@pytest.mark.parametrize("params", [{}, MONTE_CARLO, {"constraint": "smoothed"}, {"aggregate": "mean"}])
def test_a_period_without_events_adds_nothing_but_its_likelihood(kind, params):
    empty = np.vstack([COUNTS, np.zeros(5)])[[0, 1, 3]]
    value, gradient, loss = step(kind, 1.0 if kind == "daml" else None, empty, **params)
    assert np.isfinite(value)
    assert gradient.isfinite().all()
    if kind != "ml":
        assert loss.hard.isnan().tolist() == [False, False, True]
        assert loss.smoothed[2] == 0
    alone = step("bpr", None, np.zeros((2, 5)), **params)
    assert alone[0] == 0
    assert not alone[1].any()
    both, likelihood = step("daml", 1.0, np.zeros((2, 5)), **params), step("ml", None, np.zeros((2, 5)))
    assert both[0] == likelihood[0]
    assert torch.equal(both[1], likelihood[1])


def _exact_slopes(rate: torch.Tensor, site: int, top: int = 25) -> torch.Tensor:
    """Gradient by the rates of E[y_site / Σ y | Σ y > 0] of two Poisson sites, enumerated."""
    rate = rate.clone().requires_grad_()
    total = torch.zeros((), dtype=torch.float64)
    for y in itertools.product(range(top), repeat=2):
        counts = torch.tensor([y], dtype=torch.float64)
        if sum(y):
            total = total + PoissonLaw(rate[None]).log_prob(counts).sum().exp() * y[site] / sum(y)
    (total / (1 - torch.exp(-rate.sum()))).backward()
    return rate.grad


def test_draws_without_events_are_left_out_without_bias():
    """Small rates: most draws have no events."""
    rate, found = torch.tensor([0.3, 0.5], dtype=torch.float64), []
    objective = Objective("bpr", Train(estimator="monte_carlo"))
    for seed in range(20):
        leaf = rate.clone().requires_grad_()
        law = PoissonLaw(leaf[None])
        samples = law.sample(5000, torch.Generator().manual_seed(seed))
        scores = torch.zeros(1, 2, dtype=torch.float64, requires_grad=True)
        objective._through_samples(scores[0, 0], scores, law, samples).backward()
        found.append(leaf.grad.numpy())
    mean, error = np.mean(found, 0), np.std(found, 0, ddof=1) / np.sqrt(len(found))
    assert error.max() < 0.02
    assert (np.abs(mean - _exact_slopes(rate, 0).numpy()) < 5 * error).all()


def test_delta_scores_of_the_negative_binomial_are_exact():
    """With one θ the total is of the same family, and E[y_s / Σ y] = mean_s / Σ mean."""
    law = NegativeBinomialLaw(
        torch.tensor([[0.3, 2.0, 7.0]], dtype=torch.float64), torch.tensor([1.5], dtype=torch.float64)
    )
    torch.testing.assert_close(delta_scores(law), law.mean / law.mean.sum())


def _cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    return (a @ b / (a.norm() * b.norm())).item()


def test_both_estimators_agree():
    """Scores do not depend on θ; the published score function says that they do."""
    generator = np.random.default_rng(0)
    counts = generator.poisson(generator.gamma(1, 2, 40), (2, 40)).astype(float)
    exact = step("bpr", None, counts, sigma=0.01)[1]
    assert abs(exact[-1]) < 1e-12
    monte_carlo = {"estimator": "monte_carlo", "n_samples": 1000, "n_perturbations": 1000, "sigma": 0.01}
    mean, error = {}, {}
    for score in ("joint", "per_site"):
        found = [step("bpr", None, counts, seed=s, score_function=score, **monte_carlo)[1] for s in range(8)]
        mean[score], error[score] = torch.stack(found).mean(0), torch.stack(found).std(0) / len(found) ** 0.5
    assert _cosine(mean["joint"], exact) > 0.95
    assert abs(mean["joint"][-1]) < 3 * error["joint"][-1]
    assert abs(mean["per_site"][-1]) > 4 * error["per_site"][-1]


def test_control_variates_lessen_the_variance():
    spread = {}
    for baseline in (False, True):
        draws = [step("bpr", None, baseline=baseline, seed=s, **MONTE_CARLO)[1] for s in range(20)]
        spread[baseline] = torch.stack(draws).var(0).sum()
    assert spread[True] < 0.7 * spread[False]


def test_sigma_follows_the_kth_score():
    scores = torch.tensor([[0.5, 0.3, 0.2], [0.6, 0.4, 0.0]], dtype=torch.float64)
    scaled = Objective("bpr", Train(sigma_scale=0.5))
    torch.testing.assert_close(scaled.sigma(scores, 2), torch.tensor([0.15, 0.2], dtype=torch.float64))
    assert (scaled.sigma(scores, 3) > 0).all()
    fixed = Objective("bpr", Train(sigma=0.07))
    torch.testing.assert_close(fixed.sigma(scores, 2), torch.full((2,), 0.07, dtype=torch.float64))


def test_monte_carlo_depends_on_its_generator_alone():
    first = step("daml", 1.0, **MONTE_CARLO)[1]
    torch.manual_seed(7)
    assert torch.equal(first, step("daml", 1.0, **MONTE_CARLO)[1])
    assert not torch.equal(first, step("daml", 1.0, seed=1, **MONTE_CARLO)[1])
