"""The published algorithms' results, recomputed by their authors' code, are met within the stated tolerances."""

import numpy as np
import pandas as pd
import pytest

from tasks.label_completion.answers import encode
from tasks.label_completion.completion import complete_labels
from tasks.label_completion.graph import nearest_neighbors, prepare_features, reconstruction_weights
from tasks.label_completion.propagation import Graph, distributions
from tasks.label_completion.workers import Similarity, worker_vectors

SETS = ["leaves", "labelme", "reuters", "uci_iris", "uci_breast-cancer", "uci_autos"]
SINGLE_PRECISION = ["labelme", "reuters"]  # their vectors are stored as float32


def _complete(data, method: str, zero_vector: str):
    return complete_labels(
        data.answers,
        data.features,
        method=method,
        zero_vector=zero_vector,
        nominal=data.nominal,
        classes=range(data.schema["n_classes"]),
    )


@pytest.mark.parametrize("name", SETS)
def test_answers_encode_to_the_stored_positions(name, reference_data, golden):
    data, expected = reference_data(name), golden(name)
    encoded = encode(data.answers, tasks=data.features.index, classes=range(data.schema["n_classes"]))
    assert encoded.tasks.tolist() == expected["task_ids"].tolist()
    assert encoded.workers.tolist() == expected["worker_ids"].tolist()
    assert len(encoded.classes) == expected["n_classes"]
    order = np.lexsort((expected["worker"], expected["task"]))
    for column in ("task", "worker", "label"):
        np.testing.assert_array_equal(getattr(encoded, column), expected[column][order])


@pytest.mark.parametrize("name", [n for n in SETS if n.startswith("uci_")])
def test_missing_features_are_filled_as_by_weka(name, reference_data, golden):
    data = reference_data(name)
    filled = prepare_features(data.features, data.nominal).values
    np.testing.assert_allclose(filled, golden(name)["features"], rtol=1e-14)  # a mean's last bit is its order of sums


@pytest.mark.parametrize("name", SETS)
def test_worker_vectors(name, reference_data, golden):
    data = reference_data(name)
    encoded = encode(data.answers, tasks=data.features.index, classes=range(data.schema["n_classes"]))
    vectors = worker_vectors(encoded, prepare_features(data.features, data.nominal))
    tolerance = 1e-7 if name in SINGLE_PRECISION else 1e-9
    assert np.abs(vectors - golden(name)["worker_vectors"]).max() < tolerance


@pytest.mark.parametrize("name", SETS)
def test_similarity_with_zero_vectors_dropped(name, reference_data, golden):
    found = _complete(reference_data(name), "wslc", "drop").similarity
    assert np.abs(found - golden(name)["similarity_clean"]).max() < 1e-9


@pytest.mark.parametrize("name", SETS)
def test_task_graph(name, reference_data, golden):
    data, expected = reference_data(name), golden(name)
    features = prepare_features(data.features, data.nominal)
    neighbors = nearest_neighbors(features, 5)
    np.testing.assert_array_equal(neighbors, expected["knn"])
    assert np.abs(reconstruction_weights(features, neighbors) - expected["lle_weights"]).max() < 1e-5


@pytest.mark.parametrize("zero_vector", ["drop", "neutral"])
@pytest.mark.parametrize("method", ["wslc", "ldplc"])
@pytest.mark.parametrize("name", SETS)
def test_completed_labels(name, method, zero_vector, reference_data, golden):
    """WSLC "neutral" leaves cells without evidence missing, where the reference has the first class; all others match."""
    data, expected = reference_data(name), golden(name)
    result = _complete(data, method, zero_vector)
    reference = expected[f"{method}_{'clean' if zero_vector == 'drop' else 'neutral'}"]
    margin = expected[f"{method}_margin" if zero_vector == "drop" else "ldplc_neutral_margin"].astype(float)
    given = result.codes >= 0
    unanswered = np.setdiff1d(np.arange(len(data.features)), expected["task"])
    missing = np.zeros_like(given)
    if (method, zero_vector) == ("wslc", "neutral"):
        missing[unanswered] = True
        margin = result.margin.to_numpy()  # the reference stores none for this variant
    np.testing.assert_array_equal(given, ~missing)
    equal = result.codes == reference
    assert equal[given & (margin > 1e-3)].all()
    assert equal[given].mean() > 0.999
    np.testing.assert_array_equal(result.codes[expected["task"], expected["worker"]], expected["label"])
    observed = np.zeros_like(given)
    observed[expected["task"], expected["worker"]] = True
    np.testing.assert_array_equal(result.imputed.to_numpy(), ~observed)


