"""The stage that gathers tasks: from a pool, a package and an own file, with the real sandbox."""

import json
from pathlib import Path

import pytest

from tasks import gate
from tasks.stage import UserError
from tasks.swiftcode import gather, inputs, isolation, ownfile, sandbox, values
from tasks.swiftcode.params import Limits
from tasks.swiftcode.schemas import SOLUTIONS, TASKS
from tasks.swiftcode.task import task_of
from tasks.tables import read_table
from tests.swiftcode.test_humaneval import ROW
from tests.swiftcode.test_humaneval import write as write_package
from tests.swiftcode.test_ownfile import INSTRUCTION
from tests.swiftcode.tiny import NAMES, UNSAFE, lines, program, row, write_pool

OUTS = ("--tasks", "t.parquet", "--solutions", "s.parquet", "--dropped", "d.json")
PREFIX = "error: tasks.swiftcode.gather: "


@pytest.fixture(autouse=True)
def _silent(monkeypatch):
    """What the machine can isolate with is not what these tests are about."""
    monkeypatch.setattr(isolation.Isolation, "said", "", raising=False)


@pytest.fixture
def own(workspace):
    """Writes own.jsonl and runs the stage on it; (exit code, what it said)."""

    def run(*rows, content=None, **section):
        workspace.write("own.jsonl", lines(*rows) if content is None else content)
        section = {"source": "file", "path": "own.jsonl", "unsafe_no_sandbox": UNSAFE, **section}
        workspace.parameters(gather={"o": section})
        code, said = workspace.run(gather, "o", "own.jsonl", *OUTS)
        return code, said.lstrip("\n")

    return run


@pytest.fixture
def pooled(workspace):
    """Writes a pool and runs the stage on it; (exit code, what it said)."""

    def run(*rows, **section):
        write_pool(workspace.root / "pool", *rows)
        workspace.parameters(gather={"p": {"path": "pool", "unsafe_no_sandbox": UNSAFE, **section}})
        code, said = workspace.run(gather, "p", "pool", *OUTS)
        return code, said.lstrip("\n")

    return run


def tables(workspace):
    tasks = read_table(workspace.root / "t.parquet", TASKS).astype({"split": "str"})
    solutions = read_table(workspace.root / "s.parquet", SOLUTIONS).astype({"task": "str", "language": "str"})
    return tasks, solutions


def left_out(workspace):
    report = json.loads((workspace.root / "d.json").read_text())
    return report | {"dropped": {reason: [t["task"] for t in tasks] for reason, tasks in report["dropped"].items()}}


def name(workspace, published):
    """The name that a published row gets."""
    tasks, unusable = ownfile.read(workspace.write("one.jsonl", lines(published)))
    return (tasks + unusable)[0].task


def contents(workspace):
    return [(workspace.root / name).read_bytes() for name in OUTS[1::2]]


def test_a_pool_is_taken_as_it_is(workspace, pooled):
    rows = [row(name, split="test" if name < "e" else "train") for name in NAMES]
    assert pooled(*rows, program(split="train")) == (0, "")
    tasks, solutions = tables(workspace)
    assert tasks["task"].tolist() == [*NAMES, "total"]
    assert dict(zip(tasks["task"], tasks["split"], strict=True)) == {
        **{name: "test" if name < "e" else "train" for name in NAMES},
        "total": "train",
    }
    total = tasks.set_index("task").loc["total"]
    assert (total["kind"], total["compare"], json.loads(total["sizes"])) == ("stdio", "tokens", {"python": 100})
    assert tasks["entry_point"].fillna("none").tolist() == [*NAMES, "none"]
    assert total["generator"] == program()["generator"]
    assert [values.loads(tests) for tests in tasks["tests"]] == [r["tests"] for r in (*rows, program())]
    assert {tuple(languages) for languages in tasks["languages"]} == {("python",)}
    assert tasks["prompt"].tolist()[0] == row("add")["prompt"]
    assert solutions[["task", "name", "rank"]].values.tolist() == [
        *([name, f"way{i}", i] for name in NAMES for i in (0, 1)),
        ["total", "sum", 0],
    ]
    assert solutions["source"].tolist()[:2] == [s["source"] for s in row("add")["solutions"]]
    assert left_out(workspace) == {"read": 7, "kept": 7, "dropped": {}, "solutions_dropped": []}
    assert workspace.run(gate, "swiftcode", "tasks", "t.parquet", "s.parquet", "--out", "v.json") == (0, "")


