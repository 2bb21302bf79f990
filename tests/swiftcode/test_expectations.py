"""The gates pass on what the stages write and fail, with the rule named, on each thing that would ruin the next stage."""

import json
import shutil

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import safetensors.torch
import torch

from tasks import gate
from tasks.swiftcode import expectations
from tasks.swiftcode.schemas import BASELINE, CURVE, MEASUREMENTS, SAMPLES, SOLUTIONS, TASKS, VERDICTS
from tasks.tables import write_table

TASK_INPUTS = ("tasks.parquet", "solutions.parquet")
SAMPLE_INPUTS = ("tasks.parquet", "samples.parquet")
MEASUREMENT_INPUTS = ("samples.parquet", "verdicts.parquet", "measurements.parquet")
SPLITS = {"a": "train", "b": "train", "c": "test", "d": "train"}
LANGUAGES = {"a": ["python"], "b": ["cpp", "python"], "c": ["python"], "d": ["python"]}


def tasks_table():
    functions = {name: f"f_{name}" for name in "ac"}
    rows = [
        {
            "task": name,
            "split": split,
            "kind": "function" if name in functions else "stdio",
            "entry_point": functions.get(name),
            "prompt": f"Do {name}.",
            "languages": LANGUAGES[name],
            "tests": json.dumps([[[1], 2], [[2], 3]]),
            "compare": "exact",
            "rtol": None if name == "a" else 0.5,
            "atol": None,
            "generator": None,
            "sizes": "{}",
        }
        for name, split in SPLITS.items()
    ]
    return pd.DataFrame(rows)


def solutions_table():
    keys = [(name, language, rank) for name in SPLITS for language in LANGUAGES[name] for rank in (0, 1)]
    return pd.DataFrame(
        [{"task": t, "language": k, "name": f"s{r}", "rank": r, "source": f"{t}{k}{r}"} for t, k, r in keys]
    )


def samples_table():
    """Two known solutions a (task, language), and for training tasks three Python answers, the last without a program."""
    rows = []
    for known in solutions_table().itertuples():
        rows.append((known.task, known.language, "pool", known.rank, None, "", 0, known.source, f"{known.source}!"))
    for task in (name for name, split in SPLITS.items() if split == "train"):
        for sample in range(3):
            source = None if sample == 2 else f"{task}python{sample}"  # the first two are those of the pool
            candidate = source and f"{source}!"
            rows.append((task, "python", "model", sample, sample % 2 == 1, "text", 7, source, candidate))
    columns = ["task", "language", "generator", "sample", "hint", "response", "tokens", "source", "candidate"]
    table = pd.DataFrame(rows, columns=columns).assign(finished=True)
    return table.assign(hint=table["hint"].eq(True))


def verdicts_table():
    """Of the training tasks: a's second candidate is wrong; all others are right."""
    samples = samples_table()
    found = samples[samples["candidate"].notna() & (samples["task"] != "c")]
    table = found[["task", "language", "candidate"]].drop_duplicates().assign(verdict="accepted", test=None, message="")
    table.loc[table["candidate"] == "apython1!", "verdict"] = "wrong_answer"
    return table.reset_index(drop=True)


def measurements_table():
    """Three rounds; d's second candidate fails on the large input."""
    right = verdicts_table().query("verdict == 'accepted'")
    rows = []
    for (task, language), group in right.groupby(["task", "language"]):
        runs = [(candidate, 0) for candidate in group["candidate"] if candidate != "dpython1!"]
        for number in range(3):
            rows += [
                (task, language, c, copy, number, "accepted") for c, copy in [*runs, (runs[0][0], 1), (BASELINE, 0)]
            ]
    rows.append(("d", "python", "dpython1!", 0, 0, "runtime_error"))
    table = pd.DataFrame(rows, columns=["task", "language", "candidate", "copy", "round", "verdict"])
    costs = {"cpu_s": 0.2, "wall_s": 0.3, "peak_mb": 9.0, "tmu_mb_s": 1.5, "instructions": None, "waited_s": 0.0}
    table = table.assign(size=np.where(table["candidate"] == BASELINE, 0, 64), calibration=1.0, machine="one", **costs)
    failed = table["verdict"] != "accepted"
    table.loc[failed, ["cpu_s", "peak_mb"]] = 0.0
    return table


