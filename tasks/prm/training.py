"""Training of an implicit PRM on outcome labels: h(y) = beta × Σ_i [log policy(y_i) − log reference(y_i)], any loss.

The reference is the model as it is before the first step. Its log-probabilities are given, so that a step is one forward
and one backward pass of the policy; with pair losses too, because a response's h serves all pairs that it is in.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from tasks.lm.logprobs import response_log_probs, segment_sum
from tasks.lm.optimisation import Optimizer, length_batches
from tasks.prm import losses
from tasks.prm.dataset import Rollouts
from tasks.prm.pairs import balanced, mismatched, pairs
from tasks.prm.params import Train

PAIRED = {"dpo": losses.dpo, "nca": losses.nca}
# largest |log-ratio| of a response before the first step, in nats: rounding of matrix products, and no more
START, START_TOKEN = 1e-4, 1e-6
BETA_RANGE = (0.02, 5.0)


@dataclass(frozen=True)
class Labelled:
    """Responses to train on. One entry a response, except `reference`: one array of its token log-probabilities."""

    problems: np.ndarray  # identifiers
    prompts: list[list[int]]
    responses: list[list[int]]
    correct: np.ndarray  # bool
    reference: list[np.ndarray]

    def cut(self, max_tokens: int) -> tuple["Labelled", int]:
        """(responses cut at `max_tokens`, how many were): a cut one has lost its end, so it counts as wrong."""
        long = np.array([len(r) > max_tokens for r in self.responses], dtype=bool)
        return Labelled(
            self.problems,
            self.prompts,
            [r[:max_tokens] for r in self.responses],
            self.correct & ~long,
            [r[:max_tokens] for r in self.reference],
        ), int(long.sum())


class Batch(NamedTuple):
    """Rows of the data that go through the model together; of pair losses the pairs, as places within `rows`."""

    rows: np.ndarray
    chosen: torch.Tensor | None
    rejected: torch.Tensor | None


@dataclass(frozen=True)
class Step:
    """What was seen at one step: means over its responses; NaN where there was none of a class."""

    step: int
    loss: float
    reward_correct: float
    reward_wrong: float
    gradient_norm: float
    learning_rate: float


def labelled(rollouts: Rollouts, reference: list[np.ndarray], split: str) -> Labelled:
    """The responses of one split by problem and sample, without empty ones, which say nothing; `reference` has one array
    a row of all `rollouts`."""
    table = rollouts.table.astype({"problem": "str"})
    kept = (table["split"] == split).to_numpy() & np.array([len(r) > 0 for r in rollouts.responses], dtype=bool)
    rows = table[kept].sort_values(["problem", "sample"]).index.to_numpy()
    part = rollouts.part(rows)
    problems = part.table["problem"].astype("str").to_numpy(dtype=object)
    correct = part.table["correct"].to_numpy(dtype=bool)
    return Labelled(problems, part.prompts, part.responses, correct, [reference[i] for i in rows])


def choose_beta(beta: float | str, data: Labelled) -> float:
    """The number that stands for `beta`; for "auto" 1 / (mean −log reference of a correct response), within [.02, 5].

    Because log policy ≤ 0, h ≤ beta × NLL of the reference: where that product is small, the loss of correct responses can
    hardly fall, and training can only destroy the wrong ones. A warning is given where it is below .5 on average.
    """
    nll = [-float(values.sum()) for values, right in zip(data.reference, data.correct, strict=True) if right]
    mean = float(np.mean(nll)) if nll else float("nan")
    if beta == "auto":
        beta = float(np.clip(1 / mean, *BETA_RANGE)) if nll and mean > 0 else 1.0
    if nll and beta * mean < 0.5:
        warnings.warn(
            f"beta {beta:g} × {mean:.3g} nats, the mean NLL of correct responses, is {beta * mean:.2g}: rewards of correct "
            "responses are bounded by it and can hardly rise; a beta of at least 1 / NLL is advised",
            stacklevel=2,
        )
    return beta


def plan(loss: str, data: Labelled, parameters: Train, generator: np.random.Generator) -> list[Batch]:
    """The batches of all epochs.

    ce and kto take responses one by one, dpo and nca up to ``parameters.max_pairs`` pairs a problem, every response once a
    batch however many pairs it is in. Problems with one class of responses give no pair.

    Raises:
        ValueError: nothing to learn from: responses of one class only, or for pair losses no problem with both.
    """
    if len(set(data.correct)) < 2:
        raise ValueError(
            f"{loss}: {data.correct.sum()} of {len(data.correct)} responses are correct; both kinds are needed"
        )
    batches = _pair_batches if loss in PAIRED else _single_batches
    found = [batch for _ in range(parameters.epochs) for batch in batches(data, parameters, generator)]
    if not found:
        raise ValueError(f"{loss}: no problem has both a correct and a wrong response")
    return found


def counts(rollouts: Rollouts, split: str, data: Labelled, batches: list[Batch]) -> dict[str, int]:
    """What became of a split's responses, for the report: how many there were, were empty or doubled, and were used."""
    table = rollouts.table[(rollouts.table["split"] == split).to_numpy()]
    by_problem = pd.Series(data.correct).groupby(data.problems).nunique()
    used = np.unique(np.concatenate([batch.rows for batch in batches]))
    return {
        "responses": len(table),
        "empty": len(table) - len(data.correct),
        "duplicates": int(table.duplicated(["problem", "response"]).sum()),
        "problems": len(by_problem),
        "problems_of_one_class": int((by_problem == 1).sum()),
        "used": len(used),
        "used_correct": int(data.correct[used].sum()),
        "pairs": sum(len(batch.chosen) for batch in batches if batch.chosen is not None),
        "steps": len(batches),
    }


