"""Numbers and rows as people read them."""

import pytest

from tasks.report.tables import LONGEST, estimate, metric_groups, number, parameter_groups, short_json


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0, "0"),
        (1.0, "1.000"),
        (9999, "9999"),
        (12345, "12\u202f345"),
        (12345.6, "12\u202f346"),
        (-3, "−3"),
        (1e-5, "1e−05"),
        (1.5e12, "1.5e+12"),
        (0.00012345, "0.0001234"),
    ],
)
def test_number(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((0.5, 0.5, 0.5), "0.5000 [0.5000, 0.5000]"),
        ((120, 90, 155), "120 [90, 155]"),
        ((-0.02, -0.13, 0.09), "−0.02 [−0.13, 0.09]"),
        ((1e-9, 0.0, 2e-9), "1e−09 [0, 2e−09]"),
        ((51234.2, 50100.0, 52000.0), "51\u202f234 [50\u202f100, 52\u202f000]"),
    ],
)
def test_estimate(values, text):
    assert estimate(*values) == text


def test_rows_follow_the_files_and_fill_the_gaps():
    groups = metric_groups({"a": {"n": 1, "p.x": 0.5}, "b": {"p.y": "text", "p.x": None, "ok": True}})
    rows = [[(row.prefix + row.name, [cell.text for cell in row.cells]) for row in group] for group in groups]
    assert rows == [
        [("n", ["1", "–"]), ("ok", ["–", "yes"])],
        [("p.x", ["0.5000", "–"]), ("p.y", ["–", "text"])],
    ]


def test_long_values_are_cut():
    assert len(short_json(list(range(1000)))) == LONGEST
    assert short_json("x" * LONGEST) == "x" * LONGEST


def test_empty_sections_stay_visible():
    assert parameter_groups({"train": {}, "plot": {"size": {}}}) == [
        ("", [("train", "{}")]),
        ("plot", [("size", "{}")]),
    ]
    assert parameter_groups({}) == []
