"""Selection, localisation and their intervals: by hand, chosen on validation only, honest where there is little."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from tasks.prm.evaluation import evaluate_responses, flat
from tasks.prm.localisation import false_positives, first_below, first_wrong_auc, processbench_f1
from tasks.prm.params import AGGREGATIONS, Evaluate
from tasks.prm.resampling import Bootstrap, Estimate, harmonic
from tasks.prm.scored import describe, gather
from tasks.prm.selection import best_of_n, pass_at_k
from tasks.stage import UserError
from tests.prm.results import BETAS, LENGTH, by_hand, made_up

SMALL = Evaluate(n=[1, 2, 4], choose_at=4, subsets=20, n_resamples=50)
PAIRS = Evaluate(n=[2], choose_at=2, n_resamples=50)
# (answer, correct, first wrong step, policy by step, reference by step), two responses to two problems
PROBLEMS = [
    [("2", True, -1, [-1, -1], [-2, -2]), ("3", False, 1, [-1, -4], [-1, -1])],
    [("5", False, 0, [-3, -1], [-3, -1]), ("2", True, 0, [-2, -1], [-1, -1])],
]


def gathered(found, betas=BETAS):
    return gather(found["rollouts"], found["steps"], betas)


def evaluated(found, parameters=SMALL, betas=BETAS):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return evaluate_responses("here", gathered(found, betas), parameters)


@pytest.fixture(scope="module")
def found():
    return made_up()


@pytest.fixture(scope="module")
def metrics(found):
    return evaluated(found)


def test_known_answers():
    m = evaluated(by_hand({"valid": PROBLEMS, "test": PROBLEMS}), PAIRS)
    assert m["data.nll.correct"] == 3
    assert m["data.nll.wrong"] == 3
    assert (m["choice.n"], m["choice.prm"], m["choice.without"]) == (2, "ce.policy.min", "ce.policy.min")
    assert (m["test.pass.1"], m["test.pass.2"], m["test.majority.2"]) == (0.5, 1, 0.5)
    best = {"ce.policy.min": 1, "ce.ratio.min": 0.5, "reference.min": 0.5, "ce.ratio.sum": 0.5, "reference.sum": 0.5}
    assert {candidate: m[f"test.best_of.2.{candidate}"] for candidate in best} == best
    assert m["test.vote.2.ce.policy.min"] == 1
    assert m["test.vote.2.ce.ratio.min"] == 0.5
    assert m["difference.without.minus.majority"] == 0.5
    assert m["difference.without.minus.control"] == 0.5
    assert m["test.auc.ce.policy.min"] == 1
    assert m[f"test.auc.ce.ratio.{m['choice.ce.ratio']}"] == 0.75
    assert m["test.step_auc.ce.policy"] == 1
    assert m["test.step_auc.reference"] == pytest.approx(4 / 9)
    assert m["choice.localisation"] == "ce.policy"
    assert m["choice.threshold.ce.policy"] == -1.5
    assert (m["test.f1.ce.policy"], m["test.found.ce.policy"], m["test.cleared.ce.policy"]) == (1, 1, 1)
    assert (m["test.found.first_step"], m["test.cleared.first_step"], m["test.f1.first_step"]) == (2 / 3, 0, 0)
    assert m["test.f1.chance"] == pytest.approx(1 / 3)
    assert m["test.judged"] == 4
    assert m["test.false_positive_share"] == 0.5
    assert m["test.false_positive_auc.ce.policy.min"] == 1
    assert m[f"test.false_positive_auc.reference.{m['choice.reference']}"] == 0


def test_beta_scales_the_votes_and_no_choice():
    found = by_hand({"valid": PROBLEMS, "test": PROBLEMS})
    one, three = (evaluated(found, PAIRS, {"ce": beta}) for beta in (1.0, 3.0))
    assert three["data.beta.ce"] == 3
    assert three["choice.threshold.ce.policy"] == 3 * one["choice.threshold.ce.policy"]
    same = [key for key in one if key.startswith(("choice.", "test.best_of", "test.auc")) and "threshold" not in key]
    assert {key: one[key] for key in same} == {key: three[key] for key in same}


def test_values_are_those_of_the_functions(found, metrics):
    responses = gathered(found)["test"]
    n_problems = len(responses.problems)
    correct = responses.correct.reshape(n_problems, 4)
    for n in (2, 4):
        assert metrics[f"test.pass.{n}"] == pytest.approx(pass_at_k(correct, n).mean())
        assert metrics[f"test.problems.{n}"] == n_problems
        for candidate in ("dpo.ratio.prefix_min", "ce.policy.mean", "reference.last"):
            scores = responses.scores(candidate).reshape(n_problems, 4)
            assert metrics[f"test.best_of.{n}.{candidate}"] == pytest.approx(best_of_n(scores, correct, n).mean())
    assert metrics["test.pass.1"] == pytest.approx(responses.correct.mean())
    assert len([key for key in metrics if key.startswith("valid.best_of.4.")]) == 5 * len(AGGREGATIONS)
    for scorer in ("ce.ratio", "dpo.policy", "reference"):
        steps, rewards = responses.rewards(scorer)
        first_wrong = responses.wrong_step(steps)
        candidate = f"{scorer}.{metrics[f'choice.{scorer}']}"
        scores = responses.scores(candidate)
        assert metrics[f"test.step_auc.{scorer}"] == pytest.approx(first_wrong_auc(rewards, steps.lengths, first_wrong))
        predicted = first_below(rewards, steps.lengths, metrics[f"choice.threshold.{scorer}"])
        expected = processbench_f1(predicted, first_wrong)
        assert [metrics[f"test.{q}.{scorer}"] for q in ("f1", "found", "cleared")] == pytest.approx(list(expected))
        assert metrics[f"test.auc.{candidate}"] == pytest.approx(roc_auc_score(responses.correct, scores))
        wrong = false_positives(scores, responses.correct, first_wrong)
        assert metrics["test.false_positive_share"] == pytest.approx(wrong.share)
        assert metrics[f"test.false_positive_auc.{candidate}"] == pytest.approx(wrong.auc)


def test_estimates_have_intervals_on_test_and_only_there(metrics):
    keys = ["test.pass.2", "test.majority.4", "test.best_of.4.dpo.policy.last", "test.vote.4.reference.sum"]
    keys += [f"test.best_of.2.{metrics[f'choice.{role}']}" for role in ("without", "with", "control")]
    keys += ["difference.with.minus.without", "test.f1.ce.ratio", "test.step_auc.reference", "difference.f1.dpo.ratio"]
    for key in keys:
        assert metrics[f"{key}.low"] <= metrics[key] <= metrics[f"{key}.high"]
    assert metrics["test.majority.4.low"] < metrics["test.majority.4.high"]
    assert not [key for key in metrics if key.startswith(("valid.", "choice.", "data.")) and key.endswith(".low")]


def test_the_choice_never_sees_the_test(found, metrics):
    """Other labels, answers, wrong steps and rewards in the test change nothing that was chosen."""
    rollouts = found["rollouts"].copy()
    test = (rollouts["split"] == "test").to_numpy()
    rollouts.loc[test, "correct"] = ~rollouts.loc[test, "correct"]
    rollouts.loc[test, "answer"] = "7"
    rollouts.loc[test, "first_wrong"] = LENGTH
    names = set(rollouts.loc[test, "problem"])
    steps = {loss: table.copy() for loss, table in found["steps"].items()}
    for table in steps.values():
        table.loc[table["problem"].isin(names), "policy"] *= -1
    changed = evaluated({"rollouts": rollouts, "steps": steps})
    known_only = ("choice.prm_best_on_test",)
    chosen = [key for key in metrics if key.startswith(("choice.", "valid.")) and key not in known_only]
    assert len(chosen) > 100
    assert {key: changed[key] for key in chosen} == {key: metrics[key] for key in chosen}
    assert changed["choice.prm_best_on_test"] != metrics["choice.prm_best_on_test"]
    assert changed["test.pass.1"] != metrics["test.pass.1"]


def test_the_choice_follows_validation():
    """On validation min is right and last is wrong; on test the other way round."""
    right, wrong = ("2", True, -1, [-1, -3], [-1, -1]), ("3", False, 0, [-4, -2], [-1, -1])
    swapped = [[("2", True, -1, [-4, -2], [-1, -1]), ("3", False, 0, [-1, -3], [-1, -1])]]
    m = evaluated(by_hand({"valid": [[wrong, right]], "test": swapped}), PAIRS)
    assert m["choice.without"] == "ce.policy.min"
    assert m["test.best_of.2.ce.policy.min"] == 0
    assert m["choice.prm_best_on_test"] == "ce.policy.last"
    assert m["test.best_of.2.ce.policy.last"] == 1


def test_of_equal_candidates_the_first_is_chosen():
    m = evaluated(by_hand({"valid": PROBLEMS, "test": PROBLEMS}, losses=("dpo", "ce")), PAIRS, {"ce": 1, "dpo": 1})
    assert m["choice.prm"] == m["choice.without"] == "dpo.policy.min"
    assert m["choice.with"].startswith("dpo.ratio.")
    assert m["choice.localisation"] == "dpo.policy"


def test_differences_are_paired():
    """The control's own scores as the policy: with equal choices no resample differs, though each varies."""
    found = made_up(losses=("ce",))
    found["steps"]["ce"]["policy"] = found["steps"]["ce"]["reference"]
    m = evaluated(found)
    key = "difference.without.minus.control"
    assert (m[key], m[f"{key}.low"], m[f"{key}.high"]) == (0, 0, 0)
    control = f"test.best_of.4.{m['choice.control']}"
    assert m[f"{control}.low"] < m[f"{control}.high"]
    for quantity in ("f1", "step_auc"):
        key = f"difference.{quantity}.ce.policy"
        assert (m[key], m[f"{key}.low"], m[f"{key}.high"]) == (0, 0, 0)
        other = m[f"test.{quantity}.ce.ratio"] - m[f"test.{quantity}.reference"]
        assert m[f"difference.{quantity}.ce.ratio"] == pytest.approx(other)
    assert len([key for key in m if key.startswith(("difference.f1.", "difference.step_auc."))]) == 12


