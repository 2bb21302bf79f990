"""The authors' step on stored draws, and the bias of their score function (../shared/golden/bpr)."""

import numpy as np
import pytest
import torch

from tasks.bpr.model import Batch, NegativeBinomial, PoissonLaw
from tasks.bpr.objective import Objective, Target
from tasks.bpr.params import Train
from tasks.bpr.ranking import ratio_scores

PUBLISHED = {
    "estimator": "monte_carlo",
    "score_function": "per_site",
    "baseline": False,
    "denominator_offset": 1.0,
    "constraint": "smoothed",
    "margin": 0.0,
    "prior": "quadratic",
}
NAMES = ("beta_0", "beta", "b_0", "b_1", "log_sigma_0", "log_sigma_1", "rho", "siginv_theta")


@pytest.fixture
def stored(golden) -> dict:
    return golden("nb_model_gradients")


@pytest.fixture
def model(stored) -> NegativeBinomial:
    _, n_sites, n_features = stored["X"].shape
    model = NegativeBinomial(n_sites, n_features, prior="quadratic")
    assert tuple(stored["param_names"]) == tuple(dict(model.named_parameters())) == NAMES
    torch.nn.utils.vector_to_parameters(torch.tensor(stored["params"], dtype=torch.float64), model.parameters())
    return model


@pytest.fixture
def batch(stored) -> Batch:
    assert (stored["time"] == stored["time"][:, :1]).all()
    return Batch(torch.tensor(stored["X"]).double(), torch.tensor(stored["time"][:, 0]).double())


def test_law_and_prior(stored, model, batch):
    law, counts = model(batch), torch.tensor(stored["y"]).double()
    with torch.no_grad():
        prior = model.log_prior() / (2 * model.n_sites)
        found = {
            "mu": law.mu,
            "theta": torch.sigmoid(law.logit).expand_as(law.mu),
            "mean": model.mean(batch),
            "variance": model.variance(batch),
            "log_prob": model.log_prob(counts, batch),
            "cov": model.covariance(),
            "penalised_mean_loglik": model.log_prob(counts, batch).mean() + prior,
        }
    for name, value in found.items():
        np.testing.assert_allclose(value.detach().numpy(), stored[name], rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("step", ["ml", "bpr", "daml", "daml_slack"])
def test_the_authors_step(stored, model, batch, step):
    bpr_weight, nll_weight, epsilon = stored[f"hyper_{step}"]
    kind = step.split("_")[0]
    assert nll_weight == (kind != "bpr")
    params = Train(sigma=float(stored["sigma"]), **PUBLISHED)
    target = Target.of(stored["y"], int(stored["K"]))
    loss = Objective(kind, params, float(epsilon)).loss(
        model(batch),
        target,
        weight=torch.full((2,), float(bpr_weight), dtype=torch.float64),
        log_prior=model.log_prior(),
        samples=torch.tensor(stored["samples"]).double().transpose(0, 1).contiguous(),
        noise=torch.tensor(stored["noise"]).double().transpose(0, 1).contiguous(),
    )
    loss.value.backward()
    found = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    np.testing.assert_allclose(loss.value.item(), stored[f"loss_{step}"], rtol=1e-4)
    gradient = torch.nn.utils.parameters_to_vector(found).numpy()
    np.testing.assert_allclose(gradient, stored[f"grad_{step}"], rtol=1e-4, atol=1e-5)


def test_a_slack_constraint_leaves_maximum_likelihood(stored):
    np.testing.assert_array_equal(stored["grad_daml_slack"], stored["grad_ml"])


class _CutPoisson:
    """Three Poisson sites cut at `top`, log rate = shared + effect: the law of the golden file, enumerated."""

    def __init__(self, theta: torch.Tensor, top: int) -> None:
        self.rate, self.support = (theta[0] + theta[1:]).exp()[None], torch.arange(top + 1.0, dtype=torch.float64)
        grid = PoissonLaw(self.rate[0].expand(top + 1, 3)).log_prob(self.support[:, None].expand(-1, 3))
        self.log_mass = grid.logsumexp(0)
        self.probability = (grid - self.log_mass).exp().detach()

    mean = variance = property(lambda self: self.rate)

    def log_prob(self, counts, log_factorial=None):
        return PoissonLaw(self.rate).log_prob(counts) - self.log_mass

    def sample(self, n, generator):
        draws = [torch.multinomial(p, n, True, generator=generator).double() for p in self.probability.T]
        return torch.stack(draws, 1)[:, None]


def _slopes(stored: dict, score_function: str, baseline: bool, seed: int, n: int = 10_000) -> np.ndarray:
    """Gradient of each site's ratio score by theta, [3, 4]."""
    rows = []
    params = Train(
        estimator="monte_carlo", score_function=score_function, baseline=baseline, denominator_offset=1.0, n_samples=n
    )
    objective = Objective("bpr", params)
    for site in range(3):
        theta = torch.tensor(stored["theta"], requires_grad=True)
        law = _CutPoisson(theta, int(stored["support_max"]))
        samples = law.sample(n, torch.Generator().manual_seed(seed))
        scores = ratio_scores(samples, None, 1.0).requires_grad_()
        objective._through_samples(scores[0, site], scores, law, samples).backward()
        rows.append(theta.grad.numpy())
    return np.array(rows)


@pytest.mark.parametrize("baseline", [True, False])
def test_joint_score_is_exact_and_the_published_one_is_not(golden, baseline):
    stored = golden("score_function_bias")
    np.testing.assert_allclose(stored["dr_dtheta_joint_score"], stored["dr_dtheta_exact"], atol=1e-12)
    parts = np.array([_slopes(stored, "joint", baseline, seed) for seed in range(10)])
    error = parts.std(0, ddof=1) / np.sqrt(len(parts))
    assert error.max() < 0.01
    assert (np.abs(parts.mean(0) - stored["dr_dtheta_exact"]) < 5 * error).all()
    biased = np.array([_slopes(stored, "per_site", baseline, seed) for seed in range(10)])
    error = biased.std(0, ddof=1) / np.sqrt(len(biased))
    if not baseline:  # the published estimator
        assert (np.abs(biased.mean(0) - stored["dr_dtheta_per_site_score"]) <= 5 * error + 1e-12).all()
    assert (np.abs(biased.mean(0) - stored["dr_dtheta_exact"]) > 5 * error + 0.01).any()
