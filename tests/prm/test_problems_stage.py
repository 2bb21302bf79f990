"""Command lines that make or read problems: prm.problems and prm.ingest."""

import json
import sys
import types

import pandas as pd
import pytest

from tasks import gate
from tasks.prm import ingest, problems, reasoning
from tasks.prm.chain import true_answer
from tasks.prm.rows import divide
from tasks.prm.schemas import PROBLEMS
from tasks.tables import read_table


def table(workspace, name="p.parquet"):
    found = read_table(workspace.root / name, PROBLEMS)
    return found.astype({"split": "str", "grader": "str"})


# ---- problems


def test_chains(workspace):
    workspace.parameters(problems={"c": {"train": 30, "valid": 20, "test": 10, "operations": 2, "seed": 5}})
    for name in ("p.parquet", "again.parquet"):
        assert workspace.run(problems, "c", "--out", name) == (0, "")
    assert workspace.root.joinpath("p.parquet").read_bytes() == workspace.root.joinpath("again.parquet").read_bytes()
    found = table(workspace)
    assert found["split"].value_counts().to_dict() == {"train": 30, "valid": 20, "test": 10}
    assert found["problem"].tolist()[:11] == [*(f"test-{i:05}" for i in range(1, 11)), "train-00001"]
    assert found["prompt"].is_unique
    assert found["prompt"].str.fullmatch(r"Q:\d\d([+*-]\d+){2}\n").all()
    assert found["answer"].tolist() == found["prompt"].map(true_answer).tolist()
    assert set(found["grader"]) == {"chain"}
    assert found["metadata"].isna().all()
    assert workspace.run(gate, "prm", "problems", "p.parquet", "--out", "v.json") == (0, "")


def test_more_training_problems_leave_the_others_as_they_are(workspace):
    for train, name in ((30, "few.parquet"), (60, "many.parquet")):
        workspace.parameters(problems={"c": {"train": train, "valid": 20, "test": 10}})
        assert workspace.run(problems, "c", "--out", name) == (0, "")
    few, many = table(workspace, "few.parquet"), table(workspace, "many.parquet")
    assert many[many["problem"].isin(few["problem"])].reset_index(drop=True).equals(few)
    workspace.parameters(problems={"c": {"train": 30, "valid": 20, "test": 10, "seed": 2}})
    assert workspace.run(problems, "c", "--out", "other.parquet") == (0, "")
    assert not set(table(workspace, "other.parquet")["prompt"]) & set(few["prompt"])


def test_more_chains_than_there_are_is_told(workspace):
    workspace.parameters(problems={"c": {"operations": 1, "train": 1500, "valid": 300, "test": 400}})
    code, said = workspace.run(problems, "c", "--out", "p.parquet")
    assert (code, said) == (
        1,
        "error: tasks.prm.problems: params.yaml: prm.problems.c: 2200 different problems are wanted; of 1 operations "
        "there are 2730, and at most half of them can be used\n",
    )
    assert workspace.files() == {"params.yaml"}


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"source": "reasoning_gym"}, "task is needed for source reasoning_gym, and for no other"),
        ({"task": "chain_sum"}, "task is needed for source reasoning_gym, and for no other"),
        ({"source": "file"}, "source: 'file' is not allowed"),
        ({"path": "own.jsonl"}, "path: unknown key"),
        ({"train": 0}, "train: 0 is not allowed"),
    ],
)
def test_wrong_parameters_are_told(workspace, section, message):
    workspace.parameters(problems={"c": section})
    code, said = workspace.run(problems, "c", "--out", "p.parquet")
    assert code == 1
    assert said.startswith("error: tasks.prm.problems: params.yaml: prm.problems.c")
    assert message in said
    assert said.count("\n") == 1


class _Sums:
    """Entries 0+0, 1+0, …, each twice; `broken` makes them unusable in one way or another."""

    def __init__(self, size, seed, broken=None):
        assert seed == 7
        if broken == "option":
            raise AssertionError("broken must not be option")
        self.size, self.broken = size, broken

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        number = 0 if self.broken == "few" else i // 2
        answer = {"answer": None, "score": "0"}.get(self.broken, str(number))
        note = {1, 2} if self.broken == "json" else [number, 0]
        return {"question": f"{number}+0", "answer": answer, "metadata": {"source_dataset": "sums", "note": note}}


@pytest.fixture
def gym(monkeypatch):
    def create_dataset(task, size, seed, **options):
        if task != "sums":
            raise ValueError(f"Dataset '{task}' not registered")
        return _Sums(size, seed, **options)

    module = types.ModuleType("reasoning_gym")
    module.create_dataset = create_dataset
    # lists come back as lists, which tells that the entry has been JSON
    module.get_score_answer_fn = lambda task: lambda answer, entry: float(answer == str(entry["metadata"]["note"][0]))
    monkeypatch.setitem(sys.modules, "reasoning_gym", module)
    reasoning._scorer.cache_clear()
    yield
    reasoning._scorer.cache_clear()


