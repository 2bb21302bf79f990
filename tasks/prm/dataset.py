"""A data set's responses as token ids, and the cache of their log-probabilities under the reference."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from tasks.lm.tokens import encode_prompt, encode_response
from tasks.prm.schemas import PROBLEMS, ROLLOUTS
from tasks.stage import UserError
from tasks.tables import read_table


@dataclass(frozen=True)
class Rollouts:
    """One row a response, in the order of the table."""

    table: pd.DataFrame  # columns of ROLLOUTS
    prompts: list[list[int]]  # token ids of each row's prompt
    responses: list[list[int]]

    def part(self, rows: np.ndarray) -> "Rollouts":
        """The rows of these numbers."""
        table = self.table.iloc[rows].reset_index(drop=True)
        return Rollouts(table, [self.prompts[i] for i in rows], [self.responses[i] for i in rows])


def read_rollouts(problems: Path, rollouts: Path, tokenizer) -> Rollouts:
    """Read both tables and tokenise: sampled responses keep the sampler's own tokens, given ones are tokenised here.

    Raises:
        UserError: not such tables, or a response whose problem is not among the problems.
    """
    asked = read_table(problems, PROBLEMS).set_index("problem")["prompt"]
    table = read_table(rollouts, ROLLOUTS)
    prompts = {}
    for name in table["problem"].astype("str").unique():
        if name not in asked.index:
            raise UserError(f"{rollouts}: problem {name!r} is not among those of {problems}")
        prompts[name] = encode_prompt(tokenizer, asked[name])
    responses = [
        encode_response(tokenizer, row.response, row.finished) if row.tokens is None else row.tokens.tolist()
        for row in table.itertuples()
    ]
    return Rollouts(table, [prompts[name] for name in table["problem"].astype("str")], responses)


def token_digest(rollouts: Rollouts) -> str:
    """SHA-256 of all prompts' and responses' token ids, in their order."""
    found = hashlib.sha256()
    for prompt, response in zip(rollouts.prompts, rollouts.responses, strict=True):
        found.update(np.array([len(prompt), *prompt, len(response), *response], dtype="<i4").tobytes())
    return found.hexdigest()


def write_log_probs(path: Path, values: Iterable[np.ndarray], *, model: str, tokens: str) -> None:
    """Token log-probabilities of all rows, float32, with the digests of the model and of the tokens that they are of."""
    values = list(values)
    arrays = {
        "log_probs": np.concatenate([np.zeros(0, np.float32), *values]),
        "lengths": np.array([len(v) for v in values], dtype=np.int32),
    }
    # one key: the order of several is not fixed, and neither were the bytes
    about = json.dumps({"model": model, "tokens": tokens}, sort_keys=True)
    path.write_bytes(save(arrays, metadata={"about": about}))


def read_log_probs(path: Path, *, tokens: str, model: str | None = None) -> list[np.ndarray]:
    """One array a row of the table, as written by `write_log_probs`.

    Raises:
        UserError: not such a file, or it is of other tokens or of another model: a stale cache would train the model
            against a reference that it is not compared with.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {}).get("about", "{}"))
            log_probs, lengths = file.get_tensor("log_probs"), file.get_tensor("lengths")
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path}: not readable log-probabilities: {error}") from None
    for what, wanted in (("tokens", tokens), ("model", model)):
        if wanted is not None and about.get(what) != wanted:
            raise UserError(f"{path}: was made of other {what}; run the stage prm-reference again")
    if lengths.sum() != len(log_probs):
        raise UserError(
            f"{path}: {len(log_probs)} log-probabilities for {lengths.sum()} tokens; run prm-reference again"
        )
    return np.split(log_probs, np.cumsum(lengths)[:-1]) if len(lengths) else []
