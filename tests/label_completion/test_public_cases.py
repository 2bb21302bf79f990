"""Faults and requests reported of other tools for crowdsourced labels; here each has the right behaviour.

Numbers are those of table 5.1 of the method's specification.
"""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest

from tasks.label_completion.aggregation import DegenerateFit, aggregate
from tasks.label_completion.answers import encode
from tasks.label_completion.completion import complete_labels
from tasks.label_completion.graph import prepare_features
from tasks.label_completion.metrics import krippendorff_alpha
from tasks.label_completion.propagation import Graph, propagate_instances
from tasks.label_completion.workers import worker_vectors
from tasks.stage import UserError

OWN = ["majority", "dawid_skene", "iwmv", "wawa", "gtic"]
PEERS = ["crowdkit:DawidSkene", "crowdkit:OneCoinDawidSkene", "crowdkit:GLAD", "crowdkit:MACE"]
FEW_ROUNDS = {"crowdkit:GLAD": {"n_iter": 5}, "crowdkit:MACE": {"n_iter": 2}}  # they take seconds else

pytestmark = [
    pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning:crowdkit"),
    pytest.mark.filterwarnings("ignore::tasks.label_completion.aggregation.DegenerateFit"),
]


def table(*rows: tuple, columns: tuple = ("task", "worker", "label")) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=list(columns))


@pytest.mark.parametrize("method", [*OWN, *PEERS])
def test_01_integer_columns(method):
    """crowd-kit #6: all-integer task, worker and label columns; a join error there."""
    answers = table(*((task, worker, label) for task, label in ((10, 7), (20, 3), (30, 7)) for worker in (1, 2, 3)))
    found = aggregate(answers, method, **FEW_ROUNDS.get(method, {})).tasks
    assert found.index.tolist() == [10, 20, 30]
    assert found["label"].tolist() == [7, 3, 7]
    assert found["label"].dtype == np.int64
    features = pd.DataFrame({"x": [0.0, 1, 2]}, index=[10, 20, 30])
    labels = complete_labels(answers, features).labels
    assert (labels.index.dtype, labels.columns.dtype) == (np.int64, np.int64)
    assert set(labels.dtypes) == {np.dtype(np.int64)}


@pytest.mark.parametrize("method", [*OWN, *PEERS])
def test_02_two_against_two(method):
    """crowd-kit #108: how are ties broken? There the order of rows decides, for majority and Dawid–Skene alike."""
    answers = table(("t", "u", "b"), ("t", "v", "b"), ("t", "w", "a"), ("t", "z", "a"))
    options = FEW_ROUNDS.get(method, {})
    forwards, backwards = aggregate(answers, method, **options), aggregate(answers[::-1], method, **options)
    pd.testing.assert_frame_equal(forwards.tasks, backwards.tasks)
    if method != "crowdkit:MACE":  # it starts from random numbers
        assert forwards.tasks.loc["t", "label"] == "a"


@pytest.mark.parametrize("method", [*(m for m in OWN if m != "gtic"), *PEERS[:3]])
def test_02_ties_are_flagged(method):
    answers = table(("t", "u", "b"), ("t", "v", "b"), ("t", "w", "a"), ("t", "z", "a"))
    assert aggregate(answers, method).tasks.loc["t", "tie"]


def test_03_wawa():
    """Found in crowd-kit 1.4.2 with scikit-learn 1.9: Wawa().fit_predict raises AttributeError `__sklearn_tags__`."""
    answers = table(*((t, w, label) for t, said in enumerate(["aab", "aab", "bba"]) for w, label in enumerate(said)))
    found = aggregate(answers, "wawa")
    assert found.tasks["label"].tolist() == ["a", "a", "b"]
    np.testing.assert_allclose(found.tasks["confidence"], 1.0)  # the third worker never agrees: weight 0
    with pytest.raises(UserError, match=r"crowdkit:Wawa.* is not one of .*wawa"):
        aggregate(answers, "crowdkit:Wawa")


@pytest.mark.parametrize("method", ["crowdkit:KOS", "KOS"])
def test_04_and_10_kos_is_not_offered(method):
    """Found in crowd-kit 1.4.2: KOS dies with KeyError 0.0 on a 1–1 vote; crowd-kit PR 35: its messages overflow."""
    with pytest.raises(UserError) as error:
        aggregate(table(("t", "u", 0), ("t", "v", 1)), method)
    for allowed in [*OWN, *PEERS]:
        assert allowed in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("method", OWN)
