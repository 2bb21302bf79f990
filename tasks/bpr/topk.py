"""The K best sites as a mask, hard and smoothed, with gradients with respect to the scores.

``mask(r)`` has ones at the K largest of the S scores r and zeros elsewhere. Its gradient is zero almost everywhere, so
training uses the mean of the mask under noise, ``b(r) = E[mask(r + sigma z)]``, in two forms: drawn
(`perturbed_top_k`, `perturbed_bpr`) and in the limit of many sites (`mean_field_top_k`), without any draw.
No function holds more than a few arrays as large as one block of draws, whatever K is.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tasks.bpr.arguments import check_counts, check_finite, check_k, check_positive, check_shape

BLOCK = 1 << 19  # scores perturbed at once: 2 MB in single precision. Fixed, because the draws depend on it
ITERATIONS = 100  # of a safeguarded Newton search that needs 1 to 9
FAR = 100.0  # in units of sigma: beyond 39 the normal law has no mass in double precision
TOLERANCE = 1e-13  # of the mask's sum, for each site


def top_k_mask(scores: Tensor, k: int) -> Tensor:
    """Ones at the `k` largest scores of every row, zeros elsewhere; equal scores go to the lower index.

    Args:
        scores: floating-point [..., S], finite.

    Returns:
        Tensor like `scores`, without gradient; the same on every device.

    Raises:
        ValueError: a score is NaN or infinite, `k` is not in 1..S, or the type or shape is another.

    >>> top_k_mask(torch.tensor([0.2, 0.5, 0.2, 0.1]), 2)
    tensor([1., 1., 0., 0.])
    """
    _check(scores, k)
    return _select(scores.detach(), k).to(scores.dtype)


def perturbed_top_k(
    scores: Tensor,
    k: int,
    *,
    sigma: float | Tensor,
    n_samples: int | None = None,
    noise: Tensor | None = None,
    baseline: bool = True,
    antithetic: bool = True,
    generator: torch.Generator | None = None,
    gumbel: bool = False,
) -> Tensor:
    """Mean of the top-K mask under noise, ``b = 1/J Σ_j mask(r + sigma z_j)``, and its Monte-Carlo gradient.

    The gradient for an upstream g is ``1/(J sigma) Σ_j z_j (mask_j · g)``, from the same draws; with Gumbel noise
    ``1 - exp(-z)`` stands in the place of z. It has a variance that grows without bound as sigma falls, unless a
    control variate is subtracted:

    - `antithetic` (normal noise drawn here): draws come in pairs z, -z, in which every constant part of ``mask · g``
      cancels; an odd `n_samples` is rounded up.
    - `baseline` (where draws are not in pairs): ``(mask_j · g - mean over the draws) J/(J-1)``, that is, every draw is
      compared with the mean of the others, which keeps the estimate unbiased.

    Args:
        scores: floating-point [..., S], finite; half precision is computed in single precision.
        sigma: scale of the noise in units of the scores, a number or a tensor broadcastable to ``scores[..., 0]``; a
            constant: it gets no gradient.
        n_samples: J, at least 2; may be left out where `noise` is given.
        noise: [J, ..., S], used as it stands (never in pairs). Otherwise blocks of noise are drawn, and drawn again for
            the gradient, from seeds that `generator` gives: O(S) memory for any J.

    Returns:
        Tensor like `scores`; every row is in [0, 1] and sums to `k`.

    Raises:
        ValueError: one line with the argument, the place, the value and what is allowed.

    Source: Berthet et al., Learning with differentiable perturbed optimizers, NeurIPS 2020; Cordonnier et al.,
    Differentiable patch selection, CVPR 2021.

    >>> scores = torch.tensor([3.0, 2.0, 0.0])
    >>> perturbed_top_k(scores, 1, sigma=0.1, n_samples=10, generator=torch.Generator().manual_seed(0))
    tensor([1., 0., 0.])
    """
    draws = _draws(scores, k, sigma, n_samples, noise, baseline, antithetic, generator, gumbel)
    return _PerturbedTopK.apply(scores, k, draws)


def perturbed_bpr(
    scores: Tensor,
    counts: Tensor,
    k: int,
    *,
    sigma: float | Tensor,
    n_samples: int | None = None,
    noise: Tensor | None = None,
    baseline: bool = True,
    antithetic: bool = True,
    generator: torch.Generator | None = None,
    gumbel: bool = False,
) -> Tensor:
    """Smoothed BPR of every row: ``perturbed_top_k(scores) · counts / (sum of the k largest counts)``.

    Value and gradient come from one pass over the draws. A row without events is 0 and has the gradient 0.

    Args:
        scores: floating-point [..., S]; the other arguments as for `perturbed_top_k`.
        counts: [..., S], events, not negative.

    Returns:
        Tensor of the scores' type, [...], in [0, 1].

    >>> scores, counts = torch.tensor([3.0, 2.0, 0.0]), torch.tensor([1, 4, 0])
    >>> perturbed_bpr(scores, counts, 1, sigma=0.1, n_samples=10, generator=torch.Generator().manual_seed(0))
    tensor(0.2500)
    """
    draws = _draws(scores, k, sigma, n_samples, noise, baseline, antithetic, generator, gumbel)
    check_shape("counts", counts, "scores", scores.shape)
    check_counts("counts", counts)
    return _PerturbedBPR.apply(scores, counts, k, draws)


def mean_field_top_k(scores: Tensor, k: int, *, sigma: float | Tensor) -> Tensor:
    """The perturbed top-K mask in the limit of many sites: ``m_s = Φ((r_s - tau)/sigma)`` with ``Σ m = k``.

    tau is found for every row by Newton's method inside a bracket. The gradient is that of the formula, tau included:
    with ``w = φ((r - tau)/sigma)`` and an upstream g it is ``(w/sigma) (g - (w·g)/Σw)``; no draws, O(S).
    All is computed in double precision and returned in the scores' type. Where ``k = S`` the mask is 1, the gradient 0.

    Args:
        scores: floating-point [..., S], finite.
        sigma: as for `perturbed_top_k`; as it goes to 0 the mask goes to the hard one and the gradient stays bounded
            unless scores at the threshold are equal.

    Returns:
        Tensor like `scores`, in [0, 1].

    Raises:
        ValueError: one line with the argument, the place, the value and what is allowed.

    >>> mean_field_top_k(torch.tensor([1.0, 1.0, 1.0, 1.0]), 1, sigma=0.1)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    _check(scores, k)
    return _MeanFieldTopK.apply(scores, k, _sigma(sigma, scores, torch.float64))


