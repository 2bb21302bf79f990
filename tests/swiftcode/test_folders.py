"""Folders of tasks: what is read, and every fault with its file and key."""

import json

import pytest

from tasks.stage import UserError
from tasks.swiftcode import folders
from tests.swiftcode.tiny import program, row, write_pool


@pytest.fixture
def folder(tmp_path):
    cpp = {"language": "cpp", "name": "sum", "source": "int main() {}\r\n"}
    total = program(split="train", sizes={"python": 5, "cpp": 7})
    total["solutions"].append(cpp)
    return write_pool(tmp_path / "pool", total, row("add", split="test"))


def test_tasks_are_read_in_the_order_of_their_names(folder):
    (folder / "__pycache__").mkdir()
    (folder / "add/__pycache__").mkdir()
    (folder / "README.md").write_text("about")
    add, total = folders.read(folder)
    expected = row("add")
    assert (add.task, add.split, add.prompt, add.tests) == ("add", "test", expected["prompt"], expected["tests"])
    assert [vars(s) for s in add.solutions] == expected["solutions"]
    assert (add.generator, add.sizes, add.where) == (None, {}, f"{folder}/add/task.json")
    assert (total.task, total.split, total.kind, total.entry_point) == ("total", "train", "stdio", None)
    assert total.generator == program()["generator"]
    assert total.sizes == {"python": 5, "cpp": 7}
    assert [(s.language, s.name, s.source) for s in total.solutions] == [
        ("python", "sum", program()["solutions"][0]["source"]),
        ("cpp", "sum", "int main() {}\n"),
    ]


def about(**changes):
    def change(folder):
        file = folder / "add/task.json"
        content = json.loads(file.read_text()) | changes
        file.write_text(json.dumps({key: value for key, value in content.items() if value is not ...}))

    return change


def remove(name):
    return lambda folder: (folder / name).unlink()


def write(name, content):
    return lambda folder: (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (remove("add/task.json"), "add/task.json: not readable as UTF-8 text: [Errno 2]"),
        (remove("add/prompt.md"), "add/prompt.md: not readable as UTF-8 text: [Errno 2]"),
        (remove("add/way1.py"), "add/way1.py: not readable as UTF-8 text: [Errno 2]"),
        (
            write("add/way1.py", b"\xff"),
            "add/way1.py: not readable as UTF-8 text: 'utf-8' codec can't decode byte 0xff",
        ),
        (write("add/prompt.md", b" \n"), "add/prompt.md: there is nothing in it; a text is needed"),
        (write("add/way2.py", b"x"), "add/way2.py: not named in task.json; name it under solutions, or remove it"),
        (write("add/task.json", b"{"), "add/task.json: not valid JSON: "),
        (write("add/task.json", b"[1]"), "add/task.json: not a JSON object but list; one is needed"),
        (write("add/task.json", b'{"tests": [[[1], NaN]]}'), "add/task.json: not valid JSON: NaN is not JSON"),
        (about(task="x"), "add/task.json: task: unknown key; the folder's name says it"),
        (about(prompt="x"), "add/task.json: prompt: unknown key; prompt.md says it"),
        (about(generator="x"), "add/task.json: generator: unknown key; generator.py says it"),
        (about(more=1), "add/task.json: more: unknown key; allowed are task, split"),
        (about(kind="x"), "add/task.json: kind: 'x' is not allowed: input should be 'function' or 'stdio'"),
        (about(solutions=...), "add/task.json: solutions: missing; there are kind, entry_point, tests"),
        (about(solutions={}), "add/way0.py: not named in task.json"),
        (
            about(solutions={"python": []}),
            "add/task.json: solutions: python: [] is not allowed: list should have at least",
        ),
        (
            about(solutions={"python": ["../way0"]}),
            "add/task.json: solutions: python.0: '../way0' is not allowed: string",
        ),
        (
            about(solutions={"python": ["way0"] * 2}),
            "add/task.json: solutions: python: ['way0', 'way0'] is not allowed: e",
        ),
        (
            about(solutions={"lua": ["way0"]}),
            "add/task.json: solutions: lua.[key]: 'lua' is not allowed: input should be",
        ),
        (
            about(solutions={"python": ["generator"]}),
            "add/task.json: solutions: python: 'generator' is not allowed; gen",
        ),
        (about(solutions={"python": ["way0"]}), "add/way1.py: not named in task.json"),
    ],
)
def test_faults_are_named_with_file_and_key(folder, spoil, message):
    spoil(folder)
    with pytest.raises(UserError) as error:
        folders.read(folder)
    assert str(error.value).startswith(f"{folder}/{message}")
    assert "\n" not in str(error.value)


def test_a_folder_without_tasks_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"there are no folders of tasks in it$"):
        folders.read(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match=r"file: not a folder; a pool of tasks is needed$"):
        folders.read(tmp_path / "file")
