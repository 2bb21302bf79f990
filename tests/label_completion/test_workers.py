"""Worker vectors and similarity against plain versions of their formulas."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.label_completion.answers import encode
from tasks.label_completion.graph import prepare_features
from tasks.label_completion.workers import Similarity, worker_vectors
from tests.label_completion import reference


def _vectors(answers: pd.DataFrame, table: pd.DataFrame, nominal=()) -> np.ndarray:
    features = prepare_features(table, nominal)
    return worker_vectors(encode(answers, tasks=features.tasks), features)


@st.composite
def situations(draw):
    """(answers, features, nominal columns): numeric and nominal columns, one of them constant at times."""
    n_tasks, n_workers, n_classes = draw(st.integers(1, 10)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    table = pd.DataFrame(
        {
            "a": generator.normal(size=n_tasks),
            "b": generator.integers(0, 3, n_tasks) * draw(st.sampled_from([0.1, 1.0, 1e6])),
            "p": generator.integers(0, 4, n_tasks).astype(float),
            "q": generator.integers(0, 2, n_tasks).astype(float),
            "c": draw(st.sampled_from([0.0, 0.1, 1e6 + 1 / 3])),
        }
    )
    given_ = generator.random((n_tasks, n_workers)) < 0.6
    given_[0, 0] = True
    task, worker = np.nonzero(given_)
    answers = pd.DataFrame({"task": task, "worker": worker, "label": generator.integers(0, n_classes, len(task))})
    return answers, table, ["p", "q"]


@given(situations())
def test_vectors_are_weighted_correlations(situation):
    answers, table, nominal = situation
    features = prepare_features(table, nominal)
    encoded = encode(answers, tasks=features.tasks)
    found = worker_vectors(encoded, features)
    for r in range(len(encoded.workers)):
        own = encoded.worker == r
        expected = reference.worker_vector(features.values[encoded.task[own]], encoded.label[own], features.nominal)
        np.testing.assert_allclose(found[r], expected, atol=1e-10)


@given(situations())
def test_vectors_do_not_depend_on_names_of_classes_and_scale_of_columns(situation):
    answers, table, nominal = situation
    found = _vectors(answers, table, nominal)
    renamed = answers.assign(label=10 - answers["label"])
    np.testing.assert_allclose(_vectors(renamed, table, nominal), found, atol=1e-12)
    scaled = table.assign(a=5 - 3 * table["a"], p=3 - table["p"])
    np.testing.assert_allclose(_vectors(answers, scaled, nominal), found * [-1, 1, 1, 1, 1], atol=1e-9)


def _one_worker(labels: list, values: list, *, nominal: bool = False) -> float:
    answers = pd.DataFrame({"task": range(len(labels)), "worker": "w", "label": labels})
    return _vectors(answers, pd.DataFrame({"x": np.array(values, float)}), ["x"] if nominal else [])[0, 0]


@pytest.mark.parametrize("nominal", [False, True])
def test_one_class_is_exactly_zero(nominal):
    assert _one_worker([1, 1, 1], [0, 1, 2], nominal=nominal) == 0


@pytest.mark.parametrize("nominal", [False, True])
def test_one_answer_is_exactly_zero(nominal):
    assert _one_worker([1], [3], nominal=nominal) == 0


@pytest.mark.parametrize("labels", [[0, 0, 1, 1], [0, 1, 2], [0, 0, 1, 1, 2, 2]])
def test_equally_many_answers_per_class_are_exactly_zero(labels):
    """In floating point the sum is noise of about 1e-16, whose cosine with anything looks like evidence."""
    values = [0.1, 0.7, 0.3, 1 / 3, 0.9, 0.2][: len(labels)]
    assert _one_worker(labels, values) == 0
    assert abs(_one_worker(labels, [0, 0, 1, 0, 1, 1][: len(labels)], nominal=True)) > 0.01


def test_binary_sign_follows_the_majority_class_and_size_the_imbalance():
    """v = (P(1) − P(0)) ρ(x, 1[y = 1])."""
    values = [0.1, 0.5, 0.4, 0.9]
    rho = reference.pearson(np.array(values), np.array([0.0, 1, 1, 1]))
    assert _one_worker([0, 1, 1, 1], values) == pytest.approx((0.75 - 0.25) * rho)
    assert _one_worker([1, 0, 0, 0], values) == pytest.approx(-(0.25 - 0.75) * rho)
    rho = reference.pearson(np.array(values), np.array([0.0, 0, 0, 1]))
    assert _one_worker([0, 0, 0, 1], values) == pytest.approx((0.25 - 0.75) * rho)


def test_constant_column_is_zero_whatever_its_rounding():
    assert _one_worker([0, 1, 1, 1, 1], [0.1 + 0.2] * 5) == 0
    assert _one_worker([0, 1, 1, 1, 1], [1e9 + 1 / 3] * 5) == 0


def test_large_offset_loses_no_variation():
    values = np.array([0.1, 0.5, 0.4, 0.9, 0.2])
    expected = _one_worker([0, 1, 1, 1, 0], values)
    assert _one_worker([0, 1, 1, 1, 0], values * 86_400e9 + 1.7e18) == pytest.approx(expected, abs=1e-6)


class TestSimilarity:
    @given(st.integers(1, 6), st.integers(1, 4), st.sampled_from(["neutral", "drop"]), st.integers(0, 2**32))
    def test_half_of_one_plus_cosine(self, n_workers, n_columns, zero_vector, seed):
        generator = np.random.default_rng(seed)
        vectors = generator.integers(-2, 3, (n_workers, n_columns)) / 4
        found = Similarity.of(vectors, zero_vector).block(0, n_workers)
        np.testing.assert_allclose(found, reference.similarity(vectors, zero_vector), atol=1e-12)
        assert ((found >= 0) & (found <= 1)).all()
        assert (np.diag(found) == 0).all()
        np.testing.assert_allclose(found, found.T, atol=1e-15)

    @pytest.mark.parametrize(("zero_vector", "expected"), [("neutral", 0.5), ("drop", 0.0)])
    def test_orthogonal_vectors(self, zero_vector, expected):
        assert Similarity.of(np.eye(2), zero_vector).block(0, 2)[0, 1] == expected

    def test_opposite_vectors_are_no_evidence(self):
        vectors = np.array([[0.1, 0.2, 0.3], [-0.3, -0.6, -0.9], [0.1, 0.2, 0.3]])
        found = Similarity.of(vectors, "neutral").block(0, 3)
        assert found[0, 1] == found[1, 2] == 0
        assert found[0, 2] == pytest.approx(1)

    def test_blocks_are_columns_of_the_whole(self):
        vectors = np.random.default_rng(0).normal(size=(9, 5))
        whole = Similarity.of(vectors, "neutral").block(0, 9)
        for start, stop in ((0, 4), (4, 9), (8, 9)):
            np.testing.assert_array_equal(Similarity.of(vectors, "neutral").block(start, stop), whole[:, start:stop])
