"""Edge cases of label completion, each with its documented result (table 1.6 of the method's specification)."""

import numpy as np
import pandas as pd
import pytest

from tasks.label_completion.aggregation import aggregate
from tasks.label_completion.completion import complete_labels
from tasks.stage import UserError

ZERO_VECTORS = {
    "one class": [("a", 0), ("b", 0), ("d", 0)],
    "equally many answers per class": [("a", 0), ("b", 0), ("d", 1), ("e", 1)],
    "one answer": [("d", 1)],
}


class TestZeroVectorWorker:
    """Published: similarity 0, or the cosine of rounding noise. Here: 1/2 to everybody, or 0 with "drop"."""

    def _answers(self, given: list) -> pd.DataFrame:
        rows = [("a", "u", 0), ("b", "u", 0), ("c", "u", 1), ("e", "v", 0), ("d", "v", 1), ("f", "v", 1)]
        rows += [(task, "zero", label) for task, label in given]
        return pd.DataFrame(rows, columns=["task", "worker", "label"])

    @pytest.mark.parametrize("case", ZERO_VECTORS)
    @pytest.mark.parametrize(("zero_vector", "expected"), [("neutral", 0.5), ("drop", 0.0)])
    def test_similarity(self, case, zero_vector, expected, features):
        result = complete_labels(self._answers(ZERO_VECTORS[case]), features, zero_vector=zero_vector)
        assert (result.worker_vectors[2] == 0).all()
        np.testing.assert_array_equal(result.similarity[2], [expected, expected, 0])
        np.testing.assert_array_equal(result.similarity[:, 2], [expected, expected, 0])

    @pytest.mark.parametrize(("zero_vector", "expected"), [("neutral", 0.5), ("drop", 0.0)])
    def test_constant_features(self, zero_vector, expected, answers, features):
        constant = pd.DataFrame({"x": 0.1, "y": 1e9 + 1 / 3}, index=features.index)
        result = complete_labels(answers, constant, zero_vector=zero_vector)
        assert (result.worker_vectors == 0).all()
        np.testing.assert_array_equal(result.similarity, expected * (1 - np.eye(3)))

    def test_the_answers_of_a_zero_vector_worker_count(self, features):
        """Alone on a task, such a worker is all the evidence there is: "drop" throws it away, "neutral" keeps it."""
        answers = self._answers([("b", 1), ("c", 1)])
        answers = answers[(answers["task"] != "c") | (answers["worker"] == "zero")]
        kept = complete_labels(answers, features, method="wslc").labels.loc["c", "v"]
        dropped = complete_labels(answers, features, method="wslc", zero_vector="drop").labels.loc["c", "v"]
        assert (kept, dropped) == (1, 0)


class TestTaskWithoutLabels:
    """Published: WSLC gives class 0; LDPLC what propagates from neighbours, class 0 if nothing does."""

    def test_wslc_leaves_it_missing(self, answers, features):
        result = complete_labels(answers, features, method="wslc", classes=[1, 0])
        assert result.labels.loc[["e", "f"]].isna().all(axis=None)
        assert result.labels.drop(["e", "f"]).notna().all(axis=None)
        assert (result.votes.loc[["e", "f"]] == 0).all(axis=None)
        assert (result.margin.loc[["e", "f"]] == 0).all(axis=None)
        assert set(result.to_answers()["task"]) == {"a", "b", "c", "d"}

    def test_wslc_gives_the_first_class_as_published_when_asked_to(self, answers, features):
        result = complete_labels(answers, features, method="wslc", zero_vector="drop", classes=[1, 0])
        assert (result.labels.loc[["e", "f"]] == 1).all(axis=None)

    @pytest.mark.parametrize("method", ["ldplc", "instance"])
    def test_propagated_from_neighbours(self, method, answers, features):
        result = complete_labels(answers, features, method=method, n_neighbors=2, classes=[0, 1])
        assert (result.labels.loc[["e", "f"]] == 1).all(axis=None)
        assert (result.margin.loc[["e", "f"]] > 0).all(axis=None)


