"""Judging by hand from the command line."""

import json
import sys

import pytest

from tasks.swiftcode import judge
from tasks.swiftcode.isolation import isolation
from tests.swiftcode.hostile import ECHO, SUM

pytestmark = pytest.mark.skipif(not isolation().contained, reason=f"no isolation here: {isolation().fault}")

RIGHT = "def solve(xs):\n    return sum(xs)\n"
WRONG = "def solve(xs):\n    return 6\n"
ADDS = "import sys\nprint(sum(map(int, sys.stdin.read().split()[1:])))\n"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """(exit code, stdout, stderr) of the command line; file names are looked up in a fresh folder."""

    def command(*arguments: str):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["judge", *arguments])
        with pytest.raises(SystemExit) as end:
            judge.main()
        said = capsys.readouterr()
        return end.value.code or 0, said.out, said.err

    for name, content in (("right.py", RIGHT), ("wrong.py", WRONG), ("adds.py", ADDS)):
        (tmp_path / name).write_text(content)
    (tmp_path / "sum.json").write_text(json.dumps(SUM))
    return command


def test_a_task_beside_the_programs(run, tmp_path):
    (tmp_path / "task.json").write_text(json.dumps({**SUM, "sizes": {}, "limits": {"cpu_s": 1.0}}))
    code, out, err = run("right.py")
    assert (code, out.split()[:2]) == (0, ["right.py", "accepted"])
    assert err.startswith("isolation: bubblewrap")
    code, out, _ = run("right.py", "wrong.py", "--workers", "2")
    assert code == 1
    assert "wrong.py  wrong_answer" in out
    assert "test 1: 6 instead of 0  (expected: accepted)" in out


def test_a_manifest_beside_the_programs_says_what_is_expected(run, tmp_path):
    programs = [
        {"file": "right.py", "task": SUM, "expected_verdict": "accepted"},
        {"file": "wrong.py", "task": SUM, "expected_verdict": "runtime_error", "also_acceptable": ["wrong_answer"]},
        {"file": "adds.py", "language": "python", "task": ECHO, "expected_verdict": "wrong_answer"},
    ]
    (tmp_path / "manifest.json").write_text(json.dumps({"default_limits": {"cpu_s": 2}, "programs": programs}))
    assert run("right.py", "wrong.py")[0] == 0
    code, out, _ = run("adds.py", "--json")
    (row,) = json.loads(out)
    assert (code, row["verdict"], row["as_expected"]) == (1, "accepted", False)
    assert row["cpu_s"] > 0
    assert row["peak_mb"] > 0


def test_a_task_by_option(run):
    assert run("right.py", "--task", "sum.json")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "files", "said"),
    [
        (["none.py"], {}, "none.py: there is no such file"),
        (["right.py"], {}, "right.py: no task for it: name it with --task"),
        (["right.py", "--task", "none.json"], {}, "right.py: no task for it"),
        (["right.py"], {"task.json": "{"}, "task.json: not valid JSON"),
        (["right.py"], {"task.json": "[]"}, "task.json: not a JSON object"),
        (["right.py"], {"task.json": '{"kind": "function"}'}, "right.py: task: entry_point None is not the name"),
        (["right.py"], {"manifest.json": '{"programs": []}'}, "manifest.json: there is no entry for right.py"),
        (["a.txt", "--task", "sum.json"], {"a.txt": ""}, "a.txt: the suffix '.txt' is of no known language"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, arguments, files, said):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    code, out, err = run(*arguments)
    assert code == 1
    assert out == ""
    assert said in err.splitlines()[-1]