# -- the hard selection ------------------------------------------------------------------------------------------------


def _kth_largest(values: Tensor, k: int) -> Tensor:
    """[..., 1]. numpy's partition is the fastest on a CPU: 0.6 ms for 400 rows of 1328, torch.topk 5 to 7, sort 29."""
    if values.device.type == "cpu":
        n = values.shape[-1] - k
        return torch.from_numpy(np.partition(values.numpy(), n, axis=-1)[..., n : n + 1])
    return values.topk(k).values[..., -1:]


def _select(values: Tensor, k: int) -> Tensor:
    """Boolean mask of the k largest, ties to the lower index. It depends on values only, not on a kernel's order."""
    if values.dtype not in (torch.float32, torch.float64):
        values = values.float()  # exact; numpy has no bfloat16
    threshold = _kth_largest(values, k)
    chosen = values >= threshold
    tied = chosen.sum(-1) > k
    if bool(tied.any()):
        rows, bound = values[tied], threshold[tied]
        above, equal = rows > bound, rows == bound
        free = k - above.sum(-1, keepdim=True)
        chosen[tied] = above | (equal & (equal.cumsum(-1) <= free))
    return chosen


# -- draws -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Draws:
    """Where the noise comes from, in blocks of [draws, rows, S]; every pass over it gives the same numbers."""

    sigma: Tensor  # [rows, 1]
    n_samples: int
    noise: Tensor | None
    sizes: list[int] = field(default_factory=list)  # draws, or pairs of draws, of every block
    seeds: list[int] = field(default_factory=list)
    baseline: bool = True
    paired: bool = False
    gumbel: bool = False

    def blocks(self, scores: Tensor) -> Iterator[Tensor]:
        if self.noise is not None:
            yield from self.noise.split(self.sizes)
            return
        for size, seed in zip(self.sizes, self.seeds, strict=True):
            stream = torch.Generator(scores.device).manual_seed(seed)
            shape = (size, *scores.shape)
            if self.gumbel:
                uniform = torch.rand(shape, generator=stream, dtype=scores.dtype, device=scores.device)
                yield -torch.log(-torch.log(uniform.clamp(torch.finfo(scores.dtype).tiny, 1 - 2**-24)))
            else:
                yield torch.randn(shape, generator=stream, dtype=scores.dtype, device=scores.device)


