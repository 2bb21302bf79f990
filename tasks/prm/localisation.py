"""Where the first wrong step of a response is, by the rewards of its steps, and how often that is right.

Tables of steps are `rewards` [steps], response after response, and `lengths` [responses], steps of each. Where the first
wrong step truly is stands in `first_wrong` [responses]: an index from 0, -1 where no step is wrong; responses of which
nobody knows are left out beforehand. Any number that is low where a step is bad is taken for a reward, so minus a step's
position or its number of characters are baselines.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from tasks.prm.selection import step_starts


class Localisation(NamedTuple):
    """Shares in [0, 1]; None where there is no such response."""

    f1: float | None  # harmonic mean of the two below
    erroneous: float | None  # of the responses with a wrong step, those whose first wrong step was found
    correct: float | None  # of the responses without one, those in which none was found


class FalsePositives(NamedTuple):
    """Responses with the right answer and a wrong step."""

    count: int
    share: float | None  # of the responses with the right answer
    auc: float | None  # probability that such a response scores below a wholly right one


def wrong_steps(characters: Any, start_chars: Any, lengths: Any) -> np.ndarray:
    """The step in which a character lies: the index of the last step that begins at it or before it.

    Args:
        characters: whole numbers [responses]: the character at which the first wrong step begins; -1 stays -1.
        start_chars: whole numbers [steps]: the first character of each step, 0 for the first of a response.
        lengths: whole numbers [responses].

    Returns:
        int64 [responses]: `first_wrong`.

    Raises:
        ValueError: a length is below 1, lengths do not add up, or a character is below -1; one line.

    >>> wrong_steps([7, -1], start_chars=[0, 7, 15, 0], lengths=[3, 1]).tolist()
    [1, -1]
    """
    start_chars, characters = np.asarray(start_chars), _whole("characters", characters, lengths)
    starts, lengths = step_starts(lengths, start_chars)
    return np.add.reduceat((start_chars <= np.repeat(characters, lengths)).astype(np.int64), starts) - 1


def first_below(rewards: Any, lengths: Any, threshold: float) -> np.ndarray:
    """Predictions: the first step of each response whose reward is below `threshold`, -1 where none is.

    Returns:
        int64 [responses].

    Raises:
        ValueError: a reward is not finite, or lengths do not add up; one line.

    >>> first_below([0.5, -1.0, -2.0, 0.5], lengths=[3, 1], threshold=0).tolist()
    [1, -1]
    """
    rewards, starts, lengths = _steps(rewards, lengths)
    step = np.arange(len(rewards)) - np.repeat(starts, lengths)
    first = np.minimum.reduceat(np.where(rewards < threshold, step, len(rewards)), starts)
    return np.where(first < lengths, first, -1)


def processbench_f1(predicted: Any, first_wrong: Any) -> Localisation:
    """Accuracies of predicted first wrong steps on erroneous and on error-free responses, and their harmonic mean.

        F1 = 2 a_e a_c / (a_e + a_c), 0 where both are 0

    Args:
        predicted, first_wrong: whole numbers [responses], -1: no wrong step.

    Raises:
        ValueError: the lengths differ, or a value is no whole number from -1; one line.

    Source: Zheng et al., ProcessBench (arXiv 2412.06559).

    >>> processbench_f1([1, 2, -1, -1], first_wrong=[1, 3, -1, -1])
    Localisation(f1=0.6666666666666666, erroneous=0.5, correct=1.0)
    """
    first_wrong = _whole("first_wrong", first_wrong)
    found = _whole("predicted", predicted, first_wrong) == first_wrong
    return _localisation(found, first_wrong)


def chance(lengths: Any, first_wrong: Any) -> Localisation:
    """`processbench_f1` of a guess: with expected accuracies of 1 / (K + 1), each of K steps and "none" as likely.

    >>> chance(lengths=[3, 1], first_wrong=[2, -1])
    Localisation(f1=0.3333333333333333, erroneous=0.25, correct=0.5)
    """
    lengths = _whole("lengths", lengths)
    return _localisation(1 / (lengths + 1), _inside(first_wrong, lengths))


def choose_threshold(rewards: Any, lengths: Any, first_wrong: Any) -> float | None:
    """The threshold of `first_below` with the largest F1 on these responses, of equally good ones the lowest.

    Exact: a first wrong step k is found for thresholds in (R_k, min_{j<k} R_j], and an error-free response for those up
    to its lowest reward. F1 changes at no other value, so the middle between every two neighbours of them is tried.

    Returns:
        None where no response has a wrong step or all have one: F1 is not defined then.

    Raises:
        ValueError: a reward is not finite, lengths do not add up, or a first wrong step is none of the response's; one line.

    >>> choose_threshold([0.5, -1.0, -2.0, 0.5], lengths=[3, 1], first_wrong=[1, -1])
    -0.25
    """
    rewards, starts, lengths = _steps(rewards, lengths)
    first_wrong = _inside(first_wrong, lengths)
    wrong = first_wrong >= 0
    if wrong.all() or not wrong.any():
        return None
    step = np.arange(len(rewards)) - np.repeat(starts, lengths)
    limit = np.repeat(np.where(wrong, first_wrong, lengths), lengths)
    before = np.minimum.reduceat(np.where(step < limit, rewards, np.inf), starts)  # lowest reward of the right steps
    begin, end = rewards[starts + first_wrong][wrong], before[wrong]
    begin, end = np.sort(begin[begin < end]), np.sort(end[begin < end])
    free = np.sort(before[~wrong])
    values = np.unique(np.concatenate([begin, end, free]))
    values = values[np.isfinite(values)]
    middles = values[:-1] + np.diff(values) / 2
    # between neighbouring floating-point numbers there is no middle; the upper one separates them as well
    thresholds = np.where(middles > values[:-1], middles, values[1:]) if len(values) > 1 else values
    found = np.searchsorted(begin, thresholds, "left") - np.searchsorted(end, thresholds, "left")
    clean = len(free) - np.searchsorted(free, thresholds, "left")
    return float(thresholds[np.argmax(_harmonic(found / wrong.sum(), clean / (~wrong).sum()))])


def first_wrong_auc(rewards: Any, lengths: Any, first_wrong: Any) -> float | None:
    """Probability that a first wrong step has a lower reward than a right step, equal rewards counting half.

    Right steps are those before the first wrong one and all of the error-free responses. Steps after the first wrong one
    are left out: whether a step that follows from an error is right is a matter of taste.

    Returns:
        None where there are no wrong or no right steps.

    Raises:
        ValueError: as `choose_threshold`.

    >>> first_wrong_auc([0.5, -1.0, -2.0, 0.5], lengths=[3, 1], first_wrong=[1, -1])
    1.0
    """
    rewards, starts, lengths = _steps(rewards, lengths)
    first_wrong = _inside(first_wrong, lengths)
    step = np.arange(len(rewards)) - np.repeat(starts, lengths)
    limit = np.repeat(first_wrong, lengths)
    judged = (limit < 0) | (step <= limit)
    return _auc(rewards[judged], (step == limit)[judged])


def false_positives(scores: Any, correct: Any, first_wrong: Any) -> FalsePositives:
    """How many responses with the right answer have a wrong step, and whether their scores are below the others'.

    Args:
        scores: finite numbers [responses].
        correct: booleans [responses]: the answer is right.
        first_wrong: whole numbers [responses].

    Raises:
        ValueError: the lengths differ, or a value is of another kind; one line.

    >>> false_positives([-3.0, -1.0, -2.0, -9.0], [True, True, True, False], first_wrong=[2, -1, -1, 0])
    FalsePositives(count=1, share=0.3333333333333333, auc=1.0)
    """
    scores, correct = np.asarray(scores, np.float64), np.asarray(correct, bool)
    wrong = _whole("first_wrong", first_wrong) >= 0
    if not scores.shape == correct.shape == wrong.shape:
        shapes = f"{list(scores.shape)}, {list(correct.shape)} and {list(wrong.shape)}"
        raise ValueError(f"scores, correct and first_wrong have shapes {shapes}; allowed: [responses], the same")
    wrong, scores = wrong[correct], scores[correct]
    return FalsePositives(int(wrong.sum()), float(wrong.mean()) if len(wrong) else None, _auc(scores, wrong))


def _localisation(found: np.ndarray, first_wrong: np.ndarray) -> Localisation:
    erroneous, correct = (
        float(found[part].mean()) if part.any() else None for part in (first_wrong >= 0, first_wrong < 0)
    )
    f1 = None if erroneous is None or correct is None else float(_harmonic(np.array(erroneous), np.array(correct)))
    return Localisation(f1, erroneous, correct)


def _harmonic(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return 2 * a * b / np.where(a + b > 0, a + b, 1)


def _auc(rewards: np.ndarray, wrong: np.ndarray) -> float | None:
    return float(roc_auc_score(wrong, -rewards)) if wrong.any() and not wrong.all() else None


def _steps(rewards: Any, lengths: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rewards = np.asarray(rewards, np.float64)
    starts, lengths = step_starts(lengths, rewards)
    if not np.isfinite(rewards).all():
        i = int(np.argmin(np.isfinite(rewards)))
        raise ValueError(f"rewards[{i}] is {rewards[i]}; allowed: finite numbers")
    return rewards, starts, lengths


def _inside(first_wrong: Any, lengths: np.ndarray) -> np.ndarray:
    first_wrong = _whole("first_wrong", first_wrong, lengths)
    if (first_wrong >= lengths).any():
        i = int(np.argmax(first_wrong >= lengths))
        raise ValueError(f"first_wrong[{i}] is {first_wrong[i]}; allowed: up to {lengths[i] - 1}, the last step, or -1")
    return first_wrong


def _whole(name: str, values: Any, like: Any = None) -> np.ndarray:
    """Int64 [responses], from -1, as many as `like`."""
    values = np.asarray(values)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise ValueError(f"{name} is {values.dtype} {list(values.shape)}; allowed: whole numbers [responses]")
    if like is not None and len(values) != len(like):
        raise ValueError(f"{name} has {len(values)} entries; allowed: one for each of the {len(like)} responses")
    values = values.astype(np.int64)
    if (values < -1).any():
        i = int(np.argmax(values < -1))
        raise ValueError(f"{name}[{i}] is {values[i]}; allowed: whole numbers from 0, or -1 for none")
    return values
