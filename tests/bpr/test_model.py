"""The laws against scipy, their draws, the prior, and the standardizer."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from tasks.bpr.model import (
    LARGEST_CORRELATION,
    LARGEST_DRAW,
    LEAST_SD,
    Batch,
    NegativeBinomial,
    NegativeBinomialLaw,
    Poisson,
    PoissonLaw,
    Standardizer,
    TruncatedNormalMixture,
    TruncatedNormalMixtureLaw,
    build,
)
from tasks.bpr.ranking import ratio_scores


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def mixture() -> TruncatedNormalMixtureLaw:
    weight = tensor([[0.3, 0.7], [0.9, 0.1], [0.5, 0.5]])
    return TruncatedNormalMixtureLaw(weight.log(), tensor([1.0, 9.0]), tensor([2.0, 3.0]), tensor(10.0), 2)


LAWS = {
    "negative_binomial": NegativeBinomialLaw(tensor([[0.3, 2.0, 7.0], [0.01, 5.0, 1.0]]), tensor([0.7])),
    "poisson": PoissonLaw(tensor([[0.3, 2.0, 7.0], [0.01, 5.0, 1.0]])),
    "truncated_normal_mixture": mixture(),
}


@given(st.floats(1e-6, 1e4), st.floats(-6, 6), st.lists(st.integers(0, 10_000), min_size=1, max_size=5))
def test_negative_binomial_is_scipys(mu, logit, counts):
    law = NegativeBinomialLaw(torch.full((len(counts),), mu, dtype=torch.float64), tensor([logit]))
    peer = stats.nbinom(mu, 1 / (1 + np.exp(logit)))
    expected = peer.logpmf(counts)
    np.testing.assert_allclose(law.log_prob(tensor(counts)).numpy(), expected, rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(law.mean[0], peer.mean(), rtol=1e-10)
    np.testing.assert_allclose(law.variance[0], peer.var(), rtol=1e-10)


def test_negative_binomial_is_scipys_to_ten_digits():
    mu, counts = np.array([0.02, 0.5, 3.0, 40.0]), np.array([1, 0, 7, 55])
    found = NegativeBinomialLaw(tensor(mu), tensor([0.4])).log_prob(tensor(counts))
    np.testing.assert_allclose(found, stats.nbinom.logpmf(counts, mu, 1 / (1 + np.exp(0.4))), atol=1e-10, rtol=0)


def test_derivatives_of_the_negative_binomial():
    counts, mu = tensor([[0.0, 1, 5], [2, 0, 9]]), tensor([[0.1, 2.0, 3.0], [1e-3, 4.0, 20.0]]).requires_grad_()
    logit = tensor([0.3]).requires_grad_()
    assert torch.autograd.gradcheck(lambda m, g: NegativeBinomialLaw(m, g).log_prob(counts), (mu, logit))
    draws = torch.stack([counts, counts + 1])
    assert torch.autograd.gradcheck(lambda m, g: NegativeBinomialLaw(m, g).log_prob(draws), (mu, logit))


def test_mixture_is_scipys():
    law, counts = mixture(), tensor([[0.0, 3.3, 10.0], [8.0, 1.0, 5.0]])
    parts = [stats.truncnorm(-m / s, (10 - m) / s, m, s) for m, s in ((1.0, 2.0), (9.0, 3.0))]
    for site, weight in enumerate(law.log_weight.exp().numpy()):

        def density(y, weight=weight):
            return weight[0] * parts[0].pdf(y) + weight[1] * parts[1].pdf(y)

        np.testing.assert_allclose(law.log_prob(counts)[:, site], np.log(density(counts[:, site].numpy())), atol=1e-10)
        mean = integrate.quad(lambda y: y * density(y), 0, 10)[0]
        square = integrate.quad(lambda y: y * y * density(y), 0, 10)[0]
        np.testing.assert_allclose(law.mean[0, site], mean, rtol=1e-8)
        np.testing.assert_allclose(law.variance[0, site], square - mean**2, rtol=1e-7)
    assert law.log_prob(counts + 5)[1, 0] == -torch.inf


@pytest.mark.parametrize("kind", LAWS)
def test_draws_have_the_laws_mean_and_variance(kind):
    law, n = LAWS[kind], 40_000
    draws = law.sample(n, torch.Generator().manual_seed(5))
    assert draws.shape == (n, 2, 3)
    assert draws.dtype == torch.float64
    assert (draws >= 0).all()
    mean, variance = law.mean.expand(2, 3), law.variance.expand(2, 3)
    gap = draws - mean
    assert (gap.mean(0).abs() < 5 * (variance / n).sqrt()).all()
    error = ((gap**2).var(0) / n).sqrt()
    assert (((gap**2).mean(0) - variance).abs() < 5 * error + 1e-9).all()


@pytest.mark.parametrize("kind", LAWS)
def test_draws_depend_on_their_generator_alone(kind):
    first = LAWS[kind].sample(20, torch.Generator().manual_seed(3))
    torch.manual_seed(99)
    torch.rand(7)
    before = torch.random.get_rng_state()
    assert torch.equal(first, LAWS[kind].sample(20, torch.Generator().manual_seed(3)))
    assert torch.equal(before, torch.random.get_rng_state())
    assert not torch.equal(first, LAWS[kind].sample(20, torch.Generator().manual_seed(4)))


@pytest.mark.parametrize("kind", LAWS)
def test_counts_of_another_shape_are_refused(kind):
    law = LAWS[kind]
    for counts in (torch.ones(6), torch.ones(2, 3, 1), torch.ones(3, 2)):
        with pytest.raises(ValueError, match="do not end with the model's"):
            law.log_prob(counts.double())


def test_huge_draws_are_finite_numbers():
    """EpiNow2 #727, pystan2 #297: a gamma draw beyond the integers made an exception or a negative count."""
    law = NegativeBinomialLaw(tensor([[1e-3, 1e9, 1e30]]), tensor([40.0]))
    draws = law.sample(50, torch.Generator().manual_seed(0))
    assert draws.isfinite().all()
    assert (draws >= 0).all()
    assert draws.max() == LARGEST_DRAW
    assert ratio_scores(draws).isfinite().all()


