"""The rules on groups whose answer is known, and what must hold for all groups."""

from collections import Counter

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.swiftcode.params import ARMS, RULES, Select
from tasks.swiftcode.selection import (
    choose,
    correct_candidates,
    has_choice,
    margins,
    non_dominated,
    random_correct,
    select_group,
    slowest,
    summarise,
)
from tests.swiftcode.measured import answers, verdicts

PARAMETERS = Select()


def group(
    *rows: tuple, ratio_low: dict[str, float] | None = None, source: dict[str, str] | None = None
) -> pd.DataFrame:
    """(candidate, time, memory, TMU) a row; sources of equal length and intervals without width where not given."""
    table = pd.DataFrame(rows, columns=["candidate", "time", "memory_mb", "tmu_mb_s"])
    ratio = table["time"] / table["time"].min()
    low = [(ratio_low or {}).get(name, value) for name, value in zip(table["candidate"], ratio, strict=True)]
    sources = [(source or {}).get(name, "pass") for name in table["candidate"]]
    return table.assign(ratio=ratio, ratio_low=low, ratio_high=ratio, source=sources, below_noise=False)


def test_lexi_takes_the_least_memory_of_tied_times():
    found = group(("fast", 1.00, 80, 80), ("lean", 1.04, 20, 21), ("slow", 1.06, 1, 1))
    assert choose(found, "lexi", PARAMETERS) == ["lean"]
    assert choose(found, "lexi", Select(tie=0.02)) == ["fast"]
    assert choose(found, "lexi", Select(tie=0.07)) == ["slow"]


def test_lexi_ties_times_whose_interval_holds_one():
    rows = ("fast", 1.0, 80, 80), ("unsure", 1.3, 20, 26), ("slow", 1.3, 1, 1)
    assert choose(group(*rows, ratio_low={"unsure": 1.0}), "lexi", PARAMETERS) == ["unsure"]
    assert choose(group(*rows, ratio_low={"unsure": 1.01}), "lexi", PARAMETERS) == ["fast"]


@pytest.mark.parametrize(
    ("memory", "chosen"),
    [((10, 10.9), "b"), ((10, 11.1), "a"), ((100, 104), "b"), ((100, 106), "a")],
)
def test_lexi_ties_memory_within_a_megabyte_or_five_per_cent_and_goes_on_to_tmu(memory, chosen):
    found = group(("a", 1.0, memory[0], 2.0), ("b", 1.0, memory[1], 1.0))
    assert choose(found, "lexi", PARAMETERS) == [chosen]


def test_lexi_ends_with_the_shorter_source_and_the_smaller_identity():
    rows = ("c", 1.0, 1, 1.0), ("a", 1.01, 1.2, 1.04), ("b", 1.0, 1, 1.06)
    assert choose(group(*rows), "lexi", PARAMETERS) == ["a"]
    assert choose(group(*rows, source={"a": "longer"}), "lexi", PARAMETERS) == ["c"]
    assert choose(group(*rows, source={"b": "b"}), "lexi", PARAMETERS) == ["a"]  # its TMU is no tie


DISAGREEING = group(
    ("fast", 1.0, 90, 90),
    ("middle", 2.0, 20, 40),
    ("lean", 9.0, 10, 90),
    ("lean_slow", 12.0, 9.5, 200),
    ("worst", 13, 95, 300),
)


@pytest.mark.parametrize(
    ("rule", "chosen"),
    [("lexi", "fast"), ("time", "fast"), ("memory", "lean"), ("tmu", "middle"), ("product", "middle")],
)
def test_each_rule_has_its_own_answer(rule, chosen):
    assert choose(DISAGREEING, rule, PARAMETERS) == [chosen]


def test_the_weight_of_weighted_goes_from_memory_to_time():
    found = [choose(DISAGREEING, "weighted", Select(weight=weight))[0] for weight in (0.0, 0.5, 1.0)]
    assert found == ["lean_slow", "middle", "fast"]


def test_product_and_weighted_do_not_tell_small_memories_apart():
    found = group(("fast", 1.0, 0.9, 1), ("slow", 2.0, 0.25, 1))
    for rule in ("product", "weighted"):
        assert choose(found, rule, PARAMETERS) == ["fast"]
        assert choose(found, rule, Select(memory_tie_mb=0.0)) == ["slow"]
    assert choose(found, "product", Select(memory_tie_mb=0.0, weight=0.9)) == ["slow"]
    assert choose(found, "weighted", Select(memory_tie_mb=0.0, weight=0.9)) == ["fast"]


