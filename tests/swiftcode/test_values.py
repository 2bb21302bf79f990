"""Values as text: round trips of all plain data, and objects that lie about themselves."""

import collections
import enum
import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.swiftcode import values

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.complex_numbers(allow_nan=False),
)
HASHABLE = st.one_of(st.integers(), st.text(), st.tuples(st.integers(), st.text()), st.booleans())
DATA = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.dictionaries(HASHABLE, inner),
        st.sets(HASHABLE),
        st.frozensets(HASHABLE),
    ),
    max_leaves=20,
)


def same(a, b) -> bool:
    """Equal and of the same types, but that frozen sets come back as sets."""
    if isinstance(b, frozenset):
        return a == set(b)
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return a == b and (not isinstance(a, float) or math.copysign(1, a) == math.copysign(1, b))


@given(DATA)
def test_plain_data_come_back_as_they_were(value):
    assert same(values.loads(values.dumps(value)), value)


def test_nan_and_the_largest_integers():
    assert math.isnan(values.loads(values.dumps(float("nan"))))
    assert values.loads(values.dumps(7**20000)) == 7**20000
    assert values.loads(values.dumps(-(2**53))) == -(2**53)


@pytest.mark.parametrize(
    "value",
    [
        [1, 2**53 - 1, -(2**53) + 1],
        [1, 2**53, -(2**53)],
        [1, True, None],
        ["a", "é" * 300],
        ["a", 1],
        [[1, 2], ["a"], {"b": [(1,)]}],
        [1.5, float("inf")],
    ],
)
def test_lists_of_one_kind_take_the_short_way_and_come_back_the_same(value):
    text = values.dumps(value)
    assert same(values.loads(text), value)
    assert "NaN" not in text
    assert (
        max((abs(n) for n in json.loads(text) if type(n) is int), default=0) < 2**53
    )  # what every reader of JSON keeps


def test_a_long_list_ends_at_the_limit_too():
    for value in ([1] * 1000, ["abcd"] * 1000):
        with pytest.raises(values.TooLarge):
            values.dumps(value, 4000)
        assert values.loads(values.dumps(value, 10_000)) == value


def test_a_value_in_a_message_is_one_short_line():
    assert values.shown([1, "a"]) == "[1, 'a']"
    assert values.shown("x" * 500) == f"'{'x' * (values.SHOWN - 2)}…"
    assert values.shown(-(10**6000)) == "an integer of 19932 bits"
    assert values.shown({1: 10**6000}) == "a dict with a very long integer"
    assert values.shown(values.Other("generator")) == "a value of type generator"


def test_importing_the_sandbox_leaves_pythons_limit_on_long_integers_alone():
    code = "import sys; old = sys.get_int_max_str_digits(); import tasks.swiftcode.sandbox; "
    code += "print(old, sys.get_int_max_str_digits())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    old, new = done.stdout.split()
    assert old == new != "0"


@pytest.mark.parametrize("value", [{"$tuple": [1]}, {"$": 2}, {"$int": "x", "b": 1}, [{"$other": "list"}]])
def test_dictionaries_that_look_like_marks_are_dictionaries(value):
    assert values.loads(values.dumps(value)) == value


class Liar(int):
    def __eq__(self, other):
        return True

    def __repr__(self):
        return "6"

    __hash__ = int.__hash__


class Color(enum.IntEnum):
    RED = 3


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Liar(42), 42),
        (Color.RED, 3),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (collections.namedtuple("P", "x y")(1, 2), (1, 2)),
        (bytearray(b"ab"), b"ab"),
        (np.int64(5), 5),
        (np.float32(0.5), 0.5),
        (np.array([[1, 2]]), [[1, 2]]),
        (np.bool_(True), True),
    ],
)
def test_what_is_made_of_plain_data_is_read_as_that(value, plain):
    found = values.loads(values.dumps(value))
    assert type(found) is type(plain)
    assert found == plain


@pytest.mark.parametrize("value", [object(), (x for x in []), len, range(3), type, np.array([object()])])
def test_other_things_equal_nothing(value):
    found = values.loads(values.dumps(value))
    assert isinstance(found, values.Other)
    assert found != found
    assert (found == str(found)) is False


def test_a_limit_ends_the_writing():
    with pytest.raises(values.TooLarge):
        values.dumps(list(range(1000)), 1000)
    assert values.loads(values.dumps(list(range(100)), 1000)) == list(range(100))


def test_a_circle_is_no_plain_data():
    circle: list = []
    circle.append(circle)
    assert "nested too deeply" in values.dumps(circle)


@pytest.mark.parametrize(
    "text", ["NaN", "{", '{"$int": 3}', '{"$no": 1}', '{"$dict": [1]}', "[" * 100_000, '{"$float": []}']
)
def test_texts_that_nobody_wrote_are_refused(text):
    with pytest.raises(ValueError, match=r".+"):
        values.loads(text)
