"""When a result is the expected one."""

import math

import pytest

from tasks.swiftcode.comparison import equal_outputs, equal_values
from tasks.swiftcode.values import Other

NAN = math.nan


@pytest.mark.parametrize(
    ("found", "expected", "compare", "equal"),
    [
        (6, 6, "exact", True),
        (6.0, 6, "exact", True),  # as Python's ==
        (10**400, 1.0, "exact", False),
        (10**400, 10**400, "float", True),
        (True, 1, "exact", False),
        (1, True, "exact", False),
        (True, True, "float", True),
        ("6", 6, "exact", False),
        (None, 0, "exact", False),
        ([1, 2], (1, 2), "exact", False),
        ((1, 2), (1, 2), "exact", True),
        ([1, [2]], [1, [2]], "exact", True),
        ([1], [1, 2], "exact", False),
        ({"a": [1]}, {"a": [1]}, "exact", True),
        ({"a": 1}, {"a": 1, "b": 2}, "exact", False),
        ({1, 2}, {2, 1}, "exact", True),
        (NAN, NAN, "exact", False),
        (NAN, 0.3, "float", False),
        (0.3, NAN, "float", False),
        (math.inf, math.inf, "float", True),
        (math.inf, 1e308, "float", False),
        (0.1 + 0.2, 0.3, "exact", False),
        (0.1 + 0.2, 0.3, "float", True),
        ([0.1 + 0.2, "a"], [0.3, "a"], "float", True),
        (0.3001, 0.3, "float", False),
        (1 + 1e-12j, 1, "float", True),
        (["b", "a", "a"], ["a", "b", "a"], "unordered", True),
        (["b", "a", "b"], ["a", "b", "a"], "unordered", False),
        ([[2], [1]], [[1], [2]], "unordered", True),
        ([{"a": 1}, {"b": 2}], [{"b": 2}, {"a": 1}], "unordered", True),
        ([1, "a"], ["a", 1], "unordered", True),
        ([True, 0], [0, 1], "unordered", False),
        (3, [3], "unordered", False),
        ("a  b\n", "a b", "tokens", True),
        ("a b", "a  c", "tokens", False),
        (Other("list"), Other("list"), "exact", False),
        ([Other("x")], [1], "unordered", False),
    ],
)
def test_values(found, expected, compare, equal):
    assert equal_values(found, expected, compare) is equal


@pytest.mark.parametrize(
    ("found", "expected", "compare", "equal"),
    [
        (b"6\n", "6", "tokens", True),
        (b"1  2\r\n3", "1 2 3\n", "tokens", True),
        (b"12", "1 2", "tokens", False),
        (b"0.30", "0.3", "tokens", False),
        (b"0.30", "0.3", "float", True),
        (b"0.3 x", "0.3 y", "float", False),
        (b"nan", "0.3", "float", False),
        (b"nan", "nan", "float", True),  # the very word that is expected
        (b"0.3", "0.3 0.3", "float", False),
        (b"a \nb\n\n", "a\nb", "exact", True),
        (b"a\n\nb", "a\nb", "exact", False),
        (b"b\na", "a\nb", "unordered", True),
        (b"b\nb", "a\nb", "unordered", False),
        (b"\xff", "ok", "tokens", False),
        ("ß".encode(), "ß", "exact", True),
    ],
)
def test_outputs(found, expected, compare, equal):
    assert equal_outputs(found, expected, compare) is equal