def test_time_and_tmu_follow_the_estimate_without_a_tie_band():
    found = group(("a", 1.001, 1, 1.0), ("b", 1.0, 50, 1.001))
    assert choose(found, "time", PARAMETERS) == ["b"]
    assert choose(found, "tmu", PARAMETERS) == ["a"]


def test_pareto_keeps_what_is_not_dominated_and_begins_with_lexi_s():
    found = choose(DISAGREEING, "pareto", PARAMETERS)
    assert found == ["fast", "lean", "lean_slow", "middle"]
    near = group(("a", 1.0, 50, 1), ("z", 1.03, 10, 1), ("y", 1.03, 11.5, 1), ("x", 1.03, 10, 1))
    assert choose(near, "pareto", PARAMETERS) == ["x", "a", "z"]  # equal ones do not dominate each other


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValueError, match="rule is 'best'; allowed: lexi, time"):
        choose(DISAGREEING, "best", PARAMETERS)


def test_the_slowest_and_of_equals_the_one_that_lexi_likes_least():
    assert slowest(DISAGREEING) == "worst"
    equal = group(("a", 2.0, 1, 1), ("b", 2.0, 3, 1), ("c", 2.0, 3, 2), ("d", 1.0, 9, 9))
    assert slowest(equal) == "c"
    assert slowest(group(("a", 2.0, 1, 1), ("b", 2.0, 1, 1), source={"a": "longer"})) == "a"
    assert slowest(group(("a", 2.0, 1, 1), ("b", 2.0, 1, 1))) == "b"


def test_every_candidate_is_as_likely_the_random_one():
    drawn = [random_correct(DISAGREEING, 1, f"task{number}", "python") for number in range(1000)]
    found = Counter(drawn)
    assert sorted(found) == sorted(DISAGREEING["candidate"])
    assert min(found.values()) > 150
    backwards = [random_correct(DISAGREEING[::-1], 1, f"task{number}", "python") for number in range(1000)]
    assert backwards == drawn
    drawn = [[random_correct(DISAGREEING, seed, "t", lang) for seed in range(50)] for lang in ("python", "cpp")]
    assert drawn[0] != drawn[1]


def test_choice_and_margins():
    assert not has_choice(group(("a", 1.0, 1, 1), ("b", 1.2, 1, 1)), PARAMETERS)
    assert has_choice(group(("a", 1.0, 1, 1), ("b", 1.21, 1, 1)), PARAMETERS)
    assert not has_choice(group(("a", 1.0, 1, 1), ("b", 1.21, 1, 1)), Select(choice=0.3))
    assert margins(DISAGREEING) == (2, 9)
    assert margins(group(("a", 2.0, 1, 1), ("b", 3.0, 1, 1))) == (1.5, 1.25)
    assert margins(group(("a", 2.0, 1, 1))) == (None, 1)


def test_a_group_of_one_gives_it_to_all_arms():
    found = select_group(group(("a", 2.0, 1, 1)), PARAMETERS, "t", "python").iloc[0]
    assert found[["tied", "choice", "selected", "arms"]].tolist() == [True, False, True, list(ARMS)]


def test_rows_of_a_group():
    found = select_group(DISAGREEING, PARAMETERS, "t", "python").set_index("candidate")
    assert found.index.is_monotonic_increasing
    assert found["tied"].to_dict() == {name: name == "fast" for name in found.index}
    assert found["selected"].to_dict() == {name: name == "fast" for name in found.index}
    assert found["choice"].all()
    assert "fastest" in found.loc["fast", "arms"]
    assert "slowest" in found.loc["worst", "arms"]
    pareto = select_group(DISAGREEING, Select(rule="pareto"), "t", "python").set_index("candidate")
    assert pareto["selected"].sum() == 4
    assert sum("fastest" in arms for arms in pareto["arms"]) == 1


# few values, so that ties are frequent
costs = st.tuples(
    st.sampled_from([1.0, 1.04, 1.3, 5.0]), st.sampled_from([1.0, 1.5, 3.0, 60.0]), st.sampled_from([1.0, 2.0])
)
groups = st.lists(costs, min_size=1, max_size=6).map(
    lambda rows: group(*[(f"c{number}", *row) for number, row in enumerate(rows)])
)


@given(groups, st.randoms(use_true_random=False), st.sampled_from(RULES))
def test_the_order_of_candidates_changes_nothing(table, random, rule):
    parameters = Select(rule=rule)
    expected = select_group(table, parameters, "t", "python")
    order = list(range(len(table)))
    random.shuffle(order)
    pd.testing.assert_frame_equal(select_group(table.iloc[order], parameters, "t", "python"), expected)
    assert [arm for arms in expected["arms"] for arm in arms].count("fastest") == 1
    assert sorted(arm for arms in expected["arms"] for arm in arms) == sorted(ARMS)


