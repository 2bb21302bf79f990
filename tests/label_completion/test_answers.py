"""Tables of answers: any identifiers are good, and what is not good is named in one line."""

import doctest

import numpy as np
import pandas as pd
import pytest

from tasks.label_completion import aggregation, answers, completion, graph, metrics, propagation, simulation, workers
from tasks.label_completion.answers import encode
from tasks.label_completion.completion import complete_labels
from tasks.stage import UserError

TABLE = pd.DataFrame({"task": [2, 1, 2, 3], "worker": [5, 5, 7, 7], "label": [0, 1, 1, 1]})


@pytest.mark.parametrize("module", [aggregation, answers, completion, graph, metrics, propagation, simulation, workers])
def test_examples_in_docstrings(module):
    found = doctest.testmod(module)
    assert found.failed == 0
    assert found.attempted > 0 or module not in (aggregation, completion)


KINDS = {
    "int64": lambda s: s,
    "int8": lambda s: s.astype("int8"),
    "uint64": lambda s: s.astype("uint64") + np.uint64(2**63),
    "nullable": lambda s: s.astype("Int64"),
    "fractions": lambda s: s / 2,
    "text": lambda s: "id" + s.astype("str"),
    "objects": lambda s: s.map(lambda v: f"id{v}").astype(object),
    "python text": lambda s: s.astype("string[python]"),
    "Arrow text": lambda s: s.astype("string[pyarrow]"),
    "Arrow numbers": lambda s: s.astype("int64[pyarrow]"),
    "categories": lambda s: pd.Series(pd.Categorical(s)),
    "categories of text": lambda s: pd.Series(pd.Categorical("id" + s.astype("str"))),
    "dates": lambda s: pd.Timestamp("2020-01-01") + pd.to_timedelta(s, unit="D"),
    "tuples": lambda s: s.map(lambda v: (v, "x")),
    "booleans": lambda s: s == s.max(),
}


