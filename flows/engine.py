"""The DVC graph as a Prefect flow: one task per stage. The one file that knows both.

DVC owns order, staleness, cache and lock file; Prefect owns concurrency, retries, logs and states. Each stage that
may be stale is a child ``dvc --wait-for-lock repro -s NAME``; DVC frees its repository lock while a stage's command
runs, so children of one workspace really run in parallel.
"""

import contextlib
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import filelock
import psutil
import yaml
from prefect import Task, get_client, get_run_logger
from prefect.cache_policies import NO_CACHE
from prefect.context import TaskRunContext
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run
from prefect.states import Completed, Crashed, Failed, State
from prefect.task_runners import ThreadPoolTaskRunner
from pydantic import BaseModel

from flows import ROOT, artifacts, experiment, guard
from tasks.stage import UserError, load_parameters

# With --wait-for-lock, or a stage that ends while another is hashing fails after its work is done.
DVC = [sys.executable, "-m", "dvc", "--wait-for-lock"]
REPORT = [sys.executable, "-m", "tasks.report.index", "reports", "--out", "reports/index.html"]
# Advice of DVC for a person at a terminal; noise in a log.
NOISE = (
    "To track the changes",
    "To enable auto staging",
    "\tgit add",
    "\tdvc config",
    "Use `dvc push`",
    "Updating lock",
)


@dataclass(frozen=True)
class Stage:
    """What the engine knows of one DVC stage; all paths relative to the repository."""

    name: str
    parents: tuple[str, ...]
    stale: bool
    retries: int = 0
    retry_delay_s: float = 0
    timeout_s: float | None = None
    deps: tuple[str, ...] = ()
    outs: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


def plan(root: Path, target: str | None = None, force: bool = False) -> list[Stage]:
    """The stages of ``target`` and all they depend on (None: every stage), parents first, from one look at DVC.

    ``stale`` is DVC's own status of the stage by itself; whether a stage runs depends on its parents too, and is
    settled when they have ended, because DVC stops early where a re-run gives the same bytes.
    """
    import networkx
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        with Repo(str(root), _wait_for_lock=True) as repo:
            graph = repo.index.graph  # edges: stage -> what it depends on
            names = {node: _name(node, root) for node in graph}
            if target is not None:
                tops = [node for node in graph if names[node].partition("@")[0] == target]
                if not tops:
                    raise UserError(f"dvc.yaml: there is no stage {target}")
                graph = graph.subgraph({*tops}.union(*(networkx.descendants(graph, node) for node in tops)))
            order = list(networkx.lexicographical_topological_sort(graph.reverse(), key=names.get))
            with repo.lock:
                stale = {node for node in order if force or node.status()}
            return [_stage(node, names, graph, node in stale, root) for node in order]
    except DvcException as error:
        raise UserError(" ".join(str(error).split())) from None


def _name(node: Any, root: Path) -> str:
    """The stage's address as seen from the repository's root (DVC's own is relative to the current folder)."""
    file = os.path.relpath(node.path, root)
    name = getattr(node, "name", None)
    return file if name is None else name if file == "dvc.yaml" else f"{file}:{name}"


def _stage(node: Any, names: dict, graph: Any, stale: bool, root: Path) -> Stage:
    options = {key: (node.meta or {}).get(key) for key in ("retries", "retry_delay_s", "timeout_s")}
    return Stage(
        name=names[node],
        parents=tuple(sorted(names[parent] for parent in graph.successors(node))),
        stale=stale,
        deps=tuple(os.path.relpath(dep.fs_path, root) for dep in node.deps if dep.protocol == "local"),
        outs=tuple(os.path.relpath(out.fs_path, root) for out in node.outs),
        metrics=tuple(os.path.relpath(out.fs_path, root) for out in node.outs if out.metric),
        **{key: value for key, value in options.items() if value is not None},
    )


