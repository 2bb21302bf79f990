"""Metrics of base and arms on results whose numbers can be checked by hand."""

import warnings

import numpy as np
import pandas as pd
import pytest

from tasks.stage import UserError
from tasks.swiftcode.estimates import costs
from tasks.swiftcode.evaluation import describe, evaluate_results, flat, noise
from tasks.swiftcode.params import Evaluate
from tasks.swiftcode.results import asked_units, gather
from tests.swiftcode.measured import answers, baseline, measured, runs, tasks, verdicts

PARAMETERS = Evaluate(k=[1, 2], n_resamples=200)
POOL = {"t": ["t_ref", "t_fast"], "u": ["u_ref", "u_fast"], "v": ["v_ref"]}
TIMES = {
    "t": {"t_ref": 0.4, "t_fast": 0.1, "t_mine": 0.2, "t_bad": 9.0},
    "u": {"u_ref": 0.02, "u_fast": 0.01, "u_mine": 0.2},
    "v": {"v_ref": 0.05},
}
ANSWERS = {
    "base": {"t": ["t_ref", "t_bad", None, "t_ref"], "u": ["u_mine"] * 4, "v": [None] * 4},
    "fastest": {
        "t": ["t_fast", "t_mine", "t_bad", None],
        "u": ["u_fast", "u_ref", "u_ref", "u_ref"],
        "v": ["v_lost"] * 4,
    },
}


def gathered(given=ANSWERS, times=TIMES, wrong=("t_bad",), **columns) -> pd.DataFrame:
    tables = {name: answers(of, name) for name, of in given.items()}
    pool = answers(POOL)
    units = asked_units(tasks(dict.fromkeys(POOL, "test")), tables)
    judged = verdicts([pool, *tables.values()], wrong)
    measurements = measured(times, **columns)
    estimated = costs(measurements, seed=1, n_resamples=0)
    return gather(units, pool, tables, judged, estimated)


def evaluated(results, generators=("base", "fastest"), parameters=PARAMETERS):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a mean of nothing is known to be none
        return flat(evaluate_results(results, list(generators), parameters))


@pytest.fixture(scope="module")
def found():
    return evaluated(gathered())


def test_counts(found):
    counts = {
        key: found[f"base.{key}"] for key in ("answers", "programs", "correct", "solved", "unmeasured", "compared")
    }
    assert counts == {"answers": 12, "programs": 7, "correct": 6, "solved": 2, "unmeasured": 0, "compared": 2}
    assert {key: value for key, value in found.items() if key.startswith("base.verdict.")} == {
        "base.verdict.accepted": 6,
        "base.verdict.no_program": 5,
        "base.verdict.wrong_answer": 1,
    }
    assert (found["fastest.solved"], found["fastest.unmeasured"], found["fastest.compared"]) == (3, 4, 2)


def test_pass_at_k_is_over_all_units(found):
    assert (found["base.pass.1"], found["base.pass.2"]) == pytest.approx((0.5, (5 / 6 + 1) / 3), rel=1e-5)
    assert found["fastest.pass.1"] == pytest.approx(2.5 / 3, rel=1e-5)
    assert found["base.pass.1.low"] < 0.5 < found["base.pass.1.high"]


def test_costs_are_means_over_accepted_answers_of_the_units_that_were_solved(found):
    fast_t, fast_u = (0.1 + 0.2) / 2, (0.01 + 3 * 0.02) / 4
    assert found["fastest.et"] == pytest.approx((fast_t + fast_u) / 2, rel=1e-5)
    assert found["fastest.net.mean_of_ratios"] == pytest.approx((fast_t / 0.4 + fast_u / 0.02) / 2, rel=1e-5)
    assert found["fastest.net.ratio_of_sums"] == pytest.approx((fast_t + fast_u) / 0.42, rel=1e-5)
    assert found["base.net.mean_of_ratios"] == pytest.approx((1 + 10) / 2, rel=1e-5)
    assert found["base.net.ratio_of_sums"] == pytest.approx((0.4 + 0.2) / 0.42, rel=1e-5)
    assert found["base.mu"] == found["base.nmu.mean_of_ratios"] == found["base.nmu.ratio_of_sums"] == 1
    assert found["base.ntmu.mean_of_ratios"] == pytest.approx(5.5, rel=1e-5)  # memory is 1 MB everywhere: TMU = time
    assert found["base.tmu"] == pytest.approx(0.3, rel=1e-5)
    assert found["base.net.mean_of_ratios.low"] == pytest.approx(1, rel=1e-5)
    assert found["base.net.mean_of_ratios.high"] == pytest.approx(10, rel=1e-5)


