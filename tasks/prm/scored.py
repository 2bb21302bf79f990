"""Responses of one data set with what the models say of their steps: tables in, arrays and rewards out.

A *scorer* gives every step a reward: ``<loss>.ratio`` = beta (policy − reference), with the reference;
``<loss>.policy`` = beta policy, without it; ``reference``, the untrained control, log-probabilities of the reference
alone. A *candidate* is a scorer with an aggregation, ``ce.policy.min``, and gives every response a score.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from tasks.prm.localisation import wrong_steps
from tasks.prm.selection import aggregate, answer_codes
from tasks.stage import UserError

KINDS = {"policy": "without", "ratio": "with"}  # kinds of a loss's scorers: without and with the reference
CONTROL = "reference"
BASELINES = ("position", "length")  # of localisation: minus a step's index, and minus its number of characters
SPLITS = ("valid", "test")


@dataclass(frozen=True)
class Steps:
    """The steps of M responses, one response after the other, as one loss's model sees them.

    Attributes:
        beta: of the training: reward = beta × log-ratio.
        lengths: int64 [M], steps of each response, at least 1.
        start_char, end_char: int64 [S].
        policy, reference: float64 [S], sums of log-probabilities in nats; NaN where a response has no token.
    """

    beta: float
    lengths: np.ndarray
    start_char: np.ndarray
    end_char: np.ndarray
    policy: np.ndarray
    reference: np.ndarray

    @cached_property
    def response(self) -> np.ndarray:
        """The response of each step, int64 [S]."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def index(self) -> np.ndarray:
        """The place of each step in its response, from 0, int64 [S]."""
        return np.arange(len(self.response)) - np.repeat(self.lengths.cumsum() - self.lengths, self.lengths)