def by_length(stages: list[Stage]) -> list[Stage]:
    """Stages in the order in which to start them where several can run: those with the longest way to the end first."""
    length: dict[str, int] = {stage.name: 1 for stage in stages}
    for stage in reversed(stages):  # parents come first in the list
        for parent in stage.parents:
            length[parent] = max(length[parent], length[stage.name] + 1)
    return sorted(stages, key=lambda stage: -length[stage.name])


def run(method: str | None, parameters: BaseModel | None = None, workers: int = 2, force: bool = False) -> State:
    """Run a method (None: everything) inside a Prefect flow; parameters that differ from params.yaml: an experiment.

    Returns a Completed state with ``{"stages": {name: state}, "experiment": name or None}``, or a Failed one whose
    message names the stage and its last lines.
    """
    guard.watch()
    try:
        changed = {}
        if parameters is not None:
            changed = experiment.changes(parameters, load_parameters(method, type(parameters), ROOT / "params.yaml"))
        if not changed:
            with _alone(ROOT):
                return Run(ROOT, workers, force).all(method)
        name = experiment.name(method, changed, flow_run.id)
        get_run_logger().info("parameters differ from params.yaml: %s; experiment %s", changed, name)
        with experiment.workspace(ROOT, name) as tree:
            experiment.edit(tree / "params.yaml", method, changed)
            return Run(tree, workers, force, name).all(method)
    except UserError as error:
        return Failed(message=str(error))