class TestCellWithoutEvidence:
    """A distribution of zeros. Published: class 0. Here: the task's largest sum over workers, else the most frequent
    answer, with margin 0."""

    def _island(self, features: pd.DataFrame) -> pd.DataFrame:
        """d, e, f are each other's neighbours; nobody answered any of them. Class 1 is the most frequent answer."""
        rows = [("a", "u", 1), ("b", "u", 1), ("c", "u", 0), ("a", "v", 1), ("b", "v", 0)]
        return pd.DataFrame(rows, columns=["task", "worker", "label"])

    @pytest.mark.parametrize("method", ["ldplc", "instance"])
    def test_most_frequent_answer_with_margin_zero(self, method, features):
        result = complete_labels(self._island(features), features, method=method, n_neighbors=2)
        assert (result.labels.loc[["d", "e", "f"]] == 1).all(axis=None)
        assert (result.margin.loc[["d", "e", "f"]] == 0).all(axis=None)
        assert (result.soft.loc[["d", "e", "f"]] == 0).all(axis=None)
        np.testing.assert_array_equal(result.votes.loc["d"], [0, 2])

    def test_first_class_as_published_when_asked_to(self, features):
        result = complete_labels(self._island(features), features, n_neighbors=2, zero_vector="drop")
        assert (result.labels.loc[["d", "e", "f"]] == 0).all(axis=None)

    def test_largest_sum_over_workers_comes_before_the_most_frequent_answer(self):
        """u's and v's vectors are opposite, so neither is evidence for the other; 0 is the most frequent answer."""
        features = pd.DataFrame({"x": [0.0, 0, 0, 1, 1, 1]}, index=list("abcdef"))
        rows = [("a", "u", 0), ("d", "u", 1), ("e", "u", 1), ("a", "v", 0), ("b", "v", 0), ("f", "v", 1)]
        answers = pd.DataFrame(rows, columns=["task", "worker", "label"])
        result = complete_labels(answers, features, n_iter=0)
        assert result.similarity[0, 1] == 0
        assert result.margin.loc["d", "v"] == 0
        assert result.labels.loc["d", "v"] == 1  # u's own answer is the only mass of the task
        assert result.labels.loc["c", "v"] == 0  # no mass at all

    def test_votes_agree_with_the_matrix(self, features):
        answers = self._island(features)
        matrix = complete_labels(answers, features, n_neighbors=2)
        votes = complete_labels(answers, features, n_neighbors=2, return_="votes")
        pd.testing.assert_frame_equal(votes.votes, matrix.votes)


class TestTies:
    """Smallest class, that is the first in the order of `classes`; deterministic."""

    @pytest.mark.parametrize("classes", [["x", "y"], ["y", "x"]])
    @pytest.mark.parametrize("method", ["wslc", "ldplc", "instance"])
    def test_first_class(self, method, classes):
        features = pd.DataFrame({"f": [0.0, 0.0, 1.0, 1.0]}, index=list("abcd"))
        rows = [("a", "u", "x"), ("b", "u", "x"), ("a", "v", "y"), ("b", "v", "y"), ("c", "w", "x"), ("d", "w", "y")]
        answers = pd.DataFrame(rows, columns=["task", "worker", "label"])
        result = complete_labels(answers, features, method=method, classes=classes, n_neighbors=1)
        assert (result.labels.loc[["a", "b"], "w"] == classes[0]).all()
        assert (result.margin.loc[["a", "b"], "w"] == 0).all()

    def test_random_ties_of_aggregation_follow_the_seed(self):
        answers = pd.DataFrame({"task": np.repeat(range(200), 2), "worker": [0, 1] * 200, "label": [0, 1] * 200})
        first, again, other = (aggregate(answers, tie_break="random", seed=seed).tasks for seed in (1, 1, 2))
        pd.testing.assert_frame_equal(first, again)
        assert first["tie"].all()
        assert 60 < first["label"].sum() < 140
        assert (first["label"] != other["label"]).any()
        assert (aggregate(answers).tasks["label"] == 0).all()


class TestDuplicateAnswers:
    """Published: the last one silently overwrites. Here an error, or as told."""

    @pytest.fixture
    def twice(self, answers) -> pd.DataFrame:
        return pd.concat([answers, pd.DataFrame({"task": ["d"], "worker": ["w"], "label": [0]})], ignore_index=True)

    def test_error_by_default(self, twice, features):
        with pytest.raises(
            UserError, match=r"answers: row 7: worker 'w' has more than one answer for task 'd' \(1 such"
        ):
            complete_labels(twice, features)

    @pytest.mark.parametrize(("keep", "label"), [("first", 1), ("last", 0)])
    def test_keep_one(self, keep, label, twice, features):
        result = complete_labels(twice, features, on_duplicate=keep)
        assert result.labels.loc["d", "w"] == label
        assert aggregate(twice[twice["worker"] == "w"], on_duplicate=keep).tasks.loc["d", "label"] == label

    @pytest.mark.parametrize("keep", ["first", "last"])
    def test_keep_one_of_three(self, keep, features):
        answers = pd.DataFrame({"task": list("aaab"), "worker": "u", "label": [2, 1, 3, 0]})
        assert (
            complete_labels(answers, features, on_duplicate=keep).labels.loc["a", "u"] == {"first": 2, "last": 3}[keep]
        )