@pytest.mark.parametrize(
    ("column", "kind"),
    [(column, kind) for column in TABLE for kind in KINDS if (column, kind) != ("task", "booleans")],  # three tasks
)
def test_kinds_of_identifiers(column, kind):
    values = KINDS[kind](TABLE[column])
    found, plain = encode(TABLE.assign(**{column: values})), encode(TABLE)
    for name in ("task", "worker", "label", "task_start"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
    index = {"task": found.tasks, "worker": found.workers, "label": found.classes}[column]
    assert list(index) == sorted(set(values))


PLAIN = {
    "Arrow text": list("1234"),
    "Arrow numbers": [1, 2, 3, 4],
    "categories": [1, 2, 3, 4],
    "nullable": [1, 2, 3, 4],
}
PLAIN |= {"categories of text": ["id1", "id2", "id3", "id4"], "text": ["id1", "id2", "id3", "id4"]}


@pytest.mark.parametrize("kind", PLAIN)
def test_answers_and_features_may_hold_the_same_names_in_different_ways(kind):
    features = pd.DataFrame({"x": [0.0, 1, 2, 3]}, index=PLAIN[kind])
    result = complete_labels(TABLE.assign(task=KINDS[kind](TABLE["task"])), features)
    np.testing.assert_array_equal(result.codes, complete_labels(TABLE, features.set_axis([1, 2, 3, 4])).codes)


def test_unused_categories_are_kept_and_their_order_is_the_order():
    worker = pd.Categorical([5, 5, 7, 7], categories=[9, 7, 5])
    found = encode(TABLE.assign(worker=worker))
    assert found.workers.tolist() == [9, 7, 5]
    start, _, _ = found.by_worker()
    assert np.diff(start).tolist() == [0, 2, 2]


def test_rows_in_messages_are_those_of_the_table_as_given():
    """Also after rows were dropped, and whatever the table's index is."""
    table = pd.DataFrame(
        {"task": [None, 9, 1, 2, 2], "worker": [1, 1, 1, 1, 1], "label": ["a", "a", "a", "a", "a"]}, index=list("vwxyz")
    )
    options = {"tasks": pd.Index([1, 2]), "on_missing": "drop", "on_unknown_task": "drop"}
    with pytest.raises(UserError, match="row 4: worker 1 has more than one answer"):
        encode(table, **options)
    with pytest.raises(UserError, match=r"row 4, column weight: 2\.0 is not in \[0, 1\]"):
        encode(table.assign(weight=[1, 1, 1, 1, 2], worker=[1, 1, 1, 1, 2]), **options)
    with pytest.raises(UserError, match="row 3, column label: 'b' is not one of 'a'"):
        encode(table.assign(label=["a", "a", "a", "b", "a"]), classes=["a"], **options)
    with pytest.raises(UserError, match=r"row 1, column task: (9|9\.0) has no features \(1 such"):
        encode(table, **{**options, "on_unknown_task": "error"})


BAD = {
    "no rows": (TABLE[:0], "the table has no rows; at least one answer is needed"),
    "no columns": (pd.DataFrame(), "column task is missing; there are "),
    "a column absent": (TABLE.drop(columns="label"), "column label is missing; there are task, worker"),
    "a column twice": (pd.concat([TABLE, TABLE[["task"]]], axis=1), "column task appears more than once"),
    "a missing label": (
        TABLE.assign(label=[0, None, 1, 1]),
        r"row 1, column label: the value is missing \(1 such rows",
    ),
    "a missing label, NaN": (TABLE.assign(label=[0, 1, np.nan, np.nan]), r"row 2, column label: .* \(2 such rows"),
    "a missing worker": (TABLE.assign(worker=[5, 5, 7, None]), "row 3, column worker: the value is missing"),
    "a missing category": (
        TABLE.assign(task=pd.Categorical([2, 1, 2, 4], categories=[1, 2, 3])),
        "row 3, column task: the value is missing",
    ),
    "mixed labels": (
        TABLE.assign(label=[0, "a", 1, 1]),
        "column label mixes types that have no common order: int, str",
    ),
    "mixed tasks": (TABLE.assign(task=[2, "a", 2, 3]), "column task mixes types that have no common order: int, str"),
    "lists": (TABLE.assign(label=[[0], [1], [1], [1]]), "column label: values cannot be identifiers: unhashable type"),
    "a duplicate": (
        TABLE.assign(worker=5),
        r"row 2: worker 5 has more than one answer for task 2 \(1 such rows; on_dup",
    ),
    "weight above 1": (TABLE.assign(weight=[1, 0, 1.1, 1]), r"row 2, column weight: 1.1 is not in \[0, 1\]"),
    "weight below 0": (TABLE.assign(weight=[1, -0.1, 1, 1]), r"row 1, column weight: -0.1 is not in \[0, 1\]"),
    "weight missing": (TABLE.assign(weight=[1, 1, None, 1]), r"row 2, column weight: nan is not in \[0, 1\]"),
    "weight missing, nullable": (
        TABLE.assign(weight=pd.array([1, 1, 1, None], "Float64")),
        "row 3, column weight: nan is",
    ),
    "weight infinite": (TABLE.assign(weight=np.inf), r"row 0, column weight: inf is not in \[0, 1\]"),
    "weight in words": (TABLE.assign(weight="much"), r"column weight has type str; numbers in \[0, 1\] are needed"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables(case):
    table, message = BAD[case]
    with pytest.raises(UserError, match=f"^answers: {message}") as error:
        encode(table)
    assert "\n" not in str(error.value)


def test_the_name_of_the_table_is_in_the_message():
    with pytest.raises(UserError, match=r"^raw/mine\.csv: the table has no rows"):
        encode(TABLE[:0], where="raw/mine.csv")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "mnldp"}, "method='mnldp' is not one of 'ldplc', 'wslc', 'instance'"),
        ({"zero_vector": "half"}, "zero_vector='half' is not one of 'neutral', 'drop'"),
        ({"return_": "all"}, "return_='all' is not one of 'matrix', 'votes', 'soft'"),
        ({"on_duplicate": "newest"}, "on_duplicate='newest' is not one of 'error', 'first', 'last'"),
        ({"on_unknown_task": "keep"}, "on_unknown_task='keep' is not one of 'error', 'drop'"),
        ({"n_neighbors": 0}, "n_neighbors=0 is not a whole number of at least 1"),
        ({"n_neighbors": 2.5}, "n_neighbors=2.5 is not a whole number"),
        ({"n_neighbors": "5"}, "n_neighbors='5' is not a whole number"),
        ({"n_iter": -1}, "n_iter=-1 is not a whole number of at least 0"),
        ({"threads": 0}, "threads=0 is not a whole number of at least 1"),
        ({"alpha": 1}, "alpha=1 is not a number from 0 to below 1"),
        ({"alpha": -0.1}, "alpha=-0.1 is not a number"),
        ({"alpha": float("nan")}, "alpha=nan is not a number"),
        ({"alpha": "0.5"}, "alpha='0.5' is not a number"),
        ({"answers": [1, 2]}, "answers is a list; a pandas DataFrame is needed"),
        ({"features": np.zeros((4, 1))}, "features is a ndarray; a pandas DataFrame is needed"),
    ],
)
def test_bad_arguments_of_completion(change, message):
    arguments = {"answers": TABLE, "features": pd.DataFrame({"x": [0.0, 1, 2]}, index=[1, 2, 3]), **change}
    with pytest.raises(UserError, match=f"^complete_labels: {message}"):
        complete_labels(**arguments)


def test_the_given_tables_stay_as_they_are():
    table, features = TABLE.assign(weight=1.0), pd.DataFrame({"x": [0.0, np.nan, 2]}, index=[1, 2, 3])
    before = table.copy(), features.copy()
    complete_labels(table, features)
    pd.testing.assert_frame_equal(table, before[0])
    pd.testing.assert_frame_equal(features, before[1])


def test_rows_left_out_are_counted():
    """A silent loss of rows would change the items' answers."""
    with pytest.warns(UserWarning, match="answers: 1 rows with a missing value are left out"):
        encode(pd.DataFrame({"task": [1, 2], "worker": [1, 1], "label": ["a", None]}), on_missing="drop")
    with pytest.warns(UserWarning, match="answers: 1 rows about tasks without features are left out"):
        encode(
            pd.DataFrame({"task": [1, 2], "worker": [1, 1], "label": ["a", "b"]}),
            tasks=pd.Index([1]),
            on_unknown_task="drop",
        )