def test_nan_scores_and_responses_without_tokens_lose():
    def with_value(row, value):
        found = by_hand({"valid": PROBLEMS, "test": PROBLEMS})
        here = found["steps"]["ce"]["problem"].eq("p002") & found["steps"]["ce"]["sample"].eq(0)
        if value is None:  # the right response of the first test problem has one step and no token
            found["steps"]["ce"] = found["steps"]["ce"][~here | found["steps"]["ce"]["step"].eq(0)]
            here &= found["steps"]["ce"]["step"].eq(0)
            found["steps"]["ce"].loc[here, ["policy", "reference", "end_token", "start_token"]] = 0
        else:
            found["steps"]["ce"].loc[here & found["steps"]["ce"]["step"].eq(row), "policy"] = value
        return evaluated(found, PAIRS)

    for m in (with_value(0, np.nan), with_value(1, np.nan), with_value(None, None)):
        assert m["choice.prm"] == "ce.policy.min"
        assert m["test.best_of.2.ce.policy.min"] == 0.5
        assert m["test.vote.2.ce.policy.min"] == 0.5
        assert m["test.auc.ce.policy.min"] == 0.5  # below both wrong ones, and the other above both
        assert m["test.judged"] == 3


def test_unequal_numbers_of_samples():
    """Problems have 1, 2, 3 and 4 samples in turn: best of n is over those that have n."""
    found = made_up(samples=4)
    rollouts = found["rollouts"]
    size = rollouts["problem"].str[1:].astype(int) % 4 + 1
    found["rollouts"] = rollouts[rollouts["sample"] < size]
    for loss, table in found["steps"].items():
        size = table["problem"].str[1:].astype(int) % 4 + 1
        found["steps"][loss] = table[table["sample"] < size]
    m = evaluated(found, Evaluate(n=[2, 3, 8], choose_at=3, subsets=20, n_resamples=50))
    responses = gathered(found)["test"]
    sizes = np.bincount(responses.problem)
    assert set(sizes) == {1, 2, 3, 4}
    scores = responses.scores("ce.ratio.min")
    for n in (2, 3):
        each = [
            best_of_n(scores[responses.problem == p], responses.correct[responses.problem == p], n)
            for p in np.flatnonzero(sizes >= n)
        ]
        assert m[f"test.problems.{n}"] == len(each) < len(sizes)
        assert m[f"test.best_of.{n}.ce.ratio.min"] == pytest.approx(np.mean(each))
    assert m["test.problems.1"] == len(sizes)
    by_problem = [responses.correct[responses.problem == p].mean() for p in range(len(sizes))]
    assert m["test.pass.1"] == pytest.approx(np.mean(by_problem))
    assert not [key for key in m if key.startswith("test.best_of.8.") or key == "test.problems.8"]
    assert m["choice.n"] == 3