@pytest.fixture
def data(workspace):
    """Tables such as the stages leave them, to be spoilt."""
    folder = workspace.root
    write_table(folder / "tasks.parquet", tasks_table(), TASKS)
    write_table(folder / "solutions.parquet", solutions_table(), SOLUTIONS)
    write_table(folder / "samples.parquet", samples_table(), SAMPLES)
    write_table(folder / "verdicts.parquet", verdicts_table(), VERDICTS)
    write_table(folder / "measurements.parquet", measurements_table(), MEASUREMENTS)
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder such as fine-tuning leaves it."""
    folder = tmp_path_factory.mktemp("model")
    curve = {"step": np.arange(9), "loss": np.linspace(0.9, 0.1, 9), "gradient_norm": 1.0, "learning_rate": 1e-3}
    write_table(folder / "curve.parquet", pd.DataFrame(curve), CURVE)
    for name in ("arm.json", "tokenizer.json", "README.md"):
        (folder / name).write_text("{}")
    weights = {"a": torch.ones(3, 4), "b": torch.zeros(5, dtype=torch.bfloat16)}
    safetensors.torch.save_file(weights, folder / "adapter_model.safetensors")
    return folder


@pytest.fixture
def model(trained, workspace):
    return shutil.copytree(trained, workspace.root / "model")


def spoil(file, change):
    """Change a table, with its types kept."""
    table = change(pd.read_parquet(file))
    write_table(file, table, pq.read_schema(file))


def where(conditions, column, value):
    """Set a column where others have some values."""

    def change(table):
        rows = np.logical_and.reduce([table[name].eq(wanted) for name, wanted in conditions.items()])
        assert rows.any()
        table[column] = table[column].astype(object)
        for row in table.index[rows]:
            table.at[row, column] = value
        return table

    return change


def without(**conditions):
    def change(table):
        rows = np.logical_and.reduce([table[name].eq(wanted) for name, wanted in conditions.items()])
        assert rows.any()
        return table[~rows].reset_index(drop=True)

    return change


def repeat(row, **changes):
    def change(table):
        return pd.concat([table, table.iloc[[row]].assign(**changes)], ignore_index=True)

    return change


def run(workspace, suite, *inputs):
    """(exit code, what was said, verdict or None)."""
    code, said = workspace.run(gate, "swiftcode", suite, *inputs, "--out", "v.json")
    file = workspace.root / "v.json"
    return code, said, json.loads(file.read_text()) if file.exists() else None


def assert_fails(workspace, suite, inputs, expected):
    """The gate's line about the table that `expected` begins with; the other tables are left out, they take their time."""
    checks = getattr(expectations, suite)(*(workspace.root / name for name in inputs))
    verdict = gate.validate(suite, [check for check in checks if check.table == expected.split(":")[0]])
    assert not verdict["success"]
    (table,) = verdict["tables"]
    said = [gate.describe(table["table"], rule) for rule in table["rules"] if not rule["success"]]
    assert any(line.startswith(expected) for line in said), said


def test_what_the_stages_write_passes(workspace, data, model):
    for suite, inputs in (
        ("tasks", TASK_INPUTS),
        ("samples", SAMPLE_INPUTS),
        ("measurements", MEASUREMENT_INPUTS),
        ("models", ["model"]),
    ):
        code, said, verdict = run(workspace, suite, *inputs)
        assert (code, said) == (0, "")
        assert verdict["success"]


