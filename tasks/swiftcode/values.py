"""Python values as text, in the sandbox and outside it: JSON with marks for what JSON lacks. Imports nothing of the project.

A mark is an object with the one key ``$`` + kind. Subclasses are written as what they are made of, by the base class's own
methods, so that an object that lies about itself is read as plain data. What is not data is written as ``{"$other": type}``.

>>> loads(dumps([(1, 2), {"a": float("inf")}, {3: b"x"}])) == [(1, 2), {"a": float("inf")}, {3: b"x"}]
True
"""

import json

DEEPEST = 200  # nested containers
SHOWN = 120  # characters of a value in a message


class TooLarge(Exception):
    """The text of the values would be longer than allowed."""


class Other(str):
    """Stands for a value that is no plain data; the text is the name of its type. Equal to nothing."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        return False

    def __ne__(self, other):
        return True


def dumps(value, limit: int | None = None) -> str:
    """The text of a value. Raises TooLarge where it has more than `limit` characters."""
    return json.dumps(_plain(value, [limit if limit is not None else 1 << 62], 0), ensure_ascii=True, allow_nan=False)


def loads(text: str):
    """The value of a text. Raises ValueError where it is not one that `dumps` writes."""
    try:
        return _value(json.loads(text, parse_constant=_no_constant))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def shown(value) -> str:
    """A value on one line, for messages: cut where it is long; of a very long integer only the number of its bits."""
    if isinstance(value, Other):
        return f"a value of type {value!s}"
    if isinstance(value, int) and abs(value) >= 1 << 200:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of more than 4300 digits, unless told to
        return f"a {type(value).__name__} with a very long integer"
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _no_constant(name):
    raise ValueError(f"{name} is not JSON")


def _spend(budget, n):
    budget[0] -= n
    if budget[0] < 0:
        raise TooLarge


def _plain(value, budget, depth):
    kind = type(value)
    if kind is int:
        if -(1 << 53) < value < 1 << 53:
            _spend(budget, 8)
            return value
        _spend(budget, value.bit_length() // 3)
        return {"$int": hex(value)}  # linear time, unlike decimal
    if kind is str:
        _spend(budget, len(value) + 2)
        return value
    if value is None or value is True or value is False:
        _spend(budget, 5)
        return value
    if kind is float:
        _spend(budget, 12)
        if value - value == 0.0:
            return value
        return {"$float": float.__repr__(value)}
    _spend(budget, 4)
    if depth > DEEPEST:
        return {"$other": "nested too deeply"}
    if kind is list:
        kinds = set(map(type, value))
        if kinds == {int} and max(map(abs, value)) < 1 << 53:  # long lists at the speed of C
            _spend(budget, 8 * len(value))
            return value
        if kinds == {str}:
            _spend(budget, sum(map(len, value)) + 2 * len(value))
            return value
        return [_plain(v, budget, depth + 1) for v in value]
    if kind is tuple:
        return {"$tuple": [_plain(v, budget, depth + 1) for v in value]}
    if kind is dict:
        if all(type(k) is str and not k.startswith("$") for k in value):
            return {k: _plain(v, budget, depth + 1) for k, v in value.items()}
        return {"$dict": [[_plain(k, budget, depth + 1), _plain(v, budget, depth + 1)] for k, v in value.items()]}
    if kind is set or kind is frozenset:
        items = [_plain(v, budget, depth + 1) for v in value]
        return {"$set": sorted(items, key=lambda v: json.dumps(v, sort_keys=True))}
    if kind is bytes or kind is bytearray:
        _spend(budget, 2 * len(value))
        return {"$bytes": bytes(value).hex()}
    if kind is complex:
        return {"$complex": [_plain(value.real, budget, depth + 1), _plain(value.imag, budget, depth + 1)]}
    return _plain(_base(value), budget, depth + 1) if _base(value) is not None else {"$other": kind.__name__[:80]}


def _base(value):
    """The value as its base class has it, None where it is no plain data. Numbers and arrays of numpy are data too."""
    for base, read in (
        (int, lambda v: int.__index__(v)),
        (float, lambda v: float.__add__(v, 0.0)),
        (str, lambda v: str.__str__(v) if type(str.__str__(v)) is str else str.__getitem__(v, slice(None))),
        (bytes, lambda v: bytes.__getitem__(v, slice(None))),
        (list, lambda v: list(list.__iter__(v))),
        (tuple, lambda v: tuple(tuple.__iter__(v))),
        (dict, lambda v: dict(dict.items(v))),
        (set, lambda v: set(set.__iter__(v))),
        (frozenset, lambda v: set(frozenset.__iter__(v))),
    ):
        if base in type(value).__mro__:
            plain = read(value)
            return plain if type(plain) is base or (base is frozenset and type(plain) is set) else None
    if type(value).__module__.split(".")[0] == "numpy":
        if type(value).__name__ == "ndarray" and value.dtype.kind in "biufcSU":
            return value.tolist()
        if hasattr(value, "dtype") and hasattr(value, "item") and value.dtype.kind in "biufcSU":
            return value.item()
    return None


def _value(node):
    kind = type(node)
    if kind is list:
        if {list, dict}.isdisjoint(map(type, node)):  # long lists at the speed of C
            return node
        return [_value(v) for v in node]
    if kind is not dict:
        return node
    if len(node) == 1:
        ((key, inner),) = node.items()
        if key.startswith("$"):
            return _marked(key, inner)
    return {k: _value(v) for k, v in node.items()}


def _marked(key, inner):
    try:
        if key == "$tuple":
            return tuple(_value(v) for v in inner)
        if key == "$int":
            return int(inner, 16)
        if key == "$float":
            return float(inner)
        if key == "$dict":
            return {_hashable(_value(k)): _value(v) for k, v in inner}
        if key == "$set":
            return {_hashable(_value(v)) for v in inner}
        if key == "$bytes":
            return bytes.fromhex(inner)
        if key == "$complex":
            return complex(_value(inner[0]), _value(inner[1]))
        if key == "$other":
            return Other(inner)
    except (TypeError, KeyError, IndexError) as error:
        raise ValueError(f"{key}: {error}") from None
    raise ValueError(f"{key} is not a mark")


def _hashable(value):
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value
