"""Gates: what would silently ruin the next stage is refused, by the rule that says why."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks import gate
from tasks.gate import describe, validate
from tasks.label_completion import complete, expectations
from tasks.label_completion.dataset import Dataset, write_dataset
from tasks.label_completion.schemas import ANSWERS, COMPLETED, TASK, TRUTH, VOTES
from tasks.stage import UserError
from tasks.tables import read_table, write_table

TASKS = [f"t{i}" for i in range(8)]
COMPLETE = {"methods": ["wslc", "ldplc", "instance"], "n_neighbors": 2}


@pytest.fixture
def files(workspace) -> Path:
    """A good data set, completed: dataset/, completed.parquet, votes.parquet. t7 has no answer and no known truth."""
    generator = np.random.default_rng(5)
    features = pd.DataFrame({"f": generator.normal(size=8), "g": np.arange(8.0)}, index=pd.Index(TASKS, name="task"))
    truth = pd.Series(["x", "y"] * 4, index=features.index, name="label").where(features.index != "t7")
    rows = [
        (repeat, task, worker, "xy"[(i + (worker == "v" and i == repeat)) % 2])
        for repeat in (0, 1)
        for i, task in enumerate(TASKS[:7])
        for worker in "uvw"
        if (i + repeat + ord(worker)) % 3
    ]
    answers = pd.DataFrame(rows, columns=["repeat", "task", "worker", "label"])
    write_dataset(workspace.root / "dataset", Dataset(answers, features, truth, ["x", "y"], "made up"))
    workspace.parameters(complete=COMPLETE)
    assert workspace.run(complete, "dataset", "--completed", "completed.parquet", "--votes", "votes.parquet")[0] == 0
    return workspace.root


SCHEMAS = {"dataset/answers": ANSWERS, "dataset/truth": TRUTH, "completed": COMPLETED, "votes": VOTES}


def spoil(files: Path, name: str, change) -> None:
    """Replace a table by `change(table)`; text columns are plain text there."""
    path = files / f"{name}.parquet"
    if name == "dataset/features":
        table = change(pd.read_parquet(path))
        import pyarrow as pa

        schema = pa.schema([*TASK, *((c, pa.float64()) for c in table.columns if c != "task")])
    else:
        schema = SCHEMAS[name]
        table = read_table(path, schema)
        text = {c: "str" for c in table.columns if isinstance(table[c].dtype, pd.CategoricalDtype)}
        table = change(table.astype(text))
    write_table(path, table, schema)


def failures(suite: str, files: Path) -> set[tuple[str, str, str]]:
    """{(table, rule, column)} of the failed rules."""
    inputs = (
        [files / "dataset"]
        if suite == "answers"
        else [files / n for n in ("dataset", "completed.parquet", "votes.parquet")]
    )
    verdict = validate(suite, getattr(expectations, suite)(*inputs))
    failed = {
        (table["table"], rule["rule"], rule["column"])
        for table in verdict["tables"]
        for rule in table["rules"]
        if not rule["success"]
    }
    assert verdict["success"] == (not failed)
    return failed


def put(column: str, value, where=lambda table: table.index == 3):
    """A change: `value` in `column` of the rows `where`."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        rows = where(table)
        if value is None:
            return table.assign(**{column: table[column].astype(object).mask(rows, None)})
        return table.assign(**{column: table[column].mask(rows, value)})

    return change


