"""One score a response from the rewards of its steps, and one response from many: best of n and votes, in expectation.

Tables of candidates are [N], one problem, or [P, N]: P problems × N samples each; results are a float, or float64 [P].
"""

import math
from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from tasks.prm.params import AGGREGATIONS

EQUAL = 1e-12  # totals of a vote that differ by less than this share are equal: the order of adding must not decide


def aggregate(rewards: Any, how: str = "min", lengths: Any = None) -> float | np.ndarray:
    """The score of a response from the rewards R_1..R_K of its steps.

        min: min R_k   sum: Σ R_k   mean: Σ R_k / K   last: R_K   prefix_min: min_k q_k, q_k = R_1 + … + R_k

    Args:
        rewards: numeric [steps]: of one response, or of many one after the other.
        lengths: whole numbers [responses], steps of each; None: `rewards` are of one response.

    Returns:
        A float; with `lengths` float64 [responses]. A NaN reward makes the score NaN (or not, where `last` skips it).

    Raises:
        ValueError: another `how`, no step, or lengths that do not add up; one line.

    Source: Yuan et al. (arXiv 2412.01981) take min; their code also prints sums and the same of q_k.

    >>> aggregate([2.0, -1.0, 0.5], "prefix_min"), aggregate([2.0, -1.0, 0.5], "min", lengths=[1, 2]).tolist()
    (1.0, [2.0, -1.0])
    """
    if how not in AGGREGATIONS:
        raise ValueError(f"how is {how!r}; allowed: {', '.join(AGGREGATIONS)}")
    rewards = np.asarray(rewards, np.float64)
    if lengths is None:
        return float(aggregate(rewards, how, [rewards.size])[0])
    starts, lengths = step_starts(lengths, rewards)
    if how == "min":
        return np.minimum.reduceat(rewards, starts)
    if how == "last":
        return rewards[starts + lengths - 1]
    # sums step by step, each response for itself: the same bits whatever stands beside it
    inside = np.arange(lengths.max(initial=1)) < lengths[:, None]
    prefix = np.zeros(inside.shape)
    prefix[inside] = rewards
    prefix = prefix.cumsum(axis=1)  # constant after the last step
    if how == "prefix_min":
        return prefix.min(axis=1)
    return prefix[:, -1] / (lengths if how == "mean" else 1)


