"""The stages that run candidates: judging and measuring a small data set, from tables to tables."""

import pandas as pd
import pytest

from tasks.swiftcode import execute, judging, measure
from tasks.swiftcode.candidates import candidates, read_samples
from tasks.swiftcode.isolation import isolation
from tasks.swiftcode.schemas import MEASUREMENTS, SAMPLES, TASKS, VERDICTS
from tasks.swiftcode.values import dumps
from tasks.tables import read_table, write_table

pytestmark = pytest.mark.skipif(not isolation().contained, reason=f"no isolation here: {isolation().fault}")

GENERATE = "def generate(size, seed):\n    return [list(range(size))]\n"
TOTAL = "def total(xs):\n    return sum(xs)\n"
LOOP = "def total(xs):\n    t = 0\n    for x in xs:\n        t += x\n    return t\n"
WRONG = "def total(xs):\n    return 6\n"
HANGS = "def total(xs):\n    while True:\n        pass\n"


def task(name: str, split: str) -> dict:
    return {
        "task": name,
        "split": split,
        "kind": "function",
        "entry_point": "total",
        "prompt": "def total(xs):\n",
        "languages": ["python"],
        "tests": dumps([[[[1, 2, 3]], 6], [[[]], 0]]),
        "compare": "exact",
        "rtol": None,
        "atol": None,
        "generator": GENERATE,
        "sizes": '{"python": 100000}',
    }


def sample(task: str, generator: str, number: int, candidate: str | None, source: str | None) -> dict:
    return {
        "task": task,
        "language": "python",
        "generator": generator,
        "sample": number,
        "hint": False,
        "response": source or "",
        "tokens": 0,
        "finished": True,
        "source": source,
        "candidate": candidate,
    }


ROWS = [
    sample("a", "pool", 0, "c-loop", LOOP),
    sample("a", "pool", 1, "c-sum", TOTAL),
    sample("a", "model", 0, "c-sum", TOTAL + "# the same program\n"),
    sample("a", "model", 1, "c-wrong", WRONG),
    sample("a", "model", 2, "c-hangs", HANGS),
    sample("a", "model", 3, None, None),
    sample("b", "pool", 0, "c-sum", TOTAL),
]


@pytest.fixture
def tables(workspace):
    write_table(workspace.root / "tasks.parquet", pd.DataFrame([task("a", "train"), task("b", "test")]), TASKS)
    write_table(workspace.root / "samples.parquet", pd.DataFrame(ROWS), SAMPLES)
    workspace.parameters(
        judge={"limits": {"cpu_s": 0.5, "wall_s": 5.0}},
        measure={"rounds": 2, "target_s": 0.005},
    )
    return workspace


def judged(tables, split="train", *samples: str) -> pd.DataFrame:
    code, said = tables.run(
        execute, split, "tasks.parquet", *(samples or ["samples.parquet"]), "--out", "verdicts.parquet"
    )
    assert code == 0, said
    return read_table(tables.root / "verdicts.parquet", VERDICTS)


def test_distinct_candidates_are_judged_once(tables):
    found = judged(tables).set_index("candidate")["verdict"].to_dict()
    assert found == {"c-hangs": "time_limit", "c-loop": "accepted", "c-sum": "accepted", "c-wrong": "wrong_answer"}
    assert judged(tables, "test")["candidate"].tolist() == ["c-sum"]


def test_the_verdicts_are_the_same_bytes_and_known_ones_are_not_run_again(tables, monkeypatch):
    judged(tables)
    first = (tables.root / "verdicts.parquet").read_bytes()
    ran = []
    monkeypatch.setattr(judging, "run", lambda *a, **k: ran.append(a))
    judged(tables)
    assert (tables.root / "verdicts.parquet").read_bytes() == first
    assert ran == []


def test_the_order_of_rows_and_the_tables_they_come_from_do_not_matter(tables):
    judged(tables)
    first = (tables.root / "verdicts.parquet").read_bytes()
    frame = pd.DataFrame(ROWS)
    (tables.root / "parts").mkdir()
    write_table(tables.root / "parts/one.parquet", frame.iloc[[5, 2, 4]], SAMPLES)
    write_table(tables.root / "parts/two.parquet", frame.iloc[[6, 0, 3, 1]], SAMPLES)
    judged(tables, "train", "parts")
    assert (tables.root / "verdicts.parquet").read_bytes() == first


def test_measurements_of_correct_candidates(tables):
    judged(tables)
    command = ("train", "tasks.parquet", "verdicts.parquet", "samples.parquet", "--out", "measurements.parquet")
    code, said = tables.run(measure, *command)
    assert code == 0, said
    assert "isolation: bubblewrap" in said
    found = read_table(tables.root / "measurements.parquet", MEASUREMENTS)
    assert found.groupby(["candidate", "copy"], observed=True).size().to_dict() == {
        ("baseline", 0): 2,
        ("c-loop", 0): 2,
        ("c-loop", 1): 2,  # the reference a second time
        ("c-sum", 0): 2,
    }
    assert (found["cpu_s"] > 0).all()
    before = (tables.root / "measurements.parquet").read_bytes()
    assert tables.run(measure, *command)[0] == 0
    assert (tables.root / "measurements.parquet").read_bytes() == before  # this machine has measured them


def test_candidates_take_the_text_of_the_known_solution():
    found = candidates(pd.DataFrame(ROWS)).set_index(["task", "candidate"])["source"]
    assert found["a", "c-sum"] == TOTAL


@pytest.mark.parametrize(
    ("rows", "split", "said"),
    [
        (ROWS[:1] + ROWS[:1], "train", "task a, language python, generator pool, sample 0 stands in them twice"),
        (ROWS[:1], "test", "there is no program for a task of split 'test'"),
    ],
)
def test_bad_tables_are_named(tables, rows, split, said):
    write_table(tables.root / "samples.parquet", pd.DataFrame(rows), SAMPLES)
    code, text = tables.run(execute, split, "tasks.parquet", "samples.parquet", "--out", "verdicts.parquet")
    assert code == 1
    assert said in text
    assert not (tables.root / "verdicts.parquet").exists()


def test_an_empty_folder_is_named(tables):
    (tables.root / "parts").mkdir()
    code, said = tables.run(execute, "train", "tasks.parquet", "parts", "--out", "verdicts.parquet")
    assert code == 1
    assert "parts: there is no table of samples" in said


def test_nothing_correct_is_nothing_to_measure(tables):
    write_table(tables.root / "samples.parquet", pd.DataFrame([ROWS[3]]), SAMPLES)
    judged(tables)
    code, said = tables.run(
        measure, "train", "tasks.parquet", "verdicts.parquet", "samples.parquet", "--out", "measurements.parquet"
    )
    assert code == 1
    assert "no candidate of split 'train' is accepted" in said


def test_a_harness_that_fails_is_an_error_and_no_verdict(tables, monkeypatch):
    from tasks.swiftcode.sandbox import Verdict

    monkeypatch.setattr(judging, "run", lambda *a, **k: Verdict("harness_error", None, "no box today"))
    code, said = tables.run(execute, "train", "tasks.parquet", "samples.parquet", "--out", "verdicts.parquet")
    assert code == 1
    assert "4 candidates could not be judged, the first of task a: no box today" in said


def test_samples_are_read_from_tables_and_folders(tables):
    assert len(read_samples([tables.root / "samples.parquet"])) == len(ROWS)
