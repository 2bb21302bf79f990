"""Sampled responses to problems, with their outcome labels."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.lm.sampling import Sample, sample
from tasks.lm.tokens import encode_prompt, end_tokens
from tasks.prm.grading import grade
from tasks.prm.params import Rollouts
from tasks.prm.schemas import ROLLOUTS


@dataclass(frozen=True)
class Drawn:
    """Rows of ROLLOUTS, and the problems that were left out because their prompt is too long."""

    table: pd.DataFrame
    dropped: list[str]


def draw(model, tokenizer, problems: pd.DataFrame, n_samples: dict[str, int], parameters: Rollouts) -> Drawn:
    """Responses to every problem (columns of PROBLEMS), `n_samples` of them by split, graded.

    What is drawn for a problem depends on its identifier and the seed, not on the other problems.
    """
    prompts = [encode_prompt(tokenizer, prompt) for prompt in problems["prompt"]]
    short = np.array([len(p) <= parameters.max_prompt_tokens for p in prompts], dtype=bool)
    ends = end_tokens(model, tokenizer)
    parts = []
    for split, n in n_samples.items():
        rows = np.flatnonzero(short & (problems["split"] == split).to_numpy())
        responses = sample(
            model,
            [prompts[i] for i in rows],
            list(problems["problem"].iloc[rows]),
            n,
            end=ends,
            max_new_tokens=parameters.max_new_tokens,
            seed=parameters.seed,
            temperature=parameters.temperature,
            top_p=parameters.top_p,
            batch=parameters.batch,
            description=f"sample {split}",
        )
        parts += _graded(tokenizer, problems.iloc[rows], responses)
    table = pd.DataFrame(parts, columns=ROLLOUTS.names).sort_values(["split", "problem", "sample"], ignore_index=True)
    return Drawn(table, list(problems["problem"][~short]))


def accuracy(model, tokenizer, problems: pd.DataFrame, seed: int) -> float:
    """pass@1 of one response a problem, at temperature 1."""
    parameters = Rollouts(seed=seed)
    return float(draw(model, tokenizer, problems, {"valid": 1}, parameters).table["correct"].mean())


def _graded(tokenizer, problems: pd.DataFrame, responses: list[list[Sample]]) -> list[dict]:
    rows = []
    for problem, samples in zip(problems.itertuples(), responses, strict=True):
        for number, one in enumerate(samples):
            text = tokenizer.decode(one.tokens[:-1] if one.finished else one.tokens, clean_up_tokenization_spaces=False)
            found = grade(
                problem.grader,
                text,
                problem.answer,
                finished=one.finished,
                prompt=problem.prompt,
                metadata=problem.metadata,
            )
            rows.append(
                {
                    "problem": problem.problem,
                    "sample": number,
                    "split": problem.split,
                    "response": text,
                    "tokens": one.tokens,
                    "finished": one.finished,
                    "answer": found.answer,
                    "correct": found.correct,
                    "first_wrong": found.first_wrong,
                }
            )
    return rows
