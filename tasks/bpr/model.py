"""Models of the counts: their law given the features, its log probability, mean, variance and draws."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import nn
from torch.nn.functional import logsigmoid, softplus

TINY = 1e-200  # least mean: log and digamma of it are finite, and a dead start still has a gradient
LARGEST_PREDICTOR = 30.0  # exp link: above, exp(η) is 1e13 events
LARGEST_DRAW = 1e18  # torch.poisson overflows above 9e18
POISSON_EXACT = 1e12  # above, a Poisson draw differs from its rate by less than one part in a million

# Joint maximisation over effects and their covariance has no finite optimum: the density of effects of 0 grows without
# bound as σ → 0 or |ρ| → 1. So σ stays above the values that the specification recommends as fixed ones.
LEAST_SD = (0.5, 0.1)
LARGEST_CORRELATION = 0.9

STARTS_SEED, STARTS = 1989, 20  # the authors' stored starts of the mixture
LEAST_COMPONENT_SD = 0.2


@dataclass(frozen=True)
class Batch:
    """What is known of T periods × S sites before they begin, float64.

    Attributes:
        features: [T, S, F], standardised.
        time: [T], centred.
        exposure: [T, S] > 0, or None.
    """

    features: torch.Tensor
    time: torch.Tensor
    exposure: torch.Tensor | None = None


@dataclass(frozen=True)
class Standardizer:
    """Centre and scale of the inputs, from the training periods only.

    Attributes:
        center, scale: float64 [F]; the scale of a column that does not vary in training is 0, and so is the column after.
        time: mean and standard deviation of the periods' numbers.
        exposure: mean exposure, or None.
    """

    center: np.ndarray
    scale: np.ndarray
    time: tuple[float, float]
    exposure: float | None = None

    @classmethod
    def fit(cls, features: np.ndarray, time: np.ndarray, exposure: np.ndarray | None = None) -> "Standardizer":
        """From features [T, S, F], time [T] and exposure [T, S] of the training periods."""
        center, spread = features.mean((0, 1)), features.std((0, 1))
        varies = spread > 1e-12 * np.abs(features).max((0, 1))  # below, a constant column and its rounding
        return cls(
            center,
            np.where(varies, 1 / np.where(varies, spread, 1), 0.0),
            (float(time.mean()), float(time.std()) or 1.0),
            None if exposure is None else float(exposure.mean()),
        )

    def batch(self, features: np.ndarray, time: np.ndarray, exposure: np.ndarray | None = None) -> Batch:
        """Raises ValueError where the features are not [T, S, F] with this F, or there is an exposure only here or there."""
        if features.ndim != 3 or features.shape[2] != len(self.center) or time.shape != features.shape[:1]:
            raise ValueError(
                f"features of shape {features.shape} and time of shape {time.shape} do not fit a standardizer of "
                f"{len(self.center)} features: [T, S, {len(self.center)}] and [T] are needed"
            )
        if (exposure is None) != (self.exposure is None):
            raise ValueError(f"exposure is {'missing' if exposure is None else 'given'}, unlike in training")
        center, scale = self.time
        return Batch(
            torch.from_numpy((features - self.center) * self.scale),
            torch.from_numpy((time - center) / scale),
            None if exposure is None else torch.from_numpy(exposure / self.exposure),
        )


# --- laws: what a model says of one batch


@dataclass(frozen=True)
class NegativeBinomialLaw:
    """NB1: P(y) = Γ(y+μ) / (Γ(μ) y!) (1−θ)^μ θ^y, with mean μ θ/(1−θ) and variance mean/(1−θ).

    The sum over sites with a common θ is of the same family. Attributes: mu [T, S]; logit of θ, one for all.
    """

    mu: torch.Tensor
    logit: torch.Tensor

    @property
    def mean(self) -> torch.Tensor:
        return self.mu * self.logit.exp()

    @property
    def variance(self) -> torch.Tensor:
        return self.mean * (1 + self.logit.exp())

    def log_prob(self, counts: torch.Tensor, log_factorial: torch.Tensor | None = None) -> torch.Tensor:
        """[…, T, S] for counts of that shape; `log_factorial` = lgamma(counts + 1) where it is known already."""
        _same_cells(counts, self.mu)
        log_factorial = torch.lgamma(counts + 1) if log_factorial is None else log_factorial
        return _NegativeBinomialLogProb.apply(counts, self.mu, self.logit, log_factorial)

    def sample(self, n: int, generator: torch.Generator) -> torch.Tensor:
        """[n, T, S] float64: Poisson draws whose rate is a Gamma draw."""
        with torch.no_grad():
            rate = torch._standard_gamma(self.mu.expand(n, *self.mu.shape).contiguous(), generator=generator)
            return _poisson(rate * self.logit.exp(), generator)


@dataclass(frozen=True)
class PoissonLaw:
    """P(y) = rate^y exp(−rate) / y!, rate [T, S]."""

    rate: torch.Tensor

    @property
    def mean(self) -> torch.Tensor:
        return self.rate

    @property
    def variance(self) -> torch.Tensor:
        return self.rate

    def log_prob(self, counts: torch.Tensor, log_factorial: torch.Tensor | None = None) -> torch.Tensor:
        _same_cells(counts, self.rate)
        log_factorial = torch.lgamma(counts + 1) if log_factorial is None else log_factorial
        return counts * self.rate.log() - self.rate - log_factorial

    def sample(self, n: int, generator: torch.Generator) -> torch.Tensor:
        with torch.no_grad():
            return _poisson(self.rate.expand(n, *self.rate.shape).contiguous(), generator)


@dataclass(frozen=True)
class TruncatedNormalMixtureLaw:
    """A density: Σ_l w_sl N(y; m_l, s_l²) / Z_l on [0, high], the same in every period.

    Attributes: log_weight [S, L]; center, sd [L], 0 ≤ center ≤ high; high, a number. Mean and variance are [1, S].
    """

    log_weight: torch.Tensor
    center: torch.Tensor
    sd: torch.Tensor
    high: torch.Tensor
    n_periods: int

    def _bounds(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        low, high = -self.center / self.sd, (self.high - self.center) / self.sd
        return low, high, torch.special.ndtr(high) - torch.special.ndtr(low)

    def _moments(self) -> tuple[torch.Tensor, torch.Tensor]:
        low, high, mass = self._bounds()
        at_low, at_high = _normal_density(low), _normal_density(high)
        shift = (at_low - at_high) / mass
        shrink = 1 + (low * at_low - high * at_high) / mass - shift**2
        return self.center + self.sd * shift, self.sd**2 * shrink.clamp_min(0)

    @property
    def mean(self) -> torch.Tensor:
        return (self.log_weight.exp() @ self._moments()[0])[None]

    @property
    def variance(self) -> torch.Tensor:
        weight, (mean, variance) = self.log_weight.exp(), self._moments()
        gap = mean - (weight @ mean)[:, None]
        return (weight * (variance + gap**2)).sum(1)[None]

    def log_prob(self, counts: torch.Tensor, log_factorial: torch.Tensor | None = None) -> torch.Tensor:
        """Log density; −∞ outside of [0, high]. `log_factorial` is not needed."""
        _same_cells(counts, self.log_weight[:, 0].expand(self.n_periods, -1))
        scaled = (counts[..., None] - self.center) / self.sd
        density = -0.5 * scaled**2 - (self.sd * self._bounds()[2]).log() - 0.5 * math.log(2 * math.pi)
        inside = torch.logsumexp(self.log_weight + density, dim=-1)
        return torch.where((counts >= 0) & (counts <= self.high), inside, -torch.inf)

    def sample(self, n: int, generator: torch.Generator) -> torch.Tensor:
        """[n, T, S] float64, by inversion: one uniform number for the component, one for the value."""
        with torch.no_grad():
            shape = n, self.n_periods, len(self.log_weight)
            which, where = torch.rand(2, *shape, dtype=torch.float64, generator=generator)
            component = torch.zeros(shape, dtype=torch.int64)
            for edge in self.log_weight.exp().cumsum(1).T[:-1]:
                component += which > edge
            low, _, mass = self._bounds()
            quantile = torch.special.ndtr(low)[component] + where * mass[component]
            draws = self.center[component] + self.sd[component] * torch.special.ndtri(quantile)
            return torch.minimum(draws.clamp_min(0), self.high)


Law = NegativeBinomialLaw | PoissonLaw | TruncatedNormalMixtureLaw


class _NegativeBinomialLogProb(torch.autograd.Function):
    """log P with the derivatives ψ(y+μ) − ψ(μ) + log(1−θ) in μ and y(1−θ) − μθ in logit θ; keeps counts and μ only."""

    @staticmethod
    def forward(ctx, counts, mu, logit, log_factorial):
        ctx.save_for_backward(counts, mu, logit)
        value = torch.lgamma(counts + mu).sub_(log_factorial).sub_(torch.lgamma(mu))
        return value.add_(mu * logsigmoid(-logit)).add_(counts * logsigmoid(logit))

    @staticmethod
    def backward(ctx, gradient):
        counts, mu, logit = ctx.saved_tensors
        theta = torch.sigmoid(logit)
        by_mu = torch.digamma(counts + mu).sub_(torch.digamma(mu)).add_(logsigmoid(-logit)).mul_(gradient)
        by_logit = (gradient * (counts * (1 - theta) - mu * theta)).sum().reshape(logit.shape)
        return None, by_mu.sum_to_size(mu.shape), by_logit, None


def _poisson(rate: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    draws = torch.poisson(rate.clamp(max=POISSON_EXACT), generator=generator)
    return torch.where(rate < POISSON_EXACT, draws, rate.clamp(max=LARGEST_DRAW).floor())


def _normal_density(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)


def _same_cells(counts: torch.Tensor, cells: torch.Tensor) -> None:
    if counts.shape[-cells.ndim :] != cells.shape:
        raise ValueError(f"counts of shape {tuple(counts.shape)} do not end with the model's {tuple(cells.shape)}")


# --- models: from a batch to a law


class CountModel(nn.Module):
    """What all models share. `forward(batch)` gives the law; the rest asks it."""

    def forward(self, batch: Batch) -> Law:
        raise NotImplementedError

    def log_prob(self, counts: torch.Tensor, batch: Batch) -> torch.Tensor:
        """[…, T, S], in nats."""
        return self(batch).log_prob(counts)

    def mean(self, batch: Batch) -> torch.Tensor:
        """Expected counts [T, S]."""
        return self(batch).mean.expand(batch.features.shape[:2])

    def variance(self, batch: Batch) -> torch.Tensor:
        """[T, S]."""
        return self(batch).variance.expand(batch.features.shape[:2])

    def sample(self, batch: Batch, n: int, generator: torch.Generator) -> torch.Tensor:
        """[n, T, S] float64 draws; they depend on the generator alone."""
        return self(batch).sample(n, generator)

    def log_prior(self) -> torch.Tensor:
        """Log density of the site effects (prior "quadratic": without its normalising constant); 0 without effects."""
        return torch.zeros((), dtype=torch.float64)

    def start(self, generator: np.random.Generator, counts: np.ndarray, seed: int, spread: float = 0.0) -> None:
        """Set the parameters before training: random where that is harmless, and predicting the mean count."""
        raise NotImplementedError


class _LinearModel(CountModel):
    """η_ts = β₀ + β·x_ts + b0_s + b1_s t; level × link(η) × exposure is passed on.

    The level is the mean count in training, so that parameters and priors mean the same for any size of the counts.

    The site effects are N(0, Σ), Σ = [[σ₀², ρσ₀σ₁], [ρσ₀σ₁, σ₁²]], σ_i = exp(log_sigma_i), ρ = tanh(rho). With the prior
    "mvn", σ_i² gets `LEAST_SD`² added and ρ is multiplied by `LARGEST_CORRELATION`, see there; "quadratic" is as published.
    """

    def __init__(
        self,
        n_sites: int,
        n_features: int,
        *,
        link: Literal["softplus", "exp"] = "softplus",
        site_effects: bool = True,
        prior: Literal["mvn", "quadratic"] = "mvn",
    ) -> None:
        super().__init__()
        self.n_sites, self.n_features, self.link, self.site_effects, self.prior = (
            *(n_sites, n_features, link, site_effects, prior),
        )
        self.register_buffer("level", torch.ones(1, dtype=torch.float64))
        self.beta_0 = _zeros(1)
        self.beta = _zeros(n_features)
        if site_effects:
            self.b_0, self.b_1 = _zeros(n_sites), _zeros(n_sites)
            self.log_sigma_0, self.log_sigma_1, self.rho = _zeros(1), _zeros(1), _zeros(1)

    def predictor(self, batch: Batch) -> torch.Tensor:
        """level × link(η) × exposure, [T, S]. Raises ValueError where sites or features are not those of the model."""
        if batch.features.shape[1:] != (self.n_sites, self.n_features):
            raise ValueError(
                f"features of shape {tuple(batch.features.shape)} do not fit a model of {self.n_sites} sites and "
                f"{self.n_features} features: [T, {self.n_sites}, {self.n_features}] is needed"
            )
        eta = batch.features @ self.beta + self.beta_0
        if self.site_effects:
            eta = eta + self.b_0 + self.b_1 * batch.time[:, None]
        rate = softplus(eta) if self.link == "softplus" else eta.clamp(max=LARGEST_PREDICTOR).exp()
        rate = rate * self.level
        return (rate if batch.exposure is None else rate * batch.exposure).clamp_min(TINY)

    def effects(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(σ₀, σ₁, ρ) of the prior."""
        variance_0, variance_1, rho = (2 * self.log_sigma_0).exp(), (2 * self.log_sigma_1).exp(), self.rho.tanh()
        if self.prior == "mvn":
            variance_0, variance_1 = variance_0 + LEAST_SD[0] ** 2, variance_1 + LEAST_SD[1] ** 2
            rho = LARGEST_CORRELATION * rho
        return variance_0.sqrt(), variance_1.sqrt(), rho

    def covariance(self) -> torch.Tensor:
        """Σ, [2, 2]."""
        sd_0, sd_1, rho = self.effects()
        return torch.stack([torch.cat([sd_0**2, rho * sd_0 * sd_1]), torch.cat([rho * sd_0 * sd_1, sd_1**2])])

    def log_prior(self) -> torch.Tensor:
        """Σ_s log N((b0_s, b1_s); 0, Σ), or its quadratic form −½ Σ_s b_sᵀ Σ⁻¹ b_s alone."""
        if not self.site_effects:
            return super().log_prior()
        sd_0, sd_1, rho = self.effects()
        left = 1 - rho**2
        x, y = self.b_0 / sd_0, self.b_1 / sd_1
        quadratic = -0.5 * ((x**2 - 2 * rho * x * y + y**2) / left).sum()
        if self.prior == "quadratic":
            return quadratic
        log_normaliser = math.log(2 * math.pi) + (sd_0 * sd_1).log() + 0.5 * left.log()
        return quadratic - self.n_sites * log_normaliser.squeeze()

    def _start(self, generator: np.random.Generator, counts: np.ndarray, factor: float, spread: float) -> None:
        """Effects 0, β random, β₀ such that link(η) = factor where β x = 0, the prior's parameters near its least values."""
        noise = generator.normal(size=4)
        inverse = math.log(factor) if self.link == "exp" else factor + math.log(-math.expm1(-factor))
        with torch.no_grad():
            self.level.fill_(_level(counts))
            self.beta_0.fill_(inverse + 0.1 * noise[0])
            self.beta.copy_(torch.from_numpy(spread * generator.normal(size=self.n_features)))
            if self.site_effects:
                self.log_sigma_0.fill_(math.log(LEAST_SD[0]) + 0.5 * noise[1])
                self.log_sigma_1.fill_(math.log(LEAST_SD[1]) + 0.5 * noise[2])
                self.rho.fill_(0.5 * noise[3])


