"""The stage contract: parameters, inputs, outputs, signals, one-line errors."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from pydantic import Field

from tasks import stage
from tasks.stage import Parameters, UserError, load_parameters

ROOT = Path(__file__).resolve().parents[1]


class Toy(Parameters):
    rate: float = Field(0.5, gt=0, le=1)
    n_iter: int = Field(5, ge=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("toy: {rate: 1.5}", "params.yaml: toy.rate: 1.5 is not allowed: input should be less than or equal to 1"),
        ("toy: {rate: fast}", "params.yaml: toy.rate: 'fast' is not allowed: input should be a valid number"),
        ("toy: {rate: .nan}", "params.yaml: toy.rate: nan is not allowed"),
        ("toy: {speed: 1}", "params.yaml: toy.speed: unknown key"),
        ("toy: {n_iter: 2.5}", "params.yaml: toy.n_iter: 2.5 is not allowed"),
        ("other: {}", "params.yaml: there is no section toy"),
        ("toy: [", "params.yaml: not valid YAML"),
    ],
)
def test_bad_parameters_give_one_line_naming_the_key(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text(text)
    with pytest.raises(UserError) as error:
        load_parameters("toy", Toy)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_every_wrong_key_is_named_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text("toy: {rate: 2, n_iter: 0, speed: 1}")
    with pytest.raises(UserError, match=r"toy\.rate.*; .*toy\.n_iter.*; .*toy\.speed"):
        load_parameters("toy", Toy)


def test_missing_parameter_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"params\.yaml: there is no such file here; run from the repository's root"):
        load_parameters("toy", Toy)


@pytest.fixture
def toy_stage(tmp_path):
    """A folder with params.yaml and a stage module `toy`; returns a function that runs it."""
    (tmp_path / "params.yaml").write_text("toy: {rate: 0.5}")
    (tmp_path / "in.txt").write_text("input")
    (tmp_path / "toy.py").write_text(
        textwrap.dedent(
            """
            import os, sys, time
            from pathlib import Path
            from pydantic import Field
            from tasks import stage

            class Toy(stage.Parameters):
                rate: float = Field(gt=0, le=1)

            @stage.command("toy", Toy)
            def toy(parameters: Toy, source: Path, how: str, *, out: Path, folder: Path) -> None:
                "Copy."
                out.write_text(source.read_text() + str(parameters.rate))
                folder.mkdir()
                (folder / "a.txt").write_text("a")
                if how == "user":
                    raise stage.UserError("in.txt: row 3: -1 is not allowed")
                if how == "bug":
                    raise ZeroDivisionError
                if how == "forgets":
                    out.unlink()
                if how == "sleeps":
                    print("ready", flush=True)
                    time.sleep(60)

            if __name__ == "__main__":
                toy.run()
            """
        )
    )

    def run(how, source="in.txt", wait=True):
        command = [sys.executable, "-m", "toy", source, how, "--out", "made/out.txt", "--folder", "made/folder"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        return (process, *process.communicate(timeout=60)) if wait else process

    return run


def made(tmp_path: Path) -> list[str]:
    return sorted(str(p.relative_to(tmp_path / "made")) for p in (tmp_path / "made").rglob("*"))


def test_a_good_run_leaves_exactly_its_outputs(toy_stage, tmp_path):
    process, _, _ = toy_stage("well")
    assert process.returncode == 0
    assert made(tmp_path) == ["folder", "folder/a.txt", "out.txt"]
    assert (tmp_path / "made/out.txt").read_text() == "input0.5"


def test_a_user_error_is_one_line_without_traceback_and_leaves_nothing(toy_stage, tmp_path):
    process, _, errors = toy_stage("user")
    assert process.returncode == 1
    assert errors == "error: toy: in.txt: row 3: -1 is not allowed\n"
    assert made(tmp_path) == []


@pytest.mark.parametrize("how", ["bug", "forgets"])
def test_a_fault_of_the_stage_leaves_nothing(toy_stage, tmp_path, how):
    process, _, errors = toy_stage(how)
    assert process.returncode == 1
    assert {"bug": "ZeroDivisionError", "forgets": "without writing made/out.txt"}[how] in errors
    assert made(tmp_path) == []


def test_a_missing_input_is_named(toy_stage):
    process, _, errors = toy_stage("well", source="nowhere.csv")
    assert process.returncode == 1
    assert errors == "error: toy: nowhere.csv: there is no such input file or folder\n"


def test_a_wrong_parameter_is_named(toy_stage, tmp_path):
    (tmp_path / "params.yaml").write_text("toy: {rate: 7}")
    process, _, errors = toy_stage("well")
    assert process.returncode == 1
    assert errors.startswith("error: toy: params.yaml: toy.rate: 7 is not allowed")
    assert errors.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_killed_stage_leaves_no_half_output_and_the_next_run_cleans_up(toy_stage, tmp_path, number):
    process = toy_stage("sleeps", wait=False)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    process.communicate(timeout=10)
    assert process.returncode != 0
    left = made(tmp_path)
    assert "out.txt" not in left
    assert "folder" not in left
    if number != signal.SIGKILL:
        assert left == []
    assert toy_stage("well")[0].returncode == 0
    assert made(tmp_path) == ["folder", "folder/a.txt", "out.txt"]


def test_old_outputs_are_replaced_only_by_a_complete_run(toy_stage, tmp_path):
    toy_stage("well")
    (tmp_path / "in.txt").write_text("changed")
    toy_stage("bug")
    assert (tmp_path / "made/out.txt").read_text() == "input0.5"
    (tmp_path / "made/folder/old.txt").write_text("of an older run")
    toy_stage("well")
    assert (tmp_path / "made/out.txt").read_text() == "changed0.5"
    assert made(tmp_path) == ["folder", "folder/a.txt", "out.txt"]


def test_progress_in_a_log_is_lines(monkeypatch, capsys):
    clock = iter(range(0, 1000, 6))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    assert list(stage.progress(range(4), "blocks")) == [0, 1, 2, 3]
    assert capsys.readouterr().err.splitlines() == ["blocks: 1/4 after 12 s", "blocks: 3/4 after 24 s"]


def test_random_streams_of_different_purposes_differ_and_repeat():
    def draw(*keys):
        return stage.random_generator(*keys).random()

    assert draw(1, "iris", 0) == draw(1, "iris", 0)
    drawn = {draw(1, "iris", 0), draw(1, "iris", 1), draw(2, "iris", 0), draw(1, "wine", 0), draw(1, "i", "ris", 0)}
    assert len(drawn) == 5
