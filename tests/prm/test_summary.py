"""The words follow the numbers, also when these say the contrary."""

import re

import pytest

from tasks.prm.evaluation import evaluate_responses, flat
from tasks.prm.params import Evaluate
from tasks.prm.scored import describe, gather
from tasks.prm.summary import (
    caveats,
    headline,
    scorers_of,
    selection,
    selection_table,
    steps,
    steps_table,
    summarise,
    verdict,
)
from tests.prm.results import BETAS, made_up

DIFFERENCES = ("without.minus.majority", "without.minus.control", "with.minus.majority", "with.minus.control")


@pytest.fixture(scope="module")
def metrics():
    """Of one data set, all differences and growths undecided."""
    found = made_up()
    problems = found["rollouts"].drop_duplicates("problem").assign(grader="number")
    parameters = Evaluate(n=[1, 2, 4], choose_at=2, subsets=20, n_resamples=50)
    values = evaluate_responses("here", gather(found["rollouts"], found["steps"], BETAS), parameters)
    values = {"data.responses": "sampled"} | flat(describe(problems, found["rollouts"]) | values)
    undecided = [key for key in values if key.startswith(("difference.", "growth.")) and f"{key}.low" in values]
    values |= {key: value for name in undecided for key, value in differing(name, 0.0).items()}
    return values | {"choice.prm": "ce.policy.min", "choice.without": "ce.policy.min", "choice.with": "dpo.ratio.sum"}


def differing(key, value):
    return {key: value, f"{key}.low": value - 0.02, f"{key}.high": value + 0.02}


def test_verdicts():
    assert [verdict(differing("d", value), "d") for value in (0.05, 0.0, -0.05)] == ["better", "undecided", "worse"]
    assert verdict({"d": 0.1, "d.low": None, "d.high": None}, "d") is None
    assert verdict({}, "d") is None
    assert verdict({"d.low": 0.0, "d.high": 0.1}, "d") == "undecided"


def test_headline_follows_the_intervals(metrics):
    said = headline({"here": metrics})
    assert said.startswith("Best of 2 responses on here: the PRM (CE, without reference, lowest step) answers 0.")
    assert "of the test problems, not to be told from the majority (0." in said
    assert "and not to be told from the untrained reference (0." in said
    better = {**metrics, **differing("difference.without.minus.majority", 0.1)}
    assert "better than the majority" in headline({"here": better})
    assert "not to be told from the untrained reference" in headline({"here": better})
    worse = {**metrics, **differing("difference.without.minus.control", -0.1)}
    assert "worse than the untrained reference" in headline({"here": worse})
    # what was not chosen makes no headline
    other = {**metrics, **differing("difference.with.minus.majority", 0.1)}
    assert headline({"here": other}) == said
    chosen = {**other, "choice.prm": "dpo.ratio.sum"}
    assert "the PRM (DPO, with reference, sum of steps)" in headline({"here": chosen})
    assert "better than the majority" in headline({"here": chosen})
    none = {key: value for key, value in metrics.items() if "best_on_test" not in key}
    assert headline({"a": none, "b": metrics}).startswith("On a there are not several responses a problem")
    assert "Best of 2 responses on b" in headline({"a": none, "b": metrics})


def test_words_about_selection(metrics):
    text = selection({"here": metrics})
    assert re.search(
        r"one response is right for 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\] of the problems, at least one of 2 for", text
    )
    assert "Without the reference (CE, lowest step) best of 2 gives 0." in text
    assert ": not to be told from the majority (+0.000 [−0.020, +0.020]) and not to be told from the untrained" in text
    assert (
        "With the reference it is not to be told from without (+0.000 [−0.020, +0.020]); validation chose without"
        in text
    )
    assert "A vote weighted by the PRM is not to be told from a plain one" in text
    assert "From 2 to 4 responses, the accuracy without the reference shows no change (+0.000" in text
    changed = {
        **{**metrics, **differing("difference.with.minus.without", -0.05), **differing("growth.with", -0.04)},
        **{**differing("growth.without", 0.04), **differing("difference.vote_without.minus.majority", 0.1)},
    }
    text = selection({"here": changed})
    assert "With the reference it is worse than without (−0.050 [−0.070, −0.030])" in text
    assert "A vote weighted by the PRM is better than a plain one (+0.100" in text
    assert (
        "without the reference rises (+0.040 [+0.020, +0.060]); with it falls (−0.040 [−0.060, −0.020]); by the" in text
    )
    assert "best of 4 is worse than best of 2 (−0.040 [−0.060, −0.020]): the ratio also rewards" in caveats(
        {"here": changed}, False, 0.95
    )
    without_growth = {key: value for key, value in metrics.items() if not key.startswith("growth.")}
    assert "From 2 to" not in selection({"here": without_growth})


def test_table_of_all_losses(metrics):
    assert scorers_of(metrics) == ["ce.policy", "dpo.policy", "ce.ratio", "dpo.ratio", "reference"]
    metrics = {**metrics, "choice.ce.policy": "min", "test.best_of.2.ce.policy.min": 0.7123}
    metrics |= {"test.best_of.2.ce.policy.min.low": 0.65, "test.best_of.2.ce.policy.min.high": 0.75}
    rows = selection_table(metrics).split("\n")
    assert [row.split(" | ")[0] for row in rows[2:10]] == [
        "| CE, without reference ★",
        "| DPO, without reference",
        "| CE, with reference",
        "| DPO, with reference",
        "| untrained reference",
        "| majority",
        "| one response (pass@1)",
        "| any of 2 is right (pass@2)",
    ]
    assert rows[2].startswith("| CE, without reference ★ | lowest step | 0.712 [0.650, 0.750] | 0.")
    assert len({row.count("|") for row in rows[:10]}) == 1
    assert rows[-1] == "★ chosen on validation. 30 of 30 test problems have 2 responses or more."


