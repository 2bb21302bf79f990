"""Gates in general; the suites of each method are tested with the method."""

import json
import subprocess
import sys
from pathlib import Path

import great_expectations.expectations as gxe
import pandas as pd
import pytest

from tasks.gate import Check, describe, suite_of, validate
from tasks.stage import UserError

ROOT = Path(__file__).resolve().parents[1]
TABLE = pd.DataFrame({"site": ["a", "b", "b"], "count": [1.0, -2.0, None]}, index=[10, 11, 12])


def verdict(*expectations, rows=TABLE, **options):
    return validate("suite", [Check("counts", rows, list(expectations), **options)])


def rules(found: dict) -> dict[str, dict]:
    return {rule["rule"]: rule for rule in found["tables"][0]["rules"]}


def test_a_good_table_passes():
    found = verdict(gxe.ExpectColumnValuesToNotBeNull(column="site"))
    assert found["success"]
    assert found["tables"][0]["rows"] == 3


def test_a_failed_rule_names_column_number_and_rows():
    found = verdict(gxe.ExpectColumnValuesToBeBetween(column="count", min_value=0))
    assert not found["success"]
    rule = rules(found)["column_values_to_be_between"]
    assert rule["unexpected"] == 1
    assert rule["examples"] == [{"row": 1, "site": "b", "count": -2.0}]
    assert describe("counts", rule) == (
        "counts: column count: column_values_to_be_between (min_value=0.0): 1 rows, for example row 1, site 'b', count -2.0"
    )


def test_a_failed_rule_about_the_whole_table_says_what_it_saw():
    found = verdict(gxe.ExpectColumnUniqueValueCountToBeBetween(column="site", min_value=3))
    rule = rules(found)["column_unique_value_count_to_be_between"]
    assert describe("counts", rule).endswith("(min_value=3): observed 2")


def test_examples_are_rows_also_for_rules_over_several_columns():
    twice = pd.DataFrame({"site": ["a", "b", "b"], "period": [1, 1, 1], "count": [1, 2, 3]})
    found = verdict(gxe.ExpectCompoundColumnsToBeUnique(column_list=["site", "period"]), rows=twice)
    rule = rules(found)["compound_columns_to_be_unique"]
    assert [example["row"] for example in rule["examples"]] == [1, 2]
    assert rule["column"] == "site, period"


@pytest.mark.parametrize("may_be_empty", [False, True])
def test_an_empty_table_is_refused_unless_allowed(may_be_empty):
    found = verdict(gxe.ExpectColumnValuesToNotBeNull(column="site"), rows=TABLE.iloc[:0], may_be_empty=may_be_empty)
    assert found["success"] is may_be_empty


def test_an_expectation_that_cannot_be_computed_is_an_error_not_a_pass():
    with pytest.raises(UserError, match="expect_column_values_to_not_be_null"):
        verdict(gxe.ExpectColumnValuesToNotBeNull(column="nowhere"))


def test_the_verdict_is_the_same_for_the_same_table_and_is_json():
    expectations = [
        gxe.ExpectColumnValuesToBeInSet(column="site", value_set=["c", "a", "b"]),
        gxe.ExpectColumnValuesToNotBeNull(column="count"),
    ]
    first = json.dumps(verdict(*expectations), allow_nan=False)
    assert first == json.dumps(verdict(*reversed(expectations)), allow_nan=False)
    assert "NaN" not in first


def test_long_value_sets_are_cut_in_the_verdict():
    names = [f"s{i:03d}" for i in range(500)]
    found = verdict(gxe.ExpectColumnValuesToBeInSet(column="site", value_set=names), rows=pd.DataFrame({"site": names}))
    shown = rules(found)["column_values_to_be_in_set"]["kwargs"]["value_set"]
    assert len(shown) == 21
    assert shown[-1] == "… 500 in all"


@pytest.mark.parametrize(
    ("method", "suite", "message"),
    [
        ("nowhere", "answers", "there is no module tasks.nowhere.expectations"),
        ("label_completion", "nowhere", "has no suite 'nowhere'"),
        ("label_completion", "_unique", "has no suite '_unique'"),
        ("label_completion", "Check", "has no suite 'Check'"),
    ],
)
def test_an_unknown_suite_is_named(method, suite, message):
    with pytest.raises(UserError, match=message):
        suite_of(method, suite)


def test_the_command_exits_with_1_and_one_line_for_an_unknown_suite(tmp_path):
    (tmp_path / "in").mkdir()
    command = [
        sys.executable,
        "-m",
        "tasks.gate",
        "nowhere",
        "answers",
        str(tmp_path / "in"),
        "--out",
        str(tmp_path / "v.json"),
    ]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == "error: tasks.gate: there is no module tasks.nowhere.expectations\n"
    assert not (tmp_path / "v.json").exists()
