"""The training loop's common parts: AdamW, a warm-up and cosine schedule, batches of similar length."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import torch


class Optimizer:
    """AdamW with clipped gradients and the learning rate of ``learning_rate_at``; one ``step(loss)`` a batch."""

    def __init__(
        self,
        parameters: Iterable[torch.nn.Parameter],
        *,
        learning_rate: float,
        steps: int,
        warmup: int = 0,
        final: float = 0.1,
        betas: tuple[float, float] = (0.9, 0.95),
        weight_decay: float = 0.0,
        clip: float = 1.0,
    ) -> None:
        self.parameters = [p for p in parameters if p.requires_grad]
        self.inner = torch.optim.AdamW(self.parameters, lr=learning_rate, betas=betas, weight_decay=weight_decay)
        self.peak, self.steps, self.warmup, self.final, self.clip = learning_rate, steps, warmup, final, clip
        self.done = 0

    def step(self, loss: torch.Tensor) -> tuple[float, float]:
        """One step down the gradient of `loss`; (the gradient's norm before clipping, the learning rate used).

        Raises:
            FloatingPointError: the loss or the gradient is not finite; the weights are as they were.
        """
        self.inner.zero_grad(set_to_none=True)
        loss.backward()
        norm = float(torch.nn.utils.clip_grad_norm_(self.parameters, self.clip))
        if not math.isfinite(norm) or not math.isfinite(float(loss.detach())):
            raise FloatingPointError(
                f"step {self.done + 1}: loss {float(loss.detach())}, gradient norm {norm}; a smaller learning rate may help"
            )
        rate = learning_rate_at(self.done, self.peak, self.steps, self.warmup, self.final)
        for group in self.inner.param_groups:
            group["lr"] = rate
        self.inner.step()
        self.done += 1
        return norm, rate


def learning_rate_at(step: int, peak: float, steps: int, warmup: int, final: float) -> float:
    """Linear from peak / warmup to `peak` in the first `warmup` steps, then a cosine down to `final` × peak at the end.

    >>> [round(learning_rate_at(s, 1.0, 12, 2, 0.1), 3) for s in (0, 1, 2, 7, 12)]
    [0.5, 1.0, 1.0, 0.55, 0.1]
    """
    if step < warmup:
        return peak * (step + 1) / warmup
    share = min(1.0, (step - warmup) / max(1, steps - warmup))
    return peak * (final + (1 - final) * 0.5 * (1 + math.cos(math.pi * share)))


def length_batches(
    lengths: Sequence[int], size: int, generator: np.random.Generator, *, mega: int = 16
) -> list[np.ndarray]:
    """Indices of all items in batches of `size`: shuffled, sorted by length within `mega` batches, and the batches shuffled.

    Little padding (2 % measured on responses of 20 to 52 tokens), and yet every epoch has other batches.
    """
    lengths = np.asarray(lengths)
    order = generator.permutation(len(lengths))
    batches: list[np.ndarray] = []
    for begin in range(0, len(order), size * mega):
        part = order[begin : begin + size * mega]
        part = part[np.argsort(lengths[part], kind="stable")]
        batches += [part[b : b + size] for b in range(0, len(part), size)]
    return [batches[i] for i in generator.permutation(len(batches))]
