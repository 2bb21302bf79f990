"""The whole method with small parameters: plain DVC, the flow, a second clone, own data, a gate that fails."""

import json
import re
import shutil
import time

import pandas as pd
import pytest

from tests.e2e.conftest import Clone, project_copy

pytestmark = pytest.mark.e2e
METHOD = "label_completion"


def small(parameters: dict) -> None:
    parameters["datasets"] = ["iris", "mine"]
    parameters["simulated"] = ["iris"]
    parameters["ingest"] = {"mine": {"path": "data/raw/mine"}}
    parameters["simulate"]["repeats"] = 2
    parameters["evaluate"]["n_resamples"] = 100


def own_data(folder) -> None:
    folder.mkdir(parents=True)
    tasks = [f"photo{i}" for i in range(12)]
    label = ["cat" if i < 6 else "dog" for i in range(12)]
    answers = [
        (task, worker, label[i] if (i + w) % 5 else "cat")
        for i, task in enumerate(tasks)
        for w, worker in enumerate(["ann", "bob", "cem"])
        if (i * 3 + w) % 2
    ]
    pd.DataFrame(answers, columns=["task", "worker", "label"]).to_csv(folder / "answers.csv", index=False)
    features = pd.DataFrame(
        {"task": tasks, "size": [i % 6 + 10 * (i > 5) for i in range(12)], "place": ["in", "out"] * 6}
    )
    features.to_csv(folder / "features.csv", index=False)
    pd.DataFrame({"task": tasks, "label": label}).to_csv(folder / "truth.csv", index=False)


@pytest.fixture(scope="module")
def done(clone: Clone) -> Clone:
    """A clone in which plain `dvc repro` has run once, lock and metrics committed."""
    own_data(clone.root / "data/raw/mine")
    clone.parameters(small)
    clone.run("dvc", "--wait-for-lock", "repro", METHOD)
    clone.git("add", "-A")
    clone.git("commit", "-qm", "small run")
    return clone


def test_everything_is_made(done):
    metrics = {
        name: json.loads((done.root / f"reports/{METHOD}/metrics/{name}.json").read_text()) for name in ("iris", "mine")
    }
    assert metrics["iris"]["data.repeats"] == 2
    assert metrics["mine"]["data.tasks"] == 12
    for values in metrics.values():
        assert 0.5 < values["accuracy.ldplc.majority"] <= 1
        assert (
            values["accuracy.ldplc.majority.low"]
            <= values["accuracy.ldplc.majority"]
            <= values["accuracy.ldplc.majority.high"]
        )
    page = (done.root / f"reports/{METHOD}/index.html").read_text(encoding="utf-8")
    assert "mine" in page
    assert not re.search(r'(src|href)="https?://[^"]+\.(js|css|png)"', page)
    assert not list((done.root / "data").rglob("*.partial"))
    shown = done.run("dvc", "metrics", "show").stdout
    assert "accuracy.ldplc.majority" in shown


def test_a_second_run_is_a_no_op(done):
    begin = time.process_time(), time.monotonic()
    again = done.run("dvc", "--wait-for-lock", "repro", METHOD)
    assert "Data and pipelines are up to date" in again.stdout
    assert "Running stage" not in again.stdout
    assert time.monotonic() - begin[1] < 30  # 1.4 s on an idle machine; `make bench` measures it
    assert done.git("status", "--porcelain") == ""


def test_the_flow_rebuilds_the_same_bytes_in_a_second_clone(done, tmp_path):
    second = project_copy_of(done, tmp_path / "second")
    result = second.run(f"flows.{METHOD}", "--workers", "2", "--force")
    assert second.git("status", "--porcelain") == "", second.git("diff", "--stat")
    assert (second.root / "reports/index.html").stat().st_size > 10_000
    assert "label_completion-complete@iris" in result.stdout + result.stderr
    assert "up to date" in second.run("dvc", "status", METHOD, "--with-deps").stdout


def project_copy_of(done: Clone, where) -> Clone:
    done.git("clone", "-q", str(done.root), str(where))
    shutil.copytree(done.root / "data/raw/mine", where / "data/raw/mine")
    return Clone(where)


def test_bad_own_data_stop_the_run_with_one_line_and_nothing_half_written(tmp_path):
    clone = project_copy(tmp_path / "bad")
    own_data(clone.root / "data/raw/mine")
    answers = clone.root / "data/raw/mine/answers.csv"
    answers.write_text(answers.read_text() + "photo99,ann,cat\n")
    clone.parameters(small)
    result = clone.run("dvc", "--wait-for-lock", "repro", "label_completion-complete@mine", check=False)
    assert result.returncode != 0
    line = next(line for line in (result.stdout + result.stderr).splitlines() if line.startswith("error: "))
    assert "data/raw/mine/answers: row" in line
    assert "'photo99' has no features" in line
    assert not (clone.root / f"data/{METHOD}/mine/dataset").exists()
    assert not (clone.root / f"data/{METHOD}/checks").exists()


def test_a_failing_gate_stops_what_depends_on_it(tmp_path):
    clone = project_copy(tmp_path / "gate")
    own_data(clone.root / "data/raw/mine")
    answers = clone.root / "data/raw/mine/answers.csv"
    table = pd.read_csv(answers)
    table[table["worker"] == "ann"].to_csv(answers, index=False)  # one worker: nothing to compare
    clone.parameters(small)
    result = clone.run("dvc", "--wait-for-lock", "repro", "label_completion-complete@mine", check=False)
    said = result.stdout + result.stderr
    assert result.returncode != 0
    assert "answers: column worker: column_unique_value_count_to_be_between (min_value=2): observed 1" in said
    assert "gate answers of label_completion: 1 expectation failed" in said
    assert not (clone.root / f"data/{METHOD}/mine/completed.parquet").exists()
    assert not (clone.root / f"data/{METHOD}/checks/mine/answers.json").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p["complete"].update(alpha=1.5), "label_completion.complete.alpha: 1.5 is not allowed"),
        (lambda p: p["complete"].update(n_neighbours=3), "label_completion.complete.n_neighbours: unknown key"),
        (lambda p: p["complete"].update(methods="all"), "label_completion.complete.methods: 'all' is not allowed"),
    ],
)
def test_a_wrong_parameter_stops_the_stage_naming_the_key(done, change, message):
    before = (done.root / "params.yaml").read_text()
    try:
        done.parameters(change)
        result = done.run("dvc", "--wait-for-lock", "repro", "-s", "label_completion-complete@iris", check=False)
    finally:
        (done.root / "params.yaml").write_text(before)
    assert result.returncode != 0
    assert message in result.stdout + result.stderr
    done.run("dvc", "checkout", "-q", "--allow-missing")
