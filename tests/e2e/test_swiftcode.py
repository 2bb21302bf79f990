"""SwiftCode on a small data set of one's own: plain DVC, and the flow in a second clone that measures for itself.

Costs are instruction counts, so that selection, training and answers are the same bytes in both.
"""

import json
import os
import shutil
import signal
import string
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from tasks.lm.loading import LanguageModel, save
from tasks.lm.tiny import build_model, build_tokenizer
from tasks.swiftcode.isolation import isolation
from tests.e2e.conftest import Clone, project_copy

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not isolation().contained, reason=f"no isolation here: {isolation().fault}"),
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind on this machine"),
]

LOOP = "def {0}(xs):\n    t = 0\n    for x in xs:\n        t += x\n    return t + {1}\n"
CALL = "def {0}(xs):\n    return sum(xs) + {1}\n"


def row(name: str, more: int, split: str, solutions: dict[str, str]) -> dict:
    return {
        "task": name,
        "split": split,
        "kind": "function",
        "entry_point": name,
        "prompt": f'def {name}(xs):\n    """Return the total of the numbers and {more}."""\n',
        "tests": [[[[1, 2, 3]], 6 + more], [[[]], more], [[[5]], 5 + more]],
        "generator": "def generate(size, seed):\n    return [list(range(size))]\n",
        "sizes": {"python": 40_000},
        "solutions": [
            {"language": "python", "name": label, "source": source.format(name, more)}
            for label, source in solutions.items()
        ],
    }


def own_tasks() -> list[dict]:
    both = {"loop": LOOP, "call": CALL}
    return [
        row("total_a", 0, "train", both),
        row("total_b", 1, "train", both),
        row("total_c", 2, "test", {"loop": LOOP}),
    ]


def small(parameters: dict) -> None:
    parameters |= {"datasets": ["mine"], "models": {}, "packages": []}
    parameters["gather"] = {"mine": {"source": "file", "path": "data/raw/mine.jsonl"}}
    answers = {"samples": 2, "max_new_tokens": 8, "hint": False}
    parameters["generate"] = {"mine": {"generators": {"tiny": {"kind": "base"}}, "sampling": answers}}
    parameters["measure"] = {"cost": "instructions", "limits": {"cpu_s": 10.0}}
    parameters["finetune"] = {"mine": {"epochs": 6, "batch": 1, "learning_rate": 0.02}}
    parameters["answers"] = {"mine": answers}
    parameters["evaluate"] = {"k": [1, 2], "n_resamples": 100}


def prepared(clone: Clone) -> Clone:
    raw = clone.root / "data/raw"
    raw.mkdir(parents=True, exist_ok=True)
    (raw / "mine.jsonl").write_text("".join(json.dumps(task) + "\n" for task in own_tasks()))
    tokenizer = build_tokenizer(list(string.printable))
    model = build_model(tokenizer, hidden=32, layers=1, heads=2, intermediate=32, seed=0, max_positions=600)
    save(LanguageModel(model, tokenizer, ""), clone.root / "data/swiftcode/mine/base")
    clone.parameters(small, "swiftcode")
    return clone


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Clone:
    clone = prepared(project_copy(tmp_path_factory.mktemp("swiftcode") / "project"))
    cache = str(tmp_path_factory.mktemp("first"))
    clone.run("dvc", "--wait-for-lock", "repro", "swiftcode", METHODWORKS_CACHE=cache)
    clone.git("add", "-A")
    clone.git("commit", "-qm", "small run")
    return clone