def test_time_relative_to_the_reference_and_to_the_fastest_known_solution(found):
    logs = np.log([np.sqrt(0.1 * 0.2) / 0.4, 0.5**0.25])
    assert found["fastest.reference"] == pytest.approx(np.exp(logs.mean()), rel=1e-5)
    best = np.log([np.sqrt(0.1 * 0.2) / 0.1, 2**0.75])
    assert found["fastest.best"] == pytest.approx(np.exp(best.mean()), rel=1e-5)
    assert [found[f"base.{key}"] for key in ("wins", "ties", "losses", "above_5")] == [0, 0.5, 0.5, 0.5]
    assert [found[f"fastest.{key}"] for key in ("wins", "ties", "losses", "above_5")] == [1, 0, 0, 0]


def test_scores_of_the_peers(found):
    assert found["base.dps"] == pytest.approx((50 + 0) / 2)
    assert found["fastest.dps"] == pytest.approx(((100 + 50) / 2 + (100 + 3 * 50) / 4) / 2)
    # t: T = .8, e = (.8 − t) / .7; u: T = .04, e = (.04 − t) / .03; v: measured, and solved by none that has a cost
    assert found["base.eff.1"] == pytest.approx((2 * (0.4 / 0.7) / 4 + 0 + 0) / 3, rel=1e-5)
    assert found["fastest.eff.1"] == pytest.approx(((1 + 0.6 / 0.7) / 4 + (1 + 3 * 2 / 3) / 4) / 3, rel=1e-5)
    t_2 = (3 * 1 + 2 * 0.6 / 0.7 + 1 * 0) / 6  # of two of (1, .6/.7, 0, 0)
    assert found["fastest.eff.2"] == pytest.approx((t_2 + (3 * 1 + 3 * 2 / 3) / 6) / 3, rel=1e-5)
    assert found["base.beyond"] == pytest.approx((0 + 0) / 2)
    assert found["fastest.beyond"] == pytest.approx(((1 + 2 / 3) / 4 + 1 / 4) / 2, rel=1e-5)


def test_dps_does_not_tell_times_within_the_tie_band_apart():
    times = {**TIMES, "t": {**TIMES["t"], "t_mine": 0.104}}
    given = {"base": {"t": ["t_mine"] * 2, "u": [None] * 2, "v": [None] * 2}}
    results = gathered(given, times)
    assert evaluated(results, ["base"])["base.dps"] == 100
    assert evaluated(results, ["base"], Evaluate(k=[1], tie=0.01))["base.dps"] == 50


def test_pairs_are_compared_on_the_units_that_both_solve(found):
    where = "pair.fastest.base"
    assert found[f"{where}.pass.1"] == pytest.approx(2.5 / 3 - 0.5, rel=1e-5)
    assert (found[f"{where}.overlap"], found[f"{where}.overlap_share"]) == (2, pytest.approx(2 / 3, rel=1e-5))
    logs = np.log([np.sqrt(0.1 * 0.2) / 0.4, (0.01 * 0.02**3) ** 0.25 / 0.2])
    assert found[f"{where}.time"] == pytest.approx(np.exp(logs.mean()), rel=1e-5)
    assert found[f"{where}.time.low"] == pytest.approx(np.exp(logs.min()), rel=1e-5)
    assert found[f"{where}.memory"] == 1
    assert found[f"{where}.tmu"] == pytest.approx(found[f"{where}.time"])
    assert [found[f"{where}.{key}"] for key in ("wins", "ties", "losses", "above_5")] == [1, 0, 0, 0]
    assert found[f"{where}.et.base"] == pytest.approx(0.3, rel=1e-5)
    assert found[f"{where}.et.fastest"] == found["fastest.et"]
    assert found[f"{where}.reduction"] == pytest.approx(1 - found["fastest.et"] / 0.3, rel=1e-4)
    assert found[f"{where}.net.ratio_of_sums.base"] == found["base.net.ratio_of_sums"]
    assert found[f"{where}.net.mean_of_ratios.fastest"] == found["fastest.net.mean_of_ratios"]
    assert found[f"{where}.mean_tmu.base"] == found["base.tmu"]
    assert not [key for key in found if key.startswith("pair.") and not key.startswith(where)]


def test_differences_are_paired():
    same = {"base": ANSWERS["base"], "fastest": ANSWERS["base"]}
    found = evaluated(gathered(same))
    assert [found[f"pair.fastest.base.pass.1{end}"] for end in ("", ".low", ".high")] == [0, 0, 0]
    assert [found[f"pair.fastest.base.time{end}"] for end in ("", ".low", ".high")] == [1, 1, 1]
    assert found["pair.fastest.base.ties"] == 1
    assert found["base.pass.1.low"] < found["base.pass.1.high"]


def test_every_pair_of_which_both_have_answers():
    given = dict.fromkeys(("base", "random-correct", "fastest", "slowest"), ANSWERS["base"])
    found = evaluated(gathered(given), given)
    pairs = [key.split(".")[1:3] for key in found if key.endswith(".overlap")]
    assert pairs == [
        ["fastest", "random-correct"],
        ["fastest", "base"],
        ["fastest", "slowest"],
        ["random-correct", "base"],
    ]