@dataclass
class Run:
    """One execution of a plan in one workspace (the repository, or the worktree of an experiment)."""

    root: Path
    workers: int
    force: bool
    experiment: str | None = None
    stopped: threading.Event = field(default_factory=threading.Event)
    changed: dict[str, bool] = field(default_factory=dict)  # stage -> whether its outputs may have changed
    seconds: dict[str, float] = field(default_factory=dict)

    def all(self, method: str | None) -> State:
        """Run the stages of a method, publish what they made, and sum up."""
        if self.experiment:
            self.command(
                "checkout of cached data", [*DVC, "checkout", "--with-deps", "--allow-missing", "--quiet", method]
            )
        stages = plan(self.root, method, self.force)
        if self.experiment:
            experiment.link_inputs(ROOT, self.root, method, stages)
        states = self.submit(stages, report=self.experiment is None)
        artifacts.publish(self.root, method, stages, states, self.seconds)
        failed = {name: state for name, state in states.items() if state.is_failed() or state.is_crashed()}
        if failed:
            return Failed(message="\n".join(state.message or name for name, state in failed.items()))
        if self.experiment:
            with filelock.FileLock(ROOT / ".dvc/tmp/flows-save.lock"):  # DVC keeps scratch refs while it saves
                untracked = [f"--include-untracked={path}" for stage in stages for path in stage.metrics]
                names = [stage.name for stage in stages]  # other methods may never have run here
                save = [*DVC, "exp", "save", "--name", self.experiment, *untracked, *names]
                self.command("saving of the experiment", save)
        ran = sum(states[stage.name].name == "Completed" for stage in stages)
        message = f"{ran} of {len(stages)} stages ran" + (f"; experiment {self.experiment}" * bool(self.experiment))
        result = {"stages": {name: state.name for name, state in states.items()}, "experiment": self.experiment}
        return Completed(message=message, data=result)

    def submit(self, stages: list[Stage], report: bool) -> dict[str, State]:
        """One Prefect task per stage, each after its parents, and one for the report page; wait for all."""
        waiting = {stage.name: set(stage.parents) for stage in by_length(stages)}
        by_name = {stage.name: stage for stage in stages}
        futures: dict[str, PrefectFuture] = {}
        ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        with ThreadPoolTaskRunner(max_workers=self.workers) as runner:

            def submit(name: str) -> None:
                parents = [futures[parent] for parent in by_name[name].parents]
                futures[name] = runner.submit(self.task(by_name[name]), {}, wait_for=parents)
                futures[name].add_done_callback(lambda _: ended.put(name))

            try:
                # Prefect lets a task wait for its parents in one of the pool's threads: a stage is submitted when
                # it can run, and never before, or it would keep a thread from another one.
                running = 0
                while waiting or running:
                    for name in [name for name, left in waiting.items() if not left][: self.workers - running]:
                        del waiting[name]
                        submit(name)
                        running += 1
                    done = ended.get()
                    running -= 1
                    for left in waiting.values():
                        left.discard(done)
                if report and (self.root / "tasks/report/index.py").exists():  # also where a method has failed
                    futures["report"] = runner.submit(self.report_task(), {})
                    futures["report"].wait()
            except BaseException:  # Ctrl-C, SIGTERM, or a cancel in the Prefect UI (TerminationSignal)
                self.stopped.set()
                guard.kill(f"{guard.watch()}/")  # all children; not Prefect's temporary server, which hears of the end
                raise
            return {name: future.state for name, future in futures.items()}

    def task(self, stage: Stage) -> Task:
        def execute() -> State:
            attempt = TaskRunContext.get().task_run.run_count
            if attempt > 1:
                self.stopped.wait(stage.retry_delay_s)  # not Prefect's delay: that sleep cannot be interrupted
            return self.execute(stage)

        return Task(
            execute,
            name=stage.name,
            task_run_name=stage.name,
            persist_result=False,
            cache_policy=NO_CACHE,
            # One more than wanted, and the condition says no: Prefect then skips a log entry with an empty traceback.
            retries=stage.retries + 1,
            retry_condition_fn=lambda _, run, __: run.run_count <= stage.retries and not self.stopped.is_set(),
        )

    def report_task(self) -> Task:
        """The page of all methods, a view of what has been run, made anew at the end of every run.

        It draws dvc.yaml's graph, and DVC does not allow dvc.yaml as a dependency: as a stage it could be stale.
        """

        def execute() -> State:
            try:
                self.command("report page", REPORT)
            except UserError as error:
                return Failed(message=str(error))
            return Completed()

        return Task(execute, name="report", task_run_name="report", persist_result=False, cache_policy=NO_CACHE)

    def execute(self, stage: Stage) -> State:
        """Run one stage if DVC finds it stale, or if a parent's outputs may have changed."""
        if not stage.stale and not any(self.changed[parent] for parent in stage.parents):
            self.changed[stage.name] = False
            return Completed(name="Cached", message="unchanged")
        command = [*DVC, "repro", "-s", stage.name, *["--force"] * self.force]
        begin = time.monotonic()
        try:
            lines = self.command(f"stage {stage.name}", command, stage.timeout_s)
        except UserError as error:
            return Failed(message=str(error))
        finally:
            self.seconds[stage.name] = time.monotonic() - begin
        said = "\n".join(lines)
        self.changed[stage.name] = "didn't change, skipping" not in said
        cached = not self.changed[stage.name] or "is cached - skipping run" in said
        return Completed(name="Cached" if cached else "Completed")

    def command(self, what: str, command: list[str], timeout_s: float | None = None) -> list[str]:
        """Run a child in the workspace, its lines to the run's log; return the last lines.

        Raises:
            UserError: the child failed or took too long. It and whatever it has left behind are ended by then.
        """
        mark = f"{guard.watch()}/{what}/"
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=self.environment() | {guard.VARIABLE: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # a Ctrl-C at the terminal reaches this process only, which then ends the child
        )
        lines: deque[str] = deque(maxlen=15)
        reader = threading.Thread(target=_read, args=(process.stdout, get_run_logger(), lines), daemon=True)
        reader.start()
        if self.stopped.is_set():
            guard.kill(mark)
        try:
            fault = f"exit code {code}" if (code := process.wait(timeout_s)) else ""
        except subprocess.TimeoutExpired:
            fault = f"it took longer than {timeout_s:g} s"
        guard.kill(mark)
        process.wait()
        reader.join()
        process.stdout.close()
        if fault:
            raise UserError("\n".join([f"{what} failed ({fault})", *lines]))
        return list(lines)

    def environment(self) -> dict[str, str]:
        share = max(1, (os.cpu_count() or 1) // self.workers)
        return {
            "METHODWORKS_WORKERS": str(share),  # local processes that a stage may use by itself
            **os.environ,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
            "PYTHONUNBUFFERED": "1",
        }


def _read(stream: Any, log: Any, lines: deque[str]) -> None:
    for line in map(str.rstrip, stream):
        if line and not line.startswith(NOISE):
            log.info("%s", line)
            lines.append(line)


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Hold the workspace: a second run waits. The kernel frees the lock of a run that was killed."""
    holder = root / ".dvc/tmp/flows.json"
    lock = filelock.FileLock(root / ".dvc/tmp/flows.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        with contextlib.suppress(OSError, ValueError):
            pid = json.loads(holder.read_text())["pid"]
            get_run_logger().info("another run (process %s) works in this workspace; waiting until it ends", pid)
        lock.acquire()
    try:
        _bury(holder)
        _mend(root)
        holder.write_text(json.dumps({"pid": os.getpid(), "flow_run": str(flow_run.id), "mark": guard.watch()}))
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _bury(holder: Path) -> None:
    """A holder's note that is still there while we have its lock: that run died without a word."""
    try:
        note = json.loads(holder.read_text())
    except (OSError, ValueError):
        return
    guard.kill(f"{note['mark']}/")  # its own guard may not be through yet
    _wait_until_reaped(holder.with_name("rwlock"))
    with contextlib.suppress(Exception):  # it reported to another server, or was deleted from this one
        with get_client(sync_client=True) as client:
            if client.read_flow_run(note["flow_run"]).state.is_running():
                died = Crashed(message=f"process {note['pid']} ended without reporting")
                client.set_flow_run_state(note["flow_run"], died, force=True)


def _mend(root: Path) -> None:
    """DVC writes its files in place; one killed in that moment leaves them cut, and no later command would work.

    Put back the dvc.lock that the last run began with (DVC's run cache knows what that run has done since), and keep
    the present one for the next time.
    """
    lock, copy = root / "dvc.lock", root / ".dvc/tmp/flows-dvc.lock"
    if lock.exists() and not _is_lock(lock):
        if not _is_lock(copy):
            raise UserError("dvc.lock is damaged, and there is no copy of it; restore it with: git checkout dvc.lock")
        get_run_logger().warning("dvc.lock is damaged, as a killed dvc leaves it; the last good one is put back")
        shutil.copyfile(copy, lock)
    elif lock.exists():
        partial = copy.with_suffix(".partial")
        shutil.copyfile(lock, partial)
        partial.replace(copy)
    with contextlib.suppress(FileNotFoundError):
        try:
            json.loads((root / ".dvc/tmp/rwlock").read_text())
        except ValueError:
            (root / ".dvc/tmp/rwlock").unlink()


def _is_lock(file: Path) -> bool:
    try:
        content = yaml.load(file.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, ValueError, yaml.YAMLError):
        return False
    stages = content.get("stages", {}) if isinstance(content, dict) and "schema" in content else None
    return isinstance(stages, dict) and all(isinstance(stage, dict) and "cmd" in stage for stage in stages.values())


def _wait_until_reaped(rwlock: Path) -> None:
    """DVC takes a killed holder of its path locks for a living one until init has reaped it."""
    with contextlib.suppress(OSError):
        holders = {int(pid) for pid in re.findall(r'"pid": *(\d+)', rwlock.read_text())}
        deadline = time.monotonic() + 10
        while any(map(psutil.pid_exists, holders)) and time.monotonic() < deadline:
            time.sleep(0.1)
