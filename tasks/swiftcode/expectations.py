"""What must hold between the stages of SwiftCode; checked by tasks/gate.py."""

import json
import sys
from pathlib import Path

import great_expectations.expectations as gxe
import pandas as pd

from tasks.gate import Check
from tasks.stage import UserError
from tasks.swiftcode.candidates import read_samples
from tasks.swiftcode.comparison import COMPARISONS
from tasks.swiftcode.params import LANGUAGES
from tasks.swiftcode.schemas import BASELINE, CURVE, MEASUREMENTS, SAMPLES, SOLUTIONS, TASKS, VERDICTS
from tasks.swiftcode.task import KINDS, SPLITS
from tasks.tables import read_table

LARGEST = sys.float_info.max  # a bound that only infinity is above
LEAST = sys.float_info.min  # a bound that only zero and negative numbers are below
MOST_UNMEASURED = 0.5  # share of correct candidates that fail on the large inputs
POOL = "pool"  # generator of known solutions
GROUP = ["task", "language"]
KEY = [*GROUP, "candidate"]
EXECUTABLE = (".bin", ".ckpt", ".joblib", ".msgpack", ".npy", ".npz", ".pickle", ".pkl", ".pt", ".pth", ".py", ".so")


def _read(path: Path, schema) -> pd.DataFrame:
    """A table with text as text, missing where it is missing."""
    table = read_table(path, schema)
    categories = [name for name in table if isinstance(table[name].dtype, pd.CategoricalDtype)]
    return table.astype(dict.fromkeys(categories, object))


def _never_null(*columns: str) -> list:
    return [gxe.ExpectColumnValuesToNotBeNull(column=column) for column in columns]


def _between(column: str, low: float, high: float | None, **more) -> gxe.ExpectColumnValuesToBeBetween:
    return gxe.ExpectColumnValuesToBeBetween(column=column, min_value=low, max_value=high, **more)


def _in(column: str, values) -> gxe.ExpectColumnValuesToBeInSet:
    return gxe.ExpectColumnValuesToBeInSet(column=column, value_set=list(values))


def tasks(tasks: Path, solutions: Path) -> list[Check]:
    """Before generating: every task stands once, in one of two splits, with tests and a reference in each of its languages.

    Prompts that differ in nothing but white space or capitals must share a split too.
    """
    table, known = _read(tasks, TASKS), _read(solutions, SOLUTIONS)
    alike = table["prompt"].str.split().str.join(" ").str.casefold()
    spread = table["split"].groupby(alike, dropna=False).nunique().rename_axis("prompt").reset_index(name="splits")
    sizes = table["split"].value_counts().reindex(SPLITS, fill_value=0).rename_axis("split").reset_index(name="tasks")
    counted = known["task"].value_counts()
    state = table.drop(columns=["languages", "tests"]).assign(
        n_languages=table["languages"].map(len, na_action="ignore").astype("float64"),
        n_tests=table["tests"].map(_count, na_action="ignore").astype("float64"),
        solutions=table["task"].map(counted).fillna(0).astype(int),
    )
    allowed = table[["task", "languages"]].explode("languages").rename(columns={"languages": "language"})
    allowed = allowed.dropna().drop_duplicates().assign(allowed=1)
    judged = known.merge(allowed, on=GROUP, how="left").assign(allowed=lambda t: t["allowed"].fillna(0))
    judged["blank"] = judged["source"].fillna("").str.strip().eq("").astype(int)
    first = allowed.merge(known.groupby(GROUP)["rank"].min().reset_index(), on=GROUP, how="left")
    return [
        Check(
            "tasks",
            state,
            [
                *_never_null("task", "split", "kind", "prompt", "compare", "n_languages", "n_tests"),
                gxe.ExpectColumnValuesToBeUnique(column="task"),
                _in("split", SPLITS),
                _in("kind", KINDS),
                _in("compare", COMPARISONS),
                _between("n_languages", 1, None),
                _between("n_tests", 1, None),
                _between("solutions", 1, None),
                _between("rtol", 0, LARGEST),
                _between("atol", 0, LARGEST),
            ],
        ),
        Check("functions", state[state["kind"].eq("function")], _never_null("entry_point"), may_be_empty=True),
        Check("splits of each prompt", spread, [_between("splits", 1, 1)]),
        Check("tasks of each split", sizes, [_between("tasks", 1, None)]),
        Check(
            "solutions",
            judged,
            [
                *_never_null("task", "language", "name", "rank", "source"),
                gxe.ExpectCompoundColumnsToBeUnique(column_list=[*GROUP, "name"]),
                gxe.ExpectCompoundColumnsToBeUnique(column_list=[*GROUP, "rank"]),
                _in("task", table["task"].dropna().unique()),
                _in("language", LANGUAGES),
                _in("allowed", [1]),  # in the languages of its task
                _in("blank", [0]),
            ],
        ),
        Check("references", first, [*_never_null("rank"), _in("rank", [0])]),
    ]