def test_a_failed_gate_says_why_and_writes_nothing(workspace, data):
    spoil(data / "solutions.parquet", without(task="d"))
    code, said, verdict = run(workspace, "tasks", *TASK_INPUTS)
    assert (code, verdict) == (1, None)
    assert said.startswith(
        "tasks: column solutions: column_values_to_be_between (min_value=1.0): 1 rows, for example row"
    )
    assert said.splitlines()[-1].startswith("error: tasks.gate: gate tasks of swiftcode: ")


UNIQUE = "column_values_to_be_unique"
NOT_NULL = "column_values_to_not_be_null"
IN_SET = "column_values_to_be_in_set"
NOT_IN_SET = "column_values_to_not_be_in_set"
BETWEEN = "column_values_to_be_between"
ROWS = "table: table_row_count_to_be_between"
COMPOUND = "compound_columns_to_be_unique: 2 rows"


@pytest.mark.parametrize(
    ("file", "change", "expected"),
    [
        ("tasks", lambda t: t.head(0), f"tasks: {ROWS}"),
        ("tasks", where({"task": "b"}, "task", "a"), f"tasks: column task: {UNIQUE}: 2 rows"),
        ("tasks", where({"task": "b"}, "task", None), f"tasks: column task: {NOT_NULL}: 1 rows"),
        ("tasks", where({"task": "b"}, "split", "dev"), f"tasks: column split: {IN_SET}"),
        ("tasks", where({"task": "b"}, "split", None), f"tasks: column split: {NOT_NULL}: 1 rows"),
        ("tasks", where({"task": "c"}, "split", "train"), f"tasks of each split: column tasks: {BETWEEN}"),
        ("tasks", where({"task": "b"}, "kind", "x"), f"tasks: column kind: {IN_SET}"),
        ("tasks", where({"task": "b"}, "kind", None), f"tasks: column kind: {NOT_NULL}: 1 rows"),
        ("tasks", where({"task": "c"}, "entry_point", None), f"functions: column entry_point: {NOT_NULL}: 1 rows"),
        ("tasks", where({"task": "b"}, "compare", "near"), f"tasks: column compare: {IN_SET}"),
        ("tasks", where({"task": "b"}, "compare", None), f"tasks: column compare: {NOT_NULL}: 1 rows"),
        ("tasks", where({"task": "b"}, "rtol", -0.1), f"tasks: column rtol: {BETWEEN}"),
        ("tasks", where({"task": "b"}, "atol", np.inf), f"tasks: column atol: {BETWEEN}"),
        ("tasks", where({"task": "b"}, "prompt", None), f"tasks: column prompt: {NOT_NULL}: 1 rows"),
        ("tasks", where({"task": "c"}, "prompt", " do  A. "), f"splits of each prompt: column splits: {BETWEEN}"),
        ("tasks", where({"task": "b"}, "tests", "[]"), f"tasks: column n_tests: {BETWEEN}"),
        ("tasks", where({"task": "b"}, "tests", "["), f"tasks: column n_tests: {NOT_NULL}: 1 rows"),
        ("tasks", where({"task": "b"}, "tests", "{}"), f"tasks: column n_tests: {NOT_NULL}: 1 rows"),
        ("tasks", where({"task": "b"}, "tests", None), f"tasks: column n_tests: {NOT_NULL}: 1 rows"),
        ("tasks", where({"task": "b"}, "languages", []), f"tasks: column n_languages: {BETWEEN}"),
        ("tasks", where({"task": "b"}, "languages", None), f"tasks: column n_languages: {NOT_NULL}: 1 rows"),
        ("tasks", where({"task": "b"}, "languages", ["python"]), f"solutions: column allowed: {IN_SET} "),
        (
            "tasks",
            where({"task": "b"}, "languages", ["cpp", "python", "rust"]),
            f"references: column rank: {NOT_NULL}: 1",
        ),
        ("solutions", lambda t: t.head(0), f"solutions: {ROWS}"),
        ("solutions", without(task="d"), f"tasks: column solutions: {BETWEEN}"),
        ("solutions", where({"task": "d", "rank": 0}, "task", "e"), f"solutions: column task: {IN_SET}"),
        ("solutions", where({"task": "d", "rank": 0}, "task", None), f"solutions: column task: {NOT_NULL}: 1 rows"),
        ("solutions", where({"task": "d", "rank": 0}, "language", "c"), f"solutions: column language: {IN_SET}"),
        ("solutions", where({"task": "d", "rank": 0}, "language", None), f"solutions: column language: {NOT_NULL}: 1"),
        ("solutions", where({"task": "d", "rank": 0}, "language", "rust"), f"solutions: column allowed: {IN_SET} "),
        (
            "solutions",
            where({"task": "d", "rank": 0}, "name", "s1"),
            f"solutions: column task, language, name: {COMPOUND}",
        ),
        ("solutions", where({"task": "d", "rank": 0}, "name", None), f"solutions: column name: {NOT_NULL}: 1 rows"),
        (
            "solutions",
            where({"task": "d", "rank": 0}, "rank", 1),
            f"solutions: column task, language, rank: {COMPOUND}",
        ),
        ("solutions", where({"task": "d", "rank": 0}, "rank", 2), f"references: column rank: {IN_SET}"),
        ("solutions", where({"task": "d", "rank": 0}, "rank", None), f"solutions: column rank: {NOT_NULL}: 1 rows"),
        ("solutions", where({"task": "d", "rank": 0}, "source", None), f"solutions: column source: {NOT_NULL}: 1 rows"),
        ("solutions", where({"task": "d", "rank": 0}, "source", " \n"), f"solutions: column blank: {IN_SET}"),
    ],
)
def test_bad_tasks_fail(workspace, data, file, change, expected):
    spoil(data / f"{file}.parquet", change)
    assert_fails(workspace, "tasks", TASK_INPUTS, expected)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: t.head(0), f"samples: {ROWS}"),
        (where({"task": "d"}, "task", "e"), f"samples: column task: {IN_SET}"),
        (where({"task": "d"}, "task", None), f"samples: column task: {NOT_NULL}: 5 rows"),
        (where({"task": "d"}, "language", "c"), f"samples: column language: {IN_SET}"),
        (where({"task": "d"}, "language", None), f"samples: column language: {NOT_NULL}: 5 rows"),
        (where({"task": "d"}, "language", "rust"), f"samples: column allowed: {IN_SET} "),
        (where({"task": "d"}, "generator", None), f"samples: column generator: {NOT_NULL}: 5 rows"),
        (where({"task": "d", "sample": 2}, "sample", None), f"samples: column sample: {NOT_NULL}: 1 rows"),
        (where({"task": "d", "sample": 2}, "sample", -1), f"samples: column sample: {BETWEEN}"),
        (where({"task": "d", "sample": 2}, "tokens", -1), f"samples: column tokens: {BETWEEN}"),
        (where({"task": "d"}, "response", None), f"samples: column response: {NOT_NULL}: 5 rows"),
        (where({"task": "d"}, "finished", None), f"samples: column finished: {NOT_NULL}: 5 rows"),
        (where({"task": "d"}, "hint", None), f"samples: column hint: {NOT_NULL}: 5 rows"),
        (repeat(0), f"samples: column task, language, generator, sample: {COMPOUND}"),
        (
            where({"task": "d", "sample": 2}, "source", "x"),
            "samples: column has_source, has_candidate: column_pair_values_to_be_equal: 1 rows",
        ),
        (
            where({"task": "d", "sample": 1}, "candidate", None),
            "samples: column has_source, has_candidate: column_pair_values_to_be_equal: 2 rows",
        ),
        (without(task="d"), f"candidates of each training task: column candidates: {BETWEEN}"),
        (where({"task": "d"}, "candidate", None), f"candidates of each training task: column candidates: {BETWEEN}"),
        (without(generator="pool"), f"known solutions: {ROWS}"),
        (
            where({"generator": "pool", "task": "c"}, "candidate", None),
            f"known solutions: column candidate: {NOT_NULL}: 2",
        ),
    ],
)
def test_bad_samples_fail(workspace, data, change, expected):
    spoil(data / "samples.parquet", change)
    assert_fails(workspace, "samples", SAMPLE_INPUTS, expected)