WRONG = {"language": "python", "name": "wrong", "source": "def add(x, y):\n    return x - y\n"}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            row("add", solutions=[*row("add")["solutions"], WRONG]),
            "pool: task add: python solution wrong: wrong_answer: test 0: -1 instead of 7; solutions of a pool must be right",
        ),
        (
            row("add", generator="import os\ndef generate(size, seed): ..."),
            "pool/add/task.json: risky: generator: line 1: import os; nothing of a pool may be left out",
        ),
        (row("add", tests=row("add")["tests"][:1]), "pool/add/task.json: too_few_tests: 1; 2 are needed; nothing of"),
        (
            row("add", generator="def generate(size, seed):\n    return size"),
            "pool/add/task.json: generator_fails: generate(1, 1) gave 1; the list of arguments is needed; nothing of a",
        ),
        (row("add", split="dev"), "pool/add/task.json: split: 'dev' is not allowed"),
    ],
)
def test_anything_to_leave_out_of_a_pool_is_an_error(workspace, pooled, bad, message):
    code, said = pooled(bad, *(row(name) for name in NAMES[1:]))
    assert code == 1
    assert said.startswith(PREFIX + message)
    assert said.count("\n") == 1
    assert not (workspace.root / "t.parquet").exists()


def test_own_tasks_are_divided_and_their_order_changes_nothing(workspace, own):
    rows = [row(name) for name in NAMES]
    assert own(*rows) == (0, "")
    tasks, _ = tables(workspace)
    assert tasks["split"].value_counts().to_dict() == {"train": 4, "test": 2}
    before = contents(workspace)
    assert own(*rows[::-1]) == (0, "")
    assert contents(workspace) == before
    assert own(*rows, seed=2) == (0, "")
    assert contents(workspace) != before


def test_what_cannot_be_used_is_left_out_and_counted(workspace, own):
    slow = {"language": "python", "name": "slow", "source": "def square(x):\n    while True: pass\n"}
    rows = [
        *(row(name) for name in ("double", "largest", "length", "negate")),
        row("square", solutions=[*row("square")["solutions"], slow]),
        row("add", solutions=[WRONG, *row("add")["solutions"]], split="train"),
        row("double", task="twin"),
        row("double", task="open", prompt="def double(x): 'one'", generator="open('x')"),
        row("double", task="class", prompt="double(x)"),
        row("double", task="broken", prompt="def double(x): 'two'", generator="def"),
        row("double", task="single", prompt="def double(x): 'three'", tests=row("double")["tests"][:1]),
        row("double", task="stuck", prompt="def double(x): 'four'", generator="def generate(size): ..."),
        {**INSTRUCTION, "tests": "assert total([1]) == 2"},
        {**INSTRUCTION, "tests": ""},
        INSTRUCTION,
    ]
    assert own(*rows, limits={"cpu_s": 0.5}) == (0, "")
    report = json.loads((workspace.root / "d.json").read_text())
    fails, untested = (name(workspace, one) for one in rows[-3:-1])
    assert left_out(workspace)["dropped"] == {
        "does_not_parse": ["broken"],
        "duplicate": ["twin"],
        "generator_fails": ["stuck"],
        "not_a_function": ["class"],
        "reference_fails": [fails, "add"],
        "risky": ["open"],
        "too_few_tests": [untested, "single"],
    }
    assert report["dropped"]["duplicate"] == [{"task": "twin", "where": "line 7", "why": "of double (line 1)"}]
    (reference,) = [one for one in report["dropped"]["reference_fails"] if one["task"] == "add"]
    assert reference["why"] == "python solution wrong: wrong_answer: test 0: -1 instead of 7"
    (solution,) = report["solutions_dropped"]
    assert solution.pop("why")
    assert solution == {"task": "square", "language": "python", "name": "slow", "verdict": "time_limit"}
    tasks, solutions = tables(workspace)
    assert report["read"] == len(rows)
    assert report["kept"] == len(tasks) == len(rows) - sum(map(len, report["dropped"].values()))
    assert solutions[solutions["task"] == "square"]["name"].tolist() == ["way0", "way1"]


