"""Made-up tables for the tests of what follows the measurements: runs of known net costs, answers, verdicts."""

import pandas as pd

from tasks.swiftcode.schemas import BASELINE

IDLE = {"cpu_s": 0.02, "peak_mb": 8.0, "tmu_mb_s": 0.1}  # of the baseline


def runs(task: str, candidate: str, times, memory: float = 1.0, language: str = "python", **columns) -> list[dict]:
    """Rows of MEASUREMENTS, a round each, of a candidate with these net times."""
    return [
        {
            "task": task,
            "language": language,
            "candidate": candidate,
            "copy": 0,
            "round": number,
            "size": 100,
            "verdict": "accepted",
            "cpu_s": IDLE["cpu_s"] + time,
            "wall_s": 1.0,
            "peak_mb": IDLE["peak_mb"] + memory,
            "tmu_mb_s": IDLE["tmu_mb_s"] + time * memory,
            "instructions": None,
            "waited_s": 0.0,
            "calibration": 1.0,
            "machine": "one",
        }
        | columns
        for number, time in enumerate(times)
    ]


def baseline(task: str, rounds: int, language: str = "python", **columns) -> list[dict]:
    return runs(task, BASELINE, [0.0] * rounds, 0.0, language, **columns)


def measured(costs: dict[str, dict[str, float]], rounds: int = 3, **columns) -> pd.DataFrame:
    """MEASUREMENTS without noise: task → candidate → net time."""
    rows = [] if costs else baseline("no_task", 1)  # so that there are columns
    for task, of in costs.items():
        rows += baseline(task, rounds, **columns)
        for candidate, time in of.items():
            rows += runs(task, candidate, [time] * rounds, **columns)
    return pd.DataFrame(rows).astype({"instructions": "Int64"})


def tasks(splits: dict[str, str], languages: tuple[str, ...] = ("python",)) -> pd.DataFrame:
    """TASKS: task → split."""
    texts = {"kind": "function", "entry_point": "f", "prompt": "def f():", "tests": "[]", "compare": "exact"}
    rows = [
        {"task": task, "split": split, "languages": list(languages), **texts, "rtol": 0.0, "atol": 0.0}
        | {"generator": None, "sizes": "{}"}
        for task, split in splits.items()
    ]
    return pd.DataFrame(rows)


def answers(of: dict[str, list[str | None]], generator: str = "pool", language: str = "python") -> pd.DataFrame:
    """SAMPLES: task → candidates, None where no program was found; the source tells the candidate."""
    rows = [
        {
            "task": task,
            "language": language,
            "generator": generator,
            "sample": sample,
            "hint": False,
            "response": "…",
            "tokens": 3,
            "finished": True,
            "source": None if candidate is None else f"# {candidate}",
            "candidate": candidate,
        }
        for task, candidates in of.items()
        for sample, candidate in enumerate(candidates)
    ]
    return pd.DataFrame(rows)


def verdicts(samples: list[pd.DataFrame], wrong: tuple[str, ...] = ()) -> pd.DataFrame:
    """VERDICTS: accepted, except of these candidates."""
    keys = ["task", "language", "candidate"]
    found = pd.concat(samples)[keys].dropna().drop_duplicates(ignore_index=True)
    is_wrong = found["candidate"].isin(wrong)
    return found.assign(
        verdict=is_wrong.map({True: "wrong_answer", False: "accepted"}),
        test=is_wrong.map({True: 1, False: None}).astype("Int32"),
        message="",
    )
