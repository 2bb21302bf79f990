"""What the engine decides before anything runs: order, staleness, options, and what a changed parameter means."""

import shutil
from pathlib import Path

import pytest
from pydantic import BaseModel

from flows import experiment
from flows.engine import Stage, by_length, plan
from tasks.stage import UserError

pytestmark = pytest.mark.e2e


class Part(BaseModel):
    rate: float = 0.5
    names: list[str] = ["a"]


class Whole(BaseModel):
    train: Part = Part()
    seed: int = 1


def test_plan_puts_parents_first_from_any_folder(template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")  # an experiment's worktree is not the current folder either
    stages = plan(template, "toy")
    names = [stage.name for stage in stages]
    assert names[0] == "toy-ingest"
    assert names[-1] == "toy"
    assert set(names) == {"toy-ingest", "toy-train@a", "toy-train@b", "toy-check", "toy-evaluate", "toy"}
    assert all(names.index(parent) < names.index(stage.name) for stage in stages for parent in stage.parents)
    assert stages[names.index("toy-check")].parents == ("toy-train@a", "toy-train@b")
    assert all(stage.stale for stage in stages)
    ingest = stages[0]
    assert (ingest.retries, ingest.retry_delay_s, ingest.timeout_s) == (1, 0.2, 20)
    assert stages[names.index("toy-evaluate")].metrics == ("reports/toy/metrics",)


def test_plan_of_everything_includes_data_sources_that_are_up_to_date(template: Path) -> None:
    stages = {stage.name: stage for stage in plan(template)}
    assert {"toy", "other", "shared.csv.dvc"} <= set(stages)
    assert not stages["shared.csv.dvc"].stale
    assert stages["other-left"].parents == ("shared.csv.dvc",)
    assert all(stage.stale for stage in plan(template, force=True))


def test_plan_faults_are_one_line(template: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no stage nonsense"):
        plan(template, "nonsense")
    root = shutil.copytree(template, tmp_path / "toy")
    (root / "dvc.yaml").write_text("stages: [")
    with pytest.raises(UserError, match=r"dvc\.yaml") as caught:
        plan(root, "toy")
    assert "\n" not in str(caught.value)


def test_changes_are_what_was_set_and_differs() -> None:
    current = Whole(train=Part(rate=0.25), seed=7)
    assert experiment.changes(Whole(), current) == {}  # not set: keeps its value
    assert experiment.changes(Whole(seed=7, train=Part(rate=0.25)), current) == {}
    given = Whole(seed=8, train=Part(rate=0.5, names=["a", "b"]))
    changed = {("seed",): 8, ("train", "rate"): 0.5, ("train", "names"): ["a", "b"]}
    assert experiment.changes(given, current) == changed
    assert experiment.name("toy", changed, "0123-456789ab") == "toy-seed-rate-names-456789ab"


def test_edit_keeps_comments(template: Path, tmp_path: Path) -> None:
    file = Path(shutil.copy(template / "params.yaml", tmp_path))
    before = file.read_text()
    experiment.edit(file, "toy", {("train", "rate"): 0.75})
    assert file.read_text() == before.replace("rate: 0.5", "rate: 0.75")


def test_the_longest_way_to_the_end_is_begun_first() -> None:
    edges = {"short": (), "begin": (), "middle": ("begin",), "end": ("middle", "short")}
    stages = [Stage(name, parents, stale=True) for name, parents in edges.items()]
    assert [stage.name for stage in by_length(stages)] == ["begin", "short", "middle", "end"]