def test_an_arm_that_solves_nothing_has_no_costs():
    given = {"base": ANSWERS["base"], "fastest": {task: [None, "t_bad"] for task in POOL}}
    results = gathered(given)
    found = evaluated(results)
    assert (found["fastest.pass.1"], found["fastest.solved"], found["fastest.compared"]) == (0, 0, 0)
    assert (found["fastest.eff.1"], found["fastest.beyond"], found["pair.fastest.base.overlap"]) == (0, 0, 0)
    keys = [
        f"fastest.{key}"
        for key in ("et", "net.mean_of_ratios", "ntmu.ratio_of_sums", "reference", "best", "wins", "dps")
    ]
    keys += [
        f"pair.fastest.base.{key}" for key in ("time", "time.low", "memory", "ties", "above_5", "reduction", "et.base")
    ]
    assert {key: found[key] for key in keys} == dict.fromkeys(keys)
    assert found["pair.fastest.base.pass.1"] == -0.5


def test_without_measurements_there_is_correctness_alone():
    results = gathered(times={})
    found = evaluated(results)
    assert found["base.pass.1"] == 0.5
    assert (found["base.unmeasured"], found["base.compared"], found["base.eff.1"]) == (6, 0, None)
    assert found["pair.fastest.base.overlap_share"] == 0
    units = results[["task", "language"]].drop_duplicates()
    assert describe(units, results) == {
        "data.tasks": 3,
        "data.units": 3,
        "data.languages": "python",
        "data.measured": 0,
        "data.claim_tasks": 100,
        "data.claim": False,
    }


def test_of_one_task_there_are_values_without_intervals():
    results = gathered()
    found = evaluated(results[results["task"] == "t"])
    assert found["base.pass.1"] == 0.5
    assert (found["base.pass.1.low"], found["base.reference.high"], found["pair.fastest.base.time.low"]) == (
        None,
        None,
        None,
    )


def test_a_reference_without_costs_takes_the_unit_out():
    times = {**TIMES, "u": {"u_fast": 0.01, "u_mine": 0.2}}
    found = evaluated(gathered(times=times))
    assert (found["base.compared"], found["base.unmeasured"], found["base.et"]) == (1, 4, 0.4)
    assert found["base.eff.1"] == pytest.approx((2 * (0.4 / 0.7) / 4 + 0) / 2, rel=1e-5)
    assert found["base.dps"] == 50


def test_more_answers_asked_for_than_there_are():
    results = gathered()
    results = results[~((results["task"] == "u") & (results["generator"] == "fastest") & (results["sample"] > 1))]
    with pytest.raises(UserError, match="k: 4; allowed: at most 2, the answers of fastest to task u in python"):
        evaluate_results(results, ["base", "fastest"], Evaluate(k=[1, 4]))


def test_the_order_of_rows_changes_nothing_and_the_seed_does():
    results = gathered()
    expected = evaluated(results)
    assert evaluated(results.sample(frac=1, random_state=1)) == expected
    assert evaluated(results, parameters=Evaluate(k=[1, 2], n_resamples=200, seed=2)) != expected


def test_a_claim_needs_a_hundred_tasks():
    units = pd.DataFrame({"task": [f"t{n}" for n in range(100)] * 2, "language": ["cpp"] * 100 + ["python"] * 100})
    results = units.assign(reference_time=1.0)
    enough, too_few = describe(units, results), describe(units[units["task"] != "t5"], results[results["task"] != "t5"])
    assert (enough["data.claim"], enough["data.tasks"], enough["data.units"]) == (True, 100, 200)
    assert enough["data.languages"] == "cpp, python"
    assert (too_few["data.claim"], too_few["data.tasks"], too_few["data.measured"]) == (False, 99, 198)


def test_noise_is_what_a_program_differs_from_itself():
    rows = []
    for task, time in (("t", 0.11), ("u", 0.1 / 1.1), ("v", 0.102)):
        rows += [
            *baseline(task, 2),
            *runs(task, "a", [0.1] * 2),
            *runs(task, "a", [time] * 2, copy=1),
            *runs(task, "b", [9.0] * 2),
        ]
    found = flat(noise(costs(pd.DataFrame(rows), seed=1, n_resamples=0), PARAMETERS))
    logs = np.log([1.1, 1 / 1.1, 1.02])
    assert found["noise.pairs"] == 3
    assert found["noise.ratio"] == pytest.approx(np.exp(logs.mean()), rel=1e-5)
    assert found["noise.ratio.low"] < 1 < found["noise.ratio.high"]
    assert found["noise.factor"] == pytest.approx(np.exp(np.abs(logs).mean()), rel=1e-5)
    assert found["noise.ties"] == pytest.approx(1 / 3, rel=1e-5)


def test_nothing_measured_twice_has_no_noise():
    found = flat(noise(costs(measured({"t": {"a": 0.1}}), seed=1, n_resamples=0), PARAMETERS))
    assert found.pop("noise.pairs") == 0
    assert found == dict.fromkeys(["noise.ratio", "noise.ratio.low", "noise.ratio.high", "noise.factor", "noise.ties"])
