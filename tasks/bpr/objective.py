"""What training minimises: negative log likelihood, −BPR, or both (DAML), and the gradient of BPR by two estimators."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from tasks.bpr.metrics import bpr
from tasks.bpr.model import Law
from tasks.bpr.params import Train
from tasks.bpr.ranking import delta_ratio_scores, ratio_scores
from tasks.bpr.topk import mean_field_top_k, perturbed_bpr

TOLERANCE = 1e-9  # a BPR this near to epsilon reaches it


@dataclass(frozen=True)
class Target:
    """Counts [T, S] of some periods and what of them is needed in every epoch.

    Attributes:
        share: counts / sum of the period's K largest; 0 in periods without events.
        log_factorial: lgamma(counts + 1).
        has_events: bool [T].
    """

    counts: torch.Tensor
    share: torch.Tensor
    log_factorial: torch.Tensor
    has_events: torch.Tensor
    k: int

    @classmethod
    def of(cls, counts: np.ndarray, k: int) -> "Target":
        counts = torch.as_tensor(counts, dtype=torch.float64)
        most = torch.topk(counts, k, dim=-1).values.sum(-1, keepdim=True)
        share = torch.where(most > 0, counts / most.clamp_min(1e-300), 0.0)
        return cls(counts, share, torch.lgamma(counts + 1), most[:, 0] > 0, k)

    def reached(self, scores: torch.Tensor) -> torch.Tensor:
        """BPR of the K best scores [T, S], ties averaged; float64 [T], NaN in periods without events."""
        scores = scores.detach().expand(self.counts.shape)
        return torch.from_numpy(bpr(scores.numpy(), self.counts.numpy(), self.k, reduce=None))


@dataclass(frozen=True)
class Loss:
    """`value` has a gradient; the rest, each [T], is for the record. None where the objective does not need it."""

    value: torch.Tensor
    nll: torch.Tensor | None  # per site
    smoothed: torch.Tensor | None
    hard: torch.Tensor | None


@dataclass(frozen=True)
class Objective:
    """One of three losses, with n_t = −mean_s log p(y_ts) − prior, B_t the smoothed and H_t the hard BPR of period t:

        ml:    Σ_t n_t
        bpr:   −λ Σ_t B_t
        daml:  Σ_t λ_t max(ε − H_t, 0) + n_t, with the gradient of B_t for H_t (constraint "smoothed": B_t for both)

    The prior's log density is divided by T S, as the likelihood is ("quadratic": by 2 S, as published). Periods without
    events add only their n_t. Source: Heuton et al., ICML 2025; deterministic gradient and hard constraint: this project.
    """

    kind: Literal["ml", "bpr", "daml"]
    params: Train
    epsilon: float | None = None

    def loss(
        self,
        law: Law,
        target: Target,
        *,
        weight: torch.Tensor,
        log_prior: torch.Tensor | None = None,
        generator: torch.Generator | None = None,
        samples: torch.Tensor | None = None,
        noise: torch.Tensor | None = None,
    ) -> Loss:
        """The loss of the periods of `law`.

        Args:
            weight: λ_t, [T].
            log_prior: of the model's effects.
            generator: Monte Carlo only: where draws come from.
            samples: [M, T, S] in place of draws from the law; noise: [J, T, S], standard normal, of the perturbed top-K.
        """
        value, nll, smoothed, hard = torch.zeros((), dtype=torch.float64), None, None, None
        if self.kind != "bpr":
            nll = -law.log_prob(target.counts, target.log_factorial).mean(-1)
            value = value + nll.sum()
            if log_prior is not None:
                n_periods, n_sites = target.counts.shape
                value = value - log_prior / (n_sites if self.params.prior == "mvn" else 2 * n_sites / n_periods)
        if self.kind != "ml":
            scores = delta_scores(law, self.params.denominator_offset)
            hard = target.reached(scores)
            if self.params.estimator == "monte_carlo":
                samples = law.sample(self.params.n_samples, generator) if samples is None else samples
                drawn = ratio_scores(samples, target.k, self.params.denominator_offset).requires_grad_()
                smoothed = self.smoothed(drawn, target, generator, noise)
                part = self._decision(smoothed, hard, target, weight)
                value = value + self._through_samples(part, drawn, law, samples)
            else:
                smoothed = self.smoothed(scores, target)
                value = value + self._decision(smoothed, hard, target, weight)
        return Loss(value, nll, smoothed, hard)

    def sigma(self, scores: torch.Tensor, k: int) -> torch.Tensor:
        """Noise of the smoothed top-K: as given, or in proportion to each period's K-th score, [T]."""
        if self.params.sigma is not None:
            return torch.full(scores.shape[:-1], self.params.sigma, dtype=scores.dtype)
        best = torch.topk(scores.detach(), k, dim=-1).values
        return self.params.sigma_scale * torch.maximum(best[..., -1], 1e-6 * best[..., 0]).clamp_min(1e-300)

    def smoothed(
        self,
        scores: torch.Tensor,
        target: Target,
        generator: torch.Generator | None = None,
        noise: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """B_t: share of the oracle's events that a soft choice of K sites reaches; 0 in periods without events."""
        sigma = self.sigma(scores, target.k)
        if self.params.estimator == "deterministic":
            return (mean_field_top_k(scores, target.k, sigma=sigma) * target.share).sum(-1)
        return perturbed_bpr(
            scores,
            target.counts,
            target.k,
            sigma=sigma,
            n_samples=self.params.n_perturbations if noise is None else None,
            noise=noise,
            baseline=self.params.baseline,
            antithetic=self.params.baseline,
            generator=generator,
        )

    def shortfall(self, reached: torch.Tensor, target: Target) -> torch.Tensor:
        """max(ε − BPR, 0), ε with its margin, for every period, or of their mean in every period; 0 without events."""
        aim = min(self.epsilon + self.params.margin, 1.0)
        if self.params.aggregate == "mean" and target.has_events.any():
            reached = reached[target.has_events].mean().expand(reached.shape)
        gap = torch.where(target.has_events, aim - reached, 0.0)
        return torch.where(gap > TOLERANCE, gap, 0.0)

    def _decision(
        self, smoothed: torch.Tensor, hard: torch.Tensor, target: Target, weight: torch.Tensor
    ) -> torch.Tensor:
        if self.kind == "bpr":
            return -(weight * smoothed).sum()
        gap = self.shortfall(hard if self.params.constraint == "hard" else smoothed.detach(), target)
        slope = torch.where(gap > 0, weight, 0.0)
        return (weight * gap).sum() - (slope * (smoothed - smoothed.detach())).sum()

    def _through_samples(
        self, part: torch.Tensor, scores: torch.Tensor, law: Law, samples: torch.Tensor
    ) -> torch.Tensor:
        """`part` as a function of the law's parameters, with the gradient by the score function.

        With w = d part / d r and the ratios q_ms = y_ms / (c + Σ_u y_mu) of M draws, the gradient is that of

            joint:     1/(M−1) Σ_m (Σ_s w_s q_ms − mean over m) Σ_u log p(y_mu)
            per_site:  1/(M−1) Σ_m Σ_s w_s (q_ms − mean over m) log p(y_ms)        (biased: sites are summed one by one)

        and without baseline 1/M and no mean. Reverse mode: O(M S), whatever the number of parameters.
        """
        (slope,) = torch.autograd.grad(part, scores)
        if not slope.any():  # nothing to gain: no need for the log probabilities
            return part.detach() + 0 * law.mean.sum()
        total = samples.sum(-1, keepdim=True) + self.params.denominator_offset
        kept = total > 0
        ratio = torch.where(kept, samples / total.clamp_min(1e-300), 0.0) * slope
        n = kept.sum(0)
        if self.params.score_function == "joint":
            ratio = ratio.sum(-1, keepdim=True)
        if self.params.baseline:
            ratio = torch.where(kept, ratio - ratio.sum(0) / n.clamp_min(1), 0.0)
            n = n - 1
        log_prob = law.log_prob(samples, torch.zeros((), dtype=torch.float64))  # lgamma(y + 1) has no gradient
        surrogate = (ratio / n.clamp_min(1) * log_prob).sum()
        return part.detach() + surrogate - surrogate.detach()


def delta_scores(law: Law, denominator_offset: float = 0.0) -> torch.Tensor:
    """Ratio scores of a law in closed form, [T, S] ([1, S] where all periods are alike)."""
    return delta_ratio_scores(law.mean, law.variance, denominator_offset)