def test_ranks_close_up_where_a_solution_in_the_middle_fails(workspace, own):
    known = row("add")["solutions"]
    assert own(row("add", solutions=[known[0], WRONG, known[1]]), *(row(name) for name in NAMES[1:])) == (0, "")
    _, solutions = tables(workspace)
    kept = solutions[solutions["task"] == "add"]
    assert kept[["name", "rank"]].values.tolist() == [["way0", 0], ["way1", 1]]


def test_published_instructions_are_recorded(workspace, own):
    assert own(INSTRUCTION, *(row(name) for name in NAMES)) == (0, "")
    tasks, solutions = tables(workspace)
    (task,) = tasks[tasks["entry_point"] == "total"].itertuples()
    assert values.loads(task.tests) == [[[[1, 2]], 3], [[[]], 0]]
    assert solutions.set_index("task").loc[task.task, "source"].startswith("from typing import List\ndef total")


def test_a_package_is_recorded_and_divided(workspace):
    rows = [
        {**ROW, "task_id": f"HumanEval/{i}", "prompt": f'def double(x):\n    """Twice, {i}."""\n', "test": check}
        for i, check in enumerate(
            ["def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(3) == 6\n"] * 4
        )
    ]
    rows.append(
        {**rows[0], "task_id": "HumanEval/9", "prompt": "def double(x):\n", "canonical_solution": "    return 3"}
    )
    (workspace.root / "raw").mkdir()
    write_package(workspace.root / "raw", *rows)
    section = {"source": "package", "path": "raw", "test": 0.5, "unsafe_no_sandbox": UNSAFE}
    workspace.parameters(gather={"h": section})
    code, said = workspace.run(gather, "h", "raw", *OUTS)
    assert (code, said.lstrip("\n")) == (0, "")
    tasks, _ = tables(workspace)
    assert tasks["split"].value_counts().to_dict() == {"train": 2, "test": 2}
    assert {values.dumps(values.loads(tests)) for tests in tasks["tests"]} == {"[[[2], 4], [[3], 6]]"}
    assert left_out(workspace)["dropped"] == {"reference_fails": ["HumanEval/9"]}


LONG = "Give it back after you have thought about all the reasons for and against that"


def test_training_tasks_that_give_a_test_task_away_are_left_out(workspace, own):
    rows = [row(name, split="train") for name in NAMES]
    rows[0]["prompt"] = f"def add(x, y):\n    '''{LONG}. Add.'''"
    rows[1] |= {"prompt": f"def double(x):\n    '''Now: {LONG}'''", "split": "test"}
    assert own(*rows) == (0, "")
    tasks, solutions = tables(workspace)
    assert tasks["task"].tolist() == list(NAMES[1:])
    assert "add" not in set(solutions["task"])
    assert left_out(workspace)["dropped"] == {"contaminated": ["add"]}
    rows[1]["split"] = "train"
    rows[2]["split"] = "test"
    assert own(*rows) == (0, "")
    assert left_out(workspace)["dropped"] == {}