def test_everything_is_made(done):
    metrics = json.loads((done.root / "reports/swiftcode/metrics/mine.json").read_text())
    assert metrics["base.answers"] == 2
    assert {"fastest.pass.1", "random-correct.pass.1", "slowest.pass.1"} <= metrics.keys()
    chosen = pd.read_parquet(done.root / "data/swiftcode/mine/selection.parquet")
    fastest = chosen[[("fastest" in arms) for arms in chosen["arms"]]]
    assert fastest["source"].str.contains("sum").all()
    assert len(fastest) == 2
    slowest = chosen[[("slowest" in arms) for arms in chosen["arms"]]]
    assert slowest["source"].str.contains("for x in xs").all()
    text = (done.root / "reports/swiftcode/summary.md").read_text(encoding="utf-8")
    assert "random-correct" in text
    assert "100" in text.split("do not show", 1)[-1]
    assert "data:image/png;base64," in (done.root / "reports/swiftcode/index.html").read_text(encoding="utf-8")
    assert not list((done.root / "data").rglob("*.partial"))


def test_the_flow_in_a_second_clone_that_measures_anew_gives_the_same_programs_models_and_answers(done, tmp_path):
    done.git("clone", "-q", str(done.root), str(tmp_path / "second"))
    second = Clone(tmp_path / "second")
    for own in ("data/raw/mine.jsonl", "data/swiftcode/mine/base"):
        source, target = done.root / own, second.root / own
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    second.run("flows.swiftcode", "--workers", "2", "--force", METHODWORKS_CACHE=str(tmp_path / "cache"))
    same = ["tasks.parquet", "samples.parquet", "verdicts/train.parquet", "verdicts/test.parquet"]
    same += [f"answers/{name}.parquet" for name in ("base", "random-correct", "fastest", "slowest")]
    same += [f"models/{arm}/adapter_model.safetensors" for arm in ("random-correct", "fastest", "slowest")]
    for name in same:
        first, other = (clone.root / "data/swiftcode/mine" / name for clone in (done, second))
        assert first.read_bytes() == other.read_bytes(), name
    tables = [pd.read_parquet(clone.root / "data/swiftcode/mine/selection.parquet") for clone in (done, second)]
    costs = ["memory_mb", "tmu_mb_s"]  # which are no instructions
    pd.testing.assert_frame_equal(*(table.drop(columns=costs) for table in tables))


def test_a_killed_run_goes_on_without_measuring_again(done, tmp_path):
    cache = tmp_path / "cache"
    command = [sys.executable, "-m", "tasks.swiftcode.measure", "train"]
    folder = "data/swiftcode/mine"
    command += [f"{folder}/tasks.parquet", f"{folder}/verdicts/train.parquet", f"{folder}/samples.parquet"]
    command += ["--out", str(tmp_path / "out.parquet")]
    environment = {**os.environ, "METHODWORKS_CACHE": str(cache)}
    process = subprocess.Popen(
        command, cwd=done.root, env=environment, start_new_session=True, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while not list(cache.glob("measurements/*.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "out.parquet").exists()
    kept = {file: file.read_bytes() for file in cache.glob("measurements/*.jsonl")}
    assert len(kept) == 1  # the first of two tasks
    subprocess.run(command, cwd=done.root, env=environment, check=True, stderr=subprocess.DEVNULL)
    assert (tmp_path / "out.parquet").exists()
    for file, content in kept.items():
        assert file.read_bytes() == content  # not measured again
    assert len(list(cache.glob("measurements/*.jsonl"))) == 2


def test_a_bad_row_stops_the_run_with_one_line_and_nothing_half_written(tmp_path):
    clone = prepared(project_copy(tmp_path / "bad"))
    file = clone.root / "data/raw/mine.jsonl"
    rows = own_tasks()
    rows[1]["kind"] = "method"
    file.write_text("".join(json.dumps(task) + "\n" for task in rows))
    result = clone.run("dvc", "--wait-for-lock", "repro", "swiftcode-check-tasks@mine", check=False)
    assert result.returncode != 0
    line = next(line for line in (result.stdout + result.stderr).splitlines() if line.startswith("error: "))
    assert "data/raw/mine.jsonl: line 2" in line
    assert "'method'" in line
    assert {path.name for path in Path(clone.root / "data/swiftcode/mine").iterdir()} == {"base"}
