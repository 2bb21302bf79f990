"""Log-probabilities of given responses from a server that speaks the OpenAI completions protocol."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.lm.server import Refused, Server
from tasks.stage import UserError, progress

IMPOSSIBLE = -9999.0  # what vLLM writes for log 0, which JSON has no number for

Ids = Sequence[int]


@dataclass(frozen=True)
class Endpoint(Server):
    """A model behind ``POST {url}/completions``.

    `token_log_probs` is that of `tasks.lm.logprobs`, for a model that runs elsewhere. Token ids go out, not text, so that
    both sides score the same tokens. Two ways to ask are known, and the first answer settles which one a server takes:

    * ``prompt_logprobs`` of vLLM: ``choices[0].prompt_logprobs`` has null for the first token, and for each other one an
      object token id → {"logprob", "rank", "decoded_token"}, with the token of the prompt always among them;
    * ``echo`` with ``logprobs``: ``choices[0].logprobs.token_logprobs``, one number a token of the prompt, the first null.

    Written after vLLM's source (vllm/entrypoints/openai/completion); not run here against a real vLLM server, but
    against a small server of the same answers.

    Args:
        tokenizer: of the caller. Where it is given, what the server calls the first response's tokens must be what this
            tokenizer calls them: a server of another vocabulary would answer without a fault.
    """

    tokenizer: Any = None

    def token_log_probs(self, prompts: Sequence[Ids], responses: Sequence[Ids]) -> list[np.ndarray]:
        """log p(y_i | x, y_<i) of every response token; one array (length of the response, float32) a response, in order.

        Raises:
            ValueError: an empty prompt, unequal numbers.
            UserError: the server is out of reach, refuses the model or the request, offers no log-probabilities of the
                prompt, or answers with another number of tokens, other tokens, or numbers that are no log-probabilities.
        """
        if len(prompts) != len(responses):
            raise ValueError(f"{len(prompts)} prompts and {len(responses)} responses: each response needs its prompt")
        for i, prompt in enumerate(prompts):
            if len(prompt) == 0:
                raise ValueError(f"prompt {i} has no token; a response needs at least one before it")
        found = [np.empty(0, np.float32) for _ in responses]
        asked = [i for i, response in enumerate(responses) if len(response)]
        if not asked:
            return found
        pairs = [([int(t) for t in prompts[i]], [int(t) for t in responses[i]]) for i in asked]
        way, found[asked[0]] = self._first(*pairs[0])
        with ThreadPoolExecutor(self.parallel) as pool:
            others = pool.map(lambda pair: self._ask(way, *pair)[0], pairs[1:])
            for i, values in zip(asked[1:], progress(others, self.model, len(asked) - 1), strict=True):
                found[i] = values
        return found

    def _first(self, prompt: list[int], response: list[int]) -> tuple[str, np.ndarray]:
        """The way that this server takes, and the values of one response, for which it is checked more closely."""
        for way in _WAYS:
            try:
                values, names = self._ask(way, prompt, response)
            except _NotOffered:
                continue
            self._check_names(response, names)
            return way, values
        raise UserError(
            f"{self.url}: offers no log-probabilities of the prompt for {self.model}: neither prompt_logprobs, as vLLM"
            " does, nor echo with logprobs"
        )

    def _ask(self, way: str, prompt: list[int], response: list[int]) -> tuple[np.ndarray, list[str | None]]:
        """(log-probabilities, the server's names of the tokens) of a response."""
        fields, read = _WAYS[way]
        ids = prompt + response
        # one token is sampled because vLLM refuses to sample none; the temperature is that of the log-probabilities
        body = {"model": self.model, "prompt": ids, "max_tokens": 1, "temperature": 1.0, **fields}
        try:
            answer = self.post("completions", body)
        except Refused as refused:
            if refused.status in (400, 422) and any(name in str(refused) for name in fields):
                raise _NotOffered(str(refused)) from None
            raise
        try:
            values, names = read(answer, ids, self.url)
        except (AttributeError, TypeError, LookupError):
            raise UserError(f"{self.url}/completions: the answer has another form than that of {way}") from None
        values, names = values[len(prompt) :], names[len(prompt) :]
        for i, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, int | float) or not IMPOSSIBLE < value <= 1e-3:
                raise UserError(
                    f"{self.url}: {value} for token {response[i]} of a response; a log-probability is needed"
                )
        return np.array(values, dtype=np.float32), names

    def _check_names(self, response: list[int], names: list[str | None]) -> None:
        if self.tokenizer is None:
            return
        for token, theirs in zip(response, names, strict=True):
            ours = self.tokenizer.decode([token]).strip()
            # plain words only: pieces of characters and special tokens have several spellings
            theirs = theirs.strip() if theirs else ""
            if all(name.isascii() and name.isalnum() for name in (ours, theirs)) and ours != theirs:
                raise UserError(
                    f"{self.url}: token {token} is {theirs!r} for {self.model} and {ours!r} for the tokenizer given:"
                    " they do not belong together"
                )


class _NotOffered(UserError):
    """The server does not know this way to ask, or has forgotten it since."""


def _read_prompt_logprobs(answer: dict, ids: list[int], url: str) -> tuple[list, list]:
    found = answer["choices"][0].get("prompt_logprobs")
    if found is None:
        raise _NotOffered(f"{url}: an answer without prompt_logprobs")
    _same_number(len(found), ids, url)
    values, names = [None], [None]
    for token, entry in zip(ids[1:], found[1:], strict=True):
        if str(token) not in (entry or {}):
            raise UserError(f"{url}: no log-probability of token {token}; there are those of {', '.join(entry or {})}")
        values.append(entry[str(token)].get("logprob"))
        names.append(entry[str(token)].get("decoded_token"))
    return values, names


def _read_echo(answer: dict, ids: list[int], url: str) -> tuple[list, list]:
    found = answer["choices"][0].get("logprobs") or {}
    values, names = found.get("token_logprobs") or [], found.get("tokens") or []
    if len(values) < 2:  # the prompt has at least one token, the response too: nothing was echoed
        raise _NotOffered(f"{url}: an answer without the log-probabilities of the prompt (echo)")
    counted = (answer.get("usage") or {}).get("prompt_tokens", len(ids))
    # the sampled token may follow; an end token leaves it out
    _same_number(counted if len(values) in (len(ids), len(ids) + 1) else len(values), ids, url)
    return values[: len(ids)], (names + [None] * len(ids))[: len(ids)]


def _same_number(found: int, ids: list[int], url: str) -> None:
    if found != len(ids):
        raise UserError(f"{url}: log-probabilities of {found} tokens for a prompt and response of {len(ids)} tokens")


# what is added to the request, and how the answer is read; the better one first
_WAYS = {
    "prompt_logprobs": ({"prompt_logprobs": 0}, _read_prompt_logprobs),
    "echo": ({"echo": True, "logprobs": 1}, _read_echo),
}