def test_the_choice_takes_fewer_where_validation_has_fewer():
    found = made_up(samples={"train": 1, "valid": 2, "test": 8})
    m = evaluated(found, Evaluate(n=[1, 2, 8], choose_at=8, n_resamples=20))
    assert m["choice.n"] == 2
    assert m["difference.with.minus.majority"] is not None
    assert m["choice.largest"] == 8
    growth = m[f"test.best_of.8.{m['choice.without']}"] - m[f"test.best_of.2.{m['choice.without']}"]
    assert m["growth.without"] == pytest.approx(growth)


def test_one_sample_a_problem_chooses_nothing_and_localises():
    m = evaluated(made_up(samples=1), Evaluate(n=[1, 8], choose_at=8, n_resamples=20))
    assert m["choice.n"] is None
    assert "choice.prm" not in m
    assert {m[f"choice.{scorer}"] for scorer in ("ce.policy", "dpo.ratio", "reference")} == {"min"}
    assert [key for key in m if key.startswith("test.problems.")] == ["test.problems.1"]
    assert not [key for key in m if ".best_of." in key or key.startswith(("difference.with", "growth"))]
    assert m["choice.localisation"] in ("ce.policy", "ce.ratio")
    assert m["difference.f1.ce.ratio.low"] > 0
    assert m["test.auc.ce.policy.min"] > 0.5