SUMS = {"source": "reasoning_gym", "task": "sums", "train": 3, "valid": 2, "test": 1, "seed": 7}


def test_entries_of_reasoning_gym(workspace, gym):
    workspace.parameters(problems={"g": SUMS})
    assert workspace.run(problems, "g", "--out", "p.parquet") == (0, "")
    found = table(workspace)
    assert found[["problem", "split", "prompt", "answer", "grader"]].values.tolist() == [
        ["test-00001", "test", "0+0", "0", "reasoning_gym"],
        ["train-00001", "train", "3+0", "3", "reasoning_gym"],
        ["train-00002", "train", "4+0", "4", "reasoning_gym"],
        ["train-00003", "train", "5+0", "5", "reasoning_gym"],
        ["valid-00001", "valid", "1+0", "1", "reasoning_gym"],
        ["valid-00002", "valid", "2+0", "2", "reasoning_gym"],
    ]
    assert json.loads(found["metadata"][0]) == {
        "question": "0+0",
        "answer": "0",
        "metadata": {"source_dataset": "sums", "note": [0, 0]},
    }
    assert workspace.run(gate, "prm", "problems", "p.parquet", "--out", "v.json") == (0, "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "nothing"}, "reasoning-gym refuses task 'nothing' with options {}: Dataset 'nothing' not registered"),
        ({"options": {"x": 1}}, "reasoning-gym refuses task 'sums' with options {'x': 1}: "),
        ({"options": {"size": 1}}, "reasoning-gym refuses task 'sums' with options {'size': 1}: "),
        ({"options": {"broken": "option"}}, "reasoning-gym refuses task 'sums' with options {'broken': 'option'}: "),
        (
            {"options": {"broken": "few"}},
            "task 'sums' with options {'broken': 'few'} has 1 different questions among 24; 6 are wanted",
        ),
        ({"options": {"broken": "json"}}, "task 'sums' cannot be used: JSON cannot hold its entries: "),
        ({"options": {"broken": "answer"}}, "task 'sums' cannot be used: its own answer None does not score 1"),
        ({"options": {"broken": "score"}}, "task 'sums' cannot be used: its own answer '0' does not score 1"),
    ],
)
def test_generators_that_cannot_be_used_are_told(workspace, gym, change, message):
    workspace.parameters(problems={"g": {**SUMS, **change}})
    code, said = workspace.run(problems, "g", "--out", "p.parquet")
    assert code == 1
    assert said.startswith(f"error: tasks.prm.problems: params.yaml: prm.problems.g: {message}")
    assert said.count("\n") == 1
    assert workspace.files() == {"params.yaml"}


def test_without_reasoning_gym_its_extra_is_named(workspace, monkeypatch):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    workspace.parameters(problems={"g": SUMS})
    code, said = workspace.run(problems, "g", "--out", "p.parquet")
    assert code == 1
    assert said == (
        "error: tasks.prm.problems: reasoning_gym needs the package reasoning-gym; install the project with its extra: "
        "pip install -c constraints.txt -e '.[reasoning-gym]'\n"
    )


def test_the_real_reasoning_gym(workspace):
    pytest.importorskip("reasoning_gym", reason="the optional package reasoning-gym is not installed")
    reasoning._scorer.cache_clear()
    section = {"source": "reasoning_gym", "train": 20, "valid": 5, "test": 5, "task": "chain_sum"}
    workspace.parameters(problems={"g": {**section, "options": {"max_terms": 3}}})
    for name in ("p.parquet", "again.parquet"):
        assert workspace.run(problems, "g", "--out", name) == (0, "")
    assert workspace.root.joinpath("p.parquet").read_bytes() == workspace.root.joinpath("again.parquet").read_bytes()
    found = table(workspace)
    assert len(found) == 30
    assert found["prompt"].is_unique
    terms = found["metadata"].map(lambda text: json.loads(text)["metadata"]["num_terms"])
    assert set(terms) == {2, 3}


# ---- ingest


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def rows(number):
    return [{"prompt": f"{i}+{i}?", "answer": 2 * i} for i in range(number)]


@pytest.fixture
def own(workspace):
    """Writes own.jsonl and runs ingest; (exit code, what it said)."""

    def run(content, name="own.jsonl", **section):
        if content is not None:
            workspace.write(name, content)
        workspace.parameters(ingest={"o": {"path": name, **section}})
        return workspace.run(ingest, "o", name, "--out", "p.parquet")

    return run