def test_a_test_task_needs_no_candidate(workspace, data):
    spoil(data / "samples.parquet", without(task="c"))
    assert run(workspace, "samples", *SAMPLE_INPUTS)[:2] == (0, "")


ONE = {"task": "b", "language": "cpp", "candidate": "bcpp1!"}


@pytest.mark.parametrize(
    ("file", "change", "expected"),
    [
        ("verdicts", lambda t: t.head(0), f"verdicts: {ROWS}"),
        ("verdicts", repeat(0), f"verdicts: column task, language, candidate: {COMPOUND}"),
        ("verdicts", where(ONE, "verdict", None), f"verdicts: column verdict: {NOT_NULL}: 1 rows"),
        ("verdicts", where(ONE, "task", None), f"verdicts: column task: {NOT_NULL}: 1 rows"),
        ("verdicts", where(ONE, "language", None), f"verdicts: column language: {NOT_NULL}: 1 rows"),
        ("verdicts", where(ONE, "candidate", None), f"verdicts: column candidate: {NOT_NULL}: 1 rows"),
        ("verdicts", where(ONE, "verdict", "harness_error"), f"verdicts: column verdict: {NOT_IN_SET}"),
        ("verdicts", without(**ONE), f"candidates: column verdict: {NOT_NULL}: 1 rows"),
        ("verdicts", where(ONE, "verdict", "wrong_answer"), f"measurements: column correct: {IN_SET}"),
        ("measurements", lambda t: t.head(0), f"measurements: {ROWS}"),
        ("measurements", where(ONE, "candidate", "other"), f"measurements: column correct: {IN_SET}"),
        ("measurements", where(ONE, "candidate", None), f"measurements: column candidate: {NOT_NULL}: 3 rows"),
        ("measurements", where(ONE, "task", None), f"measurements: column task: {NOT_NULL}: 3 rows"),
        ("measurements", where(ONE, "language", None), f"measurements: column language: {NOT_NULL}: 3 rows"),
        ("measurements", where(ONE, "copy", None), f"measurements: column copy: {NOT_NULL}: 3 rows"),
        ("measurements", where(ONE, "round", None), f"measurements: column round: {NOT_NULL}: 3 rows"),
        ("measurements", where(ONE, "size", None), f"measurements: column size: {NOT_NULL}: 3 rows"),
        ("measurements", where(ONE, "verdict", None), f"measurements: column verdict: {NOT_NULL}: 3 rows"),
        ("measurements", where(ONE, "verdict", "harness_error"), f"measurements: column verdict: {NOT_IN_SET}"),
        ("measurements", where(ONE, "machine", None), f"measurements: column machine: {NOT_NULL}: 3 rows"),
        ("measurements", repeat(0), f"measurements: column task, language, candidate, copy, round: {COMPOUND}"),
        ("measurements", where({"task": "b"}, "size", -1), f"measurements: column size: {BETWEEN}"),
        ("measurements", where({**ONE, "round": 1}, "cpu_s", 0.0), f"accepted runs: column cpu_s: {BETWEEN}"),
        ("measurements", where({**ONE, "round": 1}, "cpu_s", None), f"accepted runs: column cpu_s: {NOT_NULL}: 1 rows"),
        ("measurements", where({**ONE, "round": 1}, "cpu_s", np.inf), f"accepted runs: column cpu_s: {BETWEEN}"),
        ("measurements", where({**ONE, "round": 1}, "peak_mb", 0.0), f"accepted runs: column peak_mb: {BETWEEN}"),
        (
            "measurements",
            where({**ONE, "round": 1}, "peak_mb", None),
            f"accepted runs: column peak_mb: {NOT_NULL}: 1 row",
        ),
        ("measurements", where({**ONE, "round": 1}, "wall_s", -1.0), f"accepted runs: column wall_s: {BETWEEN}"),
        (
            "measurements",
            where({**ONE, "round": 1}, "wall_s", None),
            f"accepted runs: column wall_s: {NOT_NULL}: 1 rows",
        ),
        ("measurements", where({**ONE, "round": 1}, "tmu_mb_s", -1.0), f"accepted runs: column tmu_mb_s: {BETWEEN}"),
        (
            "measurements",
            where({**ONE, "round": 1}, "tmu_mb_s", None),
            f"accepted runs: column tmu_mb_s: {NOT_NULL}: 1",
        ),
        (
            "measurements",
            where({**ONE, "round": 1}, "instructions", 0),
            f"accepted runs: column instructions: {BETWEEN}",
        ),
        ("measurements", without(**ONE), f"correct candidates: column runs: {BETWEEN}"),
        ("measurements", where({"language": "cpp"}, "copy", 1), f"correct candidates: column runs: {BETWEEN}"),
        (
            "measurements",
            where({"task": "b"}, "verdict", "time_limit"),
            "correct candidates: column unmeasured: column_mean_to_be_between",
        ),
        (
            "measurements",
            without(**ONE, round=2),
            "accepted runs of each candidate and copy: column min, max: column_pair_values_to_be_equal: 1 rows",
        ),
        (
            "measurements",
            where({**ONE, "round": 2}, "verdict", "time_limit"),
            "accepted runs of each candidate and copy: column min, max: column_pair_values_to_be_equal: 1 rows",
        ),
        (
            "measurements",
            without(copy=1, round=2, language="cpp"),
            "accepted runs of each candidate and copy: column min, max: column_pair_values_to_be_equal: 1 rows",
        ),
        (
            "measurements",
            without(candidate=BASELINE, language="cpp"),
            f"accepted runs of each candidate and copy: column baselines: {BETWEEN}",
        ),
        ("measurements", where(ONE, "size", 32), f"sizes of each task and language: column sizes: {BETWEEN}"),
        ("measurements", where(ONE, "machine", "two"), f"machines of each task: column machines: {BETWEEN}"),
    ],
)
def test_bad_measurements_fail(workspace, data, file, change, expected):
    spoil(data / f"{file}.parquet", change)
    assert_fails(workspace, "measurements", MEASUREMENT_INPUTS, expected)


