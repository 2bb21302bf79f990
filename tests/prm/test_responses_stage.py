"""The stage that reads ready-made responses."""

import json

import pandas as pd
import pytest

from tasks import gate
from tasks.prm import responses
from tasks.prm.champ import solutions
from tasks.prm.schemas import PROBLEMS, ROLLOUTS
from tasks.tables import read_table
from tests.prm.test_fetch import PROBLEMS as CHAMP


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def given_rows(problems=10, samples=3):
    """Responses of which the first of each problem is right."""
    return [
        {"problem": f"p{i}", "prompt": f"{i}+{i}?", "response": f"{'hm' * j} it is {2 * i + j}", "correct": j == 0}
        for i in range(problems)
        for j in range(samples)
    ]


@pytest.fixture
def own(workspace):
    """Writes own.jsonl and runs the stage; (exit code, what it said)."""

    def run(content, name="own.jsonl", **section):
        if content is not None:
            workspace.write(name, content)
        workspace.parameters(responses={"o": {"path": name, **section}})
        return workspace.run(responses, "o", name, "--problems", "p.parquet", "--rollouts", "r.parquet")

    return run


def tables(workspace):
    problems = read_table(workspace.root / "p.parquet", PROBLEMS).astype({"split": "str"})
    rollouts = read_table(workspace.root / "r.parquet", ROLLOUTS).astype({"split": "str", "problem": "str"})
    return problems, rollouts


def test_responses_are_divided_by_problem(workspace, own):
    assert own(lines(*given_rows())) == (0, "")
    problems, rollouts = tables(workspace)
    assert problems["split"].value_counts().to_dict() == {"test": 4, "train": 4, "valid": 2}
    assert problems["prompt"].tolist() == [f"{name[1:]}+{name[1:]}?" for name in problems["problem"]]
    assert problems[["answer", "grader", "metadata"]].isna().all(axis=None)
    assert len(rollouts) == 30
    assert rollouts["split"].tolist() == rollouts["problem"].map(problems.set_index("problem")["split"]).tolist()
    keys = rollouts[["split", "problem", "sample"]].values.tolist()
    assert keys == sorted(keys)
    assert set(rollouts.groupby("problem")["sample"].agg(tuple)) == {(0, 1, 2)}
    assert rollouts["finished"].all()
    assert rollouts[["tokens", "answer", "first_wrong"]].isna().all(axis=None)
    said = {row["response"]: (row["problem"], row["correct"]) for row in given_rows()}
    assert {row.response: (row.problem, row.correct) for row in rollouts.itertuples()} == said
    assert workspace.run(gate, "prm", "problems", "p.parquet", "--out", "v.json") == (0, "")
    assert workspace.run(gate, "prm", "rollouts", "p.parquet", "r.parquet", "--out", "w.json") == (0, "")


def test_every_column_is_taken_over(workspace, own):
    more = {"problem": 1, "sample": 4, "finished": 1, "answer": 0.5, "first_wrong": 3, "model": "mine"}
    rows = [
        {"prompt": "a", "response": "abcd", "correct": 1, **more},
        {
            "prompt": "a",
            "response": "",
            "correct": False,
            "problem": 1,
            "sample": 0,
            "finished": False,
            "first_wrong": 0,
        },
        *({"prompt": p, "response": p, "correct": True, "sample": 0, "first_wrong": -1} for p in "bcd"),
    ]
    assert own(lines(*rows)) == (0, "")
    _, rollouts = tables(workspace)
    columns = ["sample", "response", "finished", "answer", "correct", "first_wrong"]
    ours = rollouts[rollouts["problem"] == "1"][columns].astype(object)
    assert ours.where(ours.notna(), None).values.tolist() == [
        [0, "", False, None, False, 0],
        [4, "abcd", True, "0.5", True, 3],
    ]
    others = rollouts[rollouts["problem"] != "1"]
    assert others["first_wrong"].tolist() == [-1, -1, -1]
    assert others["problem"].is_unique  # without a name of its own a problem is named after its prompt


def test_the_order_and_form_of_the_rows_change_nothing(workspace, own):
    rows = [*given_rows(), given_rows()[0], {**given_rows()[0], "correct": False}]
    assert own(lines(*rows)) == (0, "")
    plain = [(workspace.root / name).read_bytes() for name in ("p.parquet", "r.parquet")]
    pd.DataFrame(rows[::-1]).assign(first_wrong=float("nan")).to_parquet(workspace.root / "own.parquet")
    for content, name in (
        (lines(*rows[::-1]), "own.jsonl"),
        ("\ufeff" + lines(*rows).replace("\n", "\r\n"), "own.jsonl"),
        (lines(*(row | {"first_wrong": float("nan"), "answer": None} for row in rows)), "own.jsonl"),
        (None, "own.parquet"),
    ):
        assert own(content, name) == (0, "")
        assert [(workspace.root / name).read_bytes() for name in ("p.parquet", "r.parquet")] == plain
    assert own(lines(*rows), seed=2) == (0, "")
    assert (workspace.root / "p.parquet").read_bytes() != plain[0]


