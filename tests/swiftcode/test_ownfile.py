"""Files of one's own: both forms, what is refused, and what is only left out."""

import json

import pytest

from tasks.stage import UserError
from tasks.swiftcode import ownfile
from tests.swiftcode.tiny import lines, row

INSTRUCTION = {
    "instruction": 'from typing import List\n\ndef total(xs: List[int]) -> int:\n    """The sum of xs."""\n',
    "input": "",
    "output": "def total(xs: List[int]) -> int:\n    return sum(xs)",
    "tests": "assert total([1, 2]) == 3\nassert total([]) == 0",
    "task": "somewhere",
}


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write_and_read(content, name="own.jsonl"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return ownfile.read((tmp_path / name).relative_to(tmp_path))

    return write_and_read


def test_rows_of_the_own_format(read):
    (add, square), unusable = read("\ufeff\n" + lines(row("add", split="train"), row("square")))
    assert (add.task, add.where, add.split, add.tests) == ("add", "line 2", "train", row("add")["tests"])
    assert [vars(s) for s in square.solutions] == row("square")["solutions"]
    assert (square.where, square.check, unusable) == ("line 3", None, [])


def test_rows_of_instruction_data(read):
    (task,), unusable = read(lines(INSTRUCTION))
    assert unusable == []
    assert (task.kind, task.entry_point, task.prompt) == ("function", "total", INSTRUCTION["instruction"])
    assert task.check == INSTRUCTION["tests"]
    (solution,) = task.solutions
    assert (solution.language, solution.source) == ("python", "from typing import List\n" + INSTRUCTION["output"])
    assert task.tests == []


def test_a_list_gives_the_same_tasks_and_names_come_from_content(read):
    other = {**INSTRUCTION, "output": "def total(xs):\n    return sum(sorted(xs))"}
    (a, b), _ = read(lines(INSTRUCTION, other))
    (c, d), _ = read(json.dumps([other, INSTRUCTION]), "own.json")
    assert (a.task, b.task) == (d.task, c.task)
    assert a.task != b.task
    assert (c.where, d.where) == ("row 1", "row 2")
    assert c.solutions == b.solutions


@pytest.mark.parametrize(
    ("tests", "source", "expected"),
    [
        ("assert f(1) == 2", "def g(): ...\ndef f(x): ...", "f"),
        ("assert g(f(1)) == 2\nassert f(2) == 3", "def f(x): ...\ndef g(x): ...", "f"),
        ("assert g(f(1)) == 2", "def f(x): ...\ndef g(x): ...", "g"),
        ("x = g(1)\nassert f(x)", "def f(x): ...\ndef g(x): ...", "f"),
        ("assert len(f) == 2", "def f(x): ...", None),
        ("assert f(1) == 2", "class f: ...", None),
    ],
)
def test_the_asserted_function(tests, source, expected):
    assert ownfile.asserted_function(tests, source) == expected


def test_imports_that_the_source_lacks_are_added_once():
    given = "import math, re\nfrom typing import (\n    List,\n)\ndef f(): '''x'''"
    assert ownfile.with_imports("import math, re\nx", given) == "from typing import List\nimport math, re\nx"
    assert ownfile.with_imports("x", "import math\nWrite a function") == "x"


@pytest.mark.parametrize(
    ("change", "reason", "why"),
    [
        ({"output": "def total(:"}, "does_not_parse", "output: line 1: invalid syntax"),
        (
            {"output": "def total(xs): return 1\0"},
            "does_not_parse",
            "output: source code string cannot contain null bytes",
        ),
        ({"tests": "assert total([)"}, "does_not_parse", "tests: line 1: "),
        ({"tests": None}, "too_few_tests", "there is no assertion"),
        ({"tests": "total([])"}, "too_few_tests", "there is no assertion"),
        ({"tests": "assert other(1)"}, "not_a_function", "the tests call no function of the output"),
        ({"output": "class Total: ..."}, "not_a_function", "the tests call no function of the output"),
    ],
)
def test_rows_that_are_no_tasks_are_left_out_and_named(read, change, reason, why):
    tasks, (unusable,) = read(lines({**INSTRUCTION, **change}))
    assert tasks == []
    assert (unusable.where, unusable.reason) == ("line 1", reason)
    assert unusable.why.startswith(why)
    assert len(unusable.task) == 12


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("", "own.txt", "own.txt: not a file that can be read; allowed: .jsonl, .json"),
        ("\n", "own.jsonl", "own.jsonl: there are no rows in it"),
        ("[]", "own.json", "own.json: there are no rows in it"),
        ("{}", "own.json", "own.json: not a JSON list but dict; a list of rows is needed"),
        (b"\xff", "own.jsonl", "own.jsonl: not UTF-8 text: invalid start byte at byte 0"),
        ("\n{", "own.jsonl", "own.jsonl: line 2: not valid JSON: Expecting property name"),
        ("[" * 100_000, "own.json", "own.json: not valid JSON: "),
        ("3", "own.jsonl", "own.jsonl: line 1: 3 is not allowed; an object is needed"),
        (lines(row("add")).replace("7]", "NaN]"), "own.jsonl", "own.jsonl: line 1: not valid JSON: NaN is not JSON"),
        (
            lines(row("add"), row("add")),
            "own.jsonl",
            "own.jsonl: line 2: task: 'add' stands in line 1 already; a name of",
        ),
        (lines(row("add", kind=3)), "own.jsonl", "own.jsonl: line 1: kind: 3 is not allowed: input should be"),
        (
            lines({**INSTRUCTION, "input": "x"}),
            "own.jsonl",
            "own.jsonl: line 1: input: 'x' is not allowed; an empty text",
        ),
        (
            lines({**INSTRUCTION, "id": 1}),
            "own.jsonl",
            "own.jsonl: line 1: id: unknown key; allowed are instruction, input",
        ),
        (lines({**INSTRUCTION, "output": None}), "own.jsonl", "own.jsonl: line 1: output: None is not allowed: input"),
        (json.dumps([{"instruction": "x"}]), "own.json", "own.json: row 1: output: missing; there are instruction"),
    ],
)
def test_what_breaks_the_format_is_refused_with_file_line_and_key(read, content, name, message):
    with pytest.raises(UserError) as error:
        read(content, name)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
