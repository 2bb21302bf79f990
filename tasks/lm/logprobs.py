"""Log-probabilities of given responses under a causal language model, in nats, temperature 1, one float32 a token."""

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from tasks.lm.tokens import pad

HEAD_ELEMENTS = 1 << 24  # numbers in one piece of the logits: 64 MB in float32
BATCH_TOKENS = 16_384  # of one forward pass, padding included

Ids = Sequence[int]


def token_log_probs(
    model, prompts: Sequence[Ids], responses: Sequence[Ids], *, batch_tokens: int = BATCH_TOKENS
) -> list[np.ndarray]:
    """log p(y_i | x, y_<i) of every response token; one array (length of the response, float32) a response, in their order.

    Each distinct prompt goes through the model once, and its keys and values serve all of its responses. Logits are made
    at response positions only, and never more than ``HEAD_ELEMENTS`` numbers of them at a time. Prompts of one length are
    taken together, responses are padded on their right, behind everything that they attend to: the result is that of one
    response alone, but for the rounding of matrix products.

    Raises:
        ValueError: an empty prompt (its first response token would have nothing to be predicted from), unequal numbers,
            or more tokens than the model has positions for.
    """
    _check(model, prompts, responses)
    found: list[np.ndarray | None] = [None] * len(responses)
    was_training = model.training
    model.eval()  # no dropout: the reference of the training must be the reference of the scoring
    try:
        with torch.inference_mode():
            for batch in _batches(prompts, responses, batch_tokens):
                values = _score([prompts[i] for i in batch], [responses[i] for i in batch], model)
                for i, one in zip(batch, values, strict=True):
                    found[i] = one
    finally:
        model.train(was_training)
    return [np.empty(0, np.float32) if values is None else values for values in found]


