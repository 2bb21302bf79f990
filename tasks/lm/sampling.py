"""Sampling many responses at once from a causal language model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

from tasks.lm.logprobs import logit_scale, parts
from tasks.lm.tokens import pad
from tasks.stage import progress, random_generator


@dataclass(frozen=True)
class Sample:
    """One sampled response: its token ids, the end token included, and whether it came to that end."""

    tokens: list[int]
    finished: bool


def sample(
    model,
    prompts: Sequence[Sequence[int]],
    keys: Sequence[str],
    n: int,
    *,
    end: Sequence[int],
    max_new_tokens: int,
    seed: int,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int | None = None,
    batch: int = 1024,
    description: str = "sample",
) -> list[list[Sample]]:
    """`n` responses to every prompt: y_t ~ softmax(logits / temperature), of the `top_p` nucleus, until an end token.

    With `top_k`, of the nucleus within the `top_k` most probable tokens, which spares the sorting of a large vocabulary.
    Temperature 0 takes the most probable token each time.

    The uniform numbers of a response come from (seed, the prompt's key, the response's number) alone, so neither the
    order of the prompts nor the others of its batch decide what is drawn, but for the rounding of matrix products.
    Prompts of similar length go together; each goes through the model once, whatever `n` is; finished responses leave
    the batch.

    Args:
        prompts: token ids, each with at least one.
        keys: one text a prompt, all different.
        end: ids that end a response.
        batch: responses that grow at the same time.

    Returns:
        for every prompt its `n` samples.

    Raises:
        ValueError: an empty prompt, keys that are not one a prompt, or more tokens than the model has positions for.
    """
    if len(set(keys)) != len(prompts) or len(keys) != len(prompts):
        raise ValueError(f"{len(prompts)} prompts need as many different keys; there are {len(set(keys))}")
    for key, prompt in zip(keys, prompts, strict=True):
        if len(prompt) == 0:
            raise ValueError(f"prompt {key!r} has no token")
    longest, limit = max(map(len, prompts), default=0), getattr(model.config, "max_position_embeddings", None)
    if limit and longest + max_new_tokens > limit:
        raise ValueError(f"{longest} prompt + {max_new_tokens} new tokens are more than the model's {limit} positions")
    order = sorted(range(len(prompts)), key=lambda i: (len(prompts[i]), keys[i]))
    drawn: list[list[Sample]] = [[] for _ in prompts]
    model.eval()
    with torch.inference_mode():
        for rows in progress(_batches([(i, j) for i in order for j in range(n)], batch), description):
            numbers = np.stack(
                [random_generator(seed, keys[i], j).random(max_new_tokens, dtype=np.float32) for i, j in rows]
            )
            pick = partial(choose, temperature=temperature, top_p=top_p, top_k=top_k)
            found = _grow(model, [prompts[i] for i, _ in rows], numbers, list(end), pick)
            for (i, _), one in zip(rows, found, strict=True):
                drawn[i].append(one)
    return drawn


def choose(
    logits: torch.Tensor,
    uniform: torch.Tensor,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int | None = None,
) -> torch.Tensor:
    """Token ids by the inverse of the distribution function: the first whose cumulative probability exceeds `uniform`.

    logits (rows, vocabulary), uniform (rows,) in [0, 1) → (rows,) int64. With `top_p` the nucleus: the fewest most
    probable tokens whose probability is at least `top_p` together. With `top_k` only the `top_k` most probable tokens have
    any probability, 1 together. Temperature 0: the most probable token, the first of equals.
    """
    if temperature == 0:
        return logits.argmax(dim=-1)
    if top_k is not None and top_k < logits.shape[-1]:
        highest, ids = logits.topk(top_k, dim=-1)
        return ids.gather(-1, choose(highest, uniform, temperature, top_p)[:, None])[:, 0]
    probabilities = torch.softmax(logits.float() / temperature, dim=-1)
    if top_p < 1.0:
        sorted_, ids = probabilities.sort(dim=-1, descending=True, stable=True)
        before = sorted_.cumsum(dim=-1) - sorted_
        sorted_ = sorted_.where(before < top_p, torch.zeros_like(sorted_))
        return ids.gather(-1, _inverse(sorted_, uniform)[:, None])[:, 0]
    return _inverse(probabilities, uniform)


def _inverse(weights: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    cumulative = weights.cumsum(dim=-1)
    index = torch.searchsorted(cumulative, uniform[:, None] * cumulative[:, -1:], right=True)[:, 0]
    # rounding may put the number at the very end: the last token that has any probability
    last = weights.shape[-1] - 1 - (weights > 0).flip(-1).int().argmax(dim=-1)
    return torch.minimum(index, last)


class _Room(DynamicLayer):
    """A layer of the cache that grows in place: appending a token does not copy all tokens before it."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        super().lazy_initialization(key_states, value_states)
        self._open(key_states, value_states, 0)

    def _open(self, keys: torch.Tensor, values: torch.Tensor, length: int) -> None:
        rows, heads, _, width = keys.shape
        self.key_room = keys.new_empty(rows, heads, self.room, width)
        self.value_room = values.new_empty(rows, heads, self.room, values.shape[-1])
        self.length = length

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs):
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        begin, self.length = self.length, self.length + key_states.shape[-2]
        self.key_room[:, :, begin : self.length] = key_states
        self.value_room[:, :, begin : self.length] = value_states
        self.keys, self.values = self.key_room[:, :, : self.length], self.value_room[:, :, : self.length]
        return self.keys, self.values

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        keys, values = self.keys[indices], self.values[indices]
        self._open(keys, values, keys.shape[-2])
        self.key_room[:, :, : self.length], self.value_room[:, :, : self.length] = keys, values
        self.keys, self.values = self.key_room[:, :, : self.length], self.value_room[:, :, : self.length]


