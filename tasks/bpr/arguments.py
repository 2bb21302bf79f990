"""What the methods' functions refuse, in one line: argument, position, value, and what is allowed.

The functions take numpy arrays and torch tensors alike and import neither's other: an array is looked at once, and a
position is sought only where something is wrong.
"""

from typing import Any

import numpy as np

INFINITY = float("inf")


def check_k(k: Any, n_sites: int) -> None:
    """Raise ValueError unless `k` is a whole number from 1 to the number of sites."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= n_sites:
        raise ValueError(f"k is {k!r}; allowed: whole numbers from 1 to {n_sites}, the number of sites")


def check_finite(name: str, values: Any) -> None:
    """Raise ValueError where an entry is NaN or infinite, or where the type is not numeric."""
    _check_numeric(name, values)
    _refuse(name, values, ~(abs(values) < INFINITY), "finite numbers")


def check_counts(name: str, values: Any) -> None:
    """Raise ValueError where an entry is negative, NaN or infinite, or where the type is not numeric."""
    _check_numeric(name, values)
    _refuse(name, values, ~((values >= 0) & (values < INFINITY)), "finite numbers, not negative")


def check_shape(name: str, values: Any, like: str, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless `values` has that shape, which is the one of the argument `like`."""
    if tuple(values.shape) != tuple(shape):
        raise ValueError(f"{name} has shape {list(values.shape)}; allowed: the shape of {like}, {list(shape)}")


def check_positive(name: str, values: Any) -> None:
    """Raise ValueError unless the number, or every entry, is finite and above 0."""
    allowed = "finite numbers above 0"
    if not hasattr(values, "shape"):
        if not 0 < values < INFINITY:
            raise ValueError(f"{name} is {values!r}; allowed: {allowed}")
        return
    _check_numeric(name, values)
    _refuse(name, values, ~((values > 0) & (values < INFINITY)), allowed)


def _check_numeric(name: str, values: Any) -> None:
    numeric = values.dtype.kind in "biuf" if isinstance(values, np.ndarray) else not values.dtype.is_complex
    if not numeric:
        raise ValueError(f"{name} has type {values.dtype}; allowed: whole numbers and floating-point numbers")


def _refuse(name: str, values: Any, bad: Any, allowed: str) -> None:
    if bool(bad.any()):
        place = tuple(np.argwhere(np.asarray(bad.cpu() if hasattr(bad, "cpu") else bad))[0].tolist())
        where = f"[{', '.join(map(str, place))}]" if place else ""
        raise ValueError(f"{name}{where} is {float(values[place]):g}; allowed: {allowed}")
