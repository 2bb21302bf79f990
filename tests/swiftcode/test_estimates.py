"""Net costs from runs: robust, net of the baseline, paired by round, independent of the order of rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.stage import UserError
from tasks.swiftcode import estimates
from tasks.swiftcode.estimates import FLOOR_INSTRUCTIONS, FLOOR_MB, FLOOR_S, costs, failed, hodges_lehmann, unit_of_time
from tests.swiftcode.measured import baseline, measured, runs


def table(*rows) -> pd.DataFrame:
    return pd.DataFrame([row for part in rows for row in part]).astype({"instructions": "Int64"})


def estimated(runs_table, **options) -> pd.DataFrame:
    return costs(runs_table, seed=1, **{"n_resamples": 200, **options}).set_index(["task", "candidate", "copy"])


def test_hodges_lehmann_is_the_median_of_all_means_of_two():
    values = np.array([3.0, 1.0, 10.0])  # means 3, 2, 6.5, 1, 5.5, 10
    assert hodges_lehmann(values) == pytest.approx((3 + 5.5) / 2)
    assert hodges_lehmann(np.array([[1.0, np.nan, 3.0], [np.nan] * 3])) == pytest.approx([2, np.nan], nan_ok=True)
    assert hodges_lehmann(np.array([7.0])) == 7


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=9), st.integers(0, 100))
def test_hodges_lehmann_moves_with_its_values_and_not_with_their_order(values, shift):
    found = hodges_lehmann(np.array(values, float))
    assert min(values) <= found <= max(values)
    assert hodges_lehmann(np.array(values[::-1], float) + shift) == pytest.approx(found + shift)


def test_costs_are_net_of_the_baseline_and_one_disturbed_run_does_not_move_them():
    found = estimated(
        table(
            baseline("t", 5),
            runs("t", "a", [0.1, 0.1, 0.1, 0.1, 5.0], memory=4.0),
            runs("t", "b", [0.2] * 5, memory=0.0),
        )
    )
    assert found["time"].tolist() == pytest.approx([0.1, 0.2])
    assert found["memory_mb"].tolist() == pytest.approx([4, FLOOR_MB])
    assert found["tmu_mb_s"].tolist() == pytest.approx([0.4, FLOOR_S * FLOOR_MB])
    assert found["ratio"].tolist() == pytest.approx([1, 2])
    assert found["runs"].tolist() == [5, 5]
    assert not found["below_noise"].any()


def test_each_group_has_its_own_baseline_and_its_own_least_time():
    rows = [baseline("t", 2), runs("t", "a", [0.1] * 2), runs("t", "b", [0.3] * 2)]
    rows += [baseline("t", 2, "cpp", cpu_s=0.001), runs("t", "a", [0.5] * 2, language="cpp", cpu_s=0.011)]
    found = costs(table(*rows), seed=1).set_index(["language", "candidate"])
    assert found["time"].to_dict() == pytest.approx({("cpp", "a"): 0.01, ("python", "a"): 0.1, ("python", "b"): 0.3})
    assert found["ratio"].to_dict() == pytest.approx({("cpp", "a"): 1, ("python", "a"): 1, ("python", "b"): 3})


def test_what_is_not_told_from_the_baseline_is_raised_to_the_floor_and_flagged():
    found = estimated(measured({"t": {"a": -0.002, "b": 0.0, "c": 0.5}}))
    assert found["time"].tolist() == pytest.approx([FLOOR_S, FLOOR_S, 0.5])
    assert found["below_noise"].tolist() == [True, True, False]
    assert found["ratio"].tolist()[:2] == [1, 1]


def test_rounds_are_drawn_with_all_their_runs_so_common_disturbance_cancels():
    disturbed = np.array([1.0, 1.5, 2.0, 0.7, 1.2])
    rows = table(baseline("t", 5), runs("t", "a", 0.1 * disturbed), runs("t", "b", 0.104 * disturbed))
    found = estimated(rows)
    assert found["time_high"].iloc[0] / found["time_low"].iloc[0] > 1.5  # the machine is unsteady
    assert found.loc[("t", "b", 0), ["ratio_low", "ratio_high"]].tolist() == pytest.approx([1.04, 1.04])
    assert found.loc[("t", "a", 0), ["ratio_low", "ratio_high"]].tolist() == [1, 1]


def test_intervals_hold_the_estimate_and_cover_what_is_not_decided():
    rows = table(
        baseline("t", 5), runs("t", "a", [0.1, 0.2, 0.1, 0.2, 0.1]), runs("t", "b", [0.25, 0.1, 0.25, 0.1, 0.2])
    )
    found = estimated(rows)
    assert (found["time_low"] <= found["time"]).all()
    assert (found["time"] <= found["time_high"]).all()
    assert found["ratio"].iloc[1] > 1.05
    assert found["ratio_low"].iloc[1] < 1 < found["ratio_high"].iloc[1]


def test_the_baseline_s_disturbance_is_drawn_with_its_round():
    idle = [0.02, 0.06, 0.02, 0.08, 0.02]
    rows = table(
        [row | {"cpu_s": cpu} for row, cpu in zip(baseline("t", 5), idle, strict=True)],
        [row | {"cpu_s": cpu + 0.1} for row, cpu in zip(runs("t", "a", [0.1] * 5), idle, strict=True)],
    )
    found = estimated(rows).iloc[0]
    assert [found["time_low"], found["time"], found["time_high"]] == pytest.approx([0.1, 0.1, 0.1])


def test_instructions_take_the_place_of_time_and_are_exact():
    rows = table(
        baseline("t", 1, instructions=1_000_000),
        runs("t", "a", [0.5], instructions=1_500_000),
        runs("t", "b", [0.1], instructions=3_000_000),
        runs("t", "c", [0.1], instructions=999_000),
    )
    found = estimated(rows)
    assert unit_of_time(rows) == "instructions"
    for column in ("time", "time_low", "time_high"):
        assert found[column].tolist() == [500_000, 2_000_000, FLOOR_INSTRUCTIONS]
    assert found["ratio"].iloc[1] == 2_000_000 / FLOOR_INSTRUCTIONS
    assert found["below_noise"].tolist() == [False, False, True]


def test_a_candidate_with_a_failed_run_has_no_costs_and_is_counted():
    rows = table(baseline("t", 2), runs("t", "a", [0.1] * 2), runs("t", "b", [0.2] * 2), runs("u", "b", [0.1]))
    rows.loc[(rows["candidate"] == "b") & (rows["task"] == "t") & (rows["round"] == 1), "verdict"] = "time_limit"
    rows.loc[rows["task"] == "u", ["verdict", "cpu_s"]] = ["memory_limit", 0.0]
    assert estimated(rows).index.tolist() == [("t", "a", 0)]
    assert failed(rows.iloc[::-1]).values.tolist() == [["t", "python", "b"], ["u", "python", "b"]]


def test_copies_are_costs_of_their_own_and_never_the_group_s_least():
    rows = table(baseline("t", 2), runs("t", "a", [0.2] * 2), runs("t", "a", [0.1] * 2, copy=1))
    assert estimated(rows)["ratio"].to_dict() == pytest.approx({("t", "a", 0): 1, ("t", "a", 1): 0.5})


def test_missing_rounds_are_left_out():
    rows = table(baseline("t", 4), runs("t", "a", [0.1, 0.2, 0.1, 0.2]), runs("t", "b", [0.4, 0.4]))
    found = estimated(rows)
    assert found["runs"].tolist() == [4, 2]
    assert found["time"].tolist() == pytest.approx([0.15, 0.4])
    assert found[["ratio_low", "ratio_high"]].notna().all(axis=None)


def test_no_runs_have_no_costs_and_no_unit():
    empty = measured({"t": {"a": 0.1}}).iloc[:0]
    assert costs(empty, seed=1).empty
    assert unit_of_time(empty) is None
    assert failed(empty).empty
    only_idle = table(baseline("t", 2))
    assert costs(only_idle, seed=1).empty


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cpu_s": 0.0}, "candidate a, copy 0, round 1: cpu_s is 0.0; allowed: above 0"),
        ({"peak_mb": 0.0}, "peak_mb is 0.0; allowed: above 0"),
        ({"cpu_s": float("nan")}, "cpu_s is nan; allowed: above 0"),
        ({"machine": "other"}, "task t, language python: measured on 2 machines; allowed: one"),
        ({"round": 0}, "candidate a, copy 0, round 0: stands there twice"),
        ({"instructions": 5}, "instructions: missing in some rows"),
    ],
)
def test_runs_that_are_no_measurements_are_refused(change, message):
    rows = measured({"t": {"a": 0.1, "b": 0.2}})
    at = rows.index[(rows["candidate"] == "a") & (rows["round"] == 1)]
    for column, value in change.items():
        rows.loc[at, column] = value
    with pytest.raises(UserError, match=message):
        costs(rows, seed=1)


def test_a_count_of_no_instructions_is_refused():
    rows = measured({"t": {"a": 0.1}}, instructions=7)
    rows.loc[rows["candidate"] == "a", "instructions"] = 0
    with pytest.raises(UserError, match="candidate a, copy 0, round 0: instructions is 0; allowed: above 0"):
        costs(rows, seed=1)


def test_a_group_without_a_baseline_is_refused():
    rows = measured({"t": {"a": 0.1}, "u": {"a": 0.1}})
    rows.loc[(rows["candidate"] == "baseline") & (rows["task"] == "u"), "verdict"] = "harness_error"
    with pytest.raises(UserError, match="task u, language python: no run of the baseline is accepted"):
        costs(rows, seed=1)


def noisy(seed: int = 3) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    rows = [baseline(task, 5) for task in "tu"]
    rows += [runs(task, name, draw.uniform(0.1, 0.2, 5), draw.uniform(1, 5)) for task in "tu" for name in "abc"]
    return table(*rows)


@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_and_other_tasks_change_nothing(random):
    rows = noisy()
    order = list(range(len(rows)))
    random.shuffle(order)
    expected = costs(rows, seed=1, n_resamples=50)
    pd.testing.assert_frame_equal(costs(rows.iloc[order], seed=1, n_resamples=50), expected)
    one = rows[rows["task"] == "u"]
    alone = expected[expected["task"] == "u"].reset_index(drop=True)
    pd.testing.assert_frame_equal(costs(one, seed=1, n_resamples=50), alone)


def test_chunks_change_nothing_and_the_seed_does(monkeypatch):
    expected = costs(noisy(), seed=1, n_resamples=50)
    assert not costs(noisy(), seed=2, n_resamples=50).equals(expected)
    monkeypatch.setattr(estimates, "CHUNK_CELLS", 300)
    pd.testing.assert_frame_equal(costs(noisy(), seed=1, n_resamples=50), expected)


def test_groups_draw_rounds_of_their_own():
    times = np.random.default_rng(3).uniform(0.1, 0.2, 5)
    found = costs(table(*([*baseline(task, 5), *runs(task, "a", times)] for task in "tu")), seed=1, n_resamples=20)
    assert found["time"].nunique() == 1
    assert found["time_low"].nunique() == 2


def test_without_resamples_there_are_no_intervals():
    found = costs(noisy(), seed=1, n_resamples=0)
    assert found[["time_low", "time_high", "ratio_low", "ratio_high"]].isna().all(axis=None)
    assert found["time"].tolist() == costs(noisy(), seed=1)["time"].tolist()
