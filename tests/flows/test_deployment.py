"""The committed prefect.yaml, a process worker and runs through the server's API, as the run form makes them."""

import os
import subprocess
from collections.abc import Iterator

import httpx
import psutil
import pytest

from tests.flows.conftest import BIN, REPOSITORY, Toy, wait_for

pytestmark = pytest.mark.e2e


@pytest.fixture
def worker(toy: Toy) -> Iterator[subprocess.Popen]:
    """The toy deployed as the repository's methods are, with a worker that waits for runs."""
    text = (REPOSITORY / "prefect.yaml").read_text()
    (toy.root / "prefect.yaml").write_text(text.replace("label_completion", "toy"))
    environment = os.environ | toy.environment | {"REPO_ROOT": str(toy.root), "TOY_ORDERS": str(toy.orders)}
    for command in ("work-pool create local --type process --overwrite", "--no-prompt deploy --all"):
        subprocess.run([BIN / "prefect", *command.split()], cwd=toy.root, env=environment, check=True)
    with (toy.root / ".dvc/tmp/output").open("w") as stream:
        process = subprocess.Popen(
            [BIN / "prefect", "worker", "start", "--pool", "local"],
            cwd=toy.root,
            env=environment,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    yield process
    process.kill()
    process.wait()


def test_run_form_and_cancel(toy: Toy, worker: subprocess.Popen) -> None:
    """A bad value is refused, a good run completes, and after a cancel nothing works on (20979, 17593, 17259)."""
    with httpx.Client(base_url=toy.environment["PREFECT_API_URL"]) as api:
        deployment = api.get("/deployments/name/toy/local").json()
        assert deployment["schedules"][0]["active"] is False
        schema = deployment["parameter_openapi_schema"]
        assert schema["properties"]["workers"]["minimum"] == 1
        assert schema["properties"]["workers"]["description"] == "stages that run at the same time"
        assert schema["properties"]["parameters"]["default"]["train"]["rate"] == 0.5
        assert schema["definitions"]["Train"]["properties"]["rate"]["description"] == "step size"

        def start(**parameters: object) -> httpx.Response:
            return api.post(f"/deployments/{deployment['id']}/create_flow_run", json={"parameters": parameters})

        refused = start(parameters={"ingest": {"path": "raw/own.csv"}, "train": {"rate": 3}})
        assert refused.status_code == 409
        assert "parameters.train.rate" in refused.text

        toy.order("hang-ingest")
        run = start(workers=1).json()["id"]
        wait_for((toy.orders / "hanging-ingest").exists, 180, "the stage")
        api.post(f"/flow_runs/{run}/set_state", json={"state": {"type": "CANCELLING"}})

        def children() -> list[psutil.Process]:
            return [p for p in toy.processes() if "time.sleep(600)" in str(p.cmdline()) or "steps.py" in p.cmdline()]

        wait_for(lambda: not children(), 60, "the end of the stage's processes")
        wait_for(lambda: api.get(f"/flow_runs/{run}").json()["state"]["type"] == "CANCELLED", 120, "state Cancelled")
        (toy.orders / "hang-ingest").unlink()

        run = start(workers=1).json()["id"]
        wait_for(lambda: api.get(f"/flow_runs/{run}").json()["state"]["type"] == "COMPLETED", 180, "state Completed")
    assert {"toy", "toy-evaluate"} <= toy.locked()