def test_own_problems(workspace, own):
    more = [
        {"id": "a", "prompt": " Wo? \u2028", "answer": "Köln", "grader": "exact", "split": "test", "note": "mine"},
        {"id": 7, "prompt": "half", "answer": 0.5, "split": "valid"},
        {"id": None, "prompt": "Q:34-3\n", "answer": "31", "grader": "chain", "split": None},
    ]
    assert own(lines(*rows(10), *more)) == (0, "")
    found = table(workspace)
    assert found["split"].value_counts().to_dict() == {"train": 6, "test": 4, "valid": 3}  # 11 × 0.3, 11 × 0.2, rest
    assert found[["split", "problem"]].values.tolist() == sorted(found[["split", "problem"]].values.tolist())
    named = found.set_index("problem")
    assert named.loc["a", ["split", "prompt", "answer", "grader"]].tolist() == ["test", " Wo? \u2028", "Köln", "exact"]
    assert named.loc["7", ["split", "prompt", "answer", "grader"]].tolist() == ["valid", "half", "0.5", "number"]
    assert found.set_index("prompt").loc["Q:34-3\n", ["answer", "grader"]].tolist() == ["31", "chain"]
    assert found.set_index("prompt").loc["3+3?", "answer"] == "6"
    assert found["problem"].is_unique
    assert workspace.run(gate, "prm", "problems", "p.parquet", "--out", "v.json") == (0, "")


def test_byte_order_marks_line_ends_and_blank_lines_change_nothing(workspace, own):
    assert own(lines(*rows(9))) == (0, "")
    plain = (workspace.root / "p.parquet").read_bytes()
    for content in (
        b"\xef\xbb\xbf" + lines(*rows(9)).encode(),
        lines(*rows(9)).replace("\n", "\r\n"),
        "\n" + lines(*rows(9)).replace("\n", "\n \n").rstrip("\n "),
        lines(*reversed(rows(9))),
    ):
        assert own(content) == (0, "")
        assert (workspace.root / "p.parquet").read_bytes() == plain
    pd.DataFrame(rows(9)).assign(id=None).to_parquet("own.parquet")
    assert own(None, "own.parquet") == (0, "")
    assert (workspace.root / "p.parquet").read_bytes() == plain


def test_splits_depend_on_seed_and_prompt_alone():
    keys = [f"{i}+{i}?" for i in range(200)]
    first = divide(keys, valid=0.2, test=0.3, seed=1)
    assert divide(reversed(keys), valid=0.2, test=0.3, seed=1) == first
    assert divide(keys, valid=0.2, test=0.3, seed=2) != first
    more = divide([*keys, "new"], valid=0.2, test=0.3, seed=1)
    assert sum(more[key] != first[key] for key in keys) <= 2  # those at a border
    assert sorted(divide(keys[:3], valid=0.01, test=0.01, seed=1).values()) == ["test", "train", "valid"]


LINE = '{"prompt": "1+1?", "answer": 2}\n'


