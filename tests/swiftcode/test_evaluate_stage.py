"""The stage `evaluate`: tables of answers in, flat metrics and the table of results out."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tasks.swiftcode import evaluate
from tasks.swiftcode.schemas import MEASUREMENTS, RESULTS, SAMPLES, TASKS, VERDICTS
from tasks.tables import read_table, write_table
from tests.swiftcode.measured import answers, measured, tasks, verdicts

POOL = {"t": ["t_ref", "t_fast"], "u": ["u_ref"], "learnt": ["x"]}
ANSWERS = {
    "base": {"t": ["t_ref", None, "t_ref", "bad"], "u": [None] * 4},
    "random-correct": {"t": ["t_ref"] * 4, "u": ["u_ref", "bad", "bad", "bad"]},
    "fastest": {"t": ["t_fast"] * 4, "u": ["u_ref", "u_own", "bad", "bad"]},
    "slowest": {"t": [None] * 4, "u": [None] * 4},
}
TIMES = {"t": {"t_ref": 0.4, "t_fast": 0.1}, "u": {"u_ref": 0.2, "u_own": 0.1}, "learnt": {"x": 0.1}}
ARGUMENTS = ["tasks.parquet", "samples.parquet", "answers", "verdicts.parquet", "measurements.parquet"]
ARGUMENTS += ["--metrics", "metrics.json", "--results", "results.parquet"]


def tables(given=ANSWERS) -> dict[str, tuple[pd.DataFrame, object]]:
    pool = answers(POOL)
    of = {name: answers(found, name) for name, found in given.items()}
    copies = measured({"t": {"t_ref": 0.404}}, copy=1).query("candidate != 'baseline'")
    return {
        "tasks": (tasks({"t": "test", "u": "test", "learnt": "train"}), TASKS),
        "samples": (pool, SAMPLES),
        "verdicts": (verdicts([pool, *of.values()], wrong=("bad",)), VERDICTS),
        "measurements": (pd.concat([measured(TIMES), copies], ignore_index=True), MEASUREMENTS),
        **{f"answers/{name}": (table, SAMPLES) for name, table in of.items()},
    }


def write(found: dict[str, tuple[pd.DataFrame, object]]) -> None:
    for name, (table, schema) in found.items():
        write_table(Path(f"{name}.parquet"), table, schema)


@pytest.fixture
def filled(workspace):
    Path("answers").mkdir()
    workspace.parameters(evaluate={"n_resamples": 50})
    write(tables())
    return workspace


def run(workspace):
    code, said = workspace.run(evaluate, *ARGUMENTS)
    assert code == 0, said
    return json.loads(Path("metrics.json").read_text())


def refused(workspace) -> str:
    before = workspace.files()
    code, said = workspace.run(evaluate, *ARGUMENTS)
    assert (code, said.count("\n")) == (1, 1), said
    assert workspace.files() == before
    return said


def test_metrics_of_base_and_arms(filled):
    found = run(filled)
    data = {key: found[f"data.{key}"] for key in ("tasks", "units", "measured", "cost", "failed", "claim")}
    assert data == {"tasks": 2, "units": 2, "measured": 2, "cost": "cpu", "failed": 0, "claim": False}
    assert [found[f"{name}.pass.1"] for name in ANSWERS] == [0.25, 0.625, 0.75, 0]
    assert (found["noise.pairs"], found["noise.ratio"], found["noise.ties"]) == (1, 1.01, 1)
    assert found["pair.fastest.random-correct.time"] == pytest.approx((0.25 * 0.5**0.5) ** 0.5, rel=1e-5)
    assert found["pair.fastest.random-correct.pass.1"] == 0.125
    assert (found["pair.fastest.slowest.overlap"], found["pair.fastest.slowest.time"]) == (0, None)
    assert [key for key in found if key.endswith(".pass.4")]
    assert all(isinstance(value, int | float | str | None) for value in found.values())
    rows = read_table(Path("results.parquet"), RESULTS)
    assert rows.groupby("generator", observed=True).size().to_dict() == {**dict.fromkeys(ANSWERS, 8), "pool": 3}
    assert set(rows["task"]) == {"t", "u"}


def test_the_same_bytes_from_shuffled_tables_with_other_hashes(filled):
    run(filled)
    before = {name: Path(name).read_bytes() for name in ("metrics.json", "results.parquet")}
    write({name: (table.sample(frac=1, random_state=2), schema) for name, (table, schema) in tables().items()})
    done = filled.shell("tasks.swiftcode.evaluate", *ARGUMENTS, PYTHONHASHSEED="77")
    assert done.returncode == 0, done.stderr
    assert {name: Path(name).read_bytes() for name in before} == before


def test_some_arms_are_enough_and_other_files_of_the_folder_are_no_answers(filled):
    for name in ("base", "random-correct"):
        Path(f"answers/{name}.parquet").unlink()
    for name in ("verdicts", "measurements"):
        Path(f"answers/{name}.parquet").write_bytes(Path(f"{name}.parquet").read_bytes())
    found = run(filled)
    assert {key.split(".")[0] for key in found} == {"data", "noise", "fastest", "slowest", "pair"}
    assert {".".join(key.split(".")[:3]) for key in found if key.startswith("pair")} == {"pair.fastest.slowest"}


def test_without_any_measurement_correctness_is_reported(filled):
    table, schema = tables()["measurements"]
    write({"measurements": (table.iloc[:0], schema)})
    found = run(filled)
    assert (found["fastest.pass.1"], found["data.measured"], found["data.cost"]) == (0.75, 0, None)
    assert (found["fastest.et"], found["noise.pairs"], found["fastest.unmeasured"]) == (None, 0, 6)


def test_failed_runs_are_counted_where_they_are_of_test_tasks(filled):
    table, schema = tables()["measurements"]
    table.loc[table["candidate"].isin(["u_own", "x"]), "verdict"] = "time_limit"
    write({"measurements": (table, schema)})
    found = run(filled)
    assert (found["data.failed"], found["fastest.unmeasured"]) == (1, 1)


def test_instructions(filled):
    table, schema = tables()["measurements"]
    table["instructions"] = (table["cpu_s"] * 1e9).astype("int64")
    write({"measurements": (table, schema)})
    found = run(filled)
    assert found["data.cost"] == "instructions"
    assert found["base.et"] == pytest.approx(4e8, rel=1e-5)


def test_more_answers_than_there_are(filled):
    filled.parameters(evaluate={"k": [1, 5]})
    assert "swiftcode.evaluate.k: 5; allowed: at most 4, the answers of base to task t in python" in refused(filled)


def test_no_answers(filled):
    for name in ANSWERS:
        Path(f"answers/{name}.parquet").unlink()
    assert "answers: holds no answers; allowed: base.parquet, random-correct.parquet" in refused(filled)


def test_answers_to_other_tasks(filled):
    write({"answers/slowest": (answers({"t": [None] * 4}, "slowest"), SAMPLES)})
    assert "answers/slowest.parquet: no answer to task u in python" in refused(filled)


def test_a_candidate_without_a_verdict(filled):
    table, schema = tables()["verdicts"]
    write({"verdicts": (table[table["candidate"] != "t_fast"], schema)})
    assert "none of candidate t_fast of fastest; execute again" in refused(filled)


@pytest.mark.parametrize(
    "change", [{"k": []}, {"k": [0]}, {"k": [1, 1]}, {"n_resamples": 9}, {"tie": 1.0}, {"years": 3}]
)
def test_parameters_are_refused(change, filled):
    filled.parameters(evaluate=change)
    assert f"params.yaml: swiftcode.evaluate.{next(iter(change))}" in refused(filled)
