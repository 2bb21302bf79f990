"""The stages one after the other: the same bytes every time, wherever the blocks are computed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.label_completion import aggregate, complete, completion, evaluate, propagation, simulate
from tasks.label_completion.dataset import Dataset, read_dataset, write_dataset
from tasks.label_completion.schemas import AGGREGATED, ANSWERS, COMPLETED, TRUTH, VOTES, WORKERS
from tasks.tables import read_table, write_table
from tests.workspace import REPOSITORY, Workspace

PARAMETERS = {
    "datasets": ["iris"],
    "simulated": ["iris"],
    "archives": [],
    "ingest": {},
    "simulate": {"n_workers": 12, "labelling_probability": [0.05, 0.3], "repeats": 3, "seed": 3},
    "complete": {"methods": ["wslc", "ldplc", "instance"]},
    "aggregate": {"methods": ["majority", "dawid_skene", "iwmv", "gtic", "wawa"], "crowdkit": ["DawidSkene"]},
    "evaluate": {"n_resamples": 100},
}
COMPLETE = ("data/iris/dataset", "--completed", "data/iris/completed.parquet", "--votes", "data/iris/votes.parquet")
AGGREGATE = (
    *("data/iris/dataset", "data/iris/completed.parquet", "data/iris/votes.parquet"),
    *("--aggregated", "data/iris/aggregated.parquet", "--workers", "data/iris/workers.parquet"),
)
FILES = ("data/iris/completed.parquet", "data/iris/votes.parquet", "data/iris/aggregated.parquet")


def good(answer: tuple[int, str]) -> None:
    code, said = answer
    assert code == 0, said


def run_all(workspace: Workspace) -> dict[str, bytes]:
    """Complete, aggregate, evaluate; all that was written."""
    good(workspace.run(complete, *COMPLETE))
    good(workspace.run(aggregate, *AGGREGATE))
    good(workspace.run(evaluate, "data", "--out", "metrics"))
    return {name: Path(name).read_bytes() for name in (*FILES, "data/iris/workers.parquet", "metrics/iris.json")}


@pytest.fixture
def repeats(workspace: Workspace) -> Workspace:
    """Simulated answers for iris, three repeats: the repeats are the blocks."""
    workspace.parameters(**PARAMETERS)
    good(workspace.run(simulate, "iris", "--out", "data/iris/dataset"))
    return workspace


def many_workers(n_tasks: int, n_workers: int, seed: int = 0) -> Dataset:
    generator = np.random.default_rng(seed)
    tasks = pd.Index([f"t{i:05d}" for i in range(n_tasks)], name="task")
    truth = generator.integers(0, 3, n_tasks)
    features = pd.DataFrame(generator.normal(size=(n_tasks, 4)) + truth[:, None], index=tasks, columns=list("abcd"))
    task, worker = np.nonzero(generator.random((n_tasks, n_workers)) < 0.03)
    label = (truth[task] + (generator.random(len(task)) < 0.3)) % 3
    names = np.array(["x", "y", "z"])
    answers = pd.DataFrame({"repeat": 0, "task": tasks[task], "worker": worker, "label": names[label]})
    answers["worker"] = "w" + answers["worker"].astype(str).str.zfill(4)
    return Dataset(answers, features, pd.Series(names[truth], index=tasks, name="label"), list(names), "made up")


@pytest.fixture
def single(workspace: Workspace) -> Workspace:
    """One repeat and 253 workers: blocks of workers are the blocks."""
    workspace.parameters(**PARAMETERS)
    (workspace.root / "data/iris").mkdir(parents=True)
    write_dataset(workspace.root / "data/iris/dataset", many_workers(60, 300))
    return workspace


@pytest.fixture(scope="module")
def cluster():
    from distributed import LocalCluster

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(REPOSITORY), before]))
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as here:
        yield here
    os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


@pytest.mark.parametrize("kind", ["repeats", "single"])
def test_same_bytes_again_with_two_processes_and_on_a_cluster(kind, cluster, request, monkeypatch):
    workspace = request.getfixturevalue(kind)
    expected = run_all(workspace)
    assert all(len(content) > 100 for content in expected.values())
    assert run_all(workspace) == expected
    for environment in ({"WORKERS": "2"}, {"SCHEDULER": cluster.scheduler_address}):
        for name, value in environment.items():
            monkeypatch.setenv(f"METHODWORKS_{name}", value)
        assert run_all(workspace) == expected, environment
        for name in environment:
            monkeypatch.delenv(f"METHODWORKS_{name}")


def test_blocks_of_workers_are_several_and_their_number_changes_no_label(single, monkeypatch):
    good(single.run(complete, *COMPLETE))
    expected = [read_table(Path(FILES[0]), COMPLETED), read_table(Path(FILES[1]), VOTES)]
    assert propagation.block_size(60, 3) < 253
    monkeypatch.setattr(propagation, "block_size", lambda n_tasks, n_classes: 7)
    good(single.run(complete, *COMPLETE))
    pd.testing.assert_frame_equal(read_table(Path(FILES[0]), COMPLETED), expected[0])
    pd.testing.assert_frame_equal(read_table(Path(FILES[1]), VOTES), expected[1])


@pytest.mark.parametrize("kind", ["repeats", "workers"])
def test_a_killed_dask_worker_changes_no_byte(kind, cluster, workspace):
    """The worker dies when the first blocks are done and others are not."""
    workspace.parameters(**{**PARAMETERS, "complete": {"methods": ["ldplc"]}})
    data = many_workers(1500, 600) if kind == "workers" else many_workers(900, 300)
    if kind == "repeats":
        answers = [data.answers.assign(repeat=repeat) for repeat in range(8)]
        data = Dataset(pd.concat(answers), data.features, data.truth, data.classes, data.origin)
    (workspace.root / "data/iris").mkdir(parents=True)
    write_dataset(workspace.root / "data/iris/dataset", data)
    good(workspace.run(complete, *COMPLETE))
    expected = [Path(name).read_bytes() for name in FILES[:2]]
    for name in FILES[:2]:
        Path(name).unlink()

    process = subprocess.Popen(
        [sys.executable, "-m", "tasks.label_completion.complete", *COMPLETE],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "METHODWORKS_SCHEDULER": cluster.scheduler_address},
        stderr=subprocess.PIPE,
    )
    victim, victim_pid, deadline = None, None, time.monotonic() + 60
    while victim is None and time.monotonic() < deadline and process.poll() is None:
        tasks = [task for task in list(cluster.scheduler.tasks.values()) if "_with_shared" in task.key]
        busy = [task for task in tasks if task.state == "processing"]
        if busy and (kind == "workers" or len(busy) < len(tasks)):
            address = busy[0].processing_on.address
            victim = next(w for w in cluster.workers.values() if w.worker_address == address)
            victim_pid = victim.pid
            os.kill(victim_pid, signal.SIGKILL)
        time.sleep(0.002)
    assert victim_pid is not None, "nothing was being computed"
    assert process.poll() is None, "the stage was over before"
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said.decode()
    assert [Path(name).read_bytes() for name in FILES[:2]] == expected


def test_hashes_and_the_order_of_rows_change_no_byte(repeats):
    expected = run_all(repeats)
    path = Path("data/iris/dataset/answers.parquet")
    write_table(path, read_table(path, ANSWERS).sample(frac=1, random_state=1), ANSWERS)
    for stage, arguments in (
        ("complete", COMPLETE),
        ("aggregate", AGGREGATE),
        ("evaluate", ("data", "--out", "metrics")),
    ):
        done = repeats.shell(f"tasks.label_completion.{stage}", *arguments, PYTHONHASHSEED="77")
        assert done.returncode == 0, done.stderr
    assert {name: Path(name).read_bytes() for name in expected} == expected


def test_completed_tables_hold_what_they_say(repeats):
    run_all(repeats)
    data = read_dataset(Path("data/iris/dataset"))
    cells, votes = read_table(Path(FILES[0]), COMPLETED), read_table(Path(FILES[1]), VOTES)
    assert set(cells["method"]) == {"wslc", "ldplc"}
    assert set(votes["method"]) == {"wslc", "ldplc", "instance"}
    n_workers = len(data.answers["worker"].cat.categories)
    assert len(cells[cells["method"] == "ldplc"]) == 3 * 150 * n_workers
    assert not cells.duplicated(["method", "repeat", "task", "worker"]).any()
    assert len(votes) == 3 * 3 * 150 * 3
    for method in ("wslc", "ldplc"):
        for repeat in range(3):
            part = cells[(cells["method"] == method) & (cells["repeat"] == repeat)]
            given = data.answers[data.answers["repeat"] == repeat].set_index(["task", "worker"])["label"]
            kept = part[~part["imputed"]].set_index(["task", "worker"])["label"]
            assert kept.astype(str).sort_index().equals(given.astype(str).sort_index())
            counted = part.groupby(["task", "label"], observed=True).size()
            said = votes[(votes["method"] == method) & (votes["repeat"] == repeat) & (votes["votes"] > 0)]
            said = said.rename(columns={"class": "label"}).set_index(["task", "label"])["votes"]
            assert counted.rename("votes").astype(int).sort_index().to_dict() == said.sort_index().to_dict()


def test_metrics_are_counts_of_right_labels(repeats):
    run_all(repeats)
    metrics = json.loads(Path("metrics/iris.json").read_text())
    data = read_dataset(Path("data/iris/dataset"))
    labels = read_table(Path("data/iris/aggregated.parquet"), AGGREGATED)
    right = labels["label"].astype(str) == labels["task"].astype(str).map(data.truth)
    for (how, by), part in right.groupby([labels["completion"].astype(str), labels["aggregator"].astype(str)]):
        key = f"accuracy.{how}.{by.replace('crowdkit:', 'crowdkit_')}"
        assert len(part) == 3 * 150
        assert metrics[key] == pytest.approx(part.mean(), abs=1e-6)
        assert metrics[f"{key}.low"] <= metrics[key] <= metrics[f"{key}.high"]
    cells = read_table(Path(FILES[0]), COMPLETED)
    cells = cells[cells["imputed"]]
    right = cells["label"].astype(str) == cells["task"].astype(str).map(data.truth)
    for method, part in right.groupby(cells["method"].astype(str)):
        assert metrics[f"cells.{method}"] == pytest.approx(part.mean(), abs=1e-6)
    difference = metrics["accuracy.ldplc.majority"] - metrics["accuracy.raw.majority"]
    assert metrics["difference.ldplc.majority.minus.raw.majority"] == pytest.approx(difference, abs=2e-6)
    given = data.answers["label"].astype(str) == data.answers["task"].astype(str).map(data.truth)
    assert metrics["data.answer_accuracy"] == pytest.approx(given.mean(), abs=1e-6)
    assert (metrics["data.tasks"], metrics["data.workers"], metrics["data.repeats"]) == (150, 12, 3)
    workers = read_table(Path("data/iris/workers.parquet"), WORKERS)
    assert len(workers) == 6 * 3 * 12
    assert workers["answers"].groupby(workers["aggregator"].astype(str)).sum().nunique() == 1


@pytest.mark.parametrize("kind", ["repeats", "single"])
def test_votes_without_a_matrix(kind, request):
    """The same votes as with a matrix, no cells, and the same labels by majority."""
    workspace = request.getfixturevalue(kind)
    run_all(workspace)
    votes = Path(FILES[1]).read_bytes()
    labels = read_table(Path("data/iris/aggregated.parquet"), AGGREGATED)
    workspace.parameters(**{**PARAMETERS, "complete": {"output": "votes"}})
    run_all(workspace)
    assert len(read_table(Path(FILES[0]), COMPLETED)) == 0
    assert Path(FILES[1]).read_bytes() == votes
    without = read_table(Path("data/iris/aggregated.parquet"), AGGREGATED)
    keys = ["completion", "aggregator", "repeat", "task"]
    both = labels.astype(dict.fromkeys([*keys[:2], "task", "label"], "str")).merge(
        without.astype(dict.fromkeys([*keys[:2], "task", "label"], "str")), on=keys, validate="1:1"
    )
    assert set(both["completion"]) == {"raw", "wslc", "ldplc", "instance"}
    tied = both["tie_x"] & both["tie_y"]
    answered = both["confidence_x"] > 0
    assert (both["tie_x"] == both["tie_y"]).all()
    assert (both["label_x"] == both["label_y"])[answered & ~tied].all()
    np.testing.assert_allclose(both["confidence_x"], both["confidence_y"], atol=1e-8)
    assert "cells.ldplc" not in json.loads(Path("metrics/iris.json").read_text())


@pytest.mark.parametrize("methods", [["instance"], ["wslc"], ["ldplc", "instance"]])
def test_some_methods_only(methods, repeats):
    repeats.parameters(**{**PARAMETERS, "complete": {"methods": methods}})
    run_all(repeats)
    assert set(read_table(Path(FILES[1]), VOTES)["method"]) == set(methods)
    labels = read_table(Path("data/iris/aggregated.parquet"), AGGREGATED)
    assert set(labels["completion"]) == {"raw", *methods}
    assert labels["label"].notna().all()


def test_without_truth(repeats):
    path = Path("data/iris/dataset/truth.parquet")
    write_table(path, read_table(path, TRUTH).assign(label=None), TRUTH)
    run_all(repeats)
    metrics = json.loads(Path("metrics/iris.json").read_text())
    assert all(key.startswith("data.") for key in metrics)
    assert metrics["data.answer_accuracy"] is None
    assert metrics["data.tasks"] == 150


def test_truth_of_some_tasks(repeats):
    path = Path("data/iris/dataset/truth.parquet")
    truth = read_table(path, TRUTH)
    write_table(path, truth.assign(label=truth["label"].mask(truth.index >= 60)), TRUTH)
    run_all(repeats)
    metrics = json.loads(Path("metrics/iris.json").read_text())
    labels = read_table(Path("data/iris/aggregated.parquet"), AGGREGATED)
    labels = labels[(labels["completion"] == "ldplc") & (labels["aggregator"] == "majority")]
    known = labels[labels["task"].isin(truth["task"][:60])]
    right = known["label"].astype(str) == known["task"].astype(str).map(truth.set_index("task")["label"])
    assert metrics["accuracy.ldplc.majority"] == pytest.approx(right.mean(), abs=1e-6)


def test_a_data_set_that_was_dropped_leaves_no_metrics(repeats):
    run_all(repeats)
    Path("metrics/old.json").write_text("{}")
    good(repeats.run(evaluate, "data", "--out", "metrics"))
    assert [path.name for path in Path("metrics").iterdir()] == ["iris.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 1}, "params.yaml: label_completion.complete.alpha: 1 is not allowed"),
        ({"n_neighbors": 0}, "label_completion.complete.n_neighbors: 0 is not allowed"),
        ({"n_neighbors": 2.5}, "label_completion.complete.n_neighbors: 2.5 is not allowed"),
        ({"methods": ["mnldp"]}, "label_completion.complete.methods.0: 'mnldp' is not allowed"),
        ({"methods": []}, "label_completion.complete.methods: [] is not allowed"),
        ({"output": "all"}, "label_completion.complete.output: 'all' is not allowed"),
        ({"k": 5}, "label_completion.complete.k: unknown key"),
    ],
)
def test_completion_refuses_parameters(change, message, single):
    single.parameters(**{**PARAMETERS, "complete": change})
    before = single.files()
    code, said = single.run(complete, *COMPLETE)
    assert (code, said.count("\n")) == (1, 1)
    assert message in said
    assert single.files() == before


@pytest.mark.parametrize("part", ["answers.parquet", "features.parquet", "truth.parquet", "schema.json"])
def test_a_damaged_data_set_leaves_nothing_behind(part, single):
    path = Path("data/iris/dataset") / part
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    before = single.files()
    code, said = single.run(complete, *COMPLETE)
    assert (code, said.count("\n")) == (1, 1)
    assert f"data/iris/dataset/{part}: not" in said
    assert single.files() == before


def test_too_large_a_matrix_names_the_way_out(single, monkeypatch):
    monkeypatch.setattr(completion, "MATRIX_CELLS", 15_000)
    before = single.files()
    code, said = single.run(complete, *COMPLETE)
    assert (code, said.count("\n")) == (1, 1)
    assert "60 × 253 cells, more than 15000; ask for return_='votes' or 'soft' (stage: output: votes)" in said
    assert single.files() == before
    single.parameters(**{**PARAMETERS, "complete": {"output": "votes"}})
    good(single.run(complete, *COMPLETE))
