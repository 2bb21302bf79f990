"""Sampled responses from a server that speaks the OpenAI chat protocol (vLLM, `transformers serve`, …)."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tasks.lm.server import Server
from tasks.stage import UserError, progress, random_generator

Messages = Sequence[dict[str, str]]
ENOUGH = 8  # repeated samples that are no accident any more


@dataclass(frozen=True)
class Answer:
    """One response: its text, its number of tokens (0 where the server does not count), whether it came to its end."""

    text: str
    tokens: int
    finished: bool


@dataclass(frozen=True)
class Chat(Server):
    """A model behind ``POST {url}/chat/completions``."""

    def sample(
        self,
        prompts: Sequence[Messages],
        keys: Sequence[str],
        n: int,
        *,
        max_new_tokens: int,
        seed: int,
        temperature: float = 1.0,
        top_p: float = 1.0,
    ) -> list[list[Answer]]:
        """`n` responses to every prompt, in the order of the prompts.

        One request a response, with a seed of its own from (seed, the prompt's key, the response's number): several servers
        ignore the protocol's `n`. The fields sent are those of the protocol itself, which has no `top_k`.

        Raises:
            ValueError: keys that are not one a prompt.
            UserError: the server is out of reach, refuses, answers in another form, or gives every prompt the same
                response each time, at a temperature above 0.
        """
        if len(set(keys)) != len(prompts) or len(keys) != len(prompts):
            raise ValueError(f"{len(prompts)} prompts need as many different keys; there are {len(set(keys))}")
        common = {"model": self.model, "max_tokens": max_new_tokens, "temperature": temperature, "top_p": top_p}
        bodies = [
            {**common, "messages": list(prompt), "seed": int(random_generator(seed, key, j).integers(2**31))}
            for prompt, key in zip(prompts, keys, strict=True)
            for j in range(n)
        ]
        with ThreadPoolExecutor(self.parallel) as pool:
            flat = list(progress(pool.map(self._ask, bodies), self.model, len(bodies)))
        found = [flat[begin : begin + n] for begin in range(0, len(flat), n)] if n else [[] for _ in prompts]
        repeated = sum(len(answers) - 1 for answers in found if answers)
        if temperature > 0 and repeated >= ENOUGH and all(len({a.text for a in one}) == 1 for one in found):
            raise UserError(
                f"{self.url}: {self.model} answers each prompt {n} times the same at temperature {temperature:g}: it does not"
                " sample. `transformers serve` needs do_sample: true in the model's generation_config.json"
            )
        return found

    def _ask(self, body: dict) -> Answer:
        answer = self.post("chat/completions", body)
        try:
            choice = answer["choices"][0]
            text = choice["message"].get("content") or ""
            tokens = (answer.get("usage") or {}).get("completion_tokens") or 0
            # half a surrogate pair is no text: tables could not hold it
            return Answer(text.encode("utf-8", "replace").decode(), int(tokens), choice["finish_reason"] == "stop")
        except (AttributeError, LookupError, TypeError, ValueError):
            raise UserError(
                f"{self.url}/chat/completions: the answer has another form than that of the protocol"
            ) from None
