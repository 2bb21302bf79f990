"""Parameters whose parts must agree, and the report's sentences that depend on the data."""

import copy
from pathlib import Path

import pytest
import yaml

from tasks.label_completion.params import Parameters
from tasks.label_completion.summary import summarise
from tasks.stage import UserError, load_parameters

SECTION = yaml.safe_load((Path(__file__).parents[2] / "params.yaml").read_text(encoding="utf-8"))["label_completion"]


def refused(tmp_path, change) -> str:
    section = copy.deepcopy(SECTION)
    change(section)
    file = tmp_path / "params.yaml"
    file.write_text(yaml.safe_dump({"label_completion": section}))
    with pytest.raises(UserError) as error:
        load_parameters("label_completion", Parameters, file)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s["datasets"].append("nope"), "datasets: nope must stand under simulated or under ingest"),
        (lambda s: s["ingest"].update(iris={"path": "x"}), "iris must stand under simulated or under ingest, and not"),
        (lambda s: s["datasets"].remove("wine"), "simulated: wine must stand under datasets too"),
        (lambda s: s["datasets"].append("iris"), "label_completion.datasets: every entry may stand once"),
        (lambda s: s["complete"].update(methods=["wslc", "wslc"]), "complete.methods: every entry may stand once"),
        (lambda s: s["ingest"].update(checks={"path": "x"}), "the name is needed for another folder"),
        (lambda s: s["ingest"].update({"a;touch x": {"path": "x"}}), "'a;touch x' is not allowed"),
        (lambda s: s["complete"].update(n_iter=True), "complete.n_iter: True is not allowed"),
        (lambda s: s["complete"].update(n_iter="7"), "complete.n_iter: '7' is not allowed"),
        (lambda s: s["complete"].update(n_iter=5.0), "complete.n_iter: 5.0 is not allowed"),
        (lambda s: s["simulate"].update(labelling_probability=[0.5, 0.1]), "0 <= low <= high <= 1"),
    ],
)
def test_what_does_not_agree_is_refused_in_one_line(tmp_path, change, message):
    assert message in refused(tmp_path, change)


def test_whole_numbers_are_numbers(tmp_path):
    section = copy.deepcopy(SECTION)
    section["complete"]["alpha"] = 0
    file = tmp_path / "params.yaml"
    file.write_text(yaml.safe_dump({"label_completion": section}))
    assert load_parameters("label_completion", Parameters, file).complete.alpha == 0


def metrics(**changes) -> dict:
    data = {
        "origin": "made up",
        "simulated_workers": False,
        "tasks": 100,
        "features": 2,
        "classes": 2,
        "workers": 3,
        "repeats": 10,
        "answers_per_task": 2.0,
        "unlabelled_share": 0.0,
        "krippendorff_alpha": 0.5,
        "answer_accuracy": 0.75,
    }
    return {f"data.{key}": value for key, value in (data | changes).items()}


def test_the_report_says_only_what_is_true_of_the_data():
    real = summarise({"mine": metrics()}, "")
    assert "Simulated workers" not in real
    assert "Fewer than 30 tasks" not in real
    assert "Instance-level" not in real  # it was not run
    assert "Simulated workers" in summarise({"iris": metrics(simulated_workers=True)}, "")
    assert "Fewer than 30 tasks (mine)" in summarise({"mine": metrics(tasks=12)}, "")
    assert "With one set of answers" in summarise({"mine": metrics(repeats=1)}, "")


def test_a_worse_instance_mode_is_told():
    key = "difference.instance.majority.minus.ldplc.majority"
    worse = metrics() | {
        **{f"accuracy.{c}.majority{end}": 0.8 for c in ("raw", "ldplc", "instance") for end in ("", ".low", ".high")},
        key: -0.05,
        f"{key}.low": -0.08,
        f"{key}.high": -0.02,
    }
    assert "Instance-level propagation against LDPLC (majority vote): -5.0 points on average; " in summarise(
        {"a": worse}, ""
    )
    assert "worse on 1" in summarise({"a": worse}, "")