def test_an_answer_may_have_more_digits_than_a_float_holds(workspace, own):
    digits = "9" * 400
    code, said = own(lines(*(row | {"answer": int(digits)} for row in rows(9))))
    assert (code, said) == (0, "")
    assert set(table(workspace)["answer"]) == {digits}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "own.jsonl: there are no rows in it"),
        (" \n\r\n", "own.jsonl: there are no rows in it"),
        (LINE + "{", "own.jsonl: line 2: not valid JSON: Expecting property name"),
        (LINE + "\0\n", "own.jsonl: line 2: not valid JSON: "),
        (LINE.replace("?", "\0"), "own.jsonl: line 1: not valid JSON: Invalid control character"),
        (LINE + LINE.strip() * 2, "own.jsonl: line 2: not valid JSON: Extra data"),
        (LINE.replace("2", "9" * 5000), "own.jsonl: line 1: not valid JSON: Exceeds the limit"),
        ("[" * 100_000, "own.jsonl: line 1: not valid JSON: "),
        (LINE.encode() + b'{"prompt": "\xff"}', "own.jsonl: line 2: not UTF-8 text: invalid start byte at byte 12"),
        (LINE.encode("utf-16"), "own.jsonl: line 1: not UTF-8 text: "),
        ("[1]", "own.jsonl: line 1: not a JSON object but list; one object a line is needed"),
        ("null", "own.jsonl: line 1: not a JSON object but NoneType"),
        ('{"answer": 2}', "own.jsonl: line 1: prompt is missing; there are 'answer'"),
        ("{}", "own.jsonl: line 1: prompt is missing; there are none"),
        ('{"prompt": "1+1?"}', "own.jsonl: line 1: answer is missing; there are 'prompt'"),
        ('{"prompt": "1+1?", "answer": null}', "own.jsonl: line 1: answer is missing"),
        (
            '{"prompt": "", "answer": 2}',
            "own.jsonl: line 1: prompt: '' is not allowed; a text that is not empty is needed",
        ),
        ('{"prompt": " \\n", "answer": 2}', "own.jsonl: line 1: prompt: ' \\n' is not allowed; a text that is not"),
        ('{"prompt": ["1+1?"], "answer": 2}', "own.jsonl: line 1: prompt: ['1+1?'] is not allowed; text is needed"),
        ('{"prompt": "1+1?", "answer": true}', "own.jsonl: line 1: answer: True is not allowed; text is needed"),
        (
            '{"prompt": "1+1?", "answer": 1e999}',
            "own.jsonl: line 1: answer: inf is not allowed; text or a finite number",
        ),
        ('{"prompt": "1+1?", "answer": [2]}', "own.jsonl: line 1: answer: [2] is not allowed; text is needed"),
        ('{"prompt": "1+1?", "answer": "two"}', "own.jsonl: line 1: answer 'two' holds no number, which grader number"),
        (
            '{"prompt": "1+1?", "answer": " ", "grader": "exact"}',
            "own.jsonl: line 1: answer: ' ' is not allowed; a text",
        ),
        (
            '{"prompt": "34-3", "answer": 31, "grader": "chain"}',
            "own.jsonl: line 1: '34-3' is not the prompt of a chain",
        ),
        ('{"prompt": "a\\u0000", "answer": 2}', "own.jsonl: line 1: prompt: 'a\\x00' is not allowed; text without NUL"),
        (
            '{"prompt": "a\\ud800", "answer": 2}',
            "own.jsonl: line 1: prompt: 'a\\ud800' is not allowed; text that UTF-8",
        ),
        (
            '{"prompt": "1+1?", "answer": 2, "grader": "reasoning_gym"}',
            "own.jsonl: line 1: grader: 'reasoning_gym' is not allowed; one of chain, number, exact, boxed, math_verify is",
        ),
        (
            '{"prompt": "1+1?", "answer": 2, "split": "dev"}',
            "own.jsonl: line 1: split: 'dev' is not allowed; one of train, valid, test is needed",
        ),
        ('{"prompt": "1+1?", "answer": 2, "id": true}', "own.jsonl: line 1: id: True is not allowed; text is needed"),
        (
            LINE + LINE,
            "own.jsonl: line 2: prompt: '1+1?' is not allowed; it stands in line 1 already; a value of its own",
        ),
        (
            lines({"prompt": "a", "answer": 1, "id": "x"}, {"prompt": "b", "answer": 1, "id": "x"}),
            "own.jsonl: line 2: id: 'x' is not allowed; it stands in line 1 already",
        ),
        (LINE, "own.jsonl: no problem is left for split train; train, valid, test need one each at least"),
        (lines(*rows(2)), "own.jsonl: no problem is left for split train"),
        (lines(*(row | {"split": "train"} for row in rows(9))), "own.jsonl: no problem is left for split valid"),
    ],
)
def test_bad_files_are_told_in_one_line_and_nothing_is_written(workspace, own, content, message):
    code, said = own(content)
    assert code == 1
    assert said.startswith(f"error: tasks.prm.ingest: {message}")
    assert said.count("\n") == 1
    assert len(said) < 400
    assert workspace.files() == {"own.jsonl", "params.yaml"}


def test_folders_and_other_files_are_refused(workspace, own):
    (workspace.root / "own.jsonl").mkdir()
    code, said = own(None)
    assert (code, said) == (
        1,
        "error: tasks.prm.ingest: own.jsonl: not a file that can be read; allowed: .jsonl, .parquet\n",
    )
    assert own("prompt,answer\n", "own.csv")[1].endswith(
        "own.csv: not a file that can be read; allowed: .jsonl, .parquet\n"
    )
    assert own("no", "own.parquet")[1].startswith(
        "error: tasks.prm.ingest: own.parquet: not a readable parquet table: "
    )
    pd.DataFrame({"prompt": ["a"], "answer": [None]}).to_parquet("own.parquet")
    assert "own.parquet: row 0 (counted from 0): answer is missing" in own(None, "own.parquet")[1]
    assert "absent.jsonl: there is no such input file or folder" in own(None, "absent.jsonl")[1]


def test_the_source_must_be_that_of_the_parameters(workspace):
    workspace.write("a.jsonl", LINE)
    workspace.parameters(ingest={"o": {"path": "b.jsonl"}})
    code, said = workspace.run(ingest, "o", "a.jsonl", "--out", "p.parquet")
    assert (code, said) == (
        1,
        "error: tasks.prm.ingest: params.yaml: prm.ingest.o.path is b.jsonl, but a.jsonl is given; use the former\n",
    )


def test_shares_must_leave_something_for_training(own):
    assert "prm.ingest.o: valid and test must leave a share for training" in own(LINE, valid=0.5, test=0.5)[1]