def test_groups_may_differ_in_rounds_and_size_and_tasks_in_machine(workspace, data):
    def change(table):
        table = without(task="b", language="cpp", round=2)(table)
        table.loc[(table["language"] == "cpp") & (table["candidate"] != BASELINE), "size"] = 8
        table.loc[table["task"] == "d", "machine"] = "two"
        return table

    spoil(data / "measurements.parquet", change)
    assert run(workspace, "measurements", *MEASUREMENT_INPUTS)[:2] == (0, "")


def test_the_test_splits_answers_are_a_folder_and_may_hold_no_program(workspace, data):
    """As for the test split: verdicts and measurements are of known solutions too, answers of the models alone."""
    inputs = ["answers" if file == "samples.parquet" else file for file in MEASUREMENT_INPUTS]
    (data / "answers").mkdir()
    table = samples_table()
    for name in ("base", "fastest"):
        one = table[table["generator"] == "model"].assign(generator=name, source=None, candidate=None)
        write_table(data / f"answers/{name}.parquet", one, SAMPLES)
    assert run(workspace, "measurements", *inputs)[:2] == (0, "")
    found = table[table["task"] == "a"].head(1).assign(generator="slowest", sample=9, candidate="unjudged!", source="x")
    write_table(data / "answers/slowest.parquet", found, SAMPLES)
    assert_fails(workspace, "measurements", inputs, "candidates: column verdict")


