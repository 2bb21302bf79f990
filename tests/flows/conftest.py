"""A toy repository with two methods, one Prefect server for the whole session, and a way to run flows in it."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TOY = Path(__file__).parent / "toy"
BIN = Path(sys.executable).parent
collect_ignore = ["toy"]


def shell(folder: Path, *command: str, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=180,
        env=os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"} | environment,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def wait_for(condition: Callable[[], Any], seconds: float = 120, what: str = "the condition") -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come true in {seconds} s")


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The committed toy repository; tests work on copies."""
    root = tmp_path_factory.mktemp("template") / "toy"
    skip = shutil.ignore_patterns("__pycache__", "label_completion.py")
    shutil.copytree(REPOSITORY / "flows", root / "flows", ignore=skip)
    (root / "tasks/toy").mkdir(parents=True)
    (root / "tasks/toy/__init__.py").touch()
    shutil.copy(TOY / "params_model.py", root / "tasks/toy/params.py")
    for file in ("tasks/__init__.py", "tasks/stage.py"):
        shutil.copy(REPOSITORY / file, root / file)
    for file in ("steps.py", "dvc.yaml", "params.yaml"):
        shutil.copy(TOY / file, root)
    flow = (TOY / "flow.py").read_text()
    (root / "flows/toy.py").write_text(flow.replace("NAME_MODEL", "Parameters").replace("NAME", "toy"))
    (root / "flows/other.py").write_text(flow.replace("NAME_MODEL", "Other").replace("NAME", "other"))
    (root / ".gitignore").write_text("/raw\n/data\n/orders\n/reports/*/figures\n__pycache__/\n.prefect\n")
    (root / "raw").mkdir()
    (root / "raw/own.csv").write_text("1\n")
    (root / "shared.csv").write_text("2\n")
    shell(root, "git", "init", "--quiet")
    shell(root, "git", "config", "user.name", "toy")
    shell(root, "git", "config", "user.email", "toy@localhost")
    shell(root, "dvc", "init", "--quiet")
    shell(root, "dvc", "config", "core.analytics", "false")
    shell(root, "dvc", "config", "core.check_update", "false")
    shell(root, "dvc", "add", "--quiet", "shared.csv")
    shell(root, "git", "add", "--all")
    shell(root, "git", "commit", "--quiet", "--message", "toy")
    return root


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a process that talks to the session's Prefect server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        "PREFECT_HOME": str(tmp_path_factory.mktemp("prefect")),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_CONCURRENCY_INITIAL_DEPLOYMENT_LEASE_DURATION": "30",
        "DO_NOT_TRACK": "1",
    }
    command = [BIN / "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port), "--no-ui"]
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            command, env=os.environ | environment, stdout=stream, stderr=stream, start_new_session=True
        )

    def healthy() -> bool:
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{environment['PREFECT_API_URL']}/health").status_code == 200

    wait_for(healthy, 180, "the server's health")
    yield environment
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Toy:
    """A copy of the toy repository: run flows in it, give orders to its stages, look at what came of it."""

    def __init__(self, root: Path, environment: dict[str, str]) -> None:
        self.root = root
        self.environment = environment
        self.orders = root / "orders"
        self.orders.mkdir(exist_ok=True)

    def start(self, *arguments: str, module: str = "flows.toy", **environment: str) -> subprocess.Popen:
        """``python -m flows.toy …`` in a process group of its own, as a shell would; output to ``output(process)``."""
        with (self.root / ".dvc/tmp/output").open("a") as stream:
            return subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=self.root,
                env=os.environ | self.environment | {"TOY_ORDERS": str(self.orders)} | environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                process_group=0,
            )

    @property
    def output(self) -> str:
        return (self.root / ".dvc/tmp/output").read_text()

    def run(self, *arguments: str, module: str = "flows.toy", code: int = 0, **environment: str) -> str:
        """Run to the end; return what it printed."""
        before = len(self.output) if (self.root / ".dvc/tmp/output").exists() else 0
        process = self.start(*arguments, module=module, **environment)
        assert process.wait(300) == code, self.output[before:]
        return self.output[before:]

    def python(self, code: str, **environment: str) -> str:
        """Run a few lines in the toy repository, against the server."""
        return shell(self.root, sys.executable, "-c", code, **self.environment, **environment)

    def order(self, what: str) -> Path:
        path = self.orders / what
        path.touch()
        return path

    def git(self, *arguments: str) -> str:
        return shell(self.root, "git", *arguments)

    def dvc(self, *arguments: str) -> str:
        return shell(self.root, "dvc", *arguments)

    def edit(self, old: str, new: str, file: str = "params.yaml") -> None:
        path = self.root / file
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "more")

    def processes(self) -> list[psutil.Process]:
        """All living processes that work in the repository or were told where its orders lie."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("TOY_ORDERS") == str(self.orders):
                    found.append(process)
        return found

    def locked(self) -> set[str]:
        import yaml

        return set(yaml.safe_load((self.root / "dvc.lock").read_text())["stages"])


@pytest.fixture
def toy(template: Path, server: dict[str, str], tmp_path: Path) -> Iterator[Toy]:
    root = tmp_path / "toy"
    shutil.copytree(template, root)
    toy = Toy(root, server)
    yield toy
    for process in toy.processes():
        with contextlib.suppress(psutil.Error):
            process.kill()


def states(output: str) -> dict[str, str]:
    """The last state of each stage in a run's log."""
    found = {}
    for line in output.splitlines():
        head, _, tail = line.partition(" - Finished in state ")
        if tail and "Task run '" in head:
            found[head.split("Task run '")[1].rstrip("'")] = tail.split("(")[0]
    return found


def times(toy: Toy, step: str) -> tuple[float, float]:
    return tuple(json.loads((toy.orders / f"times-{step}").read_text()))