def test_04_one_against_one(method):
    """The nearest offered thing to KOS's tie of two: a rule."""
    found = aggregate(table(("t", "u", 1), ("t", "v", 0)), method)
    assert found.tasks.loc["t", "label"] == 0
    assert np.isfinite(found.scores.to_numpy()).all()


@pytest.mark.parametrize("kind", ["category", "string[python]", "string[pyarrow]", "object"])
@pytest.mark.parametrize("method", [*OWN, *PEERS[:3]])
def test_05_categorical_arrow_and_string_columns(method, kind):
    """Found in crowd-kit 1.4.2 with pandas 3: AttributeError on categorical columns."""
    plain = table(("s", "u", "a"), ("s", "v", "a"), ("t", "u", "b"), ("t", "v", "b"), ("t", "w", "a"), ("s", "w", "a"))
    options = FEW_ROUNDS.get(method, {})
    found, expected = aggregate(plain.astype(kind), method, **options), aggregate(plain, method, **options)
    assert found.tasks["label"].tolist() == expected.tasks["label"].tolist() == ["a", "b"]
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_06_memory_is_bounded_by_the_number_of_answers():
    """MMSR of crowd-kit asks for 315 GiB at 10⁴ tasks, 10³ workers, 10⁵ answers."""
    generator = np.random.default_rng(0)
    key = generator.choice(10_000 * 1_000, 100_000, replace=False)
    answers = pd.DataFrame({"task": key // 1000, "worker": key % 1000, "label": generator.integers(0, 4, len(key))})
    aggregate(answers[:10], "dawid_skene")  # compile first
    for method in ("majority", "dawid_skene", "iwmv", "wawa"):
        tracemalloc.start()
        aggregate(answers, method, n_iter=3)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 64 << 20, f"{method}: {peak >> 20} MiB"


def test_06_too_large_a_matrix_is_refused_at_once():
    answers = pd.DataFrame({"task": [0], "label": ["a"], "worker": pd.Categorical([0], range(50_000))})
    features = pd.DataFrame({"x": np.zeros(50_000)})
    with pytest.raises(UserError, match=r"50000 × 50000 cells.*return_='votes'"):
        complete_labels(answers, features, method="wslc")


def test_07_missing_labels(answers, features):
    """crowd-kit skips rows without label silently, and the task's answer changes. Here: refused, or dropped as told."""
    gaps = pd.concat([answers, table(("b", "v", None), ("b", "w", None))], ignore_index=True)
    for call in (lambda: aggregate(gaps), lambda: complete_labels(gaps, features)):
        with pytest.raises(UserError, match=r"answers: row 7, column label: the value is missing \(2 such rows"):
            call()
    dropped, expected = aggregate(gaps, on_missing="drop"), aggregate(answers.assign(label=answers["label"]))
    np.testing.assert_array_equal(dropped.scores, expected.scores)
    with pytest.raises(UserError, match="no complete rows"):
        aggregate(answers.assign(label=None), on_missing="drop")


@pytest.mark.parametrize("column", ["task", "worker"])
def test_07_missing_identifiers(column, answers):
    answers.loc[4, column] = None
    with pytest.raises(UserError, match=rf"answers: row 4, column {column}: the value is missing \(1 such"):
        aggregate(answers)


def test_08_collapse_to_a_constant_is_told():
    """Dawid–Skene explains the only 'b' away: crowd-kit returns 'a' for that task without a word."""
    answers = table(("s", "u", "a"), ("s", "v", "a"), ("s", "w", "a"), ("t", "u", "a"), ("q", "v", "b"))
    with pytest.warns(DegenerateFit, match="no task gets 'b'"):
        found = aggregate(answers, "dawid_skene", smoothing=10)
    assert found.tasks.loc["q", "label"] == "a"
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateFit)
        assert aggregate(answers, "dawid_skene").tasks.loc["q", "label"] == "b"


def test_08_duplicate_rows_change_nothing_silently():
    answers = table(("s", "u", "a"), ("s", "v", "a"), ("t", "u", "b"), ("t", "v", "b"))
    twice = pd.concat([answers, answers], ignore_index=True)
    with pytest.raises(UserError, match=r"row 4: worker 'u' has more than one answer for task 's' \(4 such"):
        aggregate(twice, "dawid_skene")
    for keep in ("first", "last"):
        found = aggregate(twice, "dawid_skene", on_duplicate=keep)
        np.testing.assert_array_equal(found.scores, aggregate(answers, "dawid_skene").scores)


@pytest.mark.parametrize("smoothing", [0.0, 0.01])
def test_09_a_class_that_a_worker_never_used_is_not_vetoed(smoothing):
    """conversationai-models PR 67: a zero in the confusion matrix excludes a class for ever."""
    rows = [(task, worker, "a") for task in range(6) for worker in "uvwz"]
    rows += [(task, worker, "b") for task in range(6, 9) for worker in "uvw"]
    rows += [(9, "z", "a"), (9, "u", "b"), (9, "v", "b"), (9, "w", "b")]  # z never said b
    found = aggregate(table(*rows), "dawid_skene", smoothing=smoothing)
    assert found.tasks.loc[9, "label"] == "b"
    assert np.isfinite(found.scores.to_numpy()).all()


@pytest.mark.parametrize("method", ["dawid_skene", "iwmv", "crowdkit:DawidSkene"])
def test_10_many_rounds_stay_finite(method):
    """crowd-kit PR 35: values overflow to NaN after many rounds (KOS; these are the iterative ones offered here)."""
    generator = np.random.default_rng(1)
    rows = [(t, w, int(generator.random() < 0.3)) for t in range(20) for w in range(8)]
    found = aggregate(table(*rows), method, n_iter=500, tolerance=0)
    assert np.isfinite(found.scores.to_numpy()).all()


@pytest.mark.parametrize("n_sources", [500, 5000])
@pytest.mark.parametrize("method", OWN)
def test_11_many_agreeing_sources(method, n_sources):
    """snorkel #1640: 500 agreeing sources per item make posteriors underflow to NaN."""
    rows = pd.DataFrame({"task": np.repeat([0, 1, 2], n_sources), "worker": np.tile(range(n_sources), 3)})
    rows["label"] = rows["task"] % 2
    found = aggregate(rows, method)
    assert found.tasks["label"].tolist() == [0, 1, 0]
    assert found.tasks["confidence"].between(0.999, 1).all()
    np.testing.assert_allclose(found.scores.sum(axis=1), 1)


@pytest.mark.parametrize("workers", ["uv", "uvw"])
@pytest.mark.parametrize("method", OWN)
def test_12_perfect_agreement_and_two_sources(method, workers):
    """flyingsquid #8: NaN where sources agree perfectly, or where there are only two."""
    rows = [(task, worker, "ab"[task % 2]) for task in range(6) for worker in workers]
    found = aggregate(table(*rows), method)
    assert found.tasks["label"].tolist() == list("ababab")
    np.testing.assert_allclose(found.scores.sum(axis=1), 1)
    assert (found.workers["agreement"] == 1).all()


@pytest.mark.parametrize("method", [*OWN, *PEERS])
def test_13_workers_without_common_tasks(method):
    """cleanlab PR 654: the majority-vote helper crashed where annotators do not overlap."""
    answers = table(("a", "u", 0), ("b", "u", 1), ("c", "v", 1), ("d", "w", 0))
    found = aggregate(answers, method, **FEW_ROUNDS.get(method, {}))
    assert found.tasks["label"].notna().all()
    if method == "majority":
        assert found.tasks["label"].tolist() == [0, 1, 1, 0]
    assert np.isnan(krippendorff_alpha(encode(answers)))


def test_13_completion_of_workers_without_common_tasks(features):
    answers = table(("a", "u", 0), ("d", "u", 1), ("b", "v", 0), ("e", "v", 1), ("f", "v", 1))
    result = complete_labels(answers, features, n_neighbors=2)
    np.testing.assert_array_equal(result.codes[:, 0], [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(result.codes[:, 1], [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("method", OWN)
def test_14_workers_with_few_or_constant_labels(method):
    """cleanlab PR 304: statistics per annotator fail for few or constant labels; here a number, or NaN with answers = 0."""
    answers = table(("a", "constant", 0), ("b", "constant", 0), ("c", "constant", 0), ("c", "once", 1), ("d", "x", 1))
    answers["worker"] = pd.Categorical(answers["worker"], ["constant", "once", "x", "never"])
    workers = aggregate(answers, method).workers
    assert workers["answers"].tolist() == [3, 1, 1, 0]
    assert workers["agreement"].isna().tolist() == [False, False, False, True]


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_15_warnings_do_not_depend_on_the_order_of_rows(order):
    """cleanlab PR 1077: a warning about absent agreement came only if the labels were sorted."""
    answers = table(("s", "u", "a"), ("s", "v", "a"), ("s", "w", "a"), ("t", "u", "a"), ("q", "v", "b"))
    if order == "shuffled":
        answers = answers.sample(frac=1, random_state=3)
    with pytest.warns(DegenerateFit, match="no task gets 'b'"):
        aggregate(answers, "dawid_skene", smoothing=10)


@pytest.mark.parametrize("labels", ["aaaa", "abab"])
def test_16_alpha_of_perfect_agreement(labels):
    """krippendorff-alpha #1, dkpro-statistics PR 48: NaN or 0 for perfect agreement."""
    rows = [(task, worker, label) for task, label in enumerate(labels) for worker in "uvw"]
    assert krippendorff_alpha(encode(table(*rows))) == 1.0


def test_17_missing_ratings_are_no_category():
    """nltk #2865: None counted as a category, α .33 instead of 1."""
    rows = [("s", "u", 1), ("s", "v", 1), ("s", "w", None), ("t", "u", 2), ("t", "v", 2), ("t", "w", None)]
    assert krippendorff_alpha(encode(table(*rows), on_missing="drop")) == 1.0


def test_18_alpha_of_many_ratings():
    """inspect_ai PR 4035: the expected disagreement of 50,000 ratings hung; a table of all pairs needs 20 GB."""
    generator = np.random.default_rng(2)
    answers = pd.DataFrame({"task": np.repeat(range(100), 500), "worker": np.tile(range(500), 100)})
    answers["label"] = generator.integers(0, 3, len(answers))
    encoded = encode(answers)
    tracemalloc.start()
    alpha = krippendorff_alpha(encoded)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert abs(alpha) < 0.01
    assert peak < 8 << 20


def test_19_no_mass_around_spreads_no_nan(answers, features):
    """sklearn PR 15635 and 34350: propagation where no neighbour has mass divides 0 by 0."""
    graph = Graph(np.array([[1], [0], [3], [2]], np.int32), np.ones((4, 1)))
    found = propagate_instances(np.array([[1.0, 0], [0, 0], [0, 0], [0, 0]]), graph)
    assert np.isfinite(found).all()
    assert (found[2:] == 0).all()
    assert found[1, 0] > 0
    island = answers[answers["task"].isin(["a", "b", "c"])]
    for method in ("ldplc", "instance"):
        result = complete_labels(island, features, method=method, n_neighbors=2)
        assert (result.margin.loc[["d", "e", "f"]] == 0).all(axis=None)
        assert (result.labels.loc[["d", "e", "f"]] == 0).all(axis=None)


def test_20_dawid_skene_makes_no_dense_array():
    """conversationai PR 82: a matrix E-step ran out of memory. Dense here would be 20,000 × 5,000 × 3 numbers, 2.4 GB."""
    generator = np.random.default_rng(3)
    key = generator.choice(20_000 * 5_000, 50_000, replace=False)
    answers = pd.DataFrame({"task": key // 5000, "worker": key % 5000, "label": generator.integers(0, 3, len(key))})
    encoded_once = encode(answers)
    assert len(encoded_once.task) == 50_000
    tracemalloc.start()
    aggregate(answers, "dawid_skene", n_iter=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 48 << 20


@pytest.mark.parametrize("tie_break", ["first", "random"])
def test_21_clustering_of_tasks_without_answers(tie_break):
    """CEKA's GTIC: 0/0 shares of a task without labels, a comparator exception, then a null pointer."""
    rows = [(t, w, "ab"[t % 2]) for t in range(6) for w in range(3)]
    found = aggregate(table(*rows), "gtic", tasks=range(8), tie_break=tie_break).tasks
    assert found["label"].tolist()[:6] == list("ababab")
    assert found["confidence"].tolist()[6:] == [0, 0]
    assert found["label"].isna().tolist()[6:] == [tie_break == "first"] * 2


@pytest.mark.parametrize(("name", "n_zero", "n_noise"), [("leaves", 5, 3), ("labelme", 0, 2), ("uci_iris", 10, 3)])
def test_22_balanced_and_one_class_workers(name, n_zero, n_noise, reference_data):
    """LDPLC, WSLC: such workers got rounding noise or 0 for similarity, and class 0 everywhere. Here exactly neutral."""
    data = reference_data(name)
    encoded = encode(data.answers, tasks=data.features.index, classes=range(data.schema["n_classes"]))
    zero = (worker_vectors(encoded, prepare_features(data.features, data.nominal)) == 0).all(axis=1)
    assert zero.sum() == n_zero + n_noise
    result = complete_labels(data.answers, data.features, method="wslc")
    others = ~np.eye(len(zero), dtype=bool)
    assert (result.similarity[zero][:, :][others[zero]] == 0.5).all()
    given = result.codes[:, zero]
    assert (given > 0).any(axis=0).all()