def twice(table: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([table, table.iloc[[2]]], ignore_index=True)


def of(method: str, *, imputed: bool | None = None):
    """The first row of a method (and kind of cell)."""

    def where(table: pd.DataFrame) -> np.ndarray:
        rows = (table["method"] == method) & (True if imputed is None else table["imputed"] == imputed)
        return (np.arange(len(table)) == np.flatnonzero(rows)[0]) & rows

    return where


def drop(where):
    return lambda table: table[~where(table)]


IN_SET, NOT_NULL, UNIQUE = "column_values_to_be_in_set", "column_values_to_not_be_null", "column_values_to_be_unique"
BETWEEN, TOGETHER = "column_values_to_be_between", "compound_columns_to_be_unique"
DISTINCT, EQUAL = "column_unique_value_count_to_be_between", "column_pair_values_to_be_equal"
ROWS, COLUMNS = "table_row_count_to_be_between", "table_column_count_to_be_between"

BAD_ANSWERS = {
    **{f"a missing {c}": ("dataset/answers", put(c, None), ("answers", NOT_NULL, c)) for c in ANSWERS.names},
    "a duplicate": ("dataset/answers", twice, ("answers", TOGETHER, "repeat, task, worker")),
    "an unknown task": ("dataset/answers", put("task", "t9"), ("answers", IN_SET, "task")),
    # read as a category that is not declared, that is as missing
    "a label outside the classes": ("dataset/answers", put("label", "z"), ("answers", NOT_NULL, "label")),
    "an unknown worker": ("dataset/answers", put("worker", "z"), ("answers", NOT_NULL, "worker")),
    "a single class": ("dataset/answers", lambda t: t.assign(label="x"), ("answers", DISTINCT, "label")),
    "a single worker": (
        "dataset/answers",
        lambda t: t[t["worker"] == "u"],
        ("answers", DISTINCT, "worker"),
    ),
    "no answers": ("dataset/answers", lambda t: t[:0], ("answers", ROWS, None)),
    "only missing labels": ("dataset/answers", lambda t: t.assign(label=None), ("answers", NOT_NULL, "label")),
    "a feature row without task": ("dataset/features", put("task", None), ("features", NOT_NULL, "task")),
    "a task twice in features": ("dataset/features", twice, ("features", UNIQUE, "task")),
    "no feature": ("dataset/features", lambda t: t[["task"]], ("features", COLUMNS, None)),
    "no tasks": ("dataset/features", lambda t: t[:0], ("features", ROWS, None)),
    "constant features": (
        "dataset/features",
        lambda t: t.assign(f=1.0, g=2.0),
        ("features that vary", "column_min_to_be_between", "varying_columns"),
    ),
    "only missing features": (
        "dataset/features",
        lambda t: t.assign(f=np.nan, g=np.nan),
        ("features that vary", "column_min_to_be_between", "varying_columns"),
    ),
    "a truth without task": ("dataset/truth", put("task", None), ("truth", NOT_NULL, "task")),
    "a task twice in truth": ("dataset/truth", twice, ("truth", UNIQUE, "task")),
    "a truth outside the classes": ("dataset/truth", put("label", "z"), ("truth", IN_SET, "label")),
    "an empty truth": ("dataset/truth", lambda t: t[:0], ("truth", ROWS, None)),
}

BAD_COMPLETED = {
    **{
        f"a missing {c} in votes": ("votes", put(c, None), ("votes", NOT_NULL, c))
        for c in ("repeat", "task", "class", "votes", "soft", "method")
    },
    "a duplicate in votes": ("votes", twice, ("votes", TOGETHER, "method, repeat, task, class")),
    "a class outside the classes": ("votes", put("class", "z"), ("votes", IN_SET, "class")),
    "votes below 0": ("votes", put("votes", -1), ("votes", BETWEEN, "votes")),
    "more votes than workers": ("votes", put("votes", 4), ("votes", BETWEEN, "votes")),
    "a share below 0": ("votes", put("soft", -0.1), ("votes", BETWEEN, "soft")),
    "a share above 1": ("votes", put("soft", 1.1), ("votes", BETWEEN, "soft")),
    "an unknown task in votes": ("votes", put("task", "t9"), ("votes per task", IN_SET, "task")),
    "more votes of a task than workers": (
        "votes",
        lambda t: t.assign(votes=3),
        ("votes per task", BETWEEN, "votes"),
    ),
    "shares of a task above 1": ("votes", lambda t: t.assign(soft=0.6), ("votes per task", BETWEEN, "soft")),
    "a vote too few": (
        "votes",
        lambda t: t.assign(votes=t["votes"].mask(t["method"] == "ldplc", (t["votes"] - 1).clip(0))),
        ("votes per task of full completions", EQUAL, "votes, expected"),
    ),
    "no votes": ("votes", lambda t: t[:0], ("votes", ROWS, None)),
    "only missing votes": ("votes", lambda t: t.assign(votes=None), ("votes", NOT_NULL, "votes")),
    **{
        f"a missing {c}": ("completed", put(c, None), ("completed", NOT_NULL, c))
        for c in ("repeat", "task", "worker", "label", "imputed", "margin")
    },
    "a duplicate": ("completed", twice, ("completed", TOGETHER, "method, repeat, task, worker")),
    "a label outside the classes": ("completed", put("label", "z"), ("completed", IN_SET, "label")),
    "a margin below 0": ("completed", put("margin", -0.1), ("completed", BETWEEN, "margin")),
    "a margin above 1": ("completed", put("margin", 1.1), ("completed", BETWEEN, "margin")),
    "only missing labels": ("completed", lambda t: t.assign(label=None), ("completed", NOT_NULL, "label")),
    "an observed answer changed": (
        "completed",
        lambda t: t.assign(label=t["label"].mask(of("ldplc", imputed=False)(t), t["label"].map({"x": "y", "y": "x"}))),
        ("observed answers", EQUAL, "label, label_after"),
    ),
    "an observed answer lost": (
        "completed",
        drop(of("wslc", imputed=False)),
        ("observed answers", EQUAL, "label, label_after"),
    ),
    "an observed answer called imputed": (
        "completed",
        put("imputed", True, of("ldplc", imputed=False)),
        ("observed answers", IN_SET, "imputed"),
    ),
}


@pytest.mark.parametrize("suite", ["answers", "completed"])
def test_good_tables_pass(suite, files):
    assert failures(suite, files) == set()


@pytest.mark.parametrize("case", BAD_ANSWERS)
def test_bad_answers(case, files):
    name, change, rule = BAD_ANSWERS[case]
    spoil(files, name, change)
    assert rule in failures("answers", files)


@pytest.mark.parametrize("case", BAD_COMPLETED)
def test_bad_completed(case, files):
    name, change, rule = BAD_COMPLETED[case]
    spoil(files, name, change)
    assert rule in failures("completed", files)


def test_an_imputed_cell_lost(files):
    spoil(files, "completed", drop(of("ldplc", imputed=True)))
    assert failures("completed", files)


@pytest.mark.parametrize("column", ["task", "worker"])
def test_a_cell_of_an_unknown_task_or_worker(column, files):
    spoil(files, "completed", put(column, "z", of("ldplc", imputed=True)))
    assert failures("completed", files)


def test_a_missing_method(files):
    spoil(files, "completed", put("method", None))
    assert ("completed", NOT_NULL, "method") in failures("completed", files)


def test_unknown_truth_is_allowed(files):
    spoil(files, "dataset/truth", lambda t: t.assign(label=None))
    assert failures("answers", files) == set()


def test_a_completion_without_a_matrix_is_allowed(files, workspace):
    workspace.parameters(complete={**COMPLETE, "output": "votes"})
    assert workspace.run(complete, "dataset", "--completed", "completed.parquet", "--votes", "votes.parquet")[0] == 0
    assert len(read_table(files / "completed.parquet", COMPLETED)) == 0
    assert failures("completed", files) == set()


@pytest.mark.parametrize("name", ["answers.parquet", "features.parquet", "truth.parquet", "schema.json"])
def test_an_absent_file_is_named(name, files):
    (files / "dataset" / name).unlink()
    with pytest.raises(UserError, match=f"dataset: the file {name} is missing"):
        expectations.answers(files / "dataset")


@pytest.mark.parametrize("name", ["answers.parquet", "features.parquet", "truth.parquet", "schema.json"])
def test_a_damaged_file_is_named(name, files):
    (files / "dataset" / name).write_bytes(b"\x00damaged")
    with pytest.raises(UserError, match=rf"{name}: not (a readable parquet table|valid JSON)") as error:
        expectations.answers(files / "dataset")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("suite", ["answers", "completed"])
def test_the_verdict_is_the_same_every_time_and_names_no_path(suite, files, workspace):
    inputs = ["dataset"] if suite == "answers" else ["dataset", "completed.parquet", "votes.parquet"]
    for out in ("one.json", "two.json"):
        code, said = workspace.run(gate, "label_completion", suite, *inputs, "--out", out)
        assert (code, said) == (0, "")
    assert Path("one.json").read_bytes() == Path("two.json").read_bytes()
    verdict = json.loads(Path("one.json").read_text())
    assert verdict["success"]
    assert str(files) not in Path("one.json").read_text()
    assert all(table["rows"] > 0 and table["rules"] for table in verdict["tables"])


def test_the_order_of_rows_changes_nothing_in_the_verdict(files):
    before = validate("answers", expectations.answers(files / "dataset"))
    spoil(files, "dataset/answers", lambda t: t.sample(frac=1, random_state=0))
    assert validate("answers", expectations.answers(files / "dataset")) == before


def test_a_failing_gate_says_table_column_rule_number_and_rows_and_writes_nothing(files, workspace):
    spoil(files, "dataset/answers", lambda t: put("task", "t9")(twice(t)))
    before = workspace.files()
    done = workspace.shell("tasks.gate", "label_completion", "answers", "dataset", "--out", "checks/answers.json")
    assert done.returncode == 1
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 3
    duplicates = next(line for line in lines if TOGETHER in line)
    assert duplicates.startswith("answers: column repeat, task, worker: ")
    assert ": 2 rows, for example row 2, repeat 0, task 't1', worker 'u', label 'y'; row 28, repeat 0" in duplicates
    unknown = next(line for line in lines if IN_SET in line)
    assert unknown.startswith("answers: column task: ")
    assert ": 1 rows, for example row 3, repeat 0, task 't9'" in unknown
    assert lines[-1] == "error: tasks.gate: gate answers of label_completion: 2 expectations failed, see above"
    assert workspace.files() - before <= {"checks"}


def test_a_failing_rule_about_a_whole_table_says_what_was_seen(files):
    spoil(files, "dataset/features", lambda t: t.assign(f=1.0, g=2.0))
    verdict = validate("answers", expectations.answers(files / "dataset"))
    said = [describe(t["table"], r) for t in verdict["tables"] for r in t["rules"] if not r["success"]]
    assert said == ["features that vary: column varying_columns: column_min_to_be_between (min_value=1.0): observed 0"]