def test_answers_without_a_program_and_tasks_of_the_other_split_are_not_judged(workspace, data):
    def change(table):
        return pd.concat([table, table.iloc[[0]].assign(task="c", candidate="new", sample=9)], ignore_index=True)

    spoil(data / "samples.parquet", change)
    assert run(workspace, "measurements", *MEASUREMENT_INPUTS)[:2] == (0, "")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: t.head(0), f"curve: {ROWS}"),
        (where({"step": 3}, "loss", np.nan), f"curve: column loss: {NOT_NULL}: 1 rows"),
        (where({"step": 3}, "loss", np.inf), f"curve: column loss: {BETWEEN}"),
        (where({"step": 3}, "gradient_norm", np.inf), f"curve: column gradient_norm: {BETWEEN}"),
        (where({"step": 3}, "gradient_norm", np.nan), f"curve: column gradient_norm: {NOT_NULL}: 1 rows"),
        (where({"step": 3}, "learning_rate", np.nan), f"curve: column learning_rate: {NOT_NULL}: 1 rows"),
        (where({"step": 3}, "learning_rate", np.inf), f"curve: column learning_rate: {BETWEEN}"),
        (where({"step": 3}, "step", None), f"curve: column step: {NOT_NULL}: 1 rows"),
        (where({"step": 3}, "step", 2), "curve: column step: column_values_to_be_increasing"),
        (
            lambda t: t.assign(loss=t["loss"][::-1].to_numpy()),
            "loss: column first, last: column_pair_values_a_to_be_gr",
        ),
        (lambda t: t.assign(loss=0.5), "loss: column first, last: column_pair_values_a_to_be_greater_than_b"),
        (lambda t: t.head(1), "loss: column first, last: column_pair_values_a_to_be_greater_than_b"),
    ],
)
def test_bad_curves_fail(workspace, model, change, expected):
    spoil(model / "curve.parquet", change)
    assert_fails(workspace, "models", ["model"], expected)