@pytest.mark.parametrize("link", ["softplus", "exp"])
@pytest.mark.parametrize("family", [NegativeBinomial, Poisson])
@pytest.mark.parametrize("eta", [-100.0, -1000.0, 1000.0])
def test_extreme_predictors_have_finite_likelihood_and_gradient(family, link, eta):
    """gluonts #287: softplus(-100) made lgamma(0)."""
    model, counts = family(2, 0, link=link, site_effects=False), tensor([[1.0, 0.0]])
    with torch.no_grad():
        model.beta_0.fill_(eta)
    value = model.log_prob(counts, Batch(torch.zeros(1, 2, 0, dtype=torch.float64), tensor([0.0])))
    assert value.isfinite().all()
    value.sum().backward()
    assert model.beta_0.grad.isfinite().all()
    if eta == -100:
        assert model.beta_0.grad > 0.5  # and it can get away from there


@pytest.mark.parametrize("prior", ["mvn", "quadratic"])
def test_prior_of_the_effects(prior):
    model = NegativeBinomial(4, 0, prior=prior)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(generator=generator)
        sd = [model.log_sigma_0.exp().item(), model.log_sigma_1.exp().item()]
        rho = model.rho.tanh().item()
        if prior == "mvn":
            sd, rho = [np.hypot(a, b) for a, b in zip(sd, LEAST_SD, strict=True)], LARGEST_CORRELATION * rho
        covariance = np.array([[sd[0] ** 2, rho * sd[0] * sd[1]], [rho * sd[0] * sd[1], sd[1] ** 2]])
        effects = torch.stack([model.b_0, model.b_1], 1).numpy()
        density = stats.multivariate_normal([0, 0], covariance)
        expected = density.logpdf(effects).sum()
        if prior == "quadratic":
            expected -= 4 * density.logpdf([0, 0])
        np.testing.assert_allclose(model.covariance(), covariance, rtol=1e-12)
        np.testing.assert_allclose(model.log_prior().item(), expected, rtol=1e-12)


def test_effects_and_their_deviations_have_a_finite_best_prior():
    """Without a least deviation the density of effects of 0 grows without bound as sigma falls."""
    model = NegativeBinomial(4, 0)
    with torch.no_grad():
        model.log_sigma_0.fill_(-100)
        model.log_sigma_1.fill_(-100)
        model.rho.fill_(100)
    assert model.log_prior() < 4 * -np.log(2 * np.pi * LEAST_SD[0] * LEAST_SD[1]) + 4


@pytest.mark.parametrize("family", [NegativeBinomial, Poisson])
@pytest.mark.parametrize("link", ["softplus", "exp"])
def test_expected_counts_are_proportional_to_exposure(family, link):
    model = family(2, 1, link=link)
    features, time = tensor([[[1.0], [2.0]]]), tensor([0.0])
    with torch.no_grad():
        model.beta.fill_(0.3)
    one, three = (Batch(features, time, torch.full((1, 2), e, dtype=torch.float64)) for e in (1.0, 3.0))
    torch.testing.assert_close(model.mean(three), 3 * model.mean(one))
    torch.testing.assert_close(model.mean(one), model.mean(Batch(features, time)))
    draws = model.sample(three, 20_000, torch.Generator().manual_seed(0))
    torch.testing.assert_close(draws.mean(0), model.mean(three), rtol=0.05, atol=0)


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("link", ["softplus", "exp"])
def test_every_start_predicts_about_the_mean_count(kind, link):
    generator = np.random.default_rng(0)
    counts = generator.poisson(20, (5, 6)).astype(float)
    model = build(kind, 6, 2, link=link, site_effects=True, prior="mvn", components=2)
    model.start(generator, counts, 3)
    batch = Batch(torch.zeros(5, 6, 2, dtype=torch.float64), torch.zeros(5, dtype=torch.float64))
    mean = model.mean(batch).mean().item()
    assert 0.5 * counts.mean() < mean < 2 * counts.mean()
    assert model.variance(batch).shape == (5, 6)
    if kind != "truncated_normal_mixture":
        assert not model.beta.any()


