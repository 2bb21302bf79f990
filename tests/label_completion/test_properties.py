"""What must hold for any answers: invariances, bounds, and agreement with plain versions of the formulas."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.label_completion import propagation
from tasks.label_completion.aggregation import aggregate
from tasks.label_completion.answers import encode
from tasks.label_completion.completion import Completion, complete_labels
from tasks.label_completion.metrics import krippendorff_alpha
from tasks.label_completion.propagation import Graph, distributions, propagate_instances
from tasks.label_completion.workers import Similarity
from tests.label_completion import reference

METHODS = ["wslc", "ldplc", "instance"]
OWN = ["majority", "dawid_skene", "iwmv", "wawa", "gtic"]
pytestmark = pytest.mark.filterwarnings("ignore::tasks.label_completion.aggregation.DegenerateFit")


@st.composite
def situations(draw, *, most_workers: int = 6):
    """(answers, features): real-valued features, so that few ties are exact; tasks and workers may lack answers."""
    n_tasks, n_workers = draw(st.integers(2, 15)), draw(st.integers(1, most_workers))
    n_classes = draw(st.integers(1, 4))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    features = pd.DataFrame(generator.normal(size=(n_tasks, 3)), columns=["x", "y", "z"])
    given_ = generator.random((n_tasks, n_workers)) < draw(st.sampled_from([0.2, 0.5, 0.9]))
    given_[0, 0] = True
    task, worker = np.nonzero(given_)
    label = generator.integers(0, n_classes, len(task))
    answers = pd.DataFrame({"task": task, "worker": pd.Categorical(worker, range(n_workers)), "label": label})
    return answers, features


def same(a: Completion, b: Completion) -> None:
    """Equal to the last bit."""
    for name in ("codes", "margins", "worker_vectors", "neighbors", "edge_weights", "similarity"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    pd.testing.assert_frame_equal(a.votes, b.votes, check_exact=True)
    pd.testing.assert_frame_equal(a.soft, b.soft, check_exact=True)


@pytest.mark.parametrize("method", METHODS)
@given(situations(), st.randoms(use_true_random=False))
def test_the_order_of_answers_changes_no_bit_of_a_completion(method, situation, random):
    answers, features = situation
    order = list(range(len(answers)))
    random.shuffle(order)
    same(
        complete_labels(answers, features, method=method), complete_labels(answers.iloc[order], features, method=method)
    )


@pytest.mark.parametrize("method", OWN)
@given(situations(), st.randoms(use_true_random=False))
@settings(max_examples=15)
def test_the_order_of_answers_changes_no_bit_of_an_aggregation(method, situation, random):
    answers, _ = situation
    answers["weight"] = np.linspace(0.1, 1, len(answers))
    order = list(range(len(answers)))
    random.shuffle(order)
    for tie_break in ("first", "random"):
        a, b = (aggregate(table, method, tie_break=tie_break) for table in (answers, answers.iloc[order]))
        pd.testing.assert_frame_equal(a.tasks, b.tasks, check_exact=True)
        pd.testing.assert_frame_equal(a.scores, b.scores, check_exact=True)
        pd.testing.assert_frame_equal(a.workers, b.workers, check_exact=True)


@pytest.mark.parametrize("method", METHODS)
@given(situations())
def test_names_of_workers_do_not_matter(method, situation):
    answers, features = situation
    n_workers = len(answers["worker"].cat.categories)
    renamed = answers.assign(worker=answers["worker"].cat.rename_categories(lambda w: f"w{n_workers - w}"))
    renamed["worker"] = renamed["worker"].cat.reorder_categories(sorted(renamed["worker"].cat.categories))
    one, two = (complete_labels(table, features, method=method) for table in (answers, renamed))
    clear = one.margins > 1e-5
    np.testing.assert_array_equal(one.codes[clear], two.codes[:, ::-1][clear])
    np.testing.assert_allclose(one.margins, two.margins[:, ::-1], atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
@given(situations(), st.randoms(use_true_random=False))
def test_names_of_classes_do_not_matter(method, situation, random):
    answers, features = situation
    classes = list(range(4))
    random.shuffle(classes)  # old class c becomes classes[c]
    renamed = answers.assign(label=np.array(classes)[answers["label"]])
    one, two = (complete_labels(table, features, method=method, classes=range(4)) for table in (answers, renamed))
    clear = one.margins > 1e-5
    np.testing.assert_array_equal(np.array(classes)[one.codes[clear]], two.codes[clear])
    np.testing.assert_allclose(one.margins, two.margins, atol=1e-5)


@given(situations(), st.randoms(use_true_random=False))
def test_names_of_tasks_do_not_matter(situation, random):
    answers, features = situation
    names = list(range(len(features)))
    random.shuffle(names)
    renamed = answers.assign(task=np.array(names)[answers["task"]])
    one, two = complete_labels(answers, features), complete_labels(renamed, features.set_axis(names))
    assert two.labels.index.tolist() == names
    same(one, replace(two, votes=two.votes.set_axis(features.index), soft=two.soft.set_axis(features.index)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("return_", ["matrix", "votes", "soft"])
def test_threads_change_no_bit(method, return_):
    """600 tasks are three blocks of rows, 300 workers at least three blocks of workers."""
    generator = np.random.default_rng(1)
    key = generator.choice(600 * 300, 4000, replace=False)
    answers = pd.DataFrame({"task": key // 300, "worker": key % 300, "label": generator.integers(0, 3, len(key))})
    features = pd.DataFrame(generator.normal(size=(600, 4)))
    one, three = (complete_labels(answers, features, method=method, return_=return_, threads=n) for n in (1, 3))
    assert len(propagation.worker_blocks(one.answers)) > 2
    same(one, three)


@pytest.mark.parametrize("method", ["wslc", "ldplc"])
def test_the_size_of_blocks_changes_no_label(method, monkeypatch):
    generator = np.random.default_rng(2)
    key = generator.choice(50 * 40, 200, replace=False)
    answers = pd.DataFrame({"task": key // 40, "worker": key % 40, "label": generator.integers(0, 3, len(key))})
    features = pd.DataFrame(generator.normal(size=(50, 4)))
    whole = complete_labels(answers, features, method=method)
    for size in (1, 7):
        monkeypatch.setattr(propagation, "block_size", lambda n_tasks, n_classes, size=size: size)
        blocks = complete_labels(answers, features, method=method)
        np.testing.assert_array_equal(blocks.codes, whole.codes)
        np.testing.assert_array_equal(blocks.margins, whole.margins)
        pd.testing.assert_frame_equal(blocks.votes, whole.votes)
        pd.testing.assert_frame_equal(blocks.soft, whole.soft, rtol=1e-12)


@pytest.mark.parametrize("zero_vector", ["neutral", "drop"])
@pytest.mark.parametrize("method", METHODS)
@given(situations(), st.integers(1, 4), st.sampled_from([0.0, 0.5, 0.99]), st.integers(0, 6))
def test_observed_cells_never_change_and_margins_are_in_0_1(method, zero_vector, situation, k, alpha, n_iter):
    answers, features = situation
    options = {"n_neighbors": k, "alpha": alpha, "n_iter": n_iter, "zero_vector": zero_vector}
    result = complete_labels(answers, features, method=method, **options)
    task, worker = answers["task"].to_numpy(), answers["worker"].cat.codes.to_numpy()
    labels = result.labels.to_numpy()
    assert [labels[t, w] for t, w in zip(task, worker, strict=True)] == answers["label"].tolist()
    imputed = np.ones(result.codes.shape, bool)
    imputed[task, worker] = False
    np.testing.assert_array_equal(result.imputed, imputed)
    assert ((result.margins >= 0) & (result.margins <= 1 + 1e-6)).all()
    assert (result.margins[~imputed] == 1).all()
    if (method, zero_vector) != ("wslc", "neutral"):
        assert (result.codes >= 0).all()


@pytest.mark.parametrize("zero_vector", ["neutral", "drop"])
@pytest.mark.parametrize("method", METHODS)
@given(situations())
def test_votes_soft_and_matrix_tell_the_same(method, zero_vector, situation):
    answers, features = situation
    results = {
        return_: complete_labels(answers, features, method=method, zero_vector=zero_vector, return_=return_)
        for return_ in ("matrix", "votes", "soft")
    }
    matrix = results["matrix"]
    for other in ("votes", "soft"):
        pd.testing.assert_frame_equal(results[other].votes, matrix.votes)
        pd.testing.assert_frame_equal(results[other].soft, matrix.soft, check_exact=True)
        assert results[other].labels is results[other].imputed is results[other].margin is None
    counts = np.array([(matrix.codes == c).sum(axis=1) for c in range(matrix.codes.max() + 1)]).T
    np.testing.assert_array_equal(matrix.votes.to_numpy()[:, : counts.shape[1]], counts)
    assert (matrix.soft.sum(axis=1) <= 1 + 1e-6).all()
    assert (matrix.soft >= 0).all(axis=None)


@given(situations(), st.sampled_from(["neutral", "drop"]), st.integers(0, 4), st.sampled_from([0.0, 0.3, 0.9]))
def test_distributions_are_their_definition(situation, zero_vector, n_iter, alpha):
    answers, features = situation
    result = complete_labels(answers, features, method="ldplc", n_neighbors=3)
    encoded = encode(answers, tasks=features.index)
    codes = np.full((len(features), len(encoded.workers)), -1)
    codes[encoded.task, encoded.worker] = encoded.label
    similar = reference.similarity(result.worker_vectors, zero_vector)
    start = reference.start_distributions(codes, similar, len(encoded.classes))
    expected = reference.propagate(start, codes >= 0, result.neighbors, result.edge_weights, alpha, n_iter)
    found = distributions(
        encoded,
        Similarity.of(result.worker_vectors, zero_vector),
        Graph(result.neighbors, result.edge_weights),
        start=0,
        stop=codes.shape[1],
        alpha=alpha,
        n_iter=n_iter,
    )
    np.testing.assert_allclose(found.transpose(0, 2, 1), expected, atol=2e-6)
    completed = complete_labels(
        answers, features, n_neighbors=3, zero_vector=zero_vector, alpha=alpha, n_iter=n_iter, classes=encoded.classes
    )
    ordered = np.sort(expected, axis=2)
    margin = ordered[..., -1] - (ordered[..., -2] if ordered.shape[2] > 1 else 0)
    np.testing.assert_allclose(completed.margins, np.where(codes >= 0, 1, margin), atol=2e-6)
    clear = margin > 1e-5
    np.testing.assert_array_equal(completed.codes[clear], expected.argmax(axis=2)[clear])


@given(situations(), st.sampled_from([0.2, 0.5, 0.9]))
def test_propagation_is_a_contraction(situation, alpha):
    """Each round moves the distributions by at most α times what the round before moved them."""
    answers, features = situation
    result = complete_labels(answers, features, n_neighbors=3)
    encoded = encode(answers, tasks=features.index)
    shared = (encoded, Similarity.of(result.worker_vectors, "neutral"), Graph(result.neighbors, result.edge_weights))
    rounds = [
        distributions(*shared, start=0, stop=len(encoded.workers), alpha=alpha, n_iter=n).astype(float)
        for n in range(6)
    ]
    moves = [np.abs(b - a).max() for a, b in pairwise(rounds)]
    for before, after in pairwise(moves):
        assert after <= alpha * before + 1e-6
    votes = encoded.votes()
    rounds = [propagate_instances(votes, shared[2], alpha=alpha, n_iter=n) for n in range(6)]
    moves = [np.abs(b - a).max() for a, b in pairwise(rounds)]
    for before, after in pairwise(moves):
        assert after <= alpha * before + 1e-12


@given(situations(), st.sampled_from([0.0, 0.5]), st.integers(0, 5))
def test_instance_mode_is_propagation_of_shares(situation, alpha, n_iter):
    answers, features = situation
    result = complete_labels(answers, features, method="instance", alpha=alpha, n_iter=n_iter, n_neighbors=3)
    encoded = encode(answers, tasks=features.index)
    votes = np.zeros((len(features), len(encoded.classes)))
    for task, label in zip(encoded.task, encoded.label, strict=True):
        votes[task, label] += 1
    start = votes / np.maximum(votes.sum(1, keepdims=True), 1)
    current = start
    for _ in range(n_iter):
        current = (1 - alpha) * start + alpha * sum(
            result.edge_weights[:, [j]] * current[result.neighbors[:, j]] for j in range(result.neighbors.shape[1])
        )
    np.testing.assert_allclose(result.soft, current, atol=1e-12)
    assert ((result.soft >= 0) & (result.soft <= 1 + 1e-12)).all(axis=None)
    clear = np.sort(current, axis=1)[:, -1] - (np.sort(current, axis=1)[:, -2] if current.shape[1] > 1 else 0) > 1e-9
    for task in np.flatnonzero(clear):
        imputed = result.imputed.to_numpy()[task]
        assert (result.codes[task, imputed] == current[task].argmax()).all()


@pytest.mark.parametrize("method", OWN)
@given(situations())
@settings(max_examples=15)
def test_scores_of_aggregation_are_distributions(method, situation):
    answers, _ = situation
    found = aggregate(answers, method)
    np.testing.assert_allclose(found.scores.sum(axis=1), 1, atol=1e-9)
    assert ((found.scores >= 0) & (found.scores <= 1 + 1e-12)).all(axis=None)
    assert found.tasks["confidence"].between(0, 1 + 1e-12).all()
    best = found.scores.max(axis=1)
    np.testing.assert_array_equal(found.tasks["tie"], (best - 1e-12 <= found.scores.T).sum() > 1)


@given(situations())
def test_alpha_equals_a_count_of_all_pairs(situation):
    answers, _ = situation
    expected = reference.krippendorff_alpha(list(zip(answers["task"], answers["label"], strict=True)))
    np.testing.assert_allclose(krippendorff_alpha(encode(answers)), expected, atol=1e-12)


@st.composite
def identifiers(draw):
    """Columns of distinct answers whose values are whole numbers, texts, booleans or fractions."""
    kinds = [st.integers(-(2**60), 2**60), st.text(max_size=3), st.booleans(), st.floats(allow_nan=False)]
    task, worker, label = (draw(st.sampled_from(kinds)) for _ in range(3))
    keys = draw(st.lists(st.tuples(task, worker), unique=True, min_size=1, max_size=12))
    labels = draw(st.lists(label, min_size=len(keys), max_size=len(keys)))
    return pd.DataFrame(
        [(t, w, x) for (t, w), x in zip(keys, labels, strict=True)], columns=["task", "worker", "label"]
    )


@given(identifiers(), st.sampled_from(["as it is", "category", "object"]))
def test_encoding_comes_back(answers, kind):
    table = answers if kind == "as it is" else answers.astype(kind)
    encoded = encode(table)
    back = {
        (encoded.tasks[t], encoded.workers[w]): encoded.classes[x]
        for t, w, x in zip(encoded.task, encoded.worker, encoded.label, strict=True)
    }
    assert back == {(t, w): x for t, w, x in answers.itertuples(index=False)}
    assert (np.diff(encoded.task) >= 0).all()
    start, task, label = encoded.by_worker()
    again = {
        (encoded.tasks[t], encoded.workers[w]): encoded.classes[x]
        for w in range(len(encoded.workers))
        for t, x in zip(task[start[w] : start[w + 1]], label[start[w] : start[w + 1]], strict=True)
    }
    assert again == back
    for i in range(len(encoded.tasks)):
        assert (encoded.task[encoded.task_start[i] : encoded.task_start[i + 1]] == i).all()
    assert list(encoded.classes) == sorted(set(answers["label"]))


def test_to_answers_is_the_matrix_as_a_list(answers, features):
    result = complete_labels(answers, features, method="wslc")
    table = result.to_answers(imputed_weight=0.25)
    assert len(table) == (result.codes >= 0).sum()
    for row in table.itertuples():
        assert result.labels.loc[row.task, row.worker] == row.label
        assert result.imputed.loc[row.task, row.worker] == row.imputed
        assert result.margin.loc[row.task, row.worker] == row.margin
        assert row.weight == (0.25 if row.imputed else 1)
    observed = table[~table["imputed"]].astype({"task": str, "worker": str, "label": int})
    expected = answers.sort_values(["task", "worker"])
    np.testing.assert_array_equal(observed[["task", "worker", "label"]], expected)
    for tasks in (aggregate(table).tasks, aggregate(result.to_answers(0)).tasks):
        assert tasks.index.tolist() == list("abcdef")


def test_blocks_of_workers_depend_on_the_shape_alone():
    """Four bytes a cell and class, about 4 MB, 16 to 128 workers: another machine makes the same blocks."""
    shapes = ((1, 2), (10_000, 4), (10_000, 2), (1_000_000, 8))
    assert [propagation.block_size(*shape) for shape in shapes] == [128, 16, 48, 16]
