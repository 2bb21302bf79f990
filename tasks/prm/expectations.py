"""What must hold between the stages of implicit process reward models; checked by tasks/gate.py."""

import sys
from pathlib import Path

import great_expectations.expectations as gxe
import pandas as pd

from tasks.gate import Check
from tasks.prm.params import GRADERS
from tasks.prm.rows import SPLITS
from tasks.prm.schemas import CURVE, PROBLEMS, ROLLOUTS
from tasks.stage import UserError
from tasks.tables import read_json, read_table

LARGEST = sys.float_info.max  # a bound that only infinity is above
LEAST_CLASS = 0.02  # share of the rarer outcome in training below which there is little to learn from
MOST_TRUNCATED = 0.5
LEAST_ANSWERED = 0.5  # share of a split's problems with responses: the others' prompts were too long


def _never_null(*columns: str) -> list:
    return [gxe.ExpectColumnValuesToNotBeNull(column=column) for column in columns]


def _between(column: str, low: float, high: float, **more) -> gxe.ExpectColumnValuesToBeBetween:
    return gxe.ExpectColumnValuesToBeBetween(column=column, min_value=low, max_value=high, **more)


def problems(problems: Path) -> list[Check]:
    """Before sampling: every problem stands once, in one of three splits, none of them empty.

    Prompts that differ in nothing but white space or capitals must share a split too.
    """
    table = read_table(problems, PROBLEMS)
    splits = table["split"].astype("str")
    alike = table["prompt"].str.split().str.join(" ").str.casefold()
    spread = splits.groupby(alike, dropna=False).nunique().rename_axis("prompt").reset_index(name="splits")
    sizes = splits.value_counts().reindex(SPLITS, fill_value=0).rename_axis("split").reset_index(name="problems")
    return [
        Check(
            "problems",
            table,
            [
                *_never_null("problem", "split", "prompt"),
                gxe.ExpectColumnValuesToBeUnique(column="problem"),
                gxe.ExpectColumnValuesToBeUnique(column="prompt"),
                gxe.ExpectColumnValuesToBeInSet(column="split", value_set=list(SPLITS)),
                gxe.ExpectColumnValuesToBeInSet(column="grader", value_set=list(GRADERS)),
            ],
        ),
        # given responses are graded already; where a grader is named it needs something to compare with
        Check("answers to compare with", table[table["grader"].notna()], _never_null("answer"), may_be_empty=True),
        Check("splits of each prompt", spread, [_between("splits", 1, 1)]),
        Check("problems of each split", sizes, [_between("problems", 1, None)]),
    ]


