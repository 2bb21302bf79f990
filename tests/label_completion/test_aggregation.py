"""Aggregators against plain versions of their definitions, and their documented results."""

import warnings

import numpy as np
import pandas as pd
import pytest

from tasks.label_completion.aggregation import DegenerateFit, aggregate
from tasks.label_completion.answers import encode
from tasks.stage import UserError
from tests.label_completion import reference

OWN = ["majority", "dawid_skene", "iwmv", "wawa", "gtic"]
PEERS = ["crowdkit:DawidSkene", "crowdkit:OneCoinDawidSkene", "crowdkit:GLAD", "crowdkit:MACE"]
pytestmark = [
    pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning:crowdkit"),
    pytest.mark.filterwarnings("ignore::tasks.label_completion.aggregation.DegenerateFit"),
]


def draw(seed: int, *, n_tasks: int = 40, n_workers: int = 8, n_classes: int = 3, right: float = 0.7) -> pd.DataFrame:
    """Answers of workers who are right with one probability, about half of all cells; weights for a third of them."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, n_classes, n_tasks)
    task, worker = np.nonzero(generator.random((n_tasks, n_workers)) < 0.5)
    wrong = generator.random(len(task)) > right
    label = (truth[task] + wrong * generator.integers(1, n_classes, len(task))) % n_classes
    return pd.DataFrame({"task": task, "worker": worker, "label": label})


def test_majority_is_the_share_of_weighted_answers():
    answers = pd.DataFrame({"task": list("aaab"), "worker": list("uvwu"), "label": [0, 1, 1, 0]})
    plain = aggregate(answers)
    np.testing.assert_allclose(plain.scores, [[1 / 3, 2 / 3], [1, 0]])
    assert plain.tasks["label"].tolist() == [1, 0]
    np.testing.assert_allclose(plain.tasks["confidence"], [2 / 3, 1])
    weighted = aggregate(answers.assign(weight=[1, 0.25, 0.5, 1]))
    np.testing.assert_allclose(weighted.scores.loc["a"], [1 / 1.75, 0.75 / 1.75])
    np.testing.assert_allclose(weighted.workers["agreement"], [1, 0, 0])


def test_rounding_breaks_no_tie():
    """0.1 + 0.2 > 0.3 in floating point; the classes have the same weight all the same."""
    answers = pd.DataFrame({"task": 0, "worker": list("uvw"), "label": [1, 1, 0], "weight": [0.1, 0.2, 0.3]})
    found = aggregate(answers).tasks.loc[0]
    assert (found["label"], found["tie"]) == (0, True)


@pytest.mark.parametrize("smoothing", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_iter", [1, 4])
def test_dawid_skene_is_textbook_em(n_iter, weighted, smoothing):
    answers = draw(1)
    if weighted:
        answers["weight"] = np.random.default_rng(9).choice([0.0, 0.3, 1.0], len(answers))
    found = aggregate(answers, "dawid_skene", n_iter=n_iter, tolerance=0, smoothing=smoothing).scores
    expected = reference.dawid_skene(encode(answers), n_iter, smoothing)
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("weight", [None, 0.9])
def test_dawid_skene_is_textbook_em_on_tasks_with_many_answers(weight):
    """Sorted by worker, the answers begin with 90 for one class; the other class wins, far behind as it may be then."""
    rows = [(task, worker, task % 2) for task in range(30) for worker in range(220)]
    rows += [(30, worker, int(worker >= 90)) for worker in range(220)]
    answers = pd.DataFrame(rows, columns=["task", "worker", "label"])
    if weight:
        answers["weight"] = weight
    found = aggregate(answers, "dawid_skene", n_iter=3, tolerance=0)
    np.testing.assert_allclose(found.scores, reference.dawid_skene(encode(answers), 3, 0.01), atol=1e-9)
    assert found.tasks.loc[30, "label"] == 1


def test_dawid_skene_does_not_depend_on_which_workers_come_first():
    """250 of 600 otherwise perfect workers err on one task. A product of their probabilities underflows to 0."""
    rows = [(task, worker, task % 2) for task in range(50) for worker in range(600)]
    for wrong_ones_first in (True, False):
        wrong = [worker < 250 if wrong_ones_first else worker >= 350 for worker in range(600)]
        odd = [(50, worker, int(not wrong[worker])) for worker in range(600)]
        answers = pd.DataFrame(rows + odd, columns=["task", "worker", "label"])
        found = aggregate(answers, "dawid_skene").tasks.loc[50]
        assert found["label"] == 1
        assert found["confidence"] > 0.999


def test_dawid_skene_gives_tasks_without_answers_the_prior():
    found = aggregate(draw(2), "dawid_skene", tasks=range(42))
    prior = found.scores.loc[40]
    assert found.tasks.loc[[40, 41], "label"].tolist() == [prior.idxmax()] * 2
    assert prior.sum() == pytest.approx(1)
    # the model's prior is the mean of the posteriors of the round before: at convergence, of this one
    np.testing.assert_allclose(prior, found.scores.loc[range(40)].mean(), atol=1e-3)


@pytest.mark.parametrize("method", ["majority", "iwmv", "wawa", "gtic", *PEERS[:2]])
def test_tasks_without_answers_stay_missing(method):
    found = aggregate(draw(2), method, tasks=range(42))
    assert found.tasks["label"].isna().tolist() == [False] * 40 + [True] * 2
    assert found.tasks.loc[[40, 41], "confidence"].tolist() == [0, 0]
    assert (found.scores.loc[[40, 41]] == 0).all(axis=None)
    drawn = aggregate(draw(2), method, tasks=range(42), tie_break="random").tasks
    assert drawn["label"].notna().all()
    np.testing.assert_array_equal(
        drawn["label"][:40][~drawn["tie"][:40]], found.tasks["label"][:40][~drawn["tie"][:40]]
    )


@pytest.mark.parametrize("method", ["majority", "iwmv", "wawa", "gtic"])
@pytest.mark.parametrize("labels", [[3, 7], [True, False], ["a", "b"]])
def test_labels_keep_their_type_beside_missing_ones(method, labels):
    answers = pd.DataFrame({"task": [0, 0, 1, 1], "worker": [0, 1, 0, 1], "label": np.repeat(labels, 2)})
    label = aggregate(answers, method, tasks=[0, 1, 2]).tasks["label"]
    assert label[:2].tolist() == labels
    assert [type(value) for value in label[:2].tolist()] == [type(value) for value in labels]
    assert pd.isna(label[2])


@pytest.mark.parametrize("seed", range(6))
def test_iwmv_is_its_definition(seed):
    answers = draw(seed, right=0.6)
    found = aggregate(answers, "iwmv").tasks["label"]
    np.testing.assert_array_equal(found, reference.iterated_weighted_majority(encode(answers), 50))


def test_iwmv_learns_who_errs():
    """Three workers who agree outweigh, on the last task, two of whom one is wrong everywhere else."""
    rows = [(task, worker, (task % 2) ^ (worker in "xyz")) for task in range(20) for worker in "uvwxyz"[: 3 + task % 3]]
    rows += [(20, "u", 1), (20, "x", 0), (20, "y", 0)]
    answers = pd.DataFrame(rows, columns=["task", "worker", "label"])
    assert aggregate(answers).tasks.loc[20, "label"] == 0
    assert aggregate(answers, "iwmv").tasks.loc[20, "label"] == 1


def test_wawa_weighs_by_agreement_with_the_majority():
    """Where the majority is tied, the tied classes share the task."""
    answers = draw(3)
    votes = aggregate(answers).scores
    best = votes.eq(votes.max(axis=1), axis=0)
    winners = best.div(best.sum(axis=1), axis=0)
    agreed = [winners.loc[task, label] for task, label in zip(answers["task"], answers["label"], strict=True)]
    agreement = pd.Series(agreed).groupby(answers["worker"]).mean()
    votes = np.zeros((40, 3))
    np.add.at(votes, (answers["task"], answers["label"]), agreement[answers["worker"]].to_numpy())
    expected = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1e-300)
    answered = expected.sum(axis=1) > 0
    np.testing.assert_allclose(aggregate(answers, "wawa").scores, expected[answered], atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_gtic_gives_only_classes_that_occur_and_is_accurate(seed):
    answers = draw(seed, n_workers=20, right=0.75)
    found = aggregate(answers, "gtic", classes=[5, 0, 1, 2, 6])
    majority = aggregate(answers, classes=[5, 0, 1, 2, 6])
    assert set(found.tasks["label"]) <= {0, 1, 2}
    assert (found.tasks["label"] == majority.tasks["label"]).mean() > 0.9


def test_gtic_matches_no_cluster_to_a_class_that_nobody_gave():
    """Two clusters draw the same class; the other one left goes to a class in use, not to the first declared."""
    rows = [(0, 0, 3), (0, 1, 1), (1, 0, 1), (1, 1, 4), (2, 1, 3), (3, 0, 3), (3, 1, 3)]
    answers = pd.DataFrame(rows, columns=["task", "worker", "label"])
    assert set(aggregate(answers, "gtic", classes=range(5)).tasks["label"]) <= {1, 3, 4}


@pytest.mark.parametrize("name", ["DawidSkene", "OneCoinDawidSkene"])
def test_peers_are_crowdkits_own(name):
    from crowdkit import aggregation as crowdkit

    answers = draw(4)
    expected = getattr(crowdkit, name)(n_iter=10).fit(answers)
    found = aggregate(answers, f"crowdkit:{name}", n_iter=10).scores
    np.testing.assert_allclose(found, expected.probas_.reindex(index=found.index, columns=found.columns), atol=1e-9)


@pytest.mark.parametrize("method", [*OWN, *PEERS])
def test_scores_are_distributions_and_labels_their_largest(method):
    options = {"n_iter": 3} if method in PEERS else {}
    found = aggregate(draw(5), method, **options)
    np.testing.assert_allclose(found.scores.sum(axis=1), 1)
    assert (found.scores >= 0).all(axis=None)
    largest = found.scores.max(axis=1)
    np.testing.assert_array_equal(found.tasks["confidence"], largest)
    chosen = [found.scores.loc[task, label] for task, label in found.tasks["label"].items()]
    np.testing.assert_allclose(chosen, largest, atol=1e-12)


def test_workers_are_described_by_their_agreement():
    answers = draw(6)
    found = aggregate(answers, "dawid_skene")
    right = found.tasks["label"][answers["task"]].to_numpy() == answers["label"]
    expected = right.groupby(answers["worker"])
    np.testing.assert_array_equal(found.workers["answers"], expected.size())
    np.testing.assert_allclose(found.workers["agreement"], expected.mean())


def test_a_degenerate_fit_is_told_only_when_it_is_one():
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateFit)
        aggregate(draw(7, n_workers=12), "dawid_skene")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"method": "mean"},
            r"method='mean' is not one of majority, dawid_skene, iwmv, wawa, gtic, crowdkit:DawidSkene",
        ),
        ({"method": "DawidSkene"}, r"method='DawidSkene' is not one of"),
        ({"method": "crowdkit:majority"}, r"method='crowdkit:majority' is not one of"),
        ({"tie_break": "last"}, r"tie_break='last' is not allowed"),
        ({"n_iter": 0}, r"n_iter=0 is not allowed"),
        ({"tolerance": -1}, r"tolerance=-1 is not allowed"),
        ({"smoothing": -0.1}, r"smoothing=-0.1 is not allowed"),
        ({"on_duplicate": "frist"}, r"answers: on_duplicate='frist' is not one of 'error', 'first', 'last'"),
        ({"on_missing": "skip"}, r"answers: on_missing='skip' is not one of 'error', 'drop'"),
        ({"classes": [0, 1]}, r"answers: row \d+, column label: 2 is not one of 0, 1$"),
        ({"classes": [0, 1, 2, 1]}, r"answers: classes: 1 is given twice"),
        ({"tasks": [*range(40), 7]}, r"answers: tasks: 7 is given twice"),
        ({"tasks": range(39)}, r"answers: row \d+, column task: 39 has no features \(\d+ such rows"),
    ],
)
def test_arguments_out_of_range(change, message):
    with pytest.raises(UserError, match=message) as error:
        aggregate(draw(8), **change)
    assert "\n" not in str(error.value)
