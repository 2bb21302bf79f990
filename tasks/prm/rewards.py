"""Step rewards from token log-probabilities: R_k = beta × Σ [log policy(y_i) − log reference(y_i)] over the step's tokens."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tasks.lm.adapters import adapter_off
from tasks.lm.loading import LanguageModel, load
from tasks.lm.logprobs import token_log_probs
from tasks.lm.tokens import Prompt, encode_prompt, encode_response, response_offsets
from tasks.prm.params import AGGREGATIONS
from tasks.prm.segmentation import response_steps
from tasks.prm.selection import aggregate

Rule = Literal["blank_line", "step_marker", "newline", "token"] | Callable[[str], Iterable[tuple[int, int]]]


@dataclass(frozen=True)
class StepReward:
    """One step: half-open spans in the response's characters and tokens, its reward, and the prefix value at its end."""

    start_char: int
    end_char: int
    start_token: int
    end_token: int
    reward: float  # R_k, in units of beta × nats
    prefix_value: float  # q = R_1 + … + R_k


@dataclass(frozen=True)
class ScoredResponse:
    """A response's steps and its scores by every aggregation; NaN scores, which lose, where it has no token at all."""

    steps: list[StepReward]
    scores: dict[str, float]
    finished: bool
    token_rewards: np.ndarray = field(repr=False)  # beta × log-ratio of every token, float32


def score_steps(
    prompts: Sequence[Prompt],
    responses: Sequence[str],
    policy: Any,
    reference: Any = None,
    *,
    beta: float,
    segment: Rule = "blank_line",
    finished: Sequence[bool] | bool = True,
    tokenizer: Any = None,
) -> list[ScoredResponse]:
    """Score every step of every response; results in the order of the responses, whatever their number and lengths.

    The steps partition the response, its end token belongs to the last one, and their rewards add up to the response's
    reward r(y) = beta × Σ_i [log policy(y_i) − log reference(y_i)]. With ``reference=None`` the reference is left out
    (log policy alone): for choosing among samples of the reference itself this was better in every measured case.

    Args:
        prompts: one a response: a text, or chat messages; the tokenizer's chat template is applied where it has one.
        responses: texts, tokenised apart from their prompts.
        policy: the trained model: a folder (a causal LM, or a peft adapter), a `LanguageModel`, a transformers model
            (with `tokenizer`, or loaded from a folder that has one), or an `Endpoint`.
        reference: None, "adapter-off" (the policy's base model), or a model in any of the forms above.
        beta: scale of the rewards, the one of the training.
        segment: what the steps are, see `tasks.prm.segmentation.response_steps`.
        finished: whether a response came to its end, one for all or one each; a cut one gets no end token.

    Raises:
        ValueError: numbers of prompts, responses or `finished` differ, `beta` is not positive, no tokenizer is known, the
            reference's tokenizer is another, or "adapter-off" for a policy without adapters.

    Source: Yuan et al., "Free Process Rewards without Process Labels", ICML 2025, eq. 2–3.
    """
    if len(prompts) != len(responses):
        raise ValueError(f"{len(prompts)} prompts and {len(responses)} responses: each response needs its prompt")
    ends = [finished] * len(responses) if isinstance(finished, bool) else list(finished)
    if len(ends) != len(responses):
        raise ValueError(f"{len(ends)} entries in finished and {len(responses)} responses")
    if not beta > 0:
        raise ValueError(f"beta is {beta}; a positive number is needed")
    policy = _scorer(policy, tokenizer)
    words = policy.tokenizer or tokenizer
    if words is None:
        raise ValueError("the policy comes without a tokenizer: give `tokenizer`, or the model's folder")
    tokens = [encode_response(words, r, bool(f)) for r, f in zip(responses, ends, strict=True)]
    asked = [encode_prompt(words, p) for p in prompts]
    ratios = log_probs(policy, asked, tokens)
    if isinstance(reference, str) and reference == "adapter-off":
        with adapter_off(getattr(policy, "model", None)):
            fixed = log_probs(policy, asked, tokens)
    elif reference is not None:
        reference = _scorer(reference, words)
        if reference.tokenizer is not None and reference.tokenizer.get_vocab() != words.get_vocab():
            raise ValueError("the reference's tokenizer is not the policy's: their tokens cannot be compared")
        fixed = log_probs(reference, asked, tokens)
    else:
        fixed = [np.zeros_like(values) for values in ratios]
    return [
        _scored(text, response_offsets(words, text, ids), beta * (values - subtracted), segment, bool(end))
        for text, ids, values, subtracted, end in zip(responses, tokens, ratios, fixed, ends, strict=True)
    ]


def log_probs(model: Any, prompts: list[list[int]], responses: list[list[int]]) -> list[np.ndarray]:
    """Token log-probabilities from a `LanguageModel` here, or from an endpoint's own `token_log_probs`."""
    if hasattr(model, "token_log_probs"):
        return model.token_log_probs(prompts, responses)
    return token_log_probs(model.model, prompts, responses)


def _scorer(model: Any, tokenizer: Any) -> Any:
    if isinstance(model, str | Path):
        return load(Path(model))
    if isinstance(model, LanguageModel) or hasattr(model, "token_log_probs"):
        return model
    if tokenizer is None:
        folder = Path(getattr(model, "name_or_path", "") or "")
        if (folder / "tokenizer_config.json").is_file():
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    return LanguageModel(model, tokenizer, "")


def _scored(text: str, offsets: list, rewards: np.ndarray, segment: Rule, finished: bool) -> ScoredResponse:
    steps = response_steps(text, offsets, segment)
    sums = [float(rewards[s.start_token : s.end_token].sum(dtype=np.float64)) for s in steps]
    scored = [
        StepReward(*step, reward, value)
        for step, reward, value in zip(steps, sums, np.cumsum(sums).tolist(), strict=True)
    ]
    known = sums if len(rewards) else [float("nan")]
    return ScoredResponse(scored, {how: aggregate(known, how) for how in AGGREGATIONS}, finished, rewards)