def _draws(scores, k, sigma, n_samples, noise, baseline, antithetic, generator, gumbel) -> _Draws:
    _check(scores, k)
    work = _work_type(scores)
    scale = _sigma(sigma, scores, work)
    if noise is None:
        if isinstance(n_samples, bool) or not isinstance(n_samples, int) or n_samples < 2:
            raise ValueError(f"n_samples is {n_samples!r}; allowed: whole numbers from 2")
        if generator is None:
            raise ValueError("generator is None; allowed: a torch.Generator, or the noise itself")
        paired = antithetic and not gumbel
        n_blocks = (n_samples + 1) // 2 if paired else n_samples
        sizes = _sizes(n_blocks, scores.numel())
        seeds = torch.randint(2**63 - 1, (len(sizes),), generator=generator, device=generator.device).tolist()
        return _Draws(scale, n_blocks * (1 + paired), None, sizes, seeds, baseline, paired, gumbel)
    n = noise.shape[0] if noise.ndim else 0
    check_shape("noise", noise, "n_samples and scores", (n if n_samples is None else n_samples, *scores.shape))
    check_finite("noise", noise)
    if n < 2:
        raise ValueError(f"noise has {n} draws; allowed: from 2")
    noise = noise.detach().to(scores.device, work).reshape(n, -1, scores.shape[-1])
    return _Draws(scale, n, noise, _sizes(n, scores.numel()), [], baseline, False, gumbel)


def _sizes(n: int, n_scores: int) -> list[int]:
    step = max(1, BLOCK // n_scores)
    return [min(step, n - start) for start in range(0, n, step)]


def _estimate(scores: Tensor, k: int, draws: _Draws, values: Tensor, gradient: bool) -> tuple[Tensor, Tensor | None]:
    """Mean over the draws of ``mask_j · values``, and the estimate of its gradient; both float64, [rows] and [rows, S].

    Sums run over ``v_j - v_1``, so that values which never change give exactly 0 for any sigma.
    """
    first = total = weighted = plain = 0.0
    for noise in draws.blocks(scores):
        reached = _reached(scores + draws.sigma * noise, k, values)
        if isinstance(first, float):
            first = reached[0]
        if draws.paired:
            mirrored = _reached(scores - draws.sigma * noise, k, values)
            total = total + (reached - first).sum(0) + (mirrored - first).sum(0)
            difference = reached - mirrored
        else:
            difference = reached - first
            total = total + difference.sum(0)
        if gradient:
            slope = 1 - torch.exp(-noise) if draws.gumbel else noise
            weighted = weighted + (slope * difference.to(slope.dtype)[..., None]).sum(0, dtype=torch.float64)
            if not draws.paired:
                plain = plain + slope.sum(0, dtype=torch.float64)
    n = draws.n_samples
    mean = total / n
    if gradient and not draws.paired and draws.baseline:
        weighted = (weighted - mean[:, None] * plain) * (n / (n - 1))
    elif gradient and not draws.paired:
        weighted = weighted + first[:, None] * plain
    return mean + first, weighted / (n * draws.sigma.double()) if gradient else None


def _reached(perturbed: Tensor, k: int, values: Tensor) -> Tensor:
    return (_select(perturbed, k) * values).sum(-1, dtype=torch.float64)


class _PerturbedTopK(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores: Tensor, k: int, draws: _Draws) -> Tensor:
        rows = _rows(scores)
        count = torch.zeros(rows.shape, dtype=torch.int64, device=scores.device)
        for noise in draws.blocks(rows):
            count += _select(rows + draws.sigma * noise, k).sum(0)
            if draws.paired:
                count += _select(rows - draws.sigma * noise, k).sum(0)
        ctx.save_for_backward(scores)
        ctx.k, ctx.draws = k, draws
        return (count.double() / draws.n_samples).to(scores.dtype).reshape(scores.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream: Tensor):
        (scores,) = ctx.saved_tensors
        rows = _rows(scores)
        values = upstream.reshape(rows.shape).to(rows.dtype)
        _, gradient = _estimate(rows, ctx.k, ctx.draws, values, True)
        return gradient.to(scores.dtype).reshape(scores.shape), None, None


class _PerturbedBPR(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores: Tensor, counts: Tensor, k: int, draws: _Draws) -> Tensor:
        rows = _rows(scores)
        counts = counts.detach().to(rows.device, torch.float64).reshape(rows.shape)
        best = (_select(counts, k) * counts).sum(-1)
        best = best.where(best > 0, 1.0)  # without events the counts are 0, and so is what follows
        reached, gradient = _estimate(rows, k, draws, counts.to(rows.dtype), ctx.needs_input_grad[0])
        if gradient is not None:
            ctx.save_for_backward((gradient / best[:, None]).to(scores.dtype).reshape(scores.shape))
        return (reached / best).to(scores.dtype).reshape(scores.shape[:-1])

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream: Tensor):
        (gradient,) = ctx.saved_tensors
        return upstream[..., None] * gradient, None, None, None


# -- mean field --------------------------------------------------------------------------------------------------------