def fit(
    model,
    loss: str,
    data: Labelled,
    batches: list[Batch],
    beta: float,
    parameters: Train,
    reference: Callable[[list, list], list[np.ndarray]] | None = None,
) -> Iterator[Step]:
    """Train `model` in place on the batches of `plan`, one `Step` each.

    Args:
        loss: ce, dpo, nca or kto.
        reference: of kto, which compares prompts with responses to other prompts, too: their token log-probabilities
            under the reference, from (prompts, responses).

    Raises:
        FloatingPointError: loss or gradient are not finite.
        ValueError: a reward is not 0 before the first step: the reference is not what the model starts as.
    """
    optimizer = Optimizer(
        model.parameters(),
        learning_rate=parameters.learning_rate,
        steps=len(batches),
        warmup=round(parameters.warmup * len(batches)),
        final=parameters.final,
    )
    model.eval()  # gradients flow all the same; with dropout the model would not be its own reference at the start
    for number, (rows, chosen, rejected) in enumerate(batches, start=1):
        prompts, responses = [data.prompts[i] for i in rows], [data.responses[i] for i in rows]
        ratios = _log_ratios(model, prompts, responses, [data.reference[i] for i in rows])
        if number == 1:
            _check_start(ratios, responses)
        h = beta * ratios
        right = torch.as_tensor(data.correct[rows], device=h.device)
        if loss in PAIRED:
            value = PAIRED[loss](h[chosen], h[rejected])
        elif loss == "kto":
            z = _baseline(model, data, rows, beta, reference)
            weights = {"weight_correct": parameters.weight_correct, "weight_wrong": parameters.weight_wrong}
            value = losses.kto(h, right, z, **weights)
        else:
            value = losses.ce(h, right)
        norm, rate = optimizer.step(value)
        seen = h.detach()
        yield Step(number, float(value.detach()), _mean(seen[right]), _mean(seen[~right]), norm, rate)


def _single_batches(data: Labelled, parameters: Train, generator: np.random.Generator) -> list[Batch]:
    kept = balanced(data.correct, data.problems, parameters.balance, generator)
    lengths = [len(data.prompts[i]) + len(data.responses[i]) for i in kept]
    return [Batch(kept[batch], None, None) for batch in length_batches(lengths, parameters.batch, generator)]


def _pair_batches(data: Labelled, parameters: Train, generator: np.random.Generator) -> list[Batch]:
    """Whole problems, so many that their distinct responses are about ``parameters.batch``; pairs as places in the batch."""
    found = pairs(data.problems, data.correct, parameters.max_pairs, generator)
    if not len(found.chosen):
        return []
    owners = data.problems[found.chosen]
    cuts = np.flatnonzero(owners[1:] != owners[:-1]) + 1
    groups = list(zip(np.split(found.chosen, cuts), np.split(found.rejected, cuts), strict=True))
    members = [np.unique(np.concatenate(group)) for group in groups]
    lengths = [max(len(data.prompts[i]) + len(data.responses[i]) for i in rows) for rows in members]
    size = max(1, round(parameters.batch / np.mean([len(rows) for rows in members])))
    batches = []
    for batch in length_batches(lengths, size, generator):
        rows = np.concatenate([members[g] for g in batch])
        place = {int(row): k for k, row in enumerate(rows)}
        chosen, rejected = (torch.as_tensor([place[int(i)] for g in batch for i in groups[g][side]]) for side in (0, 1))
        batches.append(Batch(rows, chosen, rejected))
    return batches


def _log_ratios(model, prompts: list, responses: list, reference: list[np.ndarray]) -> torch.Tensor:
    """Σ_i [log policy − log reference] of each response, with gradient; subtracted token by token, because the sums of
    long responses are large and nearly equal."""
    values = response_log_probs(model, prompts, responses)
    fixed = np.concatenate([np.zeros(0, np.float32), *reference])
    return segment_sum(values - torch.as_tensor(fixed, device=values.device), [len(r) for r in responses])


def _baseline(model, data: Labelled, rows: np.ndarray, beta: float, reference: Callable) -> torch.Tensor:
    """KTO's z from the batch's prompts with responses to other problems; 0 where the batch holds one problem only."""
    others = rows[mismatched(data.problems[rows])]
    prompts = [data.prompts[i] for i in rows[: len(others)]]
    responses = [data.responses[i] for i in others]
    with torch.no_grad():
        ratios = _log_ratios(model, prompts, responses, reference(prompts, responses))
    return losses.kto_baseline(beta * ratios)


def _check_start(log_ratios: torch.Tensor, responses: list[list[int]]) -> None:
    for ratio, response in zip(log_ratios.detach().tolist(), responses, strict=True):
        if not abs(ratio) <= START + START_TOKEN * len(response):
            raise ValueError(
                f"before the first step a response's log-ratio to the reference is {ratio:.3g} nats, not 0: the reference is "
                "not what the model starts as, or the model's weights are not finite"
            )


def _mean(values: torch.Tensor) -> float:
    return float(values.mean()) if len(values) else float("nan")
