"""Simulated workers: the stored draws are reproduced, and the protocol's numbers hold."""

import numpy as np
import pandas as pd
import pytest

from tasks.label_completion import simulate
from tasks.label_completion.dataset import read_dataset
from tasks.label_completion.simulation import simulate_answers

STORED = ["iris", "breast-cancer", "autos", "hepatitis", "vehicle", "zoo", "labor", "heart-c", "anneal", "letter"]


@pytest.mark.parametrize("name", STORED)
def test_the_stored_answers_are_drawn_again(name, reference_data):
    data = reference_data(f"uci_{name}")
    drawn = simulate_answers(data.truth, data.schema["n_classes"], np.random.default_rng(20250713))
    drawn = drawn.sort_values(["task", "worker"], ignore_index=True)
    stored = data.answers.astype({"task": int, "worker": int}).sort_values(["task", "worker"], ignore_index=True)
    pd.testing.assert_frame_equal(drawn, stored, check_dtype=False)


@pytest.mark.parametrize(("accuracy", "expected"), [("uniform", 0.75), ("gaussian", 0.745)])
def test_density_and_accuracy(accuracy, expected):
    """Labelling probability U(0, 0.1): 5 % of cells, about 13 % of tasks without answer; accuracy 75 % on average."""
    truth = np.random.default_rng(0).integers(0, 4, 2000)
    draws = [simulate_answers(truth, 4, np.random.default_rng(seed), accuracy=accuracy) for seed in range(20)]
    assert np.mean([len(d) for d in draws]) / (2000 * 40) == pytest.approx(0.05, abs=0.004)
    assert np.mean([1 - d["task"].nunique() / 2000 for d in draws]) == pytest.approx(0.13, abs=0.03)
    right = np.concatenate([truth[d["task"]] == d["label"] for d in draws])
    assert right.mean() == pytest.approx(expected, abs=0.02)


def test_wrong_answers_are_uniform_over_the_other_classes():
    drawn = simulate_answers(np.zeros(20_000, int), 5, np.random.default_rng(1))
    shares = np.bincount(drawn["label"], minlength=5)[1:] / (drawn["label"] > 0).sum()
    np.testing.assert_allclose(shares, 0.25, atol=0.015)


def test_accuracies_differ_between_workers_within_their_range():
    truth = np.zeros(20_000, int)
    drawn = simulate_answers(truth, 2, np.random.default_rng(2), labelling_probability=(1, 1))
    accuracy = 1 - drawn.groupby("worker")["label"].mean()
    assert accuracy.between(0.58, 0.92).all()
    assert accuracy.max() - accuracy.min() > 0.2
    normal = simulate_answers(truth, 2, np.random.default_rng(2), labelling_probability=(1, 1), accuracy="gaussian")
    assert not (1 - normal.groupby("worker")["label"].mean()).between(0.58, 0.92).all()


@pytest.mark.parametrize("probability", [(0.0, 0.1), (0.0, 1e-9)])
def test_every_worker_answers_something_once_per_task(probability):
    drawn = simulate_answers(np.zeros(30, int), 2, np.random.default_rng(3), labelling_probability=probability)
    assert sorted(drawn["worker"].unique()) == list(range(40))
    assert not drawn.duplicated(["task", "worker"]).any()
    assert drawn["task"].between(0, 29).all()


def test_one_class_has_no_wrong_answer():
    assert (simulate_answers(np.zeros(50, int), 1, np.random.default_rng(4))["label"] == 0).all()


PARAMETERS = {"n_workers": 5, "labelling_probability": [0.1, 0.3], "repeats": 3, "seed": 11}


@pytest.mark.parametrize(("name", "shape"), [("iris", (150, 4)), ("wine", (178, 13))])
def test_stage_writes_a_data_set(name, shape, workspace):
    workspace.parameters(simulate=PARAMETERS)
    assert workspace.run(simulate, name, "--out", "out") == (0, "")
    data = read_dataset(workspace.root / "out")
    assert data.features.shape == shape
    assert sorted(data.answers["repeat"].unique()) == [0, 1, 2]
    assert list(data.answers["worker"].cat.categories) == ["w0", "w1", "w2", "w3", "w4"]
    assert data.truth.notna().all()
    assert list(data.features.index) == sorted(data.features.index)
    first, second = (data.answers.query(f"repeat == {r}").drop(columns="repeat").reset_index(drop=True) for r in (0, 1))
    assert not first.equals(second)


def test_a_repeat_does_not_depend_on_how_many_there_are(workspace):
    drawn = []
    for repeats in (1, 3):
        workspace.parameters(simulate={**PARAMETERS, "repeats": repeats})
        assert workspace.run(simulate, "iris", "--out", "out")[0] == 0
        answers = read_dataset(workspace.root / "out").answers
        drawn.append(answers[answers["repeat"] == 0].astype(str).reset_index(drop=True))
    pd.testing.assert_frame_equal(*drawn)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"labelling_probability": [0.5, 0.1]},
            "labelling_probability must satisfy 0 <= low <= high <= 1 and high > 0",
        ),
        ({"labelling_probability": [0, 0]}, "high > 0"),
        ({"repeats": 0}, "params.yaml: label_completion.simulate.repeats: 0 is not allowed"),
        ({"n_workers": "many"}, "label_completion.simulate.n_workers: 'many' is not allowed"),
        ({"worker": 3}, "label_completion.simulate.worker: unknown key"),
        ({"seed": -1}, "label_completion.simulate.seed: -1 is not allowed"),
    ],
)
def test_stage_refuses_parameters(change, message, workspace):
    workspace.parameters(simulate={**PARAMETERS, **change})
    before = workspace.files()
    code, said = workspace.run(simulate, "iris", "--out", "out")
    assert code == 1
    assert said.count("\n") == 1
    assert message in said
    assert workspace.files() == before


def test_stage_refuses_an_unknown_table(workspace):
    workspace.parameters(simulate=PARAMETERS)
    before = workspace.files()
    code, said = workspace.run(simulate, "boston", "--out", "out")
    assert (code, said.count("\n")) == (1, 1)
    assert "'boston' is not one of iris, wine, breast_cancer, digits" in said
    assert workspace.files() == before