class NegativeBinomial(_LinearModel):
    """NB1 with μ_ts = level × link(η_ts) × exposure and one θ = sigmoid(siginv_theta) (Heuton et al., ICML 2025)."""

    def __init__(self, n_sites: int, n_features: int, **options) -> None:
        super().__init__(n_sites, n_features, **options)
        self.siginv_theta = _zeros(1)

    def forward(self, batch: Batch) -> NegativeBinomialLaw:
        return NegativeBinomialLaw(self.predictor(batch), self.siginv_theta)

    def start(self, generator: np.random.Generator, counts: np.ndarray, seed: int, spread: float = 0.0) -> None:
        logit = 0.5 * generator.normal()
        self._start(generator, counts, math.exp(-logit), spread)
        with torch.no_grad():
            self.siginv_theta.fill_(logit)


class Poisson(_LinearModel):
    """Poisson counts of rate level × link(η_ts) × exposure."""

    def forward(self, batch: Batch) -> PoissonLaw:
        return PoissonLaw(self.predictor(batch))

    def start(self, generator: np.random.Generator, counts: np.ndarray, seed: int, spread: float = 0.0) -> None:
        self._start(generator, counts, 1.0, spread)


class TruncatedNormalMixture(CountModel):
    """L truncated normals shared by all sites, with weights for each site (the paper's 7-site example).

    center = softplus(·), sd = softplus(·) + 0.2, weights = softmax(·), cut to [0, high]; the center is kept at most `high`,
    so that every component has mass there. Features, time and exposure are not used.
    """

    def __init__(self, n_sites: int, n_components: int) -> None:
        super().__init__()
        self.n_sites = n_sites
        self.raw_center, self.raw_sd = _zeros(n_components), _zeros(n_components)
        self.logits = _zeros(n_sites, n_components)
        self.register_buffer("high", torch.ones((), dtype=torch.float64))

    def forward(self, batch: Batch) -> TruncatedNormalMixtureLaw:
        if batch.features.shape[1] != self.n_sites:
            raise ValueError(f"a batch of {batch.features.shape[1]} sites does not fit a model of {self.n_sites}")
        center = torch.minimum(softplus(self.raw_center), self.high)
        sd = softplus(self.raw_sd) + LEAST_COMPONENT_SD
        return TruncatedNormalMixtureLaw(
            torch.log_softmax(self.logits, dim=1), center, sd, self.high, len(batch.features)
        )

    def start(self, generator: np.random.Generator, counts: np.ndarray, seed: int, spread: float = 0.0) -> None:
        """Start number `seed` modulo 20 of the authors' stored ones, scaled from their largest site mean of 100 to this one.

        centers U(8, 102), sds U(0.25, 8), weights Dirichlet(0.5); high = 1.5 × the largest count (theirs: 150).
        """
        stored = np.random.RandomState(STARTS_SEED)
        shape = STARTS, len(self.raw_center)
        center, sd = stored.uniform(8, 102, shape), stored.uniform(0.25, 8, shape)
        weight = stored.dirichlet([0.5] * shape[1], (STARTS, self.n_sites))
        scale = counts.mean(0).max() / 100 or 1.0
        which = seed % STARTS
        with torch.no_grad():
            self.high.fill_(1.5 * counts.max() or 1.0)
            self.raw_center.copy_(_inverse_softplus(scale * center[which]))
            self.raw_sd.copy_(_inverse_softplus(np.maximum(scale * sd[which] - LEAST_COMPONENT_SD, 1e-3)))
            self.logits.copy_(torch.from_numpy(np.log(np.maximum(weight[which], 1e-12))))


def build(
    kind: Literal["negative_binomial", "poisson", "truncated_normal_mixture"],
    n_sites: int,
    n_features: int,
    *,
    link: Literal["softplus", "exp"],
    site_effects: bool,
    prior: Literal["mvn", "quadratic"],
    components: int,
) -> CountModel:
    """A model whose parameters are all 0."""
    if kind == "truncated_normal_mixture":
        return TruncatedNormalMixture(n_sites, components)
    family = NegativeBinomial if kind == "negative_binomial" else Poisson
    return family(n_sites, n_features, link=link, site_effects=site_effects, prior=prior)


def _zeros(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape, dtype=torch.float64))


def _level(counts: np.ndarray) -> float:
    """Events per cell (and so per mean exposure); a little more than 0 where there are none."""
    return max(float(counts.mean()), 1e-3)


def _inverse_softplus(value: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(value + np.log(-np.expm1(-value)))