def test_a_loss_that_falls_between_its_thirds_passes_whatever_is_in_the_middle(workspace, model):
    spoil(model / "curve.parquet", lambda t: t.assign(loss=[0.5, 0.5, 0.6, 9, 9, 9, 0.5, 0.5, 0.5]))
    assert run(workspace, "models", "model")[:2] == (0, "")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "inner/state.pt", "a.pkl", "modeling_own.py"])
def test_files_that_could_run_code_fail(workspace, model, name):
    (model / name).parent.mkdir(exist_ok=True)
    (model / name).write_bytes(b"x")
    assert_fails(workspace, "models", ["model"], f"files: column suffix: {NOT_IN_SET}")


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({"a": torch.tensor([1.0, np.nan])}, f"weights: column not_finite: {IN_SET}"),
        ({"a": torch.tensor([1.0, np.inf], dtype=torch.bfloat16)}, f"weights: column not_finite: {IN_SET}"),
        ({}, f"weights: column weights: {BETWEEN}"),
        (None, f"weights: {ROWS}"),
    ],
)
def test_bad_weights_fail(workspace, model, weights, expected):
    file = model / "adapter_model.safetensors"
    file.unlink()
    if weights is not None:
        safetensors.torch.save_file(weights, file)
    assert_fails(workspace, "models", ["model"], expected)


def test_what_is_no_file_of_weights_is_refused(workspace, model):
    (model / "adapter_model.safetensors").write_bytes(b"no")
    code, said, _ = run(workspace, "models", "model")
    assert code == 1
    assert said.startswith("error: tasks.gate: model/adapter_model.safetensors: not readable weights: ")