def _batches(rows: list, size: int) -> list[list]:
    return [rows[begin : begin + size] for begin in range(0, len(rows), size)]


def _grow(model, prompts: list, numbers: np.ndarray, end: list[int], pick: Callable) -> list[Sample]:
    backbone, head = parts(model)
    device, scale = head.weight.device, logit_scale(model)
    distinct = {tuple(p): None for p in prompts}
    number = {prompt: k for k, prompt in enumerate(distinct)}
    owner = torch.as_tensor([number[tuple(p)] for p in prompts], device=device)
    ids, mask = (torch.as_tensor(x, device=device) for x in pad(list(distinct), 0, "left"))
    ragged = not bool(mask.all())
    cache = _cache(model, ids.shape[1] + numbers.shape[1])
    extra = {"attention_mask": mask.long(), "position_ids": (mask.cumsum(1) - 1).clamp(min=0)} if ragged else {}
    hidden = backbone(input_ids=ids, cache=cache, use_cache=True, **extra).last_hidden_state[:, -1]
    cache.batch_select_indices(owner)
    hidden, mask = hidden[owner], mask[owner]
    position = mask.sum(1)
    uniform = torch.as_tensor(numbers, device=device)
    ends = torch.as_tensor(end, device=device)
    tokens = torch.full(numbers.shape, -1, dtype=torch.int64, device=device)
    held = torch.arange(len(prompts), device=device)  # the batch's rows that the cache still holds
    growing = torch.ones(len(prompts), dtype=torch.bool, device=device)  # of those: which have not ended
    for t in range(numbers.shape[1]):
        logits = head(hidden) if scale == 1.0 else head(hidden) / scale
        chosen = pick(logits, uniform[held, t])
        tokens[held[growing], t] = chosen[growing]
        growing &= ~torch.isin(chosen, ends)
        if t + 1 == numbers.shape[1] or not bool(growing.any()):
            break
        if int(growing.sum()) <= 0.75 * len(held):
            keep = growing.nonzero()[:, 0]
            cache.batch_select_indices(keep)
            held, growing, chosen, position, mask = (x[keep] for x in (held, growing, chosen, position, mask))
        if ragged:
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
            extra = {"attention_mask": mask.long(), "position_ids": position[:, None]}
        hidden = backbone(input_ids=chosen[:, None], cache=cache, use_cache=True, **extra).last_hidden_state[:, -1]
        position = position + 1
    samples = []
    for row in tokens.cpu().numpy():
        kept = [int(token) for token in row if token >= 0]
        samples.append(Sample(kept, bool(kept) and kept[-1] in end))
    return samples


def _cache(model, room: int) -> DynamicCache:
    """A cache that grows in place, for models that attend to everything; transformers' own for the others."""
    cache = DynamicCache(config=model.config)
    if all(type(layer) is DynamicLayer for layer in cache.layers):
        cache.layers = [_Room(room) for _ in cache.layers]
    return cache