def test_longer_responses_are_left_out_and_counted(workspace, own):
    rows = [*given_rows(6, 2), {"problem": "long", "prompt": "long?", "response": "x" * 50, "correct": True}]
    code, said = own(lines(*rows), max_characters=20)
    assert (code, said) == (
        0,
        "note: own.jsonl: 1 of 13 responses are longer than 20 characters and left out\n",
    )
    problems, rollouts = tables(workspace)
    assert "long" not in set(problems["problem"]) | set(rollouts["problem"])
    assert (len(problems), len(rollouts)) == (6, 12)
    assert own(lines(*rows), max_characters=50) == (0, "")
    assert "no problem is left for split train" in own(lines(*rows), max_characters=1)[1]


def test_annotated_solutions_are_read_as_fetched(workspace, own):
    more = {
        f"{name}{i}": {**problem, "_text": f"{problem['_text']} {i}"} for name, problem in CHAMP.items() for i in "ab"
    }
    assert own(lines(*solutions({"problems": more}))) == (0, "")
    problems, rollouts = tables(workspace)
    assert sorted(problems["problem"]) == ["P_1a", "P_1b", "P_2a", "P_2b"]
    found = rollouts.set_index("response")
    assert found.loc["It is\n\nfour.", ["correct", "first_wrong"]].values.tolist() == [[False, 7]] * 2
    assert found.loc["Yes.", ["correct", "first_wrong"]].values.tolist() == [[True, -1]] * 2
    assert found.loc["2 is odd.\n\nSo no — ½.", ["correct", "first_wrong"]].values.tolist() == [[False, 0]] * 2


ROW = {"problem": "p", "prompt": "sum?", "response": "2", "correct": True}


def changed(**values):
    return lines({**ROW, **values})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "own.jsonl: there are no rows in it"),
        ("{", "own.jsonl: line 1: not valid JSON: "),
        (b"\xff\n", "own.jsonl: line 1: not UTF-8 text: "),
        (
            changed(prompt=None),
            "own.jsonl: line 1: prompt is missing; there are 'problem', 'prompt', 'response', 'correct'",
        ),
        (changed(response=None), "own.jsonl: line 1: response is missing"),
        (changed(correct=None), "own.jsonl: line 1: correct is missing"),
        (changed(prompt=""), "own.jsonl: line 1: prompt: '' is not allowed; a text that is not empty is needed"),
        (changed(response=["2"]), "own.jsonl: line 1: response: ['2'] is not allowed; text is needed"),
        (changed(response="\ud800"), "own.jsonl: line 1: response: '\\ud800' is not allowed; text that UTF-8 can hold"),
        (changed(response="\0"), "own.jsonl: line 1: response: '\\x00' is not allowed; text without NUL characters"),
        (changed(correct="yes"), "own.jsonl: line 1: correct: 'yes' is not allowed; true or false is needed"),
        (changed(correct=0.5), "own.jsonl: line 1: correct: 0.5 is not allowed; true or false is needed"),
        (changed(finished=2), "own.jsonl: line 1: finished: 2 is not allowed; true or false is needed"),
        (
            changed(finished=False),
            "own.jsonl: line 1: correct is true but finished is false; a response without its end",
        ),
        (
            changed(first_wrong=1),
            "own.jsonl: line 1: first_wrong: 1 is not allowed; a whole number from -1 to 0 is needed",
        ),
        (changed(first_wrong=-2), "own.jsonl: line 1: first_wrong: -2 is not allowed; a whole number from -1 to 0"),
        (changed(first_wrong=0.5), "own.jsonl: line 1: first_wrong: 0.5 is not allowed; a whole number is needed"),
        (changed(first_wrong=True), "own.jsonl: line 1: first_wrong: True is not allowed; a whole number is needed"),
        (changed(sample=-1), "own.jsonl: line 1: sample: -1 is not allowed; a whole number from 0 to 2147483647"),
        (changed(sample=float("inf")), "own.jsonl: line 1: sample: inf is not allowed; a whole number"),
        (changed(problem=[1]), "own.jsonl: line 1: problem: [1] is not allowed; text is needed"),
        (
            changed() + changed(prompt="2+2?"),
            "own.jsonl: line 2: prompt is another than in own.jsonl: line 1, though the problem is the same",
        ),
        (
            changed() + changed(problem="q"),
            "own.jsonl: line 2: problem is another than in own.jsonl: line 1, though the prompt is the same",
        ),
        (
            changed(sample=0) + changed(sample=0) + lines(*(row | {"sample": 0} for row in given_rows(5, 1))),
            "own.jsonl: line 2: sample 0 of problem 'p' stands in own.jsonl: line 1 already",
        ),
        (
            changed() + lines(*(row | {"sample": 0} for row in given_rows(5, 1))),
            "own.jsonl: line 1: sample is missing, though other rows have one; all or none may",
        ),
        (changed(), "own.jsonl: no problem is left for split train; train, valid, test need one each at least"),
    ],
)
def test_bad_files_are_told_in_one_line_and_nothing_is_written(workspace, own, content, message):
    code, said = own(content)
    assert code == 1
    assert said.startswith(f"error: tasks.prm.responses: {message}")
    assert said.count("\n") == 1
    assert workspace.files() == {"own.jsonl", "params.yaml"}


def test_the_path_must_be_that_of_the_parameters(workspace):
    workspace.write("a.jsonl", changed())
    workspace.parameters(responses={"o": {"path": "b.jsonl"}})
    code, said = workspace.run(responses, "o", "a.jsonl", "--problems", "p.parquet", "--rollouts", "r.parquet")
    assert (code, said) == (
        1,
        "error: tasks.prm.responses: params.yaml: prm.responses.o.path is b.jsonl, but a.jsonl is given; use the former\n",
    )
