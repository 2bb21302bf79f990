"""What the page's tables show: metrics with their intervals, parameters, and values as short texts."""

import json
import math
from dataclasses import dataclass
from typing import Any

MISSING = "–"
LONGEST = 240  # characters of a value on the page; the files have all of it


@dataclass(frozen=True)
class Cell:
    """One value of a table: its text, the exact value behind it, and whether it is a number (set right-aligned)."""

    text: str
    exact: str = ""
    is_number: bool = False


@dataclass(frozen=True)
class Row:
    """One metric: its dotted key in two parts, the last one being the metric's own name; a cell per variant."""

    prefix: str
    name: str
    cells: list[Cell]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def number(value: float, decimals: int | None = None) -> str:
    """A number for people: four significant digits, or as many decimals as asked; thin spaces from 10 000 on.

    >>> number(0.81234), number(41), number(-0.5, 2), number(1234567), number(0.0000123)
    ('0.8123', '41', '−0.50', '1\\u202f234\\u202f567', '1.23e−05')
    """
    if isinstance(value, int):
        text = f"{value:,}"
    elif decimals is None and value != 0 and not 1e-4 <= abs(value) < 1e9:
        text = f"{value:.3g}"
    else:
        if decimals is None:
            decimals = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
        text = f"{value:,.{decimals}f}"
    if abs(value) < 10_000:
        text = text.replace(",", "")
    return text.replace(",", "\u202f").replace("-", "−")


def estimate(value: float, low: float, high: float) -> str:
    """An estimate and its interval, with two significant digits of the interval's width.

    >>> estimate(0.8123, 0.7901, 0.8349)
    '0.812 [0.790, 0.835]'
    """
    width = abs(high - low)
    decimals = max(0, 1 - math.floor(math.log10(width))) if width else None
    if decimals is not None and decimals > 6:
        decimals = None
    center, lower, upper = (number(float(v) if decimals is not None else v, decimals) for v in (value, low, high))
    return f"{center} [{lower}, {upper}]"


def _cells(values: dict[str, Any]) -> dict[str, Cell]:
    cells, folded = {}, set()
    for key, value in values.items():
        interval = [values.get(f"{key}.low"), values.get(f"{key}.high")]
        if _is_number(value) and all(map(_is_number, interval)):
            cells[key] = Cell(estimate(value, *interval), f"{value} [{interval[0]}, {interval[1]}]", True)
            folded |= {f"{key}.low", f"{key}.high"}
        elif _is_number(value):
            cells[key] = Cell(number(value), str(value), True)
        elif isinstance(value, bool):
            cells[key] = Cell("yes" if value else "no")
        else:
            cells[key] = Cell(MISSING if value is None else str(value))
    return {key: cell for key, cell in cells.items() if key not in folded}


def metric_groups(metrics: dict[str, dict[str, Any]]) -> list[list[Row]]:
    """Metrics as rows, variants as columns; rows that share the first part of their key stand together.

    ``x`` with siblings ``x.low`` and ``x.high`` is one row. Order: as in the files, those of the first variant first.

    >>> [[row]] = metric_groups({"iris": {"mv.accuracy": 0.8123, "mv.accuracy.low": 0.79, "mv.accuracy.high": 0.835}})
    >>> row.prefix, row.name, row.cells[0].text
    ('mv.', 'accuracy', '0.812 [0.790, 0.835]')
    """
    columns = [_cells(values) for values in metrics.values()]
    groups: dict[str, list[Row]] = {}
    for key in dict.fromkeys(key for column in columns for key in column):
        head, dot, name = key.rpartition(".")
        cells = [column.get(key, Cell(MISSING)) for column in columns]
        groups.setdefault(key.partition(".")[0] if dot else "", []).append(Row(head + dot, name, cells))
    return list(groups.values())


def short_json(value: Any) -> str:
    """A value on one line as people write it: texts bare, the rest as JSON, cut where it gets too long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def parameter_groups(section: dict) -> list[tuple[str, list[tuple[str, str]]]]:
    """A method's parameters by stage: (stage, [(dotted key, value)]); keys outside any stage come first, stage ``""``.

    >>> parameter_groups({"seed": 1, "train": {"rate": 0.1, "layers": {"size": [8, 8]}}})
    [('', [('seed', '1')]), ('train', [('rate', '0.1'), ('layers.size', '[8, 8]')])]
    """
    loose = [(str(key), short_json(value)) for key, value in section.items() if not _nested(value)]
    groups = [("", loose)] if loose else []
    return groups + [(str(key), _flatten(value, "")) for key, value in section.items() if _nested(value)]


def _nested(value: Any) -> bool:
    return isinstance(value, dict) and bool(value)


def _flatten(node: dict, prefix: str) -> list[tuple[str, str]]:
    rows = []
    for key, value in node.items():
        name = f"{prefix}{key}"
        rows += _flatten(value, f"{name}.") if _nested(value) else [(name, short_json(value))]
    return rows
