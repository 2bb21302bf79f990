"""Training of the generator on worked solutions, stopped where it is as good as wanted: some answers right, some wrong."""

import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from tasks.lm.logprobs import response_log_probs
from tasks.lm.optimisation import Optimizer
from tasks.prm.params import Generator
from tasks.stage import UserError

Solutions = list[tuple[list[int], list[int]]]  # prompt and response as token ids


@dataclass(frozen=True)
class Look:
    """What was seen at a look: steps done, mean loss a token since the look before (nats), accuracy of one response."""

    step: int
    loss: float
    pass_at_1: float


def train_until(
    model, batches: Iterator[Solutions], accuracy: Callable[[], float], parameters: Generator
) -> list[Look]:
    """Minimise −log p(solution | prompt) a token until `accuracy` lies within ``parameters.pass_at_1``; the model is
    trained in place, and what was seen on the way is returned.

    The accuracy of such a model jumps from nothing to nearly all within some hundred steps. Where a look finds it above
    the range, the weights and the optimizer of the look before are restored, and the same batches are gone through again
    with looks twice as close, down to every single step.

    Raises:
        UserError: the schedule ends below the range, or a single step jumps over it.
    """
    low, high = parameters.pass_at_1
    optimizer = Optimizer(
        model.parameters(),
        learning_rate=parameters.learning_rate,
        steps=parameters.max_steps,
        warmup=parameters.warmup,
        betas=(0.9, 0.98),
        weight_decay=0.01,
    )
    looks = [Look(0, float("nan"), 0.0)]
    interval, ahead = parameters.check_every, []  # `ahead`: batches to go through again
    while optimizer.done < parameters.max_steps:
        saved = _saved(model, optimizer)
        taken = [ahead.pop(0) if ahead else next(batches) for _ in range(interval)]
        losses = [_step(model, optimizer, batch) for batch in taken]
        looks.append(Look(optimizer.done, sum(losses) / len(losses), accuracy()))
        if low <= looks[-1].pass_at_1 <= high:
            return looks[1:]
        if looks[-1].pass_at_1 > high:
            if interval == 1:
                break
            _restore(model, optimizer, saved)
            looks.pop()
            ahead, interval = taken + ahead, max(1, interval // 2)
    best = max(look.pass_at_1 for look in looks)
    raise UserError(
        f"the generator's pass@1 was {looks[-1].pass_at_1:.3f} after {looks[-1].step} steps and {best:.3f} at best, never "
        f"within pass_at_1 [{low}, {high}]; another learning_rate, max_steps or a wider range is needed"
    )


def grouped(solutions: Iterator[tuple[list[int], list[int]]], size: int) -> Iterator[Solutions]:
    """Batches of `size` solutions, without end where there is none."""
    while batch := list(itertools.islice(solutions, size)):
        yield batch


def _step(model, optimizer: Optimizer, batch: Solutions) -> float:
    loss = -response_log_probs(model, [p for p, _ in batch], [r for _, r in batch]).mean()
    optimizer.step(loss)
    return float(loss.detach())


def _saved(model, optimizer: Optimizer) -> tuple:
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    return state, copy.deepcopy(optimizer.inner.state_dict()), optimizer.done


def _restore(model, optimizer: Optimizer, saved: tuple) -> None:
    with torch.no_grad():
        model.load_state_dict(saved[0])
    optimizer.inner.load_state_dict(saved[1])
    optimizer.done = saved[2]
