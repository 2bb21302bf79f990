"""Runs of a toy repository through real DVC and Prefect processes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flows import guard
from tests.flows.conftest import Toy, states, times, wait_for

pytestmark = pytest.mark.e2e
TOY_STAGES = {"toy-ingest", "toy-train@a", "toy-train@b", "toy-check", "toy-evaluate", "toy"}
OTHER_STAGES = {"other-left", "other-right", "other"}


def every(state: str, stages: set[str] = TOY_STAGES) -> dict[str, str]:
    return dict.fromkeys(stages, state)


def server_runs(toy: Toy) -> list[dict]:
    """Name, state and message of all flow runs that the server knows, the newest first."""
    return json.loads(
        toy.python(
            "import json; from prefect import get_client\n"
            "from prefect.client.schemas.sorting import FlowRunSort as Sort\n"
            "with get_client(sync_client=True) as client:\n"
            "    runs = client.read_flow_runs(sort=Sort.START_TIME_DESC, limit=20)\n"
            "print(json.dumps([{'id': str(r.id), 'state': r.state_name, 'message': r.state.message} for r in runs]))"
        )
    )


def published(toy: Toy) -> dict[str, str]:
    """The newest data of each artifact."""
    return json.loads(
        toy.python(
            "import json; from prefect import get_client\n"
            "from prefect.client.schemas.filters import ArtifactCollectionFilter\n"
            "with get_client(sync_client=True) as client:\n"
            "    answer = client._client.post('/artifacts/latest/filter', json={})\n"
            "print(json.dumps({a['key']: a['data'] for a in answer.json()}))"
        )
    )


def test_first_run_then_cached_then_one_file_touched(toy: Toy) -> None:
    (toy.root / "tasks/report").mkdir()
    (toy.root / "tasks/report/__init__.py").touch()
    (toy.root / "tasks/report/index.py").write_text(
        "import pathlib, sys; pathlib.Path(sys.argv[3]).write_text(' '.join(sys.argv[1:]))"
    )
    first = toy.run("--workers", "2")
    assert states(first) == every("Completed") | {"report": "Completed"}
    assert "6 of 6 stages ran" in first
    assert f"processes: {max(1, os.cpu_count() // 2)}" in first  # METHODWORKS_WORKERS, in a streamed line
    assert toy.locked() == TOY_STAGES
    assert (toy.root / "reports/index.html").read_text() == "reports --out reports/index.html"

    found = published(toy)
    stages = json.loads(found["toy-stages"])
    assert {row["stage"]: row["state"] for row in stages} == every("Completed")
    assert all(row["seconds"] > 0 for row in stages)
    assert json.loads(found["toy-metrics"]) == [
        {"stage": "toy-evaluate", "file": "all.json", "metric": "accuracy", "value": 0.5},
        {"stage": "toy-evaluate", "file": "all.json", "metric": "nested.low", "value": 0.1},
    ]
    assert "![curve.png](data:image/png;base64,iVBOR" in found["toy-figure-curve"]
    assert "### toy-check: passed" in found["toy-checks"]
    assert "| m | 2,000 | column values unique | task | passed |" in found["toy-checks"]

    assert states(toy.run()) == every("Cached") | {"report": "Completed"}
    assert json.loads(published(toy)["toy-stages"])[0] == {"stage": "toy-ingest", "state": "Cached", "seconds": 0.0}

    # An input that changes without changing what is made of it: DVC stops early, and so does the engine.
    (toy.root / "raw/own.csv").write_text("1 \n")
    assert states(toy.run()) == every("Cached") | {"toy-ingest": "Completed", "report": "Completed"}


@pytest.mark.parametrize("workers", ["2", "1"])
def test_independent_stages_overlap_when_they_may(toy: Toy, workers: str) -> None:
    toy.order("slow-left")
    toy.order("slow-right")
    toy.run("--workers", workers, module="flows.other")
    (begin_left, end_left), (begin_right, end_right) = times(toy, "left"), times(toy, "right")
    assert (max(begin_left, begin_right) < min(end_left, end_right)) == (workers == "2")


def test_a_stage_that_waits_for_another_keeps_no_place_from_a_third(toy: Toy) -> None:
    with (toy.root / "dvc.yaml").open("a") as file:  # by name between left and right
        file.write("  other-next: {cmd: python steps.py next data/other/next.txt, deps: [data/other/left.txt],")
        file.write(" outs: [data/other/next.txt]}\n")
    toy.edit("deps: [data/other/left.txt,", "deps: [data/other/next.txt, data/other/left.txt,", "dvc.yaml")
    toy.order("slow-left")
    toy.order("slow-right")
    toy.run("--workers", "2", module="flows.other")
    (begin_left, end_left), (begin_right, end_right) = times(toy, "left"), times(toy, "right")
    assert max(begin_left, begin_right) < min(end_left, end_right)


def test_failure_stops_what_depends_on_it_and_nothing_else(toy: Toy) -> None:
    toy.order("fail-train-b")
    output = toy.run(code=1)
    assert states(output) == {
        "toy-ingest": "Completed",
        "toy-train@a": "Completed",
        "toy-train@b": "Failed",
        **every("NotReady", {"toy-check", "toy-evaluate", "toy"}),
    }
    assert not (toy.root / "data/toy/checks/all/models.json").exists()
    end = output[output.index("error: toy: stage toy-train@b failed") :]
    assert "error: toy.train-b: column label: 7 rows are bad" in end
    assert "Traceback" not in output
    assert server_runs(toy)[0]["state"] == "Failed"


def test_retry_and_timeout_come_from_meta(toy: Toy) -> None:
    toy.order("flaky-ingest")
    output = toy.run()
    assert "no network" in output
    assert "Retry 1/" in output
    assert states(output) == every("Completed")

    toy.edit("timeout_s: 20", "timeout_s: 1.5", "dvc.yaml")
    toy.order("hang-ingest")
    begin = time.monotonic()
    output = toy.run("--force", code=1)
    assert "Retry 1/" in output
    assert "stage toy-ingest failed (it took longer than 1.5 s)" in output
    assert time.monotonic() - begin < 120  # the stage hangs for 600 s
    assert not toy.processes()


def test_second_run_waits_for_the_first(toy: Toy) -> None:
    toy.order("hang-left")
    first = toy.start(module="flows.other")
    wait_for((toy.orders / "hanging-left").exists, what="the first run's stage")
    second = toy.start(module="flows.other")
    wait_for(lambda: f"another run (process {first.pid}) works in this workspace" in toy.output, what="the notice")
    time.sleep(1)
    assert second.poll() is None
    (toy.orders / "hang-left").unlink()
    first.kill()  # a killed run's lock does not block
    assert second.wait(120) == 0, toy.output
    assert toy.output.count("another run") == 1
    assert toy.locked() >= OTHER_STAGES
    crashed = server_runs(toy)[1]
    assert (crashed["state"], crashed["message"]) == ("Crashed", f"process {first.pid} ended without reporting")


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "SIGINT", "dvc"])
def test_no_process_outlives_a_run(toy: Toy, how: str) -> None:
    toy.order("hang-left")
    toy.order("hang-right")
    flow = toy.start(module="flows.other")
    for side in ("left", "right"):
        wait_for((toy.orders / f"hanging-{side}").exists, what=f"stage {side}")
    assert len(toy.processes()) >= 10  # flow, guard, and for each stage dvc, shell, stage, child, grandchild
    if how == "dvc":
        for process in toy.processes():
            if "repro" in process.cmdline():
                process.kill()
    elif how == "SIGINT":
        os.killpg(flow.pid, signal.SIGINT)  # as a terminal does
    else:
        flow.send_signal(getattr(signal, how))
    code = flow.wait(60)
    wait_for(lambda: not toy.processes(), 60, "the end of all processes")
    assert code == {"SIGKILL": -9, "SIGTERM": -15, "SIGINT": 130, "dvc": 1}[how]
    assert "Traceback" not in toy.output

    (toy.orders / "hang-left").unlink()
    (toy.orders / "hang-right").unlink()
    assert states(toy.run(module="flows.other")) == every("Completed", OTHER_STAGES) | {"shared.csv.dvc": "Cached"}
    assert toy.locked() == OTHER_STAGES


def test_without_a_server(toy: Toy) -> None:
    toy.environment = {"PREFECT_HOME": str(toy.root / ".prefect"), "PREFECT_API_URL": ""}
    flow = toy.start("other", module="flows")
    wait_for(lambda: any("uvicorn" in process.cmdline() for process in toy.processes()), what="the temporary server")
    flow.kill()
    flow.wait()
    wait_for(lambda: not toy.processes(), 60, "the end of the temporary server")
    assert states(toy.run("other", module="flows"))["other"] == "Completed"
    wait_for(lambda: not toy.processes(), 60, "the end of the guard")
    assert toy.git("status", "--short").split() == ["??", "dvc.lock"]


def test_four_at_once_never_lose_an_entry_of_the_lock(toy: Toy) -> None:
    """Cases of DVC's tracker: branches that share an unchanged input, at once (10465, 9805, 11054, 5795)."""
    wide = [f"other-{i}" for i in range(4)]
    for name in wide:
        stage = {"cmd": f"python steps.py {name} data/other/{name}", "deps": ["shared.csv"]}
        text = json.dumps(stage | {"outs": [f"data/other/{name}"]})
        with (toy.root / "dvc.yaml").open("a") as file:
            file.write(f"  {name}: {text}\n")
    more = ", ".join(f"data/other/{name}" for name in wide)
    toy.edit("deps: [data/other/left.txt,", f"deps: [{more}, data/other/left.txt,", "dvc.yaml")
    wanted = OTHER_STAGES | set(wide)
    for _ in range(2):
        (toy.root / "dvc.lock").unlink(missing_ok=True)
        output = toy.run("--workers", "4", "--force", module="flows.other")
        assert states(output).items() >= every("Completed", wanted).items()
        assert toy.locked() == wanted
    assert states(toy.run(module="flows")) == every("Completed") | every("Cached", wanted) | {
        "shared.csv.dvc": "Cached"
    }
    assert toy.dvc("status").strip() == "Data and pipelines are up to date."