def test_unknown_steps_are_not_judged(found):
    m = evaluated(made_up(known=False))
    assert m["test.judged"] == 0
    assert m["choice.localisation"] is None
    assert not [key for key in m if ".f1" in key or "step_auc" in key or "false_positive" in key]
    assert m["choice.prm"] is not None
    # known for half of the responses: those are judged
    rollouts = found["rollouts"].copy()
    rollouts.loc[rollouts["sample"] < 2, "first_wrong"] = pd.NA
    half = evaluated({**found, "rollouts": rollouts})
    assert half["test.judged"] == 60
    assert 0 < half["test.f1.ce.ratio"] <= 1


def test_no_wrong_step_on_validation_leaves_no_threshold():
    right = [[("2", True, -1, [-1, -1], [-1, -2]), ("3", False, None, [-1, -1], [-1, -1])]]
    m = evaluated(by_hand({"valid": right, "test": PROBLEMS}), PAIRS)
    assert m["choice.threshold.ce.policy"] is None
    assert m["choice.localisation"] is None
    assert "test.f1.ce.policy" not in m
    assert m["test.step_auc.ce.policy"] == 1


def test_the_same_numbers_whatever_the_order_of_rows_and_names(found, metrics):
    rollouts = found["rollouts"].astype({"problem": "category", "split": "category"}).sample(frac=1, random_state=1)
    rollouts["problem"] = rollouts["problem"].cat.reorder_categories(rollouts["problem"].cat.categories[::-1])
    steps = {
        loss: t.astype({"problem": "category"}).sample(frac=1, random_state=2) for loss, t in found["steps"].items()
    }
    again = evaluated({"rollouts": rollouts, "steps": steps})
    assert flat(again) == flat(metrics)
    assert list(again) == list(metrics)
    other = evaluated(found, SMALL.model_copy(update={"seed": 2}))
    assert other["test.pass.1.low"] != metrics["test.pass.1.low"]
    assert other["test.best_of.4.ce.policy.min"] == metrics["test.best_of.4.ce.policy.min"]


def test_flat_metrics():
    assert flat({"a": 0.12345678, "b": float("nan"), "c": 3, "d": None, "e": "min"}) == {
        **{"a": 0.123457, "b": None, "c": 3, "d": None, "e": "min"}
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: f["rollouts"].drop(f["rollouts"].index[f["rollouts"]["split"] == "valid"]),
            "no response of split valid",
        ),
        (lambda f: f["rollouts"].iloc[:-1], "scores/ce.parquet: not of the validation and test responses"),
    ],
)
def test_other_responses_are_refused(change, message, found):
    with pytest.raises(UserError, match=message):
        gathered({**found, "rollouts": change(found)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table[table["problem"] != "p030"], "not of the validation and test responses"),
        (lambda table: table.assign(step=table["step"] + 1), "the steps of a response are not 0, 1, 2, …"),
        (lambda table: pd.concat([table, table.iloc[:1]]), "the steps of a response are not 0, 1, 2, …"),
    ],
)
def test_other_steps_are_refused(change, message, found):
    steps = {**found["steps"], "dpo": change(found["steps"]["dpo"])}
    with pytest.raises(UserError) as caught:
        gathered({**found, "steps": steps})
    assert str(caught.value).startswith("scores/dpo.parquet: ")
    assert message in str(caught.value)