class _MeanFieldTopK(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores: Tensor, k: int, sigma: Tensor) -> Tensor:
        rows = scores.detach().double().reshape(-1, scores.shape[-1])
        if k == scores.shape[-1]:
            mask, density = torch.ones_like(rows), torch.zeros_like(rows)
        else:
            mask, density = _mean_field(rows, k, sigma)
        ctx.save_for_backward(density, sigma)
        return mask.to(scores.dtype).reshape(scores.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream: Tensor):
        density, sigma = ctx.saved_tensors
        values = upstream.double().reshape(density.shape)
        total = density.sum(-1, keepdim=True)
        mean = (density * values).sum(-1, keepdim=True) / total.where(total > 0, 1.0)
        gradient = (values - mean).mul_(density).div_(sigma)
        return gradient.to(upstream.dtype).reshape(upstream.shape), None, None


def _mean_field(scores: Tensor, k: int, sigma: Tensor) -> tuple[Tensor, Tensor]:
    """Φ(u) with the sum k in every row, and φ(u); float64 [rows, S], for k < S.

    The search runs in ``x = (r - r_(k))/sigma`` with ``t = (tau - r_(k))/sigma``, which is exact for any scale, and on
    ``Φ⁻¹(mean of Φ(x - t)) - Φ⁻¹(k/S)``, which is a straight line where the scores are equal and stays steep in the
    tails. Since at most k - 1 sites are above r_(k) and k + 1 are not below r_(k+1), t lies between
    ``x_(k+1) - Φ⁻¹(k/(k+1))`` and ``Φ⁻¹((S-k)/(S-k+1))``; the largest and the smallest score bound it too.
    """
    n = scores.shape[-1]
    kth, after = _kth_largest(scores, k), _kth_largest(scores, k + 1)
    x = (scores - kth) / sigma
    after = ((after - kth) / sigma).clamp_min_(-FAR)
    goal = _probit(k / n)
    low = torch.maximum(x.amin(-1, keepdim=True) - goal, after - _probit(k / (k + 1)))
    high = torch.minimum(x.amax(-1, keepdim=True) - goal, x.new_tensor(_probit((n - k) / (n - k + 1))))
    low, high = torch.minimum(low, high) - 1e-9, torch.maximum(low, high) + 1e-9  # for their own rounding
    t = torch.clamp(after / 2, low, high)
    done = torch.zeros_like(t, dtype=torch.bool)
    for _ in range(ITERATIONS):
        u = x - t
        mask = torch.special.ndtr(u)
        total = mask.sum(-1, keepdim=True)
        # A row that has arrived stays where it is, so that it does not depend on the rows beside it.
        done = done | ((total - k).abs() <= TOLERANCE * n) | (high - low <= 4e-16 * t.abs())
        density = u.square_().mul_(-0.5).exp_().mul_(1 / math.sqrt(2 * math.pi))
        if bool(done.all()):
            break
        low, high = torch.where(total > k, t, low), torch.where(total < k, t, high)
        point = torch.special.ndtri(total / n)
        slope = density.sum(-1, keepdim=True) / n * math.sqrt(2 * math.pi) * torch.exp(point.square() / 2)
        newton = t + (point - goal) / slope
        inside = (newton > low) & (newton < high)
        t = torch.where(done, t, torch.where(inside, newton, (low + high) / 2))
    return mask, density


def _probit(share: float) -> float:
    return float(torch.special.ndtri(torch.tensor(share, dtype=torch.float64)))


# -- arguments ---------------------------------------------------------------------------------------------------------


def _check(scores: Tensor, k: int) -> None:
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        kind = getattr(scores, "dtype", type(scores).__name__)
        raise ValueError(f"scores has type {kind}; allowed: a floating-point torch tensor")
    if scores.ndim == 0 or scores.numel() == 0:
        raise ValueError(f"scores has shape {list(scores.shape)}; allowed: [..., sites], not empty")
    check_k(k, scores.shape[-1])
    check_finite("scores", scores.detach())


def _sigma(sigma: float | Tensor, scores: Tensor, dtype: torch.dtype) -> Tensor:
    """[rows, 1] of that type."""
    sigma = sigma.detach() if isinstance(sigma, Tensor) else sigma
    check_positive("sigma", sigma)
    sigma = torch.as_tensor(sigma, dtype=torch.float64, device=scores.device)
    try:
        sigma = sigma.broadcast_to(scores.shape[:-1])
    except RuntimeError:
        shapes = f"{list(sigma.shape)}; allowed: broadcastable to {list(scores.shape[:-1])}"
        raise ValueError(f"sigma has shape {shapes}, the scores' shape without sites") from None
    return sigma.to(dtype).reshape(-1, 1)


def _work_type(scores: Tensor) -> torch.dtype:
    return scores.dtype if scores.dtype in (torch.float32, torch.float64) else torch.float32


def _rows(scores: Tensor) -> Tensor:
    return scores.detach().to(_work_type(scores)).reshape(-1, scores.shape[-1])
