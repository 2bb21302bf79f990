"""A finished data set, made up, as the earlier stages would write it: what the tests of figures and text read."""

from pathlib import Path

import numpy as np
import pandas as pd

from tasks.swiftcode.estimates import costs
from tasks.swiftcode.evaluation import describe, evaluate_results, flat, noise
from tasks.swiftcode.params import ARMS, Evaluate, Parameters, Select
from tasks.swiftcode.results import asked_units, gather
from tasks.swiftcode.schemas import CURVE, MEASUREMENTS, RESULTS, SELECTION
from tasks.swiftcode.selection import correct_candidates, select_group, summarise
from tasks.tables import write_json, write_table
from tests.swiftcode.measured import answers, baseline, runs, tasks, verdicts

SECTIONS = {
    "datasets": ["small"],
    "gather": {"small": {"path": "pool"}},
    "generate": {"small": {"generators": {"tiny": {"kind": "base"}}}},
    "judge": {},
    "measure": {"rounds": 3},
    "select": {"n_resamples": 50},
    "models": {"small": "smollm2"},
    "finetune": {"small": {}},
    "answers": {"small": {"samples": 4}},
    "evaluate": {"k": [1, 2], "n_resamples": 200},
}
DROPPED = {"read": 19, "kept": 16, "dropped": {"duplicate": [{}, {}], "risky": [{}]}, "solutions_dropped": []}
SHARES = {"base": 0.3, "random-correct": 0.6, "fastest": 0.7, "slowest": 0.5}  # of answers that are correct
FASTEST = {
    "base": 0.5,
    "random-correct": 0.5,
    "fastest": 0.9,
    "slowest": 0.1,
}  # of these, those that are the fast program


def parameters(**changes) -> Parameters:
    return Parameters.model_validate({**SECTIONS, **changes})


def measurements(times: dict[str, dict[str, float]], memory: dict[str, float], seed: int) -> pd.DataFrame:
    """MEASUREMENTS of three rounds with 2 % noise, the first candidate of each task twice."""
    generator, rows = np.random.default_rng(seed), []
    for task, of in times.items():
        rows += baseline(task, 3)
        for candidate, time in of.items():
            for copy in (0, 1) if candidate == next(iter(of)) else (0,):
                noisy = time * np.exp(0.02 * generator.normal(size=3))
                rows += runs(task, candidate, noisy, memory.get(candidate, 1.0), copy=copy, waited_s=0.25)
    return pd.DataFrame(rows).astype({"instructions": "Int64"})


def selection(seed: int = 0) -> tuple[pd.DataFrame, dict, pd.DataFrame]:
    """(SELECTION, margins, MEASUREMENTS) of four training tasks: a large choice, none, one by memory, one candidate."""
    times = {
        "sort": {"sort_slow": 0.4, "sort_fast": 0.004, "sort_mine": 0.1},
        "sum": {"sum_loop": 0.1, "sum_call": 0.1},
        "table": {"table_wide": 0.2, "table_thin": 0.2},
        "only": {"only_one": 0.05},
    }
    measured = measurements(times, {"table_wide": 80.0, "table_thin": 3.0}, seed)
    pool = answers({task: [c for c in of if c != "sort_mine"] for task, of in times.items()})
    samples = pd.concat([pool, answers({"sort": ["sort_mine"], "sum": ["sum_call"]}, "tiny")])
    select = Select(n_resamples=50)
    correct = correct_candidates(samples, verdicts([samples]), pd.Series(list(times)))
    estimated = costs(measured, seed=1, n_resamples=50)
    table = correct.merge(estimated[estimated["copy"] == 0], on=["task", "language", "candidate"])
    groups = [select_group(group, select, *key) for key, group in table.groupby(["task", "language"])]
    table = pd.concat(groups, ignore_index=True)
    return table, {"cost": "cpu", "failed": 0, "unmeasured": 0, **summarise(table, select)}, measured


def evaluated(n_tasks: int = 12, seed: int = 0, shares=SHARES, generators=("base", *ARMS), evaluate=None):
    """(metrics, RESULTS, MEASUREMENTS): of each test task a slow reference and a program of a fifth of its time."""
    generator = np.random.default_rng(seed)
    names = [f"t{i:02d}" for i in range(n_tasks)]
    times = {task: {f"{task}_slow": 0.1 + 0.01 * i, f"{task}_fast": 0.02 + 0.002 * i} for i, task in enumerate(names)}
    measured = measurements(times, {}, seed)
    pool = answers({task: list(of) for task, of in times.items()})
    given = {}
    for name in generators:
        of = {task: [_answer(task, name, shares, generator) for _ in range(4)] for task in names}
        given[name] = answers(of, name)
    units = asked_units(tasks(dict.fromkeys(names, "test")), given)
    judged = verdicts([pool, *given.values()], wrong=tuple(f"{task}_bad" for task in names))
    estimated = costs(measured, seed=1, n_resamples=0)
    results = gather(units, pool, given, judged, estimated)
    evaluate = evaluate or Evaluate(**SECTIONS["evaluate"])
    metrics = describe(units, results) | {"data.cost": "cpu", "data.failed": 0} | noise(estimated, evaluate)
    return flat(metrics | evaluate_results(results, list(generators), evaluate)), results, measured


def _answer(task: str, name: str, shares: dict[str, float], generator: np.random.Generator) -> str | None:
    if generator.random() >= shares[name]:
        return f"{task}_bad" if generator.random() < 0.7 else None
    return f"{task}_{'fast' if generator.random() < FASTEST[name] else 'slow'}"


def arm(name: str) -> dict:
    """The part of arm.json that is read."""
    counts = {"used": 4, "same_program": 1, "steps": 3}
    return {
        "arm": name,
        "base": "data/swiftcode/small/base",
        "adapter": True,
        "counts": counts,
        "tokens": {"response": 100 + len(name)},
    }


def write(name: str = "small", arms=ARMS, **changes) -> None:
    """All that the stage `plot` reads of a data set, below data/ and metrics/."""
    folder = Path("data", name)
    for inner in ("measurements", *(f"models/{one}" for one in arms)):
        (folder / inner).mkdir(parents=True, exist_ok=True)
    Path("metrics").mkdir(exist_ok=True)
    table, margins, trained = selection(changes.get("seed", 0))
    metrics, results, measured = evaluated(generators=("base", *arms), **changes)
    write_json(Path("metrics") / f"{name}.json", metrics)
    write_json(folder / "margins.json", margins)
    write_json(folder / "dropped.json", DROPPED)
    write_table(folder / "selection.parquet", table, SELECTION)
    write_table(folder / "measurements/train.parquet", trained, MEASUREMENTS)
    write_table(folder / "measurements/test.parquet", measured, MEASUREMENTS)
    write_table(folder / "results.parquet", results, RESULTS)
    for one in arms:
        write_json(folder / f"models/{one}/arm.json", arm(one))
        loss = np.linspace(2.0, 0.5 + 0.1 * len(one) + changes.get("seed", 0), 6)
        curve = {"step": np.arange(1, 7), "loss": loss, "gradient_norm": loss / 2, "learning_rate": 1e-3}
        write_table(folder / f"models/{one}/curve.parquet", pd.DataFrame(curve), CURVE)
