"""CEKA's text formats: ARFF and ARFFX feature tables, response and gold files. Text in, tables out."""

import csv
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.stage import UserError

_ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\S+)\s+(.+)$""", re.IGNORECASE)
_NUMERIC = ("numeric", "real", "integer")


@dataclass(frozen=True)
class FeatureFile:
    """A parsed ARFF table: features (index: task, columns without the class), nominal columns with their declared
    values, the declared class names, and the class of each task (missing where unknown)."""

    features: pd.DataFrame
    nominal: dict[str, list[str]]
    classes: list[str]
    truth: pd.Series


def parse_arff(text: str, where: str) -> FeatureFile:
    """Read an ARFF table, or CEKA's ARFFX, which lists the tasks' ids after ``@ID-MAP``.

    Without an id list the task is the row number from 0. The class is the attribute named ``class``, else the last one,
    and must be nominal. ``?`` is missing. Sparse rows, strings and dates are refused.

    Raises:
        UserError: naming file, line and what is allowed.
    """
    names: list[str] = []
    values: dict[str, list[str] | None] = {}
    rows: list[list[str]] = []
    ids: list[str] = []
    part = "header"
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        place = f"{where}: line {number}"
        lower = line.lower()
        if part == "header":
            if lower.startswith("@attribute"):
                name, allowed = _attribute(line, place)
                if name in values:
                    raise UserError(f"{place}: attribute {name!r} is declared twice")
                if name == "task":
                    raise UserError(f"{place}: the name 'task' is taken by the tasks' ids; rename the attribute")
                names.append(name)
                values[name] = allowed
            elif lower.startswith("@data"):
                part = "data"
            elif not lower.startswith("@relation"):
                raise UserError(f"{place}: {line[:40]!r} is not one of @relation, @attribute, @data")
        elif lower.startswith("@id-map"):
            part = "ids"
        elif part == "ids":
            ids.append(line)
        else:
            if line.startswith("{"):
                raise UserError(f"{place}: sparse rows are not supported; write every value")
            cells = _cells(line)
            if len(cells) != len(names):
                raise UserError(f"{place}: {len(cells)} values; {len(names)} attributes are declared")
            rows.append([_check_cell(cell, name, values[name], place) for cell, name in zip(cells, names, strict=True)])
    if not names or not rows:
        raise UserError(f"{where}: no {'data rows' if names else 'attributes'} found")
    if ids and len(ids) != len(rows):
        raise UserError(f"{where}: @ID-MAP lists {len(ids)} ids for {len(rows)} rows")

    index = pd.Index(ids or [str(i) for i in range(len(rows))], name="task")
    if index.has_duplicates:
        raise UserError(f"{where}: task {index[index.duplicated()][0]!r} appears more than once in @ID-MAP")
    class_name = "class" if "class" in values else names[-1]
    classes = values[class_name]
    if classes is None:
        raise UserError(f"{where}: the class attribute {class_name!r} must be nominal")
    table = pd.DataFrame(np.array(rows, dtype=object), index=index, columns=names)
    table = table.where(table != "?")
    truth = table.pop(class_name).rename("label")
    nominal = {name: values[name] for name in table.columns if values[name] is not None}
    table = table.astype({name: "str" if name in nominal else "float64" for name in table.columns})
    return FeatureFile(table, nominal, classes, truth)


def _attribute(line: str, place: str) -> tuple[str, list[str] | None]:
    match = _ATTRIBUTE.match(line)
    if match is None:
        raise UserError(f"{place}: not an attribute declaration: {line[:60]!r}")
    name, kind = match.groups()
    name = _cells(name)[0]
    if kind.strip().startswith("{"):
        values = _cells(kind.strip().removeprefix("{").removesuffix("}"))
        twice = [value for value in values if values.count(value) > 1]
        if twice:
            raise UserError(f"{place}: attribute {name!r} declares the value {twice[0]!r} twice")
        return name, values
    if kind.split()[0].lower() not in _NUMERIC:
        raise UserError(f"{place}: attribute {name!r} has type {kind!r}; allowed are numeric and {{nominal values}}")
    return name, None


def _cells(line: str) -> list[str]:
    """Split at commas; single or double quotes protect, a backslash escapes."""
    quote = "'" if line.count("'") >= line.count('"') else '"'
    if quote == "'" and '"' in line:  # both signs occur: bring double-quoted cells to single quotes
        line = re.sub(r'"((?:[^"\\]|\\.)*)"', lambda m: "'" + m.group(1).replace("'", "\\'") + "'", line)
    reader = csv.reader([line], quotechar=quote, escapechar="\\", doublequote=False, skipinitialspace=True)
    return [cell.strip() for cell in next(reader)]


def _check_cell(cell: str, name: str, allowed: list[str] | None, place: str) -> str | float:
    if cell == "?":
        return cell
    if allowed is not None:
        if cell not in allowed:
            raise UserError(f"{place}: attribute {name!r}: {cell!r} is not one of {', '.join(map(repr, allowed[:10]))}")
        return cell
    try:
        return float(cell)
    except ValueError:
        raise UserError(f"{place}: attribute {name!r}: {cell!r} is not a number") from None


def parse_response(text: str, classes: list[str], where: str) -> pd.DataFrame:
    """Lines ``worker<TAB>task<TAB>label`` → columns task, worker, label; label is a position in `classes`, from 0."""
    rows = [
        (task, worker, _class_name(label, classes, place)) for place, (worker, task, label) in _lines(text, 3, where)
    ]
    return pd.DataFrame(rows, columns=["task", "worker", "label"], dtype="str")


def parse_gold(text: str, classes: list[str], where: str) -> pd.Series:
    """Lines ``task<TAB>label`` → label by task."""
    rows = {}
    for place, (task, label) in _lines(text, 2, where):
        if task in rows:
            raise UserError(f"{place}: task {task!r} appears more than once")
        rows[task] = _class_name(label, classes, place)
    return pd.Series(rows, name="label", dtype="str").rename_axis("task")


def _lines(text: str, n_fields: int, where: str):
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            fields = line.split()
            if len(fields) != n_fields:
                raise UserError(f"{where}: line {number}: {len(fields)} fields; {n_fields} are needed")
            yield f"{where}: line {number}", fields


def _class_name(label: str, classes: list[str], place: str) -> str:
    if not label.isdecimal() or int(label) >= len(classes):
        raise UserError(f"{place}: label {label!r} is not a class number from 0 to {len(classes) - 1}")
    return classes[int(label)]