class TestUnknownTask:
    """Published: dropped with a line in the log. Here an error, or as told."""

    @pytest.fixture
    def strange(self, answers) -> pd.DataFrame:
        return pd.concat([answers, pd.DataFrame({"task": ["Z"], "worker": ["w"], "label": [1]})], ignore_index=True)

    def test_error_by_default(self, strange, features):
        with pytest.raises(UserError, match=r"answers: row 7, column task: 'Z' has no features \(1 such rows"):
            complete_labels(strange, features)

    def test_drop(self, strange, answers, features):
        found, expected = complete_labels(strange, features, on_unknown_task="drop"), complete_labels(answers, features)
        pd.testing.assert_frame_equal(found.labels, expected.labels)

    def test_nothing_left_is_an_error_and_no_guess(self, answers, features):
        with pytest.raises(UserError, match=r"answers: none of the 7 rows"):
            complete_labels(answers.assign(task="Z"), features, on_unknown_task="drop")


class TestLabels:
    """Published: classes must be 0 … C − 1, and a label outside is an exception. Here any sortable labels."""

    @pytest.mark.parametrize("classes", [["no", "yes"], [-7, 1234567890123456789], [False, True], [0.5, 2.5]])
    @pytest.mark.parametrize("method", ["wslc", "ldplc", "instance"])
    def test_any_labels_keep_their_type(self, method, classes, answers, features):
        named = answers.assign(label=[classes[code] for code in answers["label"]])
        plain = complete_labels(answers, features, method=method)
        result = complete_labels(named, features, method=method)
        np.testing.assert_array_equal(result.codes, plain.codes)
        kinds = {str: str, bool: (bool, np.bool_), int: (int, np.integer), float: float}[type(classes[0])]
        for task, row in enumerate(result.codes):
            for worker, code in enumerate(row):
                label = result.labels.iloc[task, worker]
                if code < 0:
                    assert pd.isna(label)
                else:
                    assert isinstance(label, kinds)
                    assert label == classes[code]

    def test_label_outside_the_given_classes(self, answers, features):
        with pytest.raises(UserError, match=r"answers: row 2, column label: (np.int64\()?1\)? is not one of 0, 2$"):
            complete_labels(answers, features, classes=[0, 2])

    def test_a_class_that_never_occurs_is_kept(self, answers, features):
        result = complete_labels(answers, features, classes=[0, 1, 2, 3])
        assert result.votes.columns.tolist() == [0, 1, 2, 3]
        assert (result.votes[[2, 3]] == 0).all(axis=None)
        np.testing.assert_array_equal(result.codes, complete_labels(answers, features).codes)

    def test_categories_are_the_classes_in_their_order(self, answers, features):
        label = pd.Categorical.from_codes(1 - answers["label"], ["yes", "no"])
        votes = complete_labels(answers.assign(label=label), features).votes
        assert votes.columns.tolist() == ["yes", "no"]

    @pytest.mark.parametrize("method", ["wslc", "ldplc", "instance"])
    def test_one_class(self, method, answers, features):
        result = complete_labels(answers.assign(label="only"), features, method=method)
        assert set(result.labels.stack().dropna()) == {"only"}
        assert result.margin.to_numpy().min() >= 0

    def test_classes_given_twice(self, answers, features):
        with pytest.raises(UserError, match="classes: 0 is given twice"):
            complete_labels(answers, features, classes=[0, 1, 0])

    def test_more_classes_than_can_be_stored(self, answers, features):
        with pytest.raises(UserError, match=r"40000 classes; at most 32767"):
            complete_labels(answers, features, classes=range(40_000))


@pytest.mark.parametrize("n_neighbors", [5, 6, 50])
def test_more_neighbours_than_other_tasks(n_neighbors, answers, features):
    """Published: an index repeats. Here k becomes N − 1."""
    result = complete_labels(answers, features, n_neighbors=n_neighbors)
    assert result.neighbors.shape == (6, 5)
    for task, row in enumerate(result.neighbors):
        assert sorted(row) == [other for other in range(6) if other != task]
    np.testing.assert_array_equal(result.codes, complete_labels(answers, features, n_neighbors=5).codes)