def test_both_splits_need_tasks(workspace, own):
    code, said = own(*(row(name, split="test") for name in NAMES), row("add", task="bad", prompt="x", split="train"))
    assert (code, said) == (
        1,
        f"{PREFIX}own.jsonl: no task is left for split train, of 7 that were read; dropped: 1 not_a_function\n",
    )
    code, said = own(row("add"))
    assert said == f"{PREFIX}own.jsonl: no task is left for split train, of 1 that were read; dropped: none\n"
    assert not (workspace.root / "t.parquet").exists()


def test_another_path_than_that_of_the_parameters_is_refused(workspace, own):
    code, said = own(path="other.jsonl")
    assert (code, said) == (
        1,
        f"{PREFIX}params.yaml: swiftcode.gather.o.path is other.jsonl, but own.jsonl is given; use the former\n",
    )


def test_a_sandbox_that_fails_ends_the_stage(workspace, own, monkeypatch):
    def fail(jobs, **_):
        return [sandbox.Verdict("harness_error", None, "no box")] * len(jobs)

    monkeypatch.setattr(sandbox, "judge_many", fail)
    code, said = own(*(row(name) for name in NAMES))
    assert (code, said) == (1, f"{PREFIX}own.jsonl: task add: python solution way0: the sandbox failed: no box\n")


def test_without_isolation_nothing_runs(workspace, own, monkeypatch):
    found = isolation.Isolation(None, "", "no bubblewrap", False, False, "")
    monkeypatch.setattr(isolation, "isolation", lambda: found)
    code, said = own(*(row(name) for name in NAMES), unsafe_no_sandbox=False)
    assert code == 1
    assert said.startswith(f"{PREFIX}candidates cannot be isolated on this machine: no bubblewrap")


@pytest.mark.parametrize(
    ("generator", "sizes", "fault"),
    [
        ("def generate(size, seed):\n    return [size] if seed == 7 else None", {}, None),
        ("def generate(size, seed):\n    return [1] if size == 4 else 1 / 0", {"python": 4}, None),
        (
            "def generate(size, seed):\n    return (size,)",
            {},
            "generate(1, 7) gave (1,); the list of arguments is needed",
        ),
        (
            "def generate(size, seed):\n    return [1 / 0]",
            {},
            "generate: runtime_error: ZeroDivisionError: division by zero",
        ),
        ("def make(size, seed): ...", {}, "generate: "),
    ],
)
def test_generators_are_tried_at_their_smallest_size(generator, sizes, fault):
    task = task_of(row("add", generator=generator, sizes=sizes), "x")
    (found,) = inputs.generator_faults([task], Limits(), 7, unsafe_no_sandbox=UNSAFE)
    assert found == fault or (fault is not None and found.startswith(fault))


def test_generators_of_programs_make_texts(monkeypatch):
    good, bad = (
        task_of(program(generator=f"def generate(size, seed):\n    return {x}"), "x") for x in ("'1'", "['1']")
    )
    found = inputs.generator_faults([good, bad] * 10, Limits(), 1, unsafe_no_sandbox=UNSAFE)
    assert found == [None, "generate(100, 1) gave ['1']; the text of stdin is needed"] * 10

    def fail(*_, **__):
        raise sandbox.HarnessError("no box")

    monkeypatch.setattr(sandbox.Box, "run", fail)
    with pytest.raises(UserError, match=r"^the sandbox failed: no box$"):
        inputs.generator_faults([good], Limits(), 1)


def test_the_bundled_pool_is_fit_and_no_training_task_gives_a_test_task_away():
    """Nothing is executed here."""
    from tasks.swiftcode import filters, folders

    tasks = folders.read(Path(folders.__file__).parent / "pool")
    assert [fault for task in tasks if (fault := filters.unfit(task))] == []
    assert filters.duplicates(tasks) == []
    train, test = ([task for task in tasks if task.split == split] for split in ("train", "test"))
    assert [(a.task, b.task, why) for a, b, why in filters.contaminated(train, test)] == []
    assert len(train) + len(test) == len(tasks)