@given(groups)
def test_what_every_rule_promises(table):
    by = table.set_index("candidate")
    first = {rule: by.loc[choose(table, rule, PARAMETERS)[0]] for rule in RULES}
    assert first["lexi"]["time"] <= 1.05 * by["time"].min()
    assert first["time"]["time"] == by["time"].min()
    assert first["tmu"]["tmu_mb_s"] == by["tmu_mb_s"].min()
    assert first["memory"]["memory_mb"] <= max(1.05 * by["memory_mb"].min(), by["memory_mb"].min() + 1)
    front = table[non_dominated(table)]
    assert sorted(choose(table, "pareto", PARAMETERS)) == sorted(front["candidate"])
    for row in table.itertuples():  # every candidate is on the front or beaten by one that is
        beaten = (front["time"] <= row.time) & (front["memory_mb"] <= row.memory_mb)
        assert beaten.any()


def test_correct_candidates_have_all_their_origins_and_are_counted():
    samples = [
        answers({"t": ["x", "y"], "test": ["x"]}),
        answers({"t": ["y", None, "w", "y"], "u": ["w"]}, "small"),
        answers({"t": ["z"]}, "big"),
        answers({"t": ["x"]}, "big", language="cpp"),
    ]
    table = pd.concat(samples, ignore_index=True)
    found = correct_candidates(table, verdicts(samples, wrong=("w",)), pd.Series(["t", "u"]))
    rows = found[["task", "language", "candidate", "origin", "count", "source"]].values.tolist()
    assert rows == [
        ["t", "cpp", "x", "big", 1, "# x"],
        ["t", "python", "x", "pool", 1, "# x"],
        ["t", "python", "y", "pool,small", 3, "# y"],
        ["t", "python", "z", "big", 1, "# z"],
    ]


def selection(*parts: tuple[str, pd.DataFrame, dict[str, str]]) -> pd.DataFrame:
    tables = [
        select_group(
            table.assign(task=task, language="python", origin=table["candidate"].map(origin)),
            PARAMETERS,
            task,
            "python",
        )
        for task, table, origin in parts
    ]
    return pd.concat(tables, ignore_index=True)


def test_summary_of_who_won_and_of_what_other_rules_would_do():
    names = dict.fromkeys(DISAGREEING["candidate"], "pool")
    table = selection(
        ("t", DISAGREEING, {**names, "fast": "small"}),
        ("u", DISAGREEING, {**names, "fast": "pool,small"}),
        ("v", group(("a", 1.0, 1, 1), ("b", 1.1, 1, 1)), {"a": "pool", "b": "big,small"}),
        ("w", group(("a", 1.0, 1, 1)), {"a": "pool"}),
    )
    found = summarise(table, PARAMETERS)
    assert {key: found[key] for key in ("rule", "groups", "candidates", "choice", "choice_tasks", "below_noise")} == {
        "rule": "lexi",
        "groups": 4,
        "candidates": 13,
        "choice": 2,
        "choice_tasks": 2,
        "below_noise": 0,
    }
    assert [found[f"wins.{who}"] for who in ("pool", "models", "both")] == [2, 1, 1]
    assert [found[f"wins_choice.{who}"] for who in ("pool", "models", "both")] == [0, 1, 1]
    assert "sensitivity.lexi" not in found
    assert (found["sensitivity.memory"], found["sensitivity_choice.memory"]) == (0.5, 1)
    assert (found["sensitivity.time"], found["sensitivity_choice.time"]) == (0, 0)
    assert (found["margin.second"], found["margin.median"]) == (2, 9)
    assert (found["margin.w.python.second"], found["margin.w.python.candidates"]) == (None, 1)
    assert (found["margin.v.python.second"], found["margin.v.python.median"]) == pytest.approx((1.1, 1.05))
    assert found["slowest_is_fastest"] == 0.25
    assert 0.25 <= found["random_is_fastest"] <= 1


def test_summary_without_any_choice():
    found = summarise(selection(("w", group(("a", 1.0, 1, 1)), {"a": "small"})), PARAMETERS)
    assert (found["choice"], found["sensitivity.time"], found["sensitivity_choice.time"]) == (0, 0, None)
    assert (found["margin.second"], found["margin.median"]) == (None, None)
    assert found["wins.models"] == 1
    assert found["random_is_fastest"] == 1