MARGINS = [
    ("wslc", "drop", "wslc_margin"),
    ("ldplc", "drop", "ldplc_margin"),
    ("ldplc", "neutral", "ldplc_neutral_margin"),
]


@pytest.mark.parametrize(("method", "zero_vector", "array"), MARGINS)
@pytest.mark.parametrize("name", SETS)
def test_margins(name, method, zero_vector, array, reference_data, golden):
    expected = golden(name)[array]
    found = _complete(reference_data(name), method, zero_vector).margin.to_numpy()
    tolerance = 1e-3 if expected.dtype == np.float16 else 2e-5
    assert np.abs(found - expected.astype(float)).max() < tolerance


@pytest.mark.parametrize("name", ["uci_iris", "uci_breast-cancer", "uci_autos"])
def test_distributions_before_and_after_propagation(name, reference_data, golden):
    data, expected = reference_data(name), golden(name)
    encoded = encode(data.answers, tasks=data.features.index, classes=range(data.schema["n_classes"]))
    features = prepare_features(data.features, data.nominal)
    neighbors = nearest_neighbors(features, 5)
    graph = Graph(neighbors, reconstruction_weights(features, neighbors))
    similarity = Similarity.of(worker_vectors(encoded, features), "drop")
    for n_iter, array in ((0, "init_dist_clean"), (5, "final_dist_clean")):
        found = distributions(encoded, similarity, graph, start=0, stop=len(encoded.workers), n_iter=n_iter)
        assert np.abs(found.transpose(0, 2, 1) - expected[array]).max() < 1e-5


class TestToy:
    """The worked example of six tasks and three workers."""

    @pytest.fixture
    def answers(self, toy) -> pd.DataFrame:
        return pd.DataFrame(toy["answers_task_worker_label"], columns=["task", "worker", "label"])

    @pytest.fixture
    def features(self, toy) -> pd.DataFrame:
        return pd.DataFrame(toy["X"], columns=["x", "y"], dtype=float)

    @pytest.mark.parametrize("zero_vector", ["drop", "neutral"])
    @pytest.mark.parametrize("method", ["wslc", "ldplc"])
    def test_labels(self, method, zero_vector, answers, features, toy):
        result = complete_labels(answers, features, method=method, zero_vector=zero_vector, n_neighbors=2)
        np.testing.assert_array_equal(result.codes, toy[zero_vector][method])

    def test_vectors_and_similarity(self, answers, features, toy):
        result = complete_labels(answers, features, zero_vector="drop", n_neighbors=2)
        np.testing.assert_allclose(result.worker_vectors, toy["worker_vectors"], atol=1e-12)
        np.testing.assert_allclose(result.worker_vectors[0], [-0.323575, -1 / 3], atol=1e-6)
        np.testing.assert_allclose(result.similarity, toy["similarity"], atol=1e-12)

    def test_graph(self, answers, features, toy):
        result = complete_labels(answers, features, n_neighbors=2)
        assert result.neighbors.tolist() == toy["knn"]
        np.testing.assert_allclose(result.edge_weights, toy["weights"], atol=1e-5)

    @pytest.mark.parametrize("zero_vector", ["drop", "neutral"])
    def test_distributions(self, zero_vector, answers, features, toy):
        encoded = encode(answers, tasks=features.index)
        result = complete_labels(answers, features, n_neighbors=2)
        similarity = Similarity.of(result.worker_vectors, zero_vector)
        graph = Graph(result.neighbors, result.edge_weights)
        for n_iter, array in ((0, "init"), (5, "final")):
            found = distributions(encoded, similarity, graph, start=0, stop=3, n_iter=n_iter).transpose(0, 2, 1)
            np.testing.assert_allclose(found, toy[zero_vector][array], atol=1e-6)
            if array == "final" and zero_vector == "neutral":
                np.testing.assert_allclose(found[[0, 2], 2, 1], [0.285156, 0.140625], atol=1e-6)

    def test_nominal_vector(self):
        features = pd.DataFrame({"p": [0, 0, 1, 1, 0], "q": [1, 0, 1, 0, 1]})
        answers = pd.DataFrame({"task": range(5), "worker": "w", "label": [0, 0, 1, 1, 1]})
        result = complete_labels(answers, features, method="wslc", nominal=["p", "q"])
        np.testing.assert_allclose(result.worker_vectors, [[0.4, 1 / 30]], atol=1e-12)