def _count(tests: str) -> float | None:
    """How many tests there are; None where they are no JSON list."""
    try:
        found = json.loads(tests)
    except ValueError:
        return None
    return len(found) if isinstance(found, list) else None


def samples(tasks: Path, samples: Path) -> list[Check]:
    """Before executing: answers to known tasks in their languages, numbered, and something to choose from for each task.

    A candidate is named exactly where a program was found. Every training task needs one at least, and known solutions
    ("pool") must be there.
    """
    asked, table = _read(tasks, TASKS), _read(samples, SAMPLES)
    allowed = asked[["task", "languages"]].explode("languages").rename(columns={"languages": "language"})
    allowed = allowed.dropna().drop_duplicates().assign(allowed=1)
    state = table.merge(allowed, on=GROUP, how="left").assign(allowed=lambda t: t["allowed"].fillna(0))
    state["has_source"], state["has_candidate"] = (state[name].notna().astype(int) for name in ("source", "candidate"))
    found = table[table["candidate"].notna()]
    train = asked.loc[asked["split"].eq("train"), ["task"]]
    per_task = train.assign(candidates=train["task"].map(found.groupby("task")["candidate"].nunique()).fillna(0))
    return [
        Check(
            "samples",
            state,
            [
                *_never_null(*GROUP, "generator", "sample", "response", "finished", "hint"),
                gxe.ExpectCompoundColumnsToBeUnique(column_list=[*GROUP, "generator", "sample"]),
                _in("task", asked["task"].unique()),
                _in("language", LANGUAGES),
                _in("allowed", [1]),  # in the languages of its task
                _between("sample", 0, None),
                _between("tokens", 0, None),
                gxe.ExpectColumnPairValuesToBeEqual(column_A="has_source", column_B="has_candidate"),
            ],
        ),
        Check("candidates of each training task", per_task, [_between("candidates", 1, None)]),
        Check("known solutions", table[table["generator"].eq(POOL)], _never_null("candidate")),
    ]


