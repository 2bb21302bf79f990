"""Supervised fine-tuning on examples: cross entropy of the responses' tokens, their end tokens among them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint
from transformers import DynamicCache

from tasks.lm.logprobs import HEAD_ELEMENTS, logit_scale, parts
from tasks.lm.optimisation import Optimizer, length_batches
from tasks.lm.tokens import pad
from tasks.swiftcode.examples import Example
from tasks.swiftcode.params import Finetune


@dataclass(frozen=True)
class Step:
    """What was seen at one step, before it moved the weights."""

    step: int
    loss: float  # nats a response token
    gradient_norm: float
    learning_rate: float


def plan(lengths: Sequence[int], parameters: Finetune, generator: np.random.Generator) -> list[np.ndarray]:
    """The batches of all epochs, as places in the list of examples; examples of similar length go together.

    Arms that are to differ in nothing but their programs need the same `lengths` here, such as those of the arm where an
    example is longest. They then see the same tasks in the same order.
    """
    epochs = range(parameters.epochs)
    return [batch for _ in epochs for batch in length_batches(lengths, parameters.batch, generator)]


def fit(model, examples: Sequence[Example], batches: Sequence[np.ndarray], parameters: Finetune) -> Iterator[Step]:
    """Train `model` in place on the batches of `plan`, one `Step` each, by their `mean_nll`.

    Raises:
        FloatingPointError: loss or gradient are not finite.
    """
    optimizer = Optimizer(
        model.parameters(),
        learning_rate=parameters.learning_rate,
        steps=len(batches),
        warmup=round(parameters.warmup * len(batches)),
        final=parameters.final,
    )
    model.eval()  # gradients flow all the same; without dropout, arms differ in their programs and in nothing else
    for number, rows in enumerate(batches, start=1):
        loss = mean_nll(model, [examples[i] for i in rows])
        norm, rate = optimizer.step(loss)
        yield Step(number, float(loss.detach()), norm, rate)


def mean_nll(model, examples: Sequence[Example]) -> torch.Tensor:
    """−(1/N) Σ log p(y_t | x, y_<t) over the N response tokens of all examples together, nats; a scalar with gradient.

    A token counts the same in a long response as in a short one. Prompts are context only. What they have in common at
    their beginning, mostly the instruction, goes through the model once (30 % less time was measured with four prompts of
    133 tokens that have 56 in common). Logits are made at response positions only, never more than ``HEAD_ELEMENTS``.
    """
    backbone, head = parts(model)
    device = head.weight.device
    common = _common([e.prompt for e in examples])
    cache = DynamicCache(config=model.config)
    if common:
        ids = torch.as_tensor([examples[0].prompt[:common]], device=device)
        backbone(input_ids=ids, cache=cache, use_cache=True)
        cache.batch_select_indices(torch.zeros(len(examples), dtype=torch.int64, device=device))
    ids, _ = pad([[*e.prompt[common:], *e.response] for e in examples], 0)  # on the right, where nothing attends to it
    # position t predicts token t + 1: the predicting positions of a response begin at its prompt's last token
    starts = [len(e.prompt) - common - 1 for e in examples]
    rows = np.repeat(np.arange(len(examples)), [len(e.response) for e in examples])
    columns = np.concatenate([begin + np.arange(len(e.response)) for begin, e in zip(starts, examples, strict=True)])
    ids, rows, columns = (torch.as_tensor(x, device=device) for x in (ids, rows, columns))
    hidden = backbone(input_ids=ids[:, :-1], cache=cache, use_cache=True).last_hidden_state
    return _nll(model, head, hidden[rows, columns], ids[rows, columns + 1]) / len(rows)


def _common(prompts: Sequence[list[int]]) -> int:
    """Tokens that all prompts begin with, but for the last one of each, which predicts the first of its response."""
    columns = zip(*prompts, strict=False)
    return next((i for i, tokens in enumerate(columns) if len(set(tokens)) > 1), min(map(len, prompts)) - 1)


def _nll(model, head, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Σ −log softmax(head(hidden))[target]; in pieces, made again in the backward pass, where there are many logits."""

    def piece(rows: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return cross_entropy(head(rows).float() / logit_scale(model), wanted, reduction="sum")

    size = max(1, HEAD_ELEMENTS // head.weight.shape[0])
    if len(targets) <= size:
        return piece(hidden, targets)
    pieces = zip(hidden.split(size), targets.split(size), strict=True)
    return torch.stack([checkpoint(piece, h, t, use_reentrant=False) for h, t in pieces]).sum()