def test_starts_of_the_mixture_repeat_after_twenty():
    counts = np.array([[10.0, 100.0]])
    models = {}
    for seed in (0, 1, 20):
        models[seed] = TruncatedNormalMixture(2, 2)
        models[seed].start(None, counts, seed)
    assert torch.equal(models[0].raw_center, models[20].raw_center)
    assert not torch.equal(models[0].raw_center, models[1].raw_center)
    center = torch.nn.functional.softplus(models[0].raw_center).detach()
    np.testing.assert_allclose(center, np.random.RandomState(1989).uniform(8, 102, (20, 2))[0])
    assert models[0].high == 150


@pytest.mark.parametrize("kind", LAWS)
def test_a_panel_without_events_has_a_start(kind):
    model = build(kind, 3, 0, link="softplus", site_effects=True, prior="mvn", components=2)
    model.start(np.random.default_rng(0), np.zeros((2, 3)), 0)
    batch = Batch(torch.zeros(2, 3, 0, dtype=torch.float64), tensor([0.0, 1.0]))
    assert model.log_prob(torch.zeros(2, 3, dtype=torch.float64), batch).isfinite().all()


def test_standardizer_is_of_training_alone_and_drops_constants():
    generator = np.random.default_rng(1)
    train = np.stack([generator.normal(5, 3, (4, 6)), np.full((4, 6), 0.1), np.zeros((4, 6))], 2)
    standardizer = Standardizer.fit(train, np.arange(4.0) + 2000)
    batch = standardizer.batch(train, np.arange(4.0) + 2000)
    np.testing.assert_allclose(batch.features[..., 0].mean(), 0, atol=1e-12)
    np.testing.assert_allclose(batch.features[..., 0].std(correction=0), 1)
    np.testing.assert_allclose(batch.time.mean(), 0, atol=1e-12)
    later = standardizer.batch(train * 100 + 1, np.arange(4.0) + 2004)
    assert not later.features[..., 1:].any()
    np.testing.assert_allclose(
        later.features[..., 0].numpy(), (train[..., 0] * 100 + 1 - train[..., 0].mean()) / train[..., 0].std()
    )


def test_standardizer_refuses_what_does_not_fit():
    standardizer = Standardizer.fit(np.ones((2, 3, 1)), np.arange(2.0))
    with pytest.raises(ValueError, match=r"do not fit a standardizer of 1 features"):
        standardizer.batch(np.ones((2, 3, 2)), np.arange(2.0))
    with pytest.raises(ValueError, match="exposure is given, unlike in training"):
        standardizer.batch(np.ones((2, 3, 1)), np.arange(2.0), np.ones((2, 3)))


@pytest.mark.parametrize("shape", [(2, 4, 1), (2, 3, 2)])
def test_models_refuse_other_sites_and_features(shape):
    batch = Batch(torch.zeros(shape, dtype=torch.float64), torch.zeros(2, dtype=torch.float64))
    with pytest.raises(ValueError, match="do not fit a model of 3 sites and 1 features"):
        NegativeBinomial(3, 1).mean(batch)
    if shape[1] != 3:
        with pytest.raises(ValueError, match="a batch of 4 sites does not fit a model of 3"):
            TruncatedNormalMixture(3, 2).mean(batch)


@pytest.mark.parametrize("kind", ["negative_binomial", "poisson"])
def test_counts_a_thousand_times_larger_start_and_are_forecast_a_thousand_times_larger(kind):
    """Parameters and priors are in units of the mean count: a training rate suits any size of the counts."""
    generator = np.random.default_rng(0)
    counts = generator.poisson(2, (4, 6)).astype(float)
    batch = Batch(torch.from_numpy(generator.normal(size=(4, 6, 2))), tensor([-1.5, -0.5, 0.5, 1.5]))
    means = []
    for factor in (1, 1000):
        model = build(kind, 6, 2, link="softplus", site_effects=True, prior="mvn", components=2)
        model.start(np.random.default_rng(1), factor * counts, 0)
        with torch.no_grad():
            model.beta.fill_(0.3)
        means.append(model.mean(batch))
    torch.testing.assert_close(means[1], 1000 * means[0])


def test_slopes_start_at_random_where_asked():
    counts, starts = np.full((2, 3), 4.0), []
    for seed in (0, 1, 0):
        model = build("poisson", 3, 5, link="exp", site_effects=False, prior="mvn", components=2)
        model.start(np.random.default_rng(seed), counts, seed, 2.0)
        starts.append(model.beta.detach().clone())
    assert torch.equal(starts[0], starts[2])
    assert not torch.equal(starts[0], starts[1])
    assert 0.5 < torch.stack(starts[:2]).std().item() < 4