def test_three_flows_report_at_once(toy: Toy, tmp_path: Path) -> None:
    """Prefect's cases 10188 and 19771: SQLite's "database is locked"."""
    copies = [shutil.copytree(toy.root, tmp_path / name) for name in ("second", "third")]
    toys = [toy, *(Toy(copy, toy.environment) for copy in copies)]
    runs = [toy.start(module="flows.other") for toy in toys]
    assert [run.wait(300) for run in runs] == [0, 0, 0]
    for toy in toys:
        assert states(toy.output)["other"] == "Completed"
        assert "database is locked" not in toy.output


RUN = """
import sys, json
from flows.toy import toy
state = toy(json.loads(sys.argv[1]), return_state=True)
print(state.message)
sys.exit(not state.is_completed())
"""


def with_parameters(toy: Toy, parameters: dict) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, json.dumps(parameters)],
        cwd=toy.root,
        env=os.environ | toy.environment | {"TOY_ORDERS": str(toy.orders)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_changed_parameters_run_as_experiments(toy: Toy) -> None:
    """Two at once, with an uncommitted edit and an input outside git, while the workspace stays as it is."""
    toy.run()
    toy.commit()
    toy.edit("sleep_s: 0", "sleep_s: 0.1  # mine")
    before = toy.git("status", "--short"), (toy.root / "dvc.lock").read_text(), toy.git("diff")
    leftover = toy.root / ".dvc/tmp/flows/dead"  # of a killed run
    leftover.mkdir(parents=True)
    leftover.with_name("dead.lock").touch()

    runs = [with_parameters(toy, {"ingest": {"path": "raw/own.csv"}, "train": {"rate": r}}) for r in (0.25, 0.75)]
    outputs = [run.communicate(timeout=300)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], outputs
    names = [output.strip().splitlines()[-1].split("experiment ")[1] for output in outputs]
    for output, name in zip(outputs, names, strict=True):
        assert name.startswith("toy-rate-")
        assert states(output) == every("Completed") | {"toy-ingest": "Cached"}
    assert (toy.git("status", "--short"), (toy.root / "dvc.lock").read_text(), toy.git("diff")) == before
    assert len(toy.git("worktree", "list").splitlines()) == 1
    assert not list((toy.root / ".dvc/tmp/flows").iterdir())
    assert set(toy.dvc("exp", "list", "--name-only").split()) == set(names)
    [row] = [r for r in toy.dvc("exp", "show", "--csv").splitlines() if names[1] in r]
    assert "0.75" in row

    toy.git("checkout", "--quiet", ".")
    # Its exit code says that the other method's outputs are not there; they never were.
    subprocess.run([sys.executable, "-m", "dvc", "exp", "apply", names[1]], cwd=toy.root, capture_output=True)
    text = (toy.root / "params.yaml").read_text()
    assert "    # the step size\n    rate: 0.75\n    sleep_s: 0.1  # mine\n" in text
    assert (toy.root / "data/toy/a.txt").read_text() == "a 0.75\n"
    assert json.loads((toy.root / "reports/toy/metrics/all.json").read_text())["accuracy"] == 0.75
    assert states(toy.run()) == every("Cached")


def test_experiment_with_other_own_data_beside_the_repository(toy: Toy) -> None:
    (toy.root.parent / "beside.csv").write_text("3\n")
    run = with_parameters(toy, {"ingest": {"path": "../beside.csv"}, "train": {"rate": 0.5}})
    output = run.communicate(timeout=300)[0]
    assert run.returncode == 0, output
    assert "toy-path-" in output
    assert not (toy.root / "data").exists()
    run = with_parameters(toy, {"ingest": {"path": "../nowhere.csv"}, "train": {"rate": 0.5}})
    output = run.communicate(timeout=300)[0]
    assert run.returncode == 1
    assert "nowhere.csv" in output.strip().splitlines()[-1]
    assert len(toy.git("worktree", "list").splitlines()) == 1


def test_bad_input_is_one_line(toy: Toy) -> None:
    output = toy.run("nonsense", module="flows", code=2)
    assert output == "error: there is no method nonsense; methods in params.yaml: other, toy\n"
    run = with_parameters(toy, {"ingest": {"path": "x"}, "train": {"rate": 2}})
    output = run.communicate(timeout=300)[0]
    assert run.returncode
    assert "parameters.train.rate" in output
    assert "less than or equal to 1" in output
    toy.edit("rate: 0.5", "rate: 7")
    assert toy.run(code=1) == (
        f"error: {toy.root}/params.yaml: toy.train.rate: 7 is not allowed: input should be less than or equal to 1\n"
    )


@pytest.mark.parametrize("left", ["", "schema: '2.0'\nstages:\n  toy-ing"])
def test_a_damaged_lock_is_put_back(toy: Toy, left: str) -> None:
    """DVC writes dvc.lock in place: killed in that moment, it leaves the file empty or cut."""
    toy.run()
    toy.run()  # begins with the complete lock, and keeps it
    good = (toy.root / "dvc.lock").read_text()
    (toy.root / "dvc.lock").write_text(left)
    (toy.root / ".dvc/tmp/rwlock").write_text('{"da')
    output = toy.run()
    assert "dvc.lock is damaged" in output
    assert states(output) == every("Cached")
    assert (toy.root / "dvc.lock").read_text() == good


def test_a_damaged_lock_without_a_copy_is_one_line(toy: Toy) -> None:
    (toy.root / "dvc.lock").write_text("")
    output = toy.run(code=1)
    assert (
        "error: toy: dvc.lock is damaged, and there is no copy of it; restore it with: git checkout dvc.lock" in output
    )
    assert "Traceback" not in output


def test_dvc_itself_is_not_interrupted_while_it_ends(tmp_path: Path) -> None:
    """The signal that empties dvc.lock is never sent; what is no DVC gets it at once."""
    code = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(15)); print(flush=True); time.sleep(1)"
    mark = f"/{tmp_path.name}"
    environment = os.environ | {guard.VARIABLE: mark}
    both = [
        subprocess.Popen([sys.executable, "-c", code, name], env=environment, stdout=subprocess.PIPE)
        for name in ("dvc", "stage")
    ]
    for process in both:
        process.stdout.readline()
    guard.kill(mark)
    assert [process.wait() for process in both] == [0, 15]


def test_a_run_that_is_ended_while_dvc_writes_its_lock_keeps_it(toy: Toy) -> None:
    toy.run(module="flows.other")
    toy.edit("stages:\n", "stages:\n" + "".join(f"  filler-{i}: {{cmd: 'true'}}\n" for i in range(2)), "dvc.yaml")
    lock = toy.root / "dvc.lock"
    content = lock.read_text()
    # a large lock takes long to write: the moment can be met
    filler = "".join(f"  old-{i}:\n    cmd: echo {i}\n" for i in range(3000))
    lock.write_text(content + filler)
    flow = toy.start("--force", module="flows.other")
    wait_for(lambda: lock.stat().st_size < len(content + filler), 180, "the writing of the lock")
    flow.send_signal(signal.SIGTERM)
    flow.wait(60)
    wait_for(lambda: not toy.processes(), 60, "the end of all processes")
    assert toy.locked() >= OTHER_STAGES
