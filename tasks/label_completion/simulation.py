"""Simulated workers, after the protocol of the LDPLC paper."""

from typing import Literal

import numpy as np
import pandas as pd


def simulate_answers(
    truth: np.ndarray,
    n_classes: int,
    generator: np.random.Generator,
    *,
    n_workers: int = 40,
    labelling_probability: tuple[float, float] = (0.0, 0.1),
    accuracy: Literal["uniform", "gaussian"] = "uniform",
) -> pd.DataFrame:
    """Draw answers: columns task (position in `truth`), worker, label, int64.

    Worker w labels each task with probability p_w ~ U(labelling_probability) and is right with probability
    q_w ~ U(0.6, 0.9), or ~ N(0.75, 0.15) redrawn until in [0, 1]; a wrong answer is uniform over the other classes.
    A worker who labelled nothing is drawn again with the same p and q. Tasks may stay without any answer (about 13 %
    of them at the defaults). Source: Wu, Jiang, Zhang, Li, ICML 2025, with 40 workers and 10 repeats.

    Args:
        truth: int (N,), class of each task, 0 to n_classes − 1.
    """
    n_tasks = len(truth)
    p = generator.uniform(*labelling_probability, n_workers)
    if accuracy == "uniform":
        q = generator.uniform(0.6, 0.9, n_workers)
    else:
        q = generator.normal(0.75, 0.15, n_workers)
        while (outside := (q < 0) | (q > 1)).any():
            q[outside] = generator.normal(0.75, 0.15, int(outside.sum()))
    parts = []
    for w in range(n_workers):
        labelled = np.array([], np.int64)
        chance = max(p[w], 1e-3 / n_tasks)  # a smaller p would be redrawn thousands of times
        while not len(labelled):
            labelled = np.flatnonzero(generator.random(n_tasks) < chance)
        label = truth[labelled].astype(np.int64)
        wrong = np.flatnonzero(~(generator.random(len(labelled)) < q[w]))
        if n_classes > 1:
            label[wrong] = (label[wrong] + generator.integers(1, n_classes, len(wrong))) % n_classes
        parts.append(pd.DataFrame({"task": labelled, "worker": w, "label": label}))
    return pd.concat(parts, ignore_index=True)