def test_words_about_steps(metrics):
    chosen = metrics["choice.localisation"]
    assert chosen == "ce.ratio"
    text = steps({"here": metrics})
    assert "the best scorer on validation (CE, with reference) finds the first wrong step of" in text
    assert "not to be told from the untrained reference (0." in text
    assert f"Right answers with a wrong step: {metrics['data.test.false_positives']}, 0." in text
    assert (
        "F1 against the untrained reference, all losses: without reference 0 better, 0 worse, 2 undecided; with" in text
    )
    better = {
        **metrics,
        **differing(f"difference.f1.{chosen}", 0.3),
        **differing(f"difference.step_auc.{chosen}", -0.3),
    }
    text = steps({"here": better})
    assert re.search(r"F1 [01]\.\d+ \[[^]]+\], better than the untrained reference \(", text)
    assert "difference +0.300 [+0.280, +0.320])" in text
    assert re.search(r"with probability 1?[0-9.]+ \[[^]]+\], worse than the untrained reference", text)
    assert (
        "F1 against the untrained reference, all losses: without reference 0 better, 0 worse, 2 undecided; with" in text
    )
    assert "with reference 1 better, 0 worse, 1 undecided. Step AUC against" in text
    assert "with reference 0 better, 1 worse, 1 undecided. Right answers" in text
    key = f"test.false_positive_auc.{chosen}.{metrics[f'choice.{chosen}']}"
    for value, words in ((0.7, "above them"), (0.5, "no better than chance"), (0.2, "below them, not above,")):
        assert f"puts wholly right responses {words} (AUC {value:.3f}" in steps(
            {"a": {**metrics, **differing(key, value)}}
        )
    none = {key: value for key, value in metrics.items() if not key.startswith("difference")}
    none |= {"choice.localisation": None, "test.false_positive_share": None}
    assert steps({"a": none}) == "- **a**: F1 is not defined, because no response has a wrong step, or all have one."
    assert steps({"a": {**metrics, "test.judged": 0}}) == (
        "- **a**: which steps of the test responses are wrong is not known."
    )


def test_table_of_steps(metrics):
    rows = steps_table(metrics).split("\n")
    names = [row.split(" | ")[0].removeprefix("| ") for row in rows[2:11]]
    assert names == [
        *("CE, without reference", "DPO, without reference", "CE, with reference ★", "DPO, with reference"),
        *("untrained reference", "position (later is worse)", "length (longer is worse)", "always the first step"),
        "guess at random",
    ]
    assert rows[-1].endswith("where the thresholds are chosen too. 120 test responses.")
    assert "| guess at random | 0.250 | 0.250 | 0.250 | – | – |" in rows


def test_caveats_follow_the_numbers(metrics):
    text = caveats({"here": metrics}, False, 0.9)
    assert "One training a loss, from one seed" in text
    assert "The best of 20 candidates on validation is reported, once, on test. The 90% intervals" in text
    assert f"(here: {metrics['data.test.truncated']}) count as wrong" in text
    assert "here: few problems, 20 for validation and 30 for the test" in text
    assert "toy arithmetic" not in text
    assert "beta times the mean NLL" not in text
    assert "the ratio also rewards" not in text
    assert "generator, reference and start of the policy are one model" in text
    share = metrics["test.false_positive_share"]
    assert f"here: {share:.3f} [" in text
    assert "with hindsight" in text
    one_class, problems = metrics["data.train.one_class"], metrics["data.train.problems"]
    assert (f"{one_class} of {problems} training problems have answers of one class" in text) == (one_class > 0)
    changed = {
        **{
            **metrics,
            "data.grader": "chain",
            "data.responses": "given",
            "data.beta.dpo": 0.05,
            "data.test.truncated": 0,
        },
        **{"data.valid.problems": 300, "data.test.problems": 400, "test.false_positive_share": 0.0},
        **{"choice.prm_best_on_test": metrics["choice.prm"], "data.train.one_class": 3, "data.test.steps_known": 0},
    }
    text = caveats({"there": changed}, True, 0.95)
    assert "One training a loss" not in text
    assert "there: toy arithmetic" in text
    assert "the responses were given; they need not be such as the reference would write" in text
    assert "beta times the mean NLL of right answers is below 0.5 (beta: DPO 0.05)" in text
    assert "3 of 6 training problems have answers of one class" in text
    assert "which steps are wrong is not known" in text
    for absent in ("cut off", "few problems", "come with a wrong step", "with hindsight"):
        assert absent not in text


def test_the_whole_text(metrics):
    bare = {key: value for key, value in metrics.items() if not key.startswith(("difference", "growth", "choice.prm"))}
    bare |= {"choice.n": None, "test.judged": 0, "choice.localisation": None, "data.nll.correct": None}
    text = summarise({"here": metrics, "there": bare}, "Study.", 0.95)
    assert text.startswith("# Step rewards from outcome labels")
    assert "| here | train | 6 | 24 | " in text
    assert "### here: best of 2, all losses" in text
    assert "### there: best of" not in text
    assert "### there: steps" not in text
    assert "## Study: losses, seeds, beta and adapters\n\nStudy.\n" in text
    assert "- there: mean −log-probability of a response by the reference, validation and test: right –, wrong" in text
    nll = metrics["data.nll.correct"]
    assert f"right {nll:.3f}, wrong" in text
    assert f"CE {nll:.3f} (sigmoid 0." in text
    assert f"DPO {nll / 2:.3f} (sigmoid 0." in text
    assert not re.search(r"\b(nan|None|inf)\b", text)
    rows = [line for line in text.split("\n") if line.startswith("| here | ")]
    assert {row.count("|") for row in rows} == {12}