def measurements(samples: Path, verdicts: Path, measurements: Path) -> list[Check]:
    """Before selecting and before evaluating: all candidates of the judged tasks are judged, all correct ones measured,
    equally often. `samples` is a table, or a folder of them.

    A correct candidate may fail on the large inputs (recursion too deep, out of time): it has a row that says so and no
    accepted run; at most half of them may. Costs of accepted runs are above zero, and what is compared was measured on one
    machine and one size.
    """
    answers, judged, table = read_samples([samples]), _read(verdicts, VERDICTS), _read(measurements, MEASUREMENTS)
    programs = answers[answers["candidate"].notna() & answers["task"].isin(judged["task"])][KEY].drop_duplicates()
    programs = programs.merge(judged[[*KEY, "verdict"]], on=KEY, how="left")
    runs = table.assign(accepted=table["verdict"].eq("accepted").astype(int))
    counts = runs.groupby([*KEY, "copy"])["accepted"].agg(["sum", "size"]).reset_index()
    counts = counts.rename(columns={"sum": "accepted", "size": "runs"})
    originals = counts[counts["copy"].eq(0)].drop(columns="copy")
    correct = judged[judged["verdict"].eq("accepted")][KEY].merge(originals, on=KEY, how="left")
    correct = correct.fillna({"runs": 0, "accepted": 0})
    correct["unmeasured"] = correct["accepted"].eq(0).astype(int)
    measured = counts[counts["accepted"] > 0].groupby(GROUP)["accepted"].agg(["min", "max"]).reset_index()
    baselines = originals[originals["candidate"].eq(BASELINE)].set_index(GROUP)["accepted"]
    measured["baselines"] = [baselines.get((row.task, row.language), 0) for row in measured.itertuples()]
    known = set(map(tuple, judged[judged["verdict"].eq("accepted")][KEY].to_numpy()))
    state = table.assign(
        correct=[int(row[2] == BASELINE or row in known) for row in zip(*(table[name] for name in KEY), strict=True)]
    )
    sizes = table[table["candidate"].ne(BASELINE)].groupby(GROUP)["size"].nunique().reset_index(name="sizes")
    machines = table.groupby("task")["machine"].nunique().reset_index(name="machines")
    return [
        Check(
            "verdicts",
            judged,
            [
                *_never_null(*KEY, "verdict"),
                gxe.ExpectCompoundColumnsToBeUnique(column_list=KEY),
                gxe.ExpectColumnValuesToNotBeInSet(column="verdict", value_set=["harness_error"]),
            ],
        ),
        # a model may answer all test tasks without a program; that training tasks have candidates is checked before
        Check("candidates", programs, _never_null("verdict"), may_be_empty=True),
        Check(
            "measurements",
            state,
            [
                *_never_null(*KEY, "copy", "round", "size", "verdict", "machine"),
                gxe.ExpectCompoundColumnsToBeUnique(column_list=[*KEY, "copy", "round"]),
                _in("correct", [1]),
                gxe.ExpectColumnValuesToNotBeInSet(column="verdict", value_set=["harness_error"]),
                _between("size", 0, None),
            ],
        ),
        Check(
            "accepted runs",
            table[table["verdict"].eq("accepted")],
            [
                *_never_null("cpu_s", "wall_s", "peak_mb", "tmu_mb_s"),
                *(_between(column, LEAST, LARGEST) for column in ("cpu_s", "peak_mb")),
                *(_between(column, 0, LARGEST) for column in ("wall_s", "tmu_mb_s")),
                _between("instructions", 1, None),
            ],
        ),
        Check(
            "correct candidates",
            correct,
            [
                _between("runs", 1, None),
                gxe.ExpectColumnMeanToBeBetween(column="unmeasured", max_value=MOST_UNMEASURED),
            ],
        ),
        Check(
            "accepted runs of each candidate and copy",
            measured,
            [
                gxe.ExpectColumnPairValuesToBeEqual(column_A="min", column_B="max"),
                _between("baselines", 1, None),
            ],
        ),
        Check("sizes of each task and language", sizes, [_between("sizes", 1, 1)]),
        Check("machines of each task", machines, [_between("machines", 1, 1)]),
    ]


def models(model: Path) -> list[Check]:
    """After fine-tuning: finite numbers, a loss that has fallen, finite weights, and no file that could run code."""
    curve = _read(model / "curve.parquet", CURVE)
    half = max(1, len(curve) // 2)  # halves of even numbers of epochs hold the same examples
    ends = pd.DataFrame({"first": [curve["loss"].head(half).mean()], "last": [curve["loss"].tail(half).mean()]})
    numbers = ("loss", "gradient_norm", "learning_rate")
    files = sorted(file for file in model.rglob("*") if file.is_file())
    weights = [_weights(file) for file in files if file.suffix == ".safetensors"]
    suffixes = pd.DataFrame({"file": [str(f.relative_to(model)) for f in files], "suffix": [f.suffix for f in files]})
    return [
        Check(
            "curve",
            curve,
            [
                *_never_null("step", *numbers),
                *(_between(column, -LARGEST, LARGEST) for column in numbers),
                gxe.ExpectColumnValuesToBeIncreasing(column="step", strictly=True),
            ],
        ),
        Check("loss", ends, [gxe.ExpectColumnPairValuesAToBeGreaterThanB(column_A="first", column_B="last")]),
        Check("files", suffixes, [gxe.ExpectColumnValuesToNotBeInSet(column="suffix", value_set=list(EXECUTABLE))]),
        Check(
            "weights",
            pd.DataFrame(weights, columns=["file", "weights", "not_finite"]),
            [_between("weights", 1, None), _in("not_finite", [0])],
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