@pytest.mark.parametrize("method", ["wslc", "ldplc", "instance"])
def test_one_task(method):
    answers = pd.DataFrame({"task": ["a", "a"], "worker": ["u", "v"], "label": ["x", "y"]})
    answers["worker"] = pd.Categorical(answers["worker"], ["u", "v", "w"])
    result = complete_labels(answers, pd.DataFrame({"f": [1.0]}, index=["a"]), method=method)
    assert result.labels.loc["a"].tolist() == ["x", "y", "x"]
    assert result.margin.loc["a"].tolist() == [1, 1, 0]


def test_class_column_anywhere(answers, features):
    """Published: the class is assumed to be the last attribute. Here features hold no class; their order is theirs."""
    turned = complete_labels(answers, features[["y", "x"]])
    np.testing.assert_array_equal(turned.worker_vectors[:, ::-1], complete_labels(answers, features).worker_vectors)


class TestMissingFeatures:
    """Published: the quadratic program fails. Here mean or mode, as the papers' own preparation."""

    def test_mean_and_mode(self, answers, features):
        gaps = features.assign(n=[0, 0, 1, 1, 2, 2], empty=np.nan)
        gaps = gaps.assign(x=[0, np.nan, 0, 4, 5, 4], n=[np.nan, 0, 1, 1, 2, 2])
        filled = features.assign(x=[0, 2.6, 0, 4, 5, 4], n=[1, 0, 1, 1, 2, 2], empty=0)
        found = complete_labels(answers, gaps, nominal=["n"])
        expected = complete_labels(answers, filled, nominal=["n"])
        np.testing.assert_array_equal(found.neighbors, expected.neighbors)
        np.testing.assert_allclose(found.edge_weights, expected.edge_weights, atol=1e-9)
        np.testing.assert_array_equal(found.codes, expected.codes)

    @pytest.mark.parametrize("value", [np.inf, -np.inf])
    def test_infinity_is_refused(self, value, answers, features):
        features.iloc[3, 1] = value
        with pytest.raises(UserError, match=rf"features: column 'y', row 3: {value} is not a finite number"):
            complete_labels(answers, features)

    @pytest.mark.parametrize("value", [1.7e308, -1e200])
    def test_numbers_whose_squares_overflow_are_refused(self, value, answers, features):
        features.iloc[3, 1] = value
        with pytest.raises(UserError, match=r"features: column 'y', row 3: .* is too large"):
            complete_labels(answers, features)


class TestEmptyWorker:
    """A category without answers is a worker whose vector is zero; published: null pointer, or "can't normalise"."""

    @pytest.mark.parametrize("method", ["wslc", "ldplc", "instance"])
    def test_gets_labels_and_changes_no_others(self, method, answers, features):
        more = answers.assign(worker=pd.Categorical(answers["worker"], ["u", "v", "w", "silent"]))
        result, plain = (complete_labels(table, features, method=method) for table in (more, answers))
        pd.testing.assert_frame_equal(
            result.labels[["u", "v", "w"]], plain.labels, check_column_type=False, check_names=False
        )
        if method != "instance":
            np.testing.assert_array_equal(result.similarity[3], [0.5, 0.5, 0.5, 0])
        assert result.labels.loc["a", "silent"] == 0
        assert result.imputed["silent"].all()

    def test_counts_no_answers_in_aggregation(self, answers):
        more = answers.assign(worker=pd.Categorical(answers["worker"], ["u", "v", "w", "silent"]))
        for method in ("majority", "dawid_skene", "iwmv", "wawa", "gtic"):
            workers = aggregate(more, method).workers
            assert workers.loc["silent", "answers"] == 0
            assert np.isnan(workers.loc["silent", "agreement"])
            assert workers.drop("silent")["agreement"].between(0, 1).all()


def test_five_thousand_answers_on_one_task(features):
    workers = np.arange(5000)
    answers = pd.DataFrame({"task": "a", "worker": workers, "label": np.where(workers < 2000, "x", "y")})
    rest = pd.DataFrame({"task": list("bcde"), "worker": [0, 0, 1, 2], "label": ["x", "y", "y", "x"]})
    answers = pd.concat([answers, rest], ignore_index=True)
    completed = complete_labels(answers, features)
    assert (completed.codes[0] == (workers >= 2000)).all()
    assert (completed.votes.sum(axis=1) == 5000).all()
    for method in ("majority", "dawid_skene", "iwmv", "wawa", "gtic"):
        found = aggregate(answers, method).tasks
        assert found.loc["a", "label"] == "y"
        assert found["confidence"].between(0, 1).all()