def step_starts(lengths: Any, rewards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(index of each response's first step, steps of each response), int64 [responses].

    Raises:
        ValueError: `lengths` are not whole numbers above 0, [responses], that add up to the number of rewards; one line.
    """
    lengths = np.asarray(lengths)
    if rewards.ndim != 1 or lengths.ndim != 1 or (lengths.size and lengths.dtype.kind not in "iu"):
        shapes = f"{rewards.dtype} {list(rewards.shape)} and {lengths.dtype} {list(lengths.shape)}"
        raise ValueError(f"rewards and lengths are {shapes}; allowed: numbers [steps] and whole numbers [responses]")
    lengths = lengths.astype(np.int64)
    if (lengths < 1).any():
        i = int(np.argmax(lengths < 1))
        raise ValueError(f"lengths[{i}] is {lengths[i]}; allowed: at least one step a response")
    if lengths.sum() != len(rewards):
        raise ValueError(f"lengths add up to {lengths.sum()}; allowed: {len(rewards)}, the number of rewards")
    return lengths.cumsum() - lengths, lengths


def pass_at_k(correct: Any, k: int) -> float | np.ndarray:
    """Probability that `k` of the N samples, drawn without replacement, hold a correct one: 1 - C(N-c, k) / C(N, k).

    Args:
        correct: boolean or 0 and 1, [N] or [P, N]; c of them are true.
        k: from 1 to N.

    Raises:
        ValueError: another type, value or shape, or `k` out of range; one line.

    Source: Chen et al., Evaluating Large Language Models Trained on Code (arXiv 2107.03374).

    >>> pass_at_k([True, False, False, False], 2)
    0.5
    """
    correct = _labels(correct)
    n_samples = correct.shape[-1]
    _check_number("k", k, n_samples)
    wrong = n_samples - correct.sum(-1, keepdims=True)
    drawn = np.arange(k)
    none = np.prod((wrong - drawn) / (n_samples - drawn), axis=-1)  # with too few wrong ones a factor is 0
    return _result(1 - none)


def best_of_n(scores: Any, correct: Any, n: int) -> float | np.ndarray:
    """Accuracy of the best-scored of `n` of the N samples, its exact expectation over all subsets of `n`.

    With the samples in order of rising score, the i-th is the best of C(i-1, n-1) subsets:

        E = Σ_i C(i-1, n-1) / C(N, n) correct_(i)

    Of equal scores (0.0 and -0.0 too) the lower index is the better one. NaN is worse than every number.

    Args:
        scores: numeric [N] or [P, N]; missing values count as NaN.
        correct: boolean or 0 and 1, same shape.
        n: from 1 to N.

    Returns:
        A float, or float64 [P].

    Raises:
        ValueError: another type, value or shape, or `n` out of range; one line.

    >>> best_of_n([0.1, 0.9, 0.5], [True, False, True], 2)  # the second wins two of the three pairs
    0.3333333333333333
    """
    correct = _labels(correct)
    scores = _scores(scores, correct.shape, "correct")
    n_samples = correct.shape[-1]
    _check_number("n", n, n_samples)
    order = np.argsort(-scores, axis=-1, kind="stable")  # best first, NaN last
    # C(N-1-j, n-1) / C(N, n) for j = 0, 1, … better samples, each from the one before
    better = np.arange(n_samples - 1)
    ratios = np.maximum(n_samples - n - better, 0) / (n_samples - 1 - better)
    weights = n / n_samples * np.concatenate([[1.0], ratios]).cumprod()
    # the sum of the weights is 1 but for rounding, and no accuracy is above 1
    return _result(np.minimum((np.take_along_axis(correct, order, axis=-1) * weights).sum(-1), 1))


def majority(answers: Sequence[Hashable]) -> Hashable | None:
    """The most frequent answer, of equally frequent ones the one seen first. Missing answers (None, NaN) do not vote.

    Returns:
        One of `answers`; None where all are missing.

    Raises:
        ValueError: there is no candidate.

    >>> majority(["7", "4", None, "4", "7", None, None])
    '7'
    """
    answers = list(answers)
    return weighted_vote(answers, np.zeros(len(answers)))


def weighted_vote(answers: Sequence[Hashable], scores: Any, scale: float = 1.0) -> Hashable | None:
    """The answer whose candidates have the largest total weight, a candidate's weight being sigmoid(scale · score).

    Of equal totals the answer seen first wins. Missing answers (None, NaN) do not vote, and a NaN score weighs nothing.
    A small `scale` makes all weights 1/2: plain majority; a large one lets sums of large scores decide.

    Args:
        answers: N candidates' answers.
        scores: numeric [N].
        scale: above 0.

    Returns:
        One of `answers`; None where all are missing.

    Raises:
        ValueError: there is no candidate, the lengths differ, or `scale` is not above 0; one line.

    Source: Yuan et al. (arXiv 2412.01981) say that scores are added; their code adds sigmoids, as here: the scores of an
    implicit PRM are negative as a rule, and adding negative numbers would punish an answer for being frequent.

    >>> weighted_vote(["4", "5", "4"], [-1.0, 3.0, -2.0])
    '5'
    """
    answers = list(answers)
    codes = answer_codes(answers)
    if codes.ndim != 1 or not codes.size:
        raise ValueError(f"answers has shape {list(codes.shape)}; allowed: [candidates], not empty")
    picked = _vote(codes, _log_weights(scores, codes, scale)).item()
    return answers[picked] if codes[picked] >= 0 else None


def expected_vote(
    codes: Any, correct: Any, subsets: np.ndarray, *, scores: Any = None, scale: float = 1.0
) -> float | np.ndarray:
    """Accuracy of a vote among n of the N samples, mean over `subsets`: majority, or weighted where there are scores.

    A vote as in `majority` and `weighted_vote` within each subset; its result is the first candidate that has the
    winning answer, the first candidate of all where no answer can be read. So a vote of one is the mean of `correct`.

    Args:
        codes: whole numbers [N] or [P, N], the `answer_codes` of the samples' answers.
        correct: boolean or 0 and 1, same shape.
        subsets: int [subsets, n]: indices of samples, each row rising, as `draw_subsets` gives them: the same for every
            problem and every kind of vote, so that they can be compared and no order of problems matters.
        scores, scale: of `weighted_vote`, same shape; None: every candidate weighs the same.

    Returns:
        A float, or float64 [P].

    Raises:
        ValueError: another type, value or shape; one line.

    >>> subsets = [[0, 1], [0, 2], [1, 2]]  # their answers are 4 5, 4 4, 5 4; of a tie the first wins
    >>> expected_vote(answer_codes(["4", "5", "4"]), [True, False, True], subsets)
    0.6666666666666666
    """
    correct = _labels(correct)
    codes, subsets, n_samples = np.asarray(codes), np.asarray(subsets), correct.shape[-1]
    if codes.shape != correct.shape:
        raise ValueError(f"codes has shape {list(codes.shape)}; allowed: the shape of correct, {list(correct.shape)}")
    _check_indices("codes", codes, -1, n_samples)
    _check_indices("subsets", subsets, 0, n_samples)
    if subsets.ndim != 2 or not subsets.size:
        raise ValueError(f"subsets has shape {list(subsets.shape)}; allowed: [subsets, n], not empty")
    scores = np.zeros(codes.shape) if scores is None else scores
    picked = _vote(codes[..., subsets], _log_weights(scores, codes, scale)[..., subsets])
    return _result(np.take_along_axis(correct[..., subsets], picked[..., None], axis=-1)[..., 0].mean(-1))


def draw_subsets(n_samples: int, n: int, count: int, generator: np.random.Generator) -> np.ndarray:
    """Subsets of `n` of `n_samples` indices: all of them where there are at most `count`, else `count` at random.

    Returns:
        int64 [subsets, n], each row rising. Random ones are drawn without replacement within a row, rows independently.

    Raises:
        ValueError: `n` is not in 1..n_samples, or `count` is below 1; one line.

    >>> draw_subsets(3, 2, 10, np.random.default_rng(0)).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    _check_number("n", n, n_samples)
    if count < 1:
        raise ValueError(f"count is {count!r}; allowed: whole numbers from 1")
    if math.comb(n_samples, n) <= count:
        return np.array([*combinations(range(n_samples), n)], dtype=np.int64)
    rows = generator.permuted(np.tile(np.arange(n_samples), (count, 1)), axis=1)[:, :n]
    return np.sort(rows, axis=1)


def answer_codes(answers: Any) -> np.ndarray:
    """Answers as whole numbers, int64 of the same shape: index of the first sample of the problem with that answer.

    Missing answers (None, NaN) get -1.

    >>> answer_codes([["4", "5", None, "5"], ["4", "4", "4", "6"]]).tolist()
    [[0, 1, -1, 1], [0, 0, 0, 3]]
    """
    answers = list(answers)
    if answers and isinstance(answers[0], list | np.ndarray):
        return np.array([answer_codes(row) for row in answers])
    first: dict[Hashable, int] = {}
    return np.array([-1 if _is_missing(a) else first.setdefault(a, i) for i, a in enumerate(answers)], dtype=np.int64)


def _is_missing(answer: Hashable) -> bool:
    return answer is None or answer is pd.NA or answer != answer


def _vote(codes: np.ndarray, log_weights: np.ndarray) -> np.ndarray:
    """[..., n] -> [...]: position of the first candidate with the winning answer."""
    log_weights = np.where(codes >= 0, log_weights, -np.inf)
    # weights as shares of the largest: those of scores far below 0 would all round to 0
    largest = log_weights.max(-1, keepdims=True)
    weights = np.exp(log_weights - np.where(np.isfinite(largest), largest, 0))
    # one bin for each group of candidates and each answer; bin 0 takes those without an answer
    groups = np.arange(codes[..., 0].size).reshape(codes.shape[:-1])[..., None]
    bins = groups * (codes.max(initial=0) + 2) + codes + 1
    totals = np.bincount(bins.ravel(), weights.ravel())[bins]
    totals = np.where(codes >= 0, totals, -1)
    largest = totals.max(-1, keepdims=True)
    return np.argmax(totals >= largest - EQUAL * np.abs(largest), axis=-1)


def _log_weights(scores: Any, codes: np.ndarray, scale: float) -> np.ndarray:
    """log sigmoid(scale · score), -inf where the score is NaN."""
    if not 0 < scale < np.inf:
        raise ValueError(f"scale is {scale!r}; allowed: finite numbers above 0")
    scores = scale * _scores(scores, codes.shape, "answers")
    return -np.logaddexp(0, -np.where(np.isnan(scores), -np.inf, scores))


def _labels(correct: Any) -> np.ndarray:
    correct = np.asarray(correct)
    if correct.ndim not in (1, 2) or not correct.size:
        raise ValueError(
            f"correct has shape {list(correct.shape)}; allowed: [samples] or [problems, samples], not empty"
        )
    if correct.dtype.kind not in "biuf" or not ((correct == 0) | (correct == 1)).all():
        raise ValueError("correct holds values other than these; allowed: true and false, or 1 and 0")
    return correct.astype(bool)


def _scores(scores: Any, shape: tuple[int, ...], like: str) -> np.ndarray:
    scores = np.asarray(scores, np.float64)
    if scores.shape != shape:
        raise ValueError(f"scores has shape {list(scores.shape)}; allowed: the shape of {like}, {list(shape)}")
    return scores


def _check_indices(name: str, values: np.ndarray, lowest: int, n_samples: int) -> None:
    if values.dtype.kind not in "iu" or ((values < lowest) | (values >= n_samples)).any():
        raise ValueError(
            f"{name} holds values other than these; allowed: whole numbers from {lowest} to {n_samples - 1}"
        )


def _check_number(name: str, value: Any, n_samples: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= n_samples:
        allowed = f"whole numbers from 1 to {n_samples}, the number of samples"
        raise ValueError(f"{name} is {value!r}; allowed: {allowed}")


def _result(values: np.ndarray) -> float | np.ndarray:
    return values if values.ndim else float(values)
