"""What a trained model says of periods: scores of the sites by the ranking rules, and the predictive distribution."""

import numpy as np
import torch

from tasks.bpr.model import Batch, CountModel
from tasks.bpr.objective import delta_scores
from tasks.bpr.params import Rank
from tasks.bpr.ranking import Scores
from tasks.bpr.training import threads, torch_generator

CHUNK_CELLS = 2**21  # draws × periods × sites held at a time, 16 MB an array; another number gives other last bits


@torch.no_grad()
def rule_scores(
    model: CountModel, batch: Batch, k: int, params: Rank, run: str, denominator_offset: float = 0.0
) -> dict[str, np.ndarray]:
    """Scores by rule, each float64 [T, S]: mean and delta_ratio in closed form; the others from M draws, the same for both.

    The draws come from a generator of (seed, run), so they depend neither on other runs nor on the rules asked for.
    `denominator_offset` is the ratio rule's, as in training.
    """
    with threads(1):
        found = {"mean": model.mean(batch).contiguous().numpy()}
        closed = delta_scores(model(batch), denominator_offset)
        found["delta_ratio"] = closed.expand(batch.features.shape[:2]).contiguous().numpy()
        drawn = [rule for rule in params.rules if rule not in found]
        if drawn:
            found |= _drawn_scores(model, batch, k, params, run, denominator_offset, drawn)
    return {rule: found[rule] for rule in params.rules}


def _drawn_scores(model, batch, k, params, run, denominator_offset, rules) -> dict[str, np.ndarray]:
    generator = torch_generator(params.seed, run, "rank")
    offset = {"ratio": denominator_offset, "topk_ratio": 0.0}
    sums = {rule: Scores(rule, k, offset[rule]) for rule in rules}
    law = model(batch)
    step = max(1, CHUNK_CELLS // max(1, batch.features.shape[:2].numel()))
    for start in range(0, params.n_samples, step):
        draws = law.sample(min(step, params.n_samples - start), generator)
        for one in sums.values():
            one.add(draws)
    return {rule: one.result().numpy() for rule, one in sums.items()}


@torch.no_grad()
def forecast(model: CountModel, batch: Batch, counts: np.ndarray) -> dict[str, np.ndarray]:
    """`mean` and `variance` of every cell and `log_prob` of what was counted there, each float64 [T, S]."""
    with threads(1):
        return {
            "mean": model.mean(batch).contiguous().numpy(),
            "variance": model.variance(batch).contiguous().numpy(),
            "log_prob": model.log_prob(torch.from_numpy(counts), batch).numpy(),
        }
