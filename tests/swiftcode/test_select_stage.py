"""The stage `select`: four tables in, the selection and its margins out."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tasks.swiftcode import select
from tasks.swiftcode.params import ARMS
from tasks.swiftcode.schemas import MEASUREMENTS, SAMPLES, SELECTION, TASKS, VERDICTS
from tasks.tables import read_table, write_table
from tests.swiftcode.measured import answers, measured, tasks, verdicts

INPUTS = ("tasks", "samples", "verdicts", "measurements")
SCHEMAS = {"tasks": TASKS, "samples": SAMPLES, "verdicts": VERDICTS, "measurements": MEASUREMENTS}
COSTS = {
    "sort": {"slow": 0.9, "quick": 0.1, "model": 0.101},
    "sum": {"loop": 0.2, "wide": 0.21},
    "held": {"other": 0.1},
}


def tables() -> dict[str, pd.DataFrame]:
    samples = [
        answers({"sort": ["slow", "quick"], "sum": ["loop"], "held": ["other"]}),
        answers({"sort": ["model", "quick", "bad", None], "sum": ["wide", "unmeasured", "broken"]}, "small"),
    ]
    runs = measured(COSTS)
    limit = measured({"sum": {"broken": 1.0}})
    limit = limit[limit["candidate"] == "broken"].assign(verdict="time_limit")
    again = measured({"sort": {"quick": 0.01}}, copy=1).query("candidate == 'quick'")
    return {
        "tasks": tasks({"sort": "train", "sum": "train", "held": "test"}),
        "samples": pd.concat(samples, ignore_index=True),
        "verdicts": verdicts(samples, wrong=("bad",)),
        "measurements": pd.concat([runs, limit, again], ignore_index=True),
    }


def write(found: dict[str, pd.DataFrame]) -> None:
    for name, table in found.items():
        write_table(Path(f"{name}.parquet"), table, SCHEMAS[name])


@pytest.fixture
def filled(workspace):
    workspace.parameters(select={"n_resamples": 20})
    write(tables())
    return workspace


def arguments():
    return [*(f"{name}.parquet" for name in INPUTS), "--out", "selection.parquet", "--margins", "margins.json"]


def run(workspace):
    code, said = workspace.run(select, *arguments())
    assert code == 0, said
    return read_table(Path("selection.parquet"), SELECTION), json.loads(Path("margins.json").read_text())


def test_correct_and_measured_candidates_of_training_tasks_are_chosen_among(filled):
    selection, margins = run(filled)
    rows = selection.set_index(["task", "candidate"])
    assert rows.index.tolist() == [("sort", c) for c in ("model", "quick", "slow")] + [
        ("sum", c) for c in ("loop", "wide")
    ]
    assert rows["time"].tolist() == pytest.approx([0.101, 0.1, 0.9, 0.2, 0.21])
    assert rows["ratio"].tolist() == pytest.approx([1.01, 1, 9, 1, 1.05])
    assert rows["origin"].tolist() == ["small", "pool,small", "pool", "pool", "small"]
    assert rows["count"].tolist() == [1, 2, 1, 1, 1]
    assert rows["tied"].tolist() == [True, True, False, True, True]
    assert rows["choice"].tolist() == [True, True, True, False, False]
    # equal memory, tied TMU and sources of one length: the smaller identity
    assert rows.index[rows["selected"]].tolist() == [("sort", "model"), ("sum", "loop")]
    arms = {arm: [key for key, of in rows["arms"].items() if arm in of] for arm in ARMS}
    assert arms["fastest"] == [("sort", "model"), ("sum", "loop")]
    assert arms["slowest"] == [("sort", "slow"), ("sum", "wide")]
    assert [task for task, _ in arms["random-correct"]] == ["sort", "sum"]
    counts = {key: margins[key] for key in ("cost", "groups", "candidates", "choice", "failed", "unmeasured")}
    assert counts == {"cost": "cpu", "groups": 2, "candidates": 5, "choice": 1, "failed": 1, "unmeasured": 2}
    assert (margins["wins.pool"], margins["wins.models"], margins["wins_choice.models"]) == (1, 1, 1)
    assert (margins["margin.sort.python.second"], margins["margin.sort.python.median"]) == pytest.approx((1.01, 1.01))


def test_parameters_are_used(filled):
    filled.parameters(select={"rule": "time", "choice": 0.01, "n_resamples": 20})
    selection, margins = run(filled)
    assert selection.loc[selection["selected"], "candidate"].tolist() == ["quick", "loop"]
    assert selection["choice"].all()
    assert (margins["rule"], margins["sensitivity.lexi"]) == ("time", 0.5)


def test_the_same_bytes_from_shuffled_tables_with_other_hashes(filled):
    run(filled)
    before = {name: Path(name).read_bytes() for name in ("selection.parquet", "margins.json")}
    write({name: table.sample(frac=1, random_state=2) for name, table in tables().items()})
    done = filled.shell("tasks.swiftcode.select", *arguments(), PYTHONHASHSEED="77")
    assert done.returncode == 0, done.stderr
    assert {name: Path(name).read_bytes() for name in before} == before


def test_a_round_with_every_run_of_a_task_lost_drops_it(filled):
    found = tables()
    runs = found["measurements"]
    runs.loc[(runs["task"] == "sum") & (runs["candidate"] != "baseline"), "verdict"] = "time_limit"
    write(found)
    selection, margins = run(filled)
    assert set(selection["task"]) == {"sort"}
    assert (margins["failed"], margins["unmeasured"]) == (3, 4)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda found: found["measurements"].iloc[:0], "no correct candidate of a training task was measured"),
        (
            lambda found: pd.concat(
                [found["measurements"], measured({"sum": {"stale": 1.0}}).query("candidate == 'stale'")]
            ),
            "not of the correct candidates of samples.parquet; measure again",
        ),
        (lambda found: found["measurements"].assign(cpu_s=0.0), "cpu_s is 0.0; allowed: above 0"),
    ],
)
def test_measurements_that_do_not_fit_leave_nothing_behind(damage, message, filled):
    write({"measurements": damage(tables())})
    before = filled.files()
    code, said = filled.run(select, *arguments())
    assert (code, said.count("\n")) == (1, 1)
    assert message in said
    assert filled.files() == before


@pytest.mark.parametrize("change", [{"rule": "best"}, {"tie": 1.0}, {"n_resamples": 9}, {"years": 3}])
def test_parameters_are_refused(change, filled):
    filled.parameters(select=change)
    code, said = filled.run(select, *arguments())
    assert (code, said.count("\n")) == (1, 1)
    assert f"params.yaml: swiftcode.select.{next(iter(change))}" in said
