"""Made-up responses with their steps, as the earlier stages would write them: what the results' tests read."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from tasks.prm.schemas import CURVE, PROBLEMS, ROLLOUTS, STEPS
from tasks.tables import write_table

LOSSES = ("ce", "dpo")
BETAS = {"ce": 1.0, "dpo": 0.5, "nca": 1.0, "kto": 1.0}
SIZES = {"train": 6, "valid": 20, "test": 30}
STEP = "Step {}:1+1={}\n\n"  # every step is this long
LENGTH = len(STEP.format(1, 2))


def made_up(
    sizes: dict[str, int] | None = None,
    samples: int | dict[str, int] = 4,
    *,
    losses: tuple[str, ...] = LOSSES,
    shift: dict[str, float] | None = None,
    n_steps: int = 3,
    known: bool = True,
    seed: int = 0,
) -> dict[str, object]:
    """ROLLOUTS, STEPS by loss and CURVE by loss, of problems `p000`, ….

    A response is wrong from a step on with probability 1/2; a tenth of the wrong ones have the right answer nevertheless.
    The reference gives steps −1 ± 0.5 nats, wrong ones 0.5 less. The policy of a loss takes off wrong steps `shift`
    nats more (ce 2, dpo 1).
    """
    generator = np.random.default_rng(seed)
    shift = {"ce": 2.0, "dpo": 1.0, "nca": 1.0, "kto": 1.0, **(shift or {})}
    rollouts, steps = [], {loss: [] for loss in losses}
    problem = 0
    for split, size in (sizes or SIZES).items():
        for _ in range(size):
            for sample in range(samples if isinstance(samples, int) else samples[split]):
                wrong_from = int(generator.integers(n_steps)) if generator.random() < 0.5 else -1
                false_positive = wrong_from >= 0 and generator.random() < 0.1
                correct = wrong_from < 0 or false_positive
                answer = "2" if correct else [None, "3", "4"][generator.integers(3)]
                parts = [STEP.format(i + 1, 2 + (0 <= wrong_from <= i)) for i in range(n_steps)]
                finished = answer is not None
                rollouts.append(
                    {
                        **{"problem": f"p{problem:03d}", "sample": sample, "split": split, "response": "".join(parts)},
                        **{"tokens": list(range(2 * n_steps)), "finished": finished, "answer": answer},
                        **{"correct": correct, "first_wrong": LENGTH * wrong_from if wrong_from > 0 else wrong_from},
                    }
                )
                is_wrong = np.array([0 <= wrong_from <= i for i in range(n_steps)])
                reference = -1 + 0.5 * generator.normal(size=n_steps) - 0.5 * is_wrong
                noise = 0.3 * generator.normal(size=(len(losses), n_steps))
                if split != "train":
                    for i, loss in enumerate(losses):
                        policy = reference - shift[loss] * is_wrong + noise[i]
                        steps[loss] += _rows(f"p{problem:03d}", sample, policy, reference)
            problem += 1
    rollouts = pd.DataFrame(rollouts)
    if not known:
        rollouts["first_wrong"] = None
    rollouts = rollouts.astype({"first_wrong": "Int32"})
    curve = pd.DataFrame({"step": range(5), "loss": np.linspace(0.7, 0.3, 5), "reward_correct": np.linspace(0, 1, 5)})
    curve = curve.assign(reward_wrong=-curve["reward_correct"], gradient_norm=1.0, learning_rate=1e-3)
    tables = {loss: pd.DataFrame(rows, columns=STEPS.names) for loss, rows in steps.items()}
    return {"rollouts": rollouts, "steps": tables, "curves": dict.fromkeys(losses, curve)}


def _rows(problem: str, sample: int, policy, reference) -> list[tuple]:
    return [
        (problem, sample, i, LENGTH * i, LENGTH * (i + 1), 2 * i, 2 * i + 2, float(p), float(r))
        for i, (p, r) in enumerate(zip(policy, reference, strict=True))
    ]


def by_hand(split_responses: dict[str, list[list[tuple]]], losses: tuple[str, ...] = ("ce",)) -> dict[str, object]:
    """Tables from responses (answer, correct, first wrong step or None, policy by step, reference by step), by split
    and problem; every loss has the same steps."""
    rollouts, steps, problem = [], [], 0
    for split, problems in split_responses.items():
        for responses in problems:
            for sample, (answer, correct, wrong, policy, reference) in enumerate(responses):
                text = "".join(STEP.format(i + 1, 2) for i in range(len(policy)))
                rollouts.append(
                    {
                        **{"problem": f"p{problem:03d}", "sample": sample, "split": split, "response": text},
                        **{"tokens": [0], "finished": True, "answer": answer, "correct": correct},
                        "first_wrong": None if wrong is None else max(-1, LENGTH * wrong),
                    }
                )
                steps += _rows(f"p{problem:03d}", sample, policy, reference)
            problem += 1
    table = pd.DataFrame(steps, columns=STEPS.names)
    return {
        "rollouts": pd.DataFrame(rollouts).astype({"first_wrong": "Int32"}),
        "steps": {loss: table.copy() for loss in losses},
    }


def write_dataset(folder: Path, found: dict[str, object], betas: dict[str, float] | None = None) -> None:
    """All files of a data set's folder that evaluation and pictures read."""
    rollouts = found["rollouts"]
    problems = rollouts.drop_duplicates("problem")[["problem", "split"]].assign(
        prompt=lambda t: "Q:" + t["problem"], answer="2", grader="number", metadata=None
    )
    (folder / "scores").mkdir(parents=True)
    write_table(folder / "problems.parquet", problems, PROBLEMS)
    write_table(folder / "rollouts.parquet", rollouts, ROLLOUTS)
    for loss, table in found["steps"].items():
        write_table(folder / f"scores/{loss}.parquet", table, STEPS)
        (folder / f"models/{loss}").mkdir(parents=True)
        beta = (betas or BETAS)[loss]
        (folder / f"models/{loss}/prm.json").write_text(json.dumps({"beta": beta}), encoding="utf-8")
        if "curves" in found:
            write_table(folder / f"models/{loss}/curve.parquet", found["curves"][loss], CURVE)