def response_log_probs(model, prompts: Sequence[Ids], responses: Sequence[Ids]) -> torch.Tensor:
    """With gradient, for training: the log-probabilities of all response tokens, response by response, (N,) float32.

    N is the sum of the responses' lengths; `segment_sum` makes one number a response of them. One forward pass of prompts
    with their responses; the logits of prompt tokens are not made, and pieces of the others are made again in the backward
    pass instead of being kept, where the vocabulary is large.

    Raises:
        ValueError: as `token_log_probs`.
    """
    _check(model, prompts, responses)
    backbone, head = parts(model)
    device = head.weight.device
    if not any(len(r) for r in responses):
        return torch.zeros(0, device=device)
    ids, _ = pad([[*p, *r] for p, r in zip(prompts, responses, strict=True)], 0)
    # position t predicts token t + 1: the predicting positions of a response begin at its prompt's last token
    rows, columns = (torch.as_tensor(x, device=device) for x in _predicting(prompts, responses))
    ids = torch.as_tensor(ids, device=device)
    hidden = backbone(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    return _log_probs(head, hidden[rows, columns], ids[rows, columns + 1], scale=logit_scale(model))


def segment_sum(values: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
    """Sums of consecutive pieces of these lengths, (len(lengths),): a response's log-probability from its tokens'.

    Sums along the rows of a rectangle, not by adding into places: the same bits each time on GPUs too.

    >>> segment_sum(torch.tensor([1.0, 2.0, 3.0]), [2, 0, 1])
    tensor([3., 0., 3.])
    """
    sizes = torch.as_tensor(lengths, device=values.device)
    mask = torch.arange(max(lengths, default=0), device=values.device) < sizes[:, None]
    return values.new_zeros(mask.shape).masked_scatter(mask, values).sum(dim=1)


def parts(model):
    """(the transformer without its head, the head) of a Hugging Face causal LM or of a peft model around one."""
    core = model.get_base_model() if hasattr(model, "peft_config") else model
    return core.base_model, core.get_output_embeddings()


def logit_scale(model) -> float:
    """What the logits are divided by after the head (Granite's `logits_scaling`); 1 for nearly all models.

    Raises:
        ValueError: a model that does more to its logits (`final_logit_softcapping`, `logit_scale`): not supported.
    """
    config = model.config
    for name in ("final_logit_softcapping", "logit_scale"):
        if getattr(config, name, None) not in (None, 1, 1.0):
            raise ValueError(f"the model's logits go through {name}; models with a linear head are supported")
    return float(getattr(config, "logits_scaling", 1.0) or 1.0)


def _check(model, prompts: Sequence[Ids], responses: Sequence[Ids]) -> None:
    if len(prompts) != len(responses):
        raise ValueError(f"{len(prompts)} prompts and {len(responses)} responses: each response needs its prompt")
    for i, prompt in enumerate(prompts):
        if len(prompt) == 0:
            raise ValueError(f"prompt {i} has no token; a response needs at least one before it")
    limit = getattr(model.config, "max_position_embeddings", None)
    for i, (prompt, response) in enumerate(zip(prompts, responses, strict=True)):
        if limit and len(prompt) + len(response) > limit:
            total = f"{len(prompt)} + {len(response)} tokens"
            raise ValueError(f"prompt and response {i} have {total}; the model takes {limit} at most")


def _batches(prompts: Sequence[Ids], responses: Sequence[Ids], batch_tokens: int):
    """Indices in groups of one prompt length, equal prompts and similar lengths together, within the number of tokens."""
    order = [i for i in range(len(responses)) if len(responses[i])]
    order.sort(key=lambda i: (len(prompts[i]), -(-len(responses[i]) // 16), tuple(prompts[i]), len(responses[i]), i))
    batch: list[int] = []
    width = 0
    for i in order:
        wider = max(width, len(responses[i]))
        other = batch and len(prompts[i]) != len(prompts[batch[0]])
        if batch and (other or (wider + len(prompts[i])) * (len(batch) + 1) > batch_tokens):
            yield batch
            batch, wider = [], len(responses[i])
        batch.append(i)
        width = wider
    if batch:
        yield batch


def _score(prompts: list[Ids], responses: list[Ids], model) -> list[np.ndarray]:
    from transformers import DynamicCache

    backbone, head = parts(model)
    device = head.weight.device
    distinct = {tuple(p): None for p in prompts}
    number = {prompt: k for k, prompt in enumerate(distinct)}
    owner = torch.as_tensor([number[tuple(p)] for p in prompts], device=device)
    cache = DynamicCache(config=model.config)
    first = backbone(input_ids=torch.as_tensor(list(distinct), device=device), cache=cache, use_cache=True)
    lengths = [len(r) for r in responses]
    ids, mask = (torch.as_tensor(x, device=device) for x in pad(responses, 0))
    last = first.last_hidden_state[:, -1]  # predicts the first response token
    hidden = last[owner][:, None]
    if ids.shape[1] > 1:
        cache.batch_select_indices(owner)
        rest = backbone(input_ids=ids[:, :-1], cache=cache, use_cache=True).last_hidden_state
        hidden = torch.cat([hidden, rest], dim=1)
    values = _log_probs(head, hidden[mask], ids[mask], scale=logit_scale(model))
    return [part.numpy().astype(np.float32) for part in torch.split(values.float().cpu(), lengths)]


def _predicting(prompts: Sequence[Ids], responses: Sequence[Ids]) -> tuple[np.ndarray, np.ndarray]:
    """(row, column) of every position that predicts a response token."""
    lengths = np.array([len(r) for r in responses], dtype=np.int64)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    starts = np.array([len(p) - 1 for p in prompts], dtype=np.int64)
    return owners, starts[owners] + within


def _log_probs(head, hidden: torch.Tensor, targets: torch.Tensor, *, scale: float) -> torch.Tensor:
    """log softmax(head(hidden))[target], (N, H) and (N,) → (N,), in pieces; no table of log-probabilities is made."""

    def piece(rows: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        logits = head(rows).float()
        return -cross_entropy(logits if scale == 1.0 else logits / scale, wanted, reduction="none")

    size = max(1, HEAD_ELEMENTS // head.weight.shape[0])
    if len(targets) <= size:
        return piece(hidden, targets)
    again = torch.is_grad_enabled()
    return torch.cat(
        [
            checkpoint(piece, h, t, use_reentrant=False) if again else piece(h, t)
            for h, t in zip(hidden.split(size), targets.split(size), strict=True)
        ]
    )
