"""Rows of HumanEval become tasks whose tests are still code."""

import json

import pytest

from tasks.stage import UserError
from tasks.swiftcode import humaneval

ROW = {
    "task_id": "HumanEval/7",
    "prompt": 'def double(x):\n    """Twice x.\u2028"""\n',
    "entry_point": "double",
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}


def write(folder, *rows):
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    (folder / "HumanEval.jsonl").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return folder


def test_a_row_becomes_a_task(tmp_path):
    first, second = humaneval.read(write(tmp_path, ROW, {**ROW, "task_id": "HumanEval/8"}))
    assert (first.task, first.kind, first.entry_point, first.prompt) == (
        "HumanEval/7",
        "function",
        "double",
        ROW["prompt"],
    )
    assert [(s.language, s.name) for s in first.solutions] == [("python", "canonical")]
    scope = {}
    exec(first.solutions[0].source, scope)  # text of this file
    assert scope["double"](4) == 8
    asked = []
    exec(first.check, {"double": lambda x: asked.append(x) or 4})
    assert asked == [2]
    assert (first.split, first.tests, second.task, second.where) == (None, [], "HumanEval/8", "line 2")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["{"], "line 1: not valid JSON: "),
        ([ROW, ROW], "line 2: task_id: 'HumanEval/7' stands there already; a name of its own is needed"),
        ([{**ROW, "test": 3}], "line 1: test: 3 is not allowed: input should be a valid string"),
        ([{**ROW, "test": " "}], "line 1: test: ' ' is not allowed: it is blank; a text is needed"),
        (
            [{**ROW, "more": 3}],
            "line 1: more: unknown key; allowed are task_id, prompt, entry_point, canonical_solution, test",
        ),
        (["[1]"], "line 1: [1] is not allowed: input should be a valid dictionary"),
        ([{k: v for k, v in ROW.items() if k != "test"}], "line 1: test: missing; there are task_id, prompt"),
    ],
)
def test_rows_of_another_form_are_refused(tmp_path, rows, message):
    with pytest.raises(UserError) as error:
        humaneval.read(write(tmp_path, *rows))
    assert str(error.value).startswith(f"{tmp_path}/HumanEval.jsonl: {message}")


def test_a_folder_without_tasks_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"HumanEval.jsonl: not readable: .*No such file"):
        humaneval.read(tmp_path)
    with pytest.raises(UserError, match=r"HumanEval.jsonl: there are no tasks in it$"):
        humaneval.read(write(tmp_path))