def test_counters():
    found = by_hand({"train": PROBLEMS[:1], "valid": PROBLEMS, "test": [[PROBLEMS[0][0]] * 2, PROBLEMS[1]]})
    rollouts = found["rollouts"]
    rollouts.loc[0, ["finished", "answer"]] = [False, None]
    problems = pd.DataFrame({"grader": pd.Categorical(["chain", "number", "chain", None])})
    m = describe(problems, rollouts)
    assert m["data.grader"] == "chain, number"
    counted = ("problems", "responses", "correct", "truncated", "unparseable", "duplicates", "one_class")
    assert [m[f"data.train.{key}"] for key in counted] == [1, 2, 0.5, 1, 1, 1, 0]
    assert [m[f"data.test.{key}"] for key in counted] == [2, 4, 0.75, 0, 0, 2, 1]
    known = ("steps_known", "wrong_steps", "false_positives")
    assert [m[f"data.test.{key}"] for key in known] == [4, 2, 1]
    rollouts.loc[rollouts["split"] == "train", "first_wrong"] = pd.NA
    assert [describe(problems, rollouts)[f"data.train.{key}"] for key in known] == [0, 0, 0]
    assert np.isnan(describe(problems, rollouts[rollouts["split"] != "train"])["data.train.correct"])


# --- intervals


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        values = generator.random(50) < 0.3
        low, high = Bootstrap(50, 200, generator).mean(values.astype(float)).interval(0.9)
        covered += low <= 0.3 <= high
    assert 0.83 < covered / 300 < 0.95


def test_resampled_auc_is_that_of_repeated_items():
    generator = np.random.default_rng(1)
    scores, positive = generator.integers(0, 6, 40).astype(float), generator.random(40) < 0.4
    problem = np.sort(generator.integers(0, 8, 40))
    scores[3] = np.nan
    bootstrap = Bootstrap(8, 30, generator)
    found = bootstrap.auc(scores, positive, problem)
    filled = np.nan_to_num(scores, nan=-1)
    assert found.value == pytest.approx(roc_auc_score(positive, filled))
    for drawn, weights in zip(found.drawn, bootstrap.weights.T[1:], strict=True):
        repeated = np.repeat(np.arange(40), weights[problem].astype(int))
        assert drawn == pytest.approx(roc_auc_score(positive[repeated], filled[repeated]))
    assert np.isnan(bootstrap.auc(scores, np.zeros(40, bool), problem).value)


def test_chunks_of_resamples_change_nothing(found, metrics, monkeypatch):
    monkeypatch.setattr("tasks.prm.resampling.CHUNK_CELLS", 500)
    assert flat(evaluated(found)) == flat(metrics)


def test_means_leave_out_missing_problems_and_one_problem_has_no_interval():
    bootstrap = Bootstrap(3, 100, np.random.default_rng(0))
    estimate = bootstrap.mean(np.array([1.0, np.nan, 0.0]))
    assert estimate.value == 0.5
    assert set(np.unique(estimate.drawn[~np.isnan(estimate.drawn)])) <= {0, 1 / 3, 0.5, 2 / 3, 1}
    assert np.isnan(bootstrap.mean(np.full(3, np.nan)).interval(0.9)).all()
    alone = Bootstrap(1, 10, np.random.default_rng(0)).mean(np.array([0.4]))
    assert alone.value == 0.4
    assert np.isnan(alone.interval(0.9)).all()
    with pytest.raises(ValueError, match="n_problems is 0"):
        Bootstrap(0, 10, np.random.default_rng(0))


def test_harmonic_mean_and_differences():
    a, b = Estimate(0.5, np.array([0.0, 1.0])), Estimate(1.0, np.array([0.0, 1.0]))
    assert harmonic(a, b).value == pytest.approx(2 / 3)
    assert harmonic(a, b).drawn.tolist() == [0, 1]
    assert (a - b).value == -0.5
    assert (a - b).interval(0.5) == (0, 0)
