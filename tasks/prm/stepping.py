"""Responses cut into steps, as a table."""

import numpy as np
import pandas as pd

from tasks.lm.tokens import response_offsets
from tasks.prm.dataset import Rollouts
from tasks.prm.segmentation import response_steps


def step_table(
    data: Rollouts, policy: list[np.ndarray], reference: list[np.ndarray], segment: str, tokenizer
) -> pd.DataFrame:
    """Rows of STEPS: spans of every step, and its sums of log-probabilities under policy and reference, nats.

    A response without any token has one step with sums of NaN: there is nothing to judge it by.
    """
    rows = []
    for row, ids, ours, theirs in zip(data.table.itertuples(), data.responses, policy, reference, strict=True):
        offsets = response_offsets(tokenizer, row.response, ids)
        for number, step in enumerate(response_steps(row.response, offsets, segment)):
            tokens = slice(step.start_token, step.end_token)
            sums = [float(v[tokens].sum(dtype=np.float64)) if len(ids) else float("nan") for v in (ours, theirs)]
            rows.append((row.problem, row.sample, number, *step, *sums))
    columns = ["problem", "sample", "step", "start_char", "end_char", "start_token", "end_token", "policy", "reference"]
    return pd.DataFrame(rows, columns=columns)
