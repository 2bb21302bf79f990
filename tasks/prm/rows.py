"""Rows of a user's own file, checked value by value, and their division into splits."""

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.stage import UserError

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Row:
    """One row; every reader below raises UserError with file, row and column where the value is not of its kind.

    A null is the same as a column that lacks.
    """

    where: str
    values: dict[str, Any]

    def text(self, column: str, *, needed: bool = False, may_be_empty: bool = False) -> str | None:
        """A text that can be stored (no NUL, no half of a surrogate pair), not blank unless `may_be_empty`."""
        value = self._value(column, needed)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.fault(column, value, "text is")
        if not may_be_empty and not value.strip():
            raise self.fault(column, value, "a text that is not empty is")
        if "\0" in value:
            raise self.fault(column, value, "text without NUL characters is")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise self.fault(column, value, "text that UTF-8 can hold (no half of a surrogate pair) is") from None
        return value

    def text_or_number(self, column: str, *, needed: bool = False) -> str | None:
        """A text as above, or a finite number, in digits."""
        value = self._value(column, needed)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self.text(column, needed=needed)
        if isinstance(value, float) and not math.isfinite(value):  # a long integer is no float, and needs no check
            raise self.fault(column, value, "text or a finite number is")
        return str(value)

    def whole(self, column: str, low: int, high: int) -> int | None:
        """A whole number from `low` to `high`."""
        value = self._value(column, False)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
            raise self.fault(column, value, "a whole number is")
        if not low <= value <= high:
            raise self.fault(column, value, f"a whole number from {low} to {high} is")
        return int(value)

    def flag(self, column: str, *, needed: bool = False) -> bool | None:
        """True or false, also as 1 or 0."""
        value = self._value(column, needed)
        if value is None:
            return None
        if not isinstance(value, int | float) or value not in (0, 1):
            raise self.fault(column, value, "true or false is")
        return bool(value)

    def fault(self, column: str, value: Any, needed: str) -> UserError:
        """The error to raise for a value, `needed` saying what is."""
        shown = repr(value)
        return UserError(
            f"{self.where}: {column}: {shown if len(shown) <= 80 else shown[:77] + '…'} is not allowed; {needed} needed"
        )

    def _value(self, column: str, needed: bool) -> Any:
        value = self.values.get(column)
        if isinstance(value, float) and value != value:  # what json.dumps makes of pandas' missing number
            value = None
        if value is None and needed:
            raise UserError(
                f"{self.where}: {column} is missing; there are {', '.join(map(repr, self.values)) or 'none'}"
            )
        return value


def read_rows(path: Path) -> list[Row]:
    """The rows of a file of JSON lines (.jsonl, lines counted from 1) or a parquet table (rows counted from 0).

    UTF-8 with or without byte order mark, any line ends; blank lines are passed over.

    Raises:
        UserError: another kind of file, not readable, a line that is not a JSON object, no rows.
    """
    if path.suffix not in (".jsonl", ".parquet") or path.is_dir():
        raise UserError(f"{path}: not a file that can be read; allowed: .jsonl, .parquet")
    rows = _parquet(path) if path.suffix == ".parquet" else _json_lines(path)
    if not rows:
        raise UserError(f"{path}: there are no rows in it")
    return rows


def divide(keys: Iterable[str], *, valid: float, test: float, seed: int) -> dict[str, str]:
    """A split for every key: the nearest whole number to its share, yet one at least, for test, then for validation.

    Keys go in the order of a hash of seed and key, so a key's split depends neither on the order of the rows nor, but
    for those at a border, on which other keys there are.

    >>> from collections import Counter
    >>> sorted(Counter(divide(map(str, range(10)), valid=0.2, test=0.3, seed=1).values()).items())
    [('test', 3), ('train', 5), ('valid', 2)]
    """
    order = sorted(set(keys), key=lambda key: digest(f"{seed}:{key}"))
    n_test, n_valid = (max(1, round(share * len(order))) for share in (test, valid))
    names = ["test"] * n_test + ["valid"] * n_valid + ["train"] * len(order)
    return dict(zip(order, names, strict=False))


def check_splits(splits: Iterable[str], where: str) -> None:
    """Raises UserError where a split has no problem."""
    found = set(splits)
    for name in SPLITS:
        if name not in found:
            raise UserError(f"{where}: no problem is left for split {name}; {', '.join(SPLITS)} need one each at least")


def digest(text: str) -> str:
    """Hexadecimal SHA-256: an order and names that depend on the text alone."""
    return hashlib.sha256(text.encode()).hexdigest()


def _json_lines(path: Path) -> list[Row]:
    rows = []
    for number, line in enumerate(path.read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
        where = f"{path}: line {number}"
        if not line.strip():
            continue
        try:
            values = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise UserError(f"{where}: not UTF-8 text: {error.reason} at byte {error.start} of the line") from None
        except (ValueError, RecursionError) as error:
            raise UserError(f"{where}: not valid JSON: {str(error).splitlines()[0]}") from None
        if not isinstance(values, dict):
            raise UserError(f"{where}: not a JSON object but {type(values).__name__}; one object a line is needed")
        rows.append(Row(where, values))
    return rows


def _parquet(path: Path) -> list[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path}: not a readable parquet table: {str(error).splitlines()[0]}") from None
    return [Row(f"{path}: row {i} (counted from 0)", values) for i, values in enumerate(table.to_pylist())]