@dataclass(frozen=True)
class Responses:
    """M responses to the P problems of one split, in the order of problems and samples.

    Attributes:
        problems: names [P], sorted.
        problem: int64 [M], index into `problems`, rising; sample: int64 [M].
        texts: the responses, str [M].
        answers: object [M], None where none could be read; correct: bool [M].
        first_wrong: int64 [M], character of the first wrong step, -1: none is wrong, or not `known`, bool [M].
        steps: by loss.
    """

    problems: list[str]
    problem: np.ndarray
    sample: np.ndarray
    texts: np.ndarray
    answers: np.ndarray
    correct: np.ndarray
    first_wrong: np.ndarray
    known: np.ndarray
    steps: dict[str, Steps]

    @cached_property
    def blocks(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Problems with equally many samples N together: (their indices [P_N], their responses int64 [P_N, N])."""
        counts = np.bincount(self.problem, minlength=len(self.problems))
        starts = counts.cumsum() - counts
        found = []
        for n in np.unique(counts):
            here = np.flatnonzero(counts == n)
            found.append((here, starts[here][:, None] + np.arange(n)))
        return found

    @cached_property
    def codes(self) -> np.ndarray:
        """Answers as whole numbers within each problem, -1 where missing, int64 [M]."""
        codes = np.empty(len(self.problem), np.int64)
        for _, rows in self.blocks:
            codes[rows] = answer_codes(self.answers[rows])
        return codes

    @cached_property
    def judged(self) -> np.ndarray:
        """Responses whose first wrong step is known and whose every step has a number from every scorer, bool [M]."""
        judged = self.known.copy()
        for steps in self.steps.values():
            finite = np.isfinite(steps.policy) & np.isfinite(steps.reference)
            judged &= np.logical_and.reduceat(finite, steps.lengths.cumsum() - steps.lengths)
        return judged

    def scorers(self) -> list[str]:
        """The losses' scorers, without the reference first, then the control."""
        return [f"{loss}.{kind}" for kind in KINDS for loss in self.steps] + [CONTROL]

    def rewards(self, scorer: str) -> tuple[Steps, np.ndarray]:
        """(steps, the reward of each, float64 [S]), of a scorer or a baseline; the latter and the control have the
        first loss's steps."""
        loss, _, kind = scorer.partition(".")
        if kind:
            steps = self.steps[loss]
            return steps, steps.beta * (steps.policy - (steps.reference if kind == "ratio" else 0.0))
        steps = next(iter(self.steps.values()))
        if scorer == CONTROL:
            return steps, steps.reference
        return steps, -(steps.index if scorer == "position" else steps.end_char - steps.start_char).astype(np.float64)

    def scores(self, candidate: str) -> np.ndarray:
        """The score of each response, float64 [M]."""
        scorer, how = candidate.rsplit(".", 1)
        steps, rewards = self.rewards(scorer)
        return aggregate(rewards, how, steps.lengths)

    def wrong_step(self, steps: Steps) -> np.ndarray:
        """The first wrong step's index, -1 where none is wrong, int64 [M]; of no meaning where not `judged`."""
        return wrong_steps(self.first_wrong, steps.start_char, steps.lengths)


def gather(
    rollouts: pd.DataFrame, scores: dict[str, pd.DataFrame], betas: dict[str, float], where: str = ""
) -> dict[str, Responses]:
    """The tables ROLLOUTS and, by loss, STEPS as arrays, by split; the order of their rows does not matter.

    Args:
        betas: by loss.
        where: the folder of the tables, for errors.

    Raises:
        UserError: a split has no response, or a table of steps is not of these responses.
    """
    columns = ["problem", "sample", "split", "response", "answer", "correct", "first_wrong"]
    rows = rollouts.loc[rollouts["split"].isin(SPLITS), columns].astype({"problem": "str", "split": "str"})
    rows = rows.sort_values(["split", "problem", "sample"], ignore_index=True)
    for split in SPLITS:
        if not (rows["split"] == split).any():
            raise UserError(f"{where}rollouts.parquet: no response of split {split}; at least one is needed")
    steps = {loss: _ordered(rows, table, f"{where}scores/{loss}.parquet") for loss, table in scores.items()}
    found = {}
    for split in SPLITS:
        part = rows[rows["split"] == split]
        problems, problem = np.unique(part["problem"].to_numpy(object), return_inverse=True)
        found[split] = Responses(
            problems=list(problems),
            problem=problem,
            sample=part["sample"].to_numpy(np.int64),
            texts=part["response"].to_numpy(object),
            answers=part["answer"].astype(object).where(part["answer"].notna(), None).to_numpy(),
            correct=part["correct"].to_numpy(bool),
            first_wrong=part["first_wrong"].fillna(-1).to_numpy(np.int64),
            known=part["first_wrong"].notna().to_numpy(),
            steps={loss: _steps(table[table["row"].isin(part.index)], betas[loss]) for loss, table in steps.items()},
        )
    return found


def _ordered(rows: pd.DataFrame, table: pd.DataFrame, where: str) -> pd.DataFrame:
    """STEPS in the order of the responses, with their `row`."""
    keys = rows[["problem", "sample"]].assign(row=np.arange(len(rows)))
    table = table.astype({"problem": "str"}).merge(keys, on=["problem", "sample"], how="left")
    if table["row"].isna().any() or table["row"].nunique() != len(rows):
        raise UserError(f"{where}: not of the validation and test responses of rollouts.parquet; score again")
    table = table.astype({"row": np.int64}).sort_values(["row", "step"], ignore_index=True)
    if not (table["step"] == table.groupby("row").cumcount()).all():
        raise UserError(f"{where}: column step: the steps of a response are not 0, 1, 2, …; score again")
    return table


def _steps(table: pd.DataFrame, beta: float) -> Steps:
    empty = (table["start_token"] == table["end_token"]).to_numpy()
    # a sum over no token is 0, the best that a log-probability can be; it must lose and not win
    sums = (np.where(empty, np.nan, table[column].to_numpy(np.float64)) for column in ("policy", "reference"))
    spans = (table[column].to_numpy(np.int64) for column in ("start_char", "end_char"))
    return Steps(beta, table.groupby("row").size().to_numpy(), *spans, *sums)


def describe(problems: pd.DataFrame, rollouts: pd.DataFrame) -> dict[str, object]:
    """`data.grader` of PROBLEMS, and `data.<split>.*` of ROLLOUTS: sizes, and what the labels look like.

    `problems`, `responses`; `correct`, a share; `truncated` (without their end), `unparseable` (no answer could be read)
    and `duplicates` (a text that its problem has already), numbers of responses; `one_class`, problems whose responses
    are all right or all wrong; `steps_known`, responses of which it is known whether a step is wrong, `wrong_steps`,
    those that have one, `false_positives`, those of them with the right answer.
    """
    table = rollouts.astype({"problem": "str", "split": "str"})
    found: dict[str, object] = {"data.grader": ", ".join(sorted(problems["grader"].dropna().astype("str").unique()))}
    for split in ("train", *SPLITS):
        part = table[table["split"] == split]
        share = part.groupby("problem")["correct"].mean()
        wrong = (part["first_wrong"].fillna(-1) >= 0).to_numpy()
        counted = {
            "problems": len(share),
            "responses": len(part),
            "correct": float(part["correct"].mean()),
            "truncated": int((~part["finished"]).sum()),
            "unparseable": int(part["answer"].isna().sum()),
            "duplicates": int(part.duplicated(["problem", "response"]).sum()),
            "one_class": int(share.isin([0, 1]).sum()),
            "steps_known": int(part["first_wrong"].notna().sum()),
            "wrong_steps": int(wrong.sum()),
            "false_positives": int((wrong & part["correct"].to_numpy(bool)).sum()),
        }
        found |= {f"data.{split}.{key}": value for key, value in counted.items()}
    return found