def rollouts(problems: Path, rollouts: Path) -> list[Check]:
    """Before training: known problems, one row a sample, as many samples for each problem, both outcomes, few cut off.

    Given responses (their problems name no grader) may differ in number. Responses that a problem has more than once are
    counted (`duplicated` in the verdict) and allowed.
    """
    asked = read_table(problems, PROBLEMS).drop_duplicates("problem").set_index("problem")
    table = read_table(rollouts, ROLLOUTS)
    name = table["problem"].astype("str")
    n_tokens = table["tokens"].map(len, na_action="ignore")
    least_token = table["tokens"].map(lambda ids: min(ids, default=0), na_action="ignore")
    state = table.drop(columns="tokens").assign(
        split_of_problem=name.map(asked["split"].astype("str")),
        tokens=n_tokens.astype("float64"),
        least_token=least_token.astype("float64"),
        characters=table["response"].str.len(),
        truncated=table["finished"].eq(False).astype(int),
        duplicated=table.duplicated(["problem", "response"]).astype(int),
    )
    train = table["correct"][(table["split"] == "train").to_numpy()].astype(float)
    samples = name.value_counts()
    per_problem = asked.assign(samples=samples.reindex(asked.index, fill_value=0), split=asked["split"].astype("str"))
    answered = per_problem[per_problem["samples"] > 0]
    shares = (per_problem["samples"] > 0).groupby(per_problem["split"]).mean().rename("answered").reset_index()
    sampled = answered[answered["grader"].notna()].groupby("split")["samples"].agg(["min", "max"]).reset_index()
    return [
        Check(
            "rollouts",
            state,
            [
                *_never_null("problem", "sample", "split", "response", "finished", "correct"),
                gxe.ExpectCompoundColumnsToBeUnique(column_list=["problem", "sample"]),
                gxe.ExpectColumnValuesToBeInSet(column="problem", value_set=asked.index.tolist()),
                gxe.ExpectColumnPairValuesToBeEqual(column_A="split", column_B="split_of_problem"),
                _between("tokens", 1, None),
                _between("least_token", 0, None),
                _between("first_wrong", -1, None),
                gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                    column_A="characters",
                    column_B="first_wrong",
                    or_equal=True,  # an empty response is wrong from 0
                    ignore_row_if="either_value_is_missing",
                ),
                gxe.ExpectColumnMeanToBeBetween(column="truncated", max_value=MOST_TRUNCATED),
                gxe.ExpectColumnMeanToBeBetween(column="duplicated", min_value=0, max_value=1),
            ],
        ),
        Check(
            "correct responses",
            state[state["correct"].eq(True)],
            [gxe.ExpectColumnValuesToBeInSet(column="finished", value_set=[True])],
            may_be_empty=True,
        ),
        Check(
            "outcomes in training",
            pd.DataFrame({"correct": train}),
            [gxe.ExpectColumnMeanToBeBetween(column="correct", min_value=LEAST_CLASS, max_value=1 - LEAST_CLASS)],
        ),
        Check("problems with responses, of each split", shares, [_between("answered", LEAST_ANSWERED, 1)]),
        Check(
            "samples of each problem",
            sampled,
            [gxe.ExpectColumnPairValuesToBeEqual(column_A="min", column_B="max")],
            may_be_empty=True,
        ),
    ]


def models(model: Path) -> list[Check]:
    """After training: a curve of finite numbers that ends below where it began, a positive beta, finite weights.

    Without any training every response has the reward 0, so the first loss is the one of knowing nothing.
    """
    about = read_json(model / "prm.json")
    beta = about.get("beta") if isinstance(about, dict) else None
    curve = read_table(model / "curve.parquet", CURVE)
    last = curve["loss"].tail(max(1, len(curve) // 10))
    ends = pd.DataFrame({"first": curve["loss"].head(1).to_numpy(), "last": [last.mean()] * min(1, len(curve))})
    numbers = ("loss", "gradient_norm", "learning_rate")
    return [
        Check(
            "curve",
            curve,
            [
                *_never_null("step", *numbers),
                *(_between(column, -LARGEST, LARGEST) for column in (*numbers, "reward_correct", "reward_wrong")),
                gxe.ExpectColumnValuesToBeIncreasing(column="step", strictly=True),
            ],
        ),
        Check("loss", ends, [gxe.ExpectColumnPairValuesAToBeGreaterThanB(column_A="first", column_B="last")]),
        Check(
            "beta",
            pd.DataFrame({"beta": [beta if isinstance(beta, int | float) else None]}, dtype="float64"),
            [*_never_null("beta"), _between("beta", 0, LARGEST, strict_min=True)],
        ),
        Check(
            "weights",
            pd.DataFrame(map(_weights, sorted(model.glob("*.safetensors"))), columns=["file", "weights", "not_finite"]),
            [_between("weights", 1, None), gxe.ExpectColumnValuesToBeInSet(column="not_finite", value_set=[0])],
        ),
    ]


def _weights(file: Path) -> tuple[str, int, int]:
    """(name, numbers in it, those that are not finite) of a file of weights; one tensor at a time in memory."""
    import torch
    from safetensors import SafetensorError, safe_open

    count = not_finite = 0
    try:
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - not a dict
                tensor = tensors.get_tensor(name)
                count += tensor.numel()
                not_finite += int((~torch.isfinite(tensor)).sum())
    except SafetensorError as error:
        raise UserError(f"{file}: not readable weights: {error}") from None
    return file.name, count, not_finite
