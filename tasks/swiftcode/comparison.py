"""Whether what a candidate gave is what was expected; decided outside the sandbox, on plain data."""

import math
from collections.abc import Callable
from typing import Any

COMPARISONS = ("exact", "float", "unordered", "tokens")
RTOL, ATOL = 1e-7, 1e-6


def equal_values(found: Any, expected: Any, compare: str = "exact", rtol: float = RTOL, atol: float = ATOL) -> bool:
    """Whether a function's result is the expected one.

    exact: as Python's ``==``, but lists are not tuples, truth values are not numbers, and NaN equals nothing. float: the
    same, but numbers within atol or rtol of the larger one. unordered: outermost items in any order, each as often.
    tokens: texts word by word; other values as exact.
    """
    if compare == "unordered":
        return _unordered(found, expected)
    if compare == "float":
        return _equal(found, expected, lambda a, b: math.isclose(a, b, rel_tol=rtol, abs_tol=atol))
    if compare == "tokens" and isinstance(found, str) and isinstance(expected, str):
        return found.split() == expected.split()
    return _equal(found, expected, _same)


def equal_outputs(found: bytes, expected: str, compare: str = "tokens", rtol: float = RTOL, atol: float = ATOL) -> bool:
    """Whether a program's standard output is the expected one.

    tokens: the same words, whatever space is between them; exact: the same but for space at the ends of lines and of the
    output; float: words, numbers among them within the tolerances; unordered: the same lines in any order.
    """
    want = expected.encode("utf-8")
    if compare == "exact":
        return _lines(found) == _lines(want)
    if compare == "unordered":
        return sorted(line.split() for line in _lines(found)) == sorted(line.split() for line in _lines(want))
    words, wanted = found.split(), want.split()
    if compare == "tokens" or words == wanted:
        return words == wanted
    return len(words) == len(wanted) and all(_close(a, b, rtol, atol) for a, b in zip(words, wanted, strict=True))


def _close(found: bytes, expected: bytes, rtol: float, atol: float) -> bool:
    if found == expected:
        return True
    try:
        a, b = float(found), float(expected)
    except ValueError:
        return False
    return math.isclose(a, b, rel_tol=rtol, abs_tol=atol)


def _lines(text: bytes) -> list[bytes]:
    return b"\n".join(line.rstrip() for line in text.split(b"\n")).strip(b"\n").split(b"\n")


def _same(a: float, b: float) -> bool:
    return a == b


def _equal(found: Any, expected: Any, same: Callable[[Any, Any], bool]) -> bool:
    if isinstance(expected, bool) or isinstance(found, bool):
        return found is expected
    if isinstance(expected, int | float | complex):
        if not isinstance(found, int | float | complex):
            return False
        if isinstance(found, int) and isinstance(expected, int):
            return found == expected
        if isinstance(found, complex) or isinstance(expected, complex):
            return same(complex(found).real, complex(expected).real) and same(
                complex(found).imag, complex(expected).imag
            )
        try:
            return found == expected or same(found, expected)
        except OverflowError:  # an integer beyond the range of floats
            return False
    if type(found) is not type(expected):
        return False
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(_equal(a, b, same) for a, b in zip(found, expected, strict=True))
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(_equal(found[k], v, same) for k, v in expected.items())
    return found == expected


def _unordered(found: Any, expected: Any) -> bool:
    """Each expected item is found as often; by hash where the items allow it, else one by one."""
    kinds = (list, tuple, set)
    if not isinstance(found, kinds) or not isinstance(expected, kinds) or len(found) != len(expected):
        return False
    left = list(found)
    try:
        found_sorted, expected_sorted = sorted(found), sorted(expected)
        return all(_equal(a, b, _same) for a, b in zip(found_sorted, expected_sorted, strict=True))
    except TypeError:
        pass
    for item in expected:
        place = next((i for i, other in enumerate(left) if _equal(other, item, _same)), None)
        if place is None:
            return False
        del left[place]
    return True
