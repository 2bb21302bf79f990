"""Losses on outcome labels alone, of response rewards h = beta × Σ_i [log policy(y_i) − log reference(y_i)].

The sum runs over all tokens of a response, its end token included. All logarithms of sigmoids are taken of logits, so
that values and gradients stay finite for every finite h. At h = 0, where training begins, the losses are ln 2 (`ce`,
`dpo`), 2 ln 2 (`nca`) and 1/2 (`kto`). A mean over no element is 0, with a gradient of 0.

Sources: Yuan et al., ICML 2025 (the rewards; `ce`, printed there without the minus sign); Rafailov et al., NeurIPS 2023
(`dpo`); Chen et al., NeurIPS 2024 (`nca`, pairwise form); Ethayarajh et al., ICML 2024 (`kto`).
"""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


def ce(rewards: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy: mean of −[l logsigmoid(h) + (1 − l) logsigmoid(−h)]; h = 0 stands for a probability of 1/2.

    Args:
        rewards: h, floating-point [B].
        labels: l, 1 (correct) or 0 (wrong), of any type, [B].

    Returns:
        The loss, [].

    Raises:
        ValueError: a label is neither 0 nor 1, or the shapes differ.

    >>> ce(torch.zeros(2), torch.tensor([1, 0]))
    tensor(0.6931)
    """
    return _mean(-logsigmoid(torch.where(_correct(rewards, labels), rewards, -rewards)))


def dpo(chosen: Tensor, rejected: Tensor) -> Tensor:
    """Direct preference optimisation: mean of −logsigmoid(h_chosen − h_rejected). Only differences count.

    Args:
        chosen, rejected: h of a correct and of a wrong response to the same problem, floating-point [P].

    Returns:
        The loss, [].

    Raises:
        ValueError: the shapes differ.

    >>> dpo(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 1.0]))
    tensor(0.4100)
    """
    _check_shapes(chosen, rejected)
    return _mean(-logsigmoid(chosen - rejected))


def nca(chosen: Tensor, rejected: Tensor) -> Tensor:
    """Noise-contrastive alignment: mean of −logsigmoid(h_c) − ½ logsigmoid(−h_c) − ½ logsigmoid(−h_r).

    Unlike `dpo` it holds each value by itself: h_chosen is drawn to ln 2 from both sides, and h_rejected, which is
    pushed down, at most with slope 1/2, cannot be paid for by a fall of both.

    Args:
        chosen, rejected: h of a correct and of a wrong response to the same problem, floating-point [P].

    Returns:
        The loss, [].

    Raises:
        ValueError: the shapes differ.

    >>> nca(torch.zeros(1), torch.zeros(1))
    tensor(1.3863)
    """
    _check_shapes(chosen, rejected)
    return _mean(-logsigmoid(chosen) - 0.5 * logsigmoid(-chosen) - 0.5 * logsigmoid(-rejected))


def kto(
    rewards: Tensor,
    labels: Tensor,
    baseline: Tensor | float,
    *,
    weight_correct: float = 1.0,
    weight_wrong: float = 1.0,
) -> Tensor:
    """Kahneman-Tversky optimisation: mean of λ_D [1 − sigmoid(h − z)] for correct and λ_U [1 − sigmoid(z − h)] for wrong.

    Args:
        rewards: h, floating-point [B].
        labels: 1 (correct) or 0 (wrong), of any type, [B].
        baseline: z, one number for the batch, see `kto_baseline`; it gets no gradient.
        weight_correct, weight_wrong: λ_D and λ_U. The mean is over responses, not over weights.

    Returns:
        The loss, [].

    Raises:
        ValueError: a label is neither 0 nor 1, or the shapes differ.

    >>> kto(torch.zeros(2), torch.tensor([1, 0]), 0.0)
    tensor(0.5000)
    """
    correct = _correct(rewards, labels)
    baseline = torch.as_tensor(baseline, dtype=rewards.dtype, device=rewards.device)
    above = rewards - baseline.detach().reshape(())
    # 1 − sigmoid(x) as sigmoid(−x): the difference would lose every digit for large x
    return _mean(torch.where(correct, weight_correct * torch.sigmoid(-above), weight_wrong * torch.sigmoid(above)))


def kto_baseline(mismatched_rewards: Tensor) -> Tensor:
    """z = max(0, mean h) over responses to *other* problems' prompts, without gradient; 0 where there are none.

    Args:
        mismatched_rewards: h of each prompt with another problem's response, floating-point [B].

    >>> kto_baseline(torch.tensor([1.0, 0.0])), kto_baseline(torch.tensor([-1.0, 0.0])), kto_baseline(torch.zeros(0))
    (tensor(0.5000), tensor(0.), tensor(0.))
    """
    return _mean(mismatched_rewards.detach()).clamp_min(0.0)


def _mean(values: Tensor) -> Tensor:
    return values.sum() / max(values.numel(), 1)


def _correct(rewards: Tensor, labels: Tensor) -> Tensor:
    labels = torch.as_tensor(labels, device=rewards.device)
    _check_shapes(rewards, labels)
    correct = labels == 1
    if not (correct | (labels == 0)).all():  # a mark such as -100, read as true, would train on what was to be ignored
        raise ValueError(f"labels: only 0 and 1 are allowed, there is {labels[~correct & (labels != 0)][0].item()}")
    return correct


def _check_shapes(first: Tensor, second: Tensor) -> None:
    if first.shape != second.shape:  # else broadcasting would make a loss of every element with every other
        raise ValueError(f"shapes differ: {list(first.shape)} and {list(second.shape)}")
