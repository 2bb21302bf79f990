"""The table of answers: which units are asked, and what stands beside an answer."""

import pandas as pd
import pytest

from tasks.stage import UserError
from tasks.swiftcode.estimates import costs
from tasks.swiftcode.results import asked_units, gather
from tests.swiftcode.measured import answers, measured, tasks, verdicts

TASKS = tasks({"t": "test", "u": "test", "x": "train"}, ("python", "cpp"))


def in_both(of: dict, name: str) -> pd.DataFrame:
    return pd.concat([answers(of, name, language) for language in ("python", "cpp")], ignore_index=True)


def test_all_test_tasks_in_the_languages_of_the_answers():
    given = {"base": answers({"u": ["a"], "t": ["a"]}, "base")}
    assert asked_units(TASKS, given).values.tolist() == [["t", "python"], ["u", "python"]]
    given = {"base": in_both({"u": ["a"], "t": ["a"]}, "base")}
    assert asked_units(TASKS, given).values.tolist() == [["t", "cpp"], ["t", "python"], ["u", "cpp"], ["u", "python"]]
    only_python = TASKS.assign(languages=[["python"], ["cpp", "python"], ["cpp"]])
    given["base"] = given["base"].query("task == 'u' or language == 'python'")
    assert asked_units(only_python, given).values.tolist() == [["t", "python"], ["u", "cpp"], ["u", "python"]]


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ({"t": ["a"]}, r"answers/slowest\.parquet: no answer to task u in python; .*answer again"),
        ({"t": ["a"], "u": ["a"], "x": ["a"]}, r"answers/slowest\.parquet: answers to task x in python"),
    ],
)
def test_generators_that_were_asked_other_tasks_are_refused(of, message):
    given = {"base": answers({"t": ["a"], "u": ["a"]}, "base"), "slowest": answers(of, "slowest")}
    with pytest.raises(UserError, match=message):
        asked_units(TASKS, given)


def gathered(shuffle: bool = False) -> pd.DataFrame:
    given = {"fastest": answers({"t": ["a", None, "bad"], "u": ["b"] * 3}, "fastest")}
    pool = pd.concat([answers({"t": ["ref", "a"], "u": ["ref"], "x": ["ref"]}), answers({"t": ["zz"]}, "small")])
    judged = verdicts([pool, *given.values()], wrong=("bad",))
    estimated = costs(measured({"t": {"ref": 0.4, "a": 0.1, "bad": 0.7}, "u": {"b": 0.3}}), seed=1, n_resamples=0)
    if shuffle:
        pool, judged, estimated = (table.sample(frac=1, random_state=3) for table in (pool, judged, estimated))
        given = {name: table.sample(frac=1, random_state=4) for name, table in given.items()}
    return gather(asked_units(TASKS, given), pool, given, judged, estimated)


def test_rows_have_verdicts_costs_and_the_reference_s_costs():
    rows = gathered()
    shown = rows[["task", "generator", "sample", "verdict"]].values.tolist()
    assert shown == [
        ["t", "fastest", 0, "accepted"],
        ["t", "fastest", 1, "no_program"],
        ["t", "fastest", 2, "wrong_answer"],
        ["t", "pool", 0, "accepted"],
        ["t", "pool", 1, "accepted"],
        ["u", "fastest", 0, "accepted"],
        ["u", "fastest", 1, "accepted"],
        ["u", "fastest", 2, "accepted"],
        ["u", "pool", 0, "accepted"],
    ]
    nan = float("nan")
    assert rows["time"].tolist() == pytest.approx([0.1, nan, nan, 0.4, 0.1, 0.3, 0.3, 0.3, nan], nan_ok=True)
    assert rows["reference_time"].tolist() == pytest.approx([0.4] * 5 + [nan] * 4, nan_ok=True)
    assert rows["reference_memory_mb"].tolist() == pytest.approx([1] * 5 + [nan] * 4, nan_ok=True)
    assert rows["candidate"].isna().tolist() == [False, True] + [False] * 7


def test_the_order_of_rows_changes_nothing():
    pd.testing.assert_frame_equal(gathered(shuffle=True), gathered())


def test_second_copies_are_no_costs_of_an_answer():
    given = {"base": answers({"t": ["a"], "u": ["a"]}, "base")}
    estimated = costs(
        pd.concat([measured({"t": {"a": 0.1}}), measured({"t": {"a": 0.2}}, copy=1).query("candidate == 'a'")]), seed=1
    )
    pool = answers({"t": ["a"]})
    rows = gather(asked_units(TASKS, given), pool, given, verdicts([*given.values(), pool]), estimated)
    assert rows["time"].dropna().tolist() == pytest.approx([0.1, 0.1])


def test_a_candidate_without_a_verdict_is_refused():
    given = {"base": answers({"t": ["a"], "u": ["lost"]}, "base")}
    pool = answers({"t": ["ref"]})
    judged = verdicts([pool, answers({"t": ["a"]})])
    estimated = costs(measured({"t": {}}), seed=1)
    with pytest.raises(
        UserError, match="verdicts: task u, language python: none of candidate lost of base; execute again"
    ):
        gather(asked_units(TASKS, given), pool, given, judged, estimated)
