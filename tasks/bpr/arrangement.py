"""From a table with one row per site and period to a `Panel`: complete grid, order in time, splits, lags, neighbours."""

from collections import Counter

import numpy as np
import pandas as pd

from tasks.bpr import params
from tasks.bpr.dataset import Panel
from tasks.stage import UserError

TAKEN = ("site", "period", "count", "exposure")  # columns of cells.parquet that a feature may not be called
NEIGHBOUR_MEAN = "neighbour_mean"


def arrange(table: pd.DataFrame, parameters: params.Panel, *, where: str, origin: str = "") -> Panel:
    """Check a table and arrange it as a panel; the order of the rows never matters.

    Sites are sorted by name; periods as numbers where all are numbers, else as dates where all are ISO dates, else as
    text. The first `history` periods, then training, `valid` and at last `test` periods. Features, in this order: the
    listed columns; ``lag1`` … ``lagL``, the counts 1 … L periods before (0 before the first period); and
    ``neighbour_mean``, the mean of last period's counts over the nearest sites by great-circle distance.

    Args:
        table: one row per site and period, columns as `parameters.columns` and `parameters.features` name them.
        where: how messages call the table; rows are counted from 0.

    Raises:
        UserError: a column lacks or has a wrong type; a site or period is missing; a (site, period) appears twice or
            lacks; a count is missing, infinite or negative; a feature is no number, or missing outside history; exposure
            not above 0; coordinates out of range or not the same in all rows of a site; a gap in time; too few periods
            for the splits; K above the number of sites; a site without a row before the validation.
    """
    columns = parameters.columns
    table = table.reset_index(drop=True)
    _check_columns(table, parameters, where)
    site = _text(table[columns.site], f"{where}: column {columns.site}")
    period = _text(table[columns.period], f"{where}: column {columns.period}")
    periods = _in_time_order(period, f"{where}: column {columns.period}")
    sites = pd.Index(sorted(set(site)), name="site")
    split = _splits(len(periods), parameters, where)
    if parameters.k > len(sites):
        raise UserError(
            f"{where}: k is {parameters.k}, but there are only {len(sites)} sites; allowed: 1 to {len(sites)}"
        )

    shape = len(periods), len(sites)
    place = periods.get_indexer(period) * shape[1] + sites.get_indexer(site)
    _check_cells(place, sites, periods, split, parameters, where)

    def grid(values: np.ndarray, absent: float) -> np.ndarray:
        full = np.full(shape[0] * shape[1], absent)
        full[place] = values
        return full.reshape(shape)

    counts = grid(_numbers(table, columns.count, where, lowest=0.0), 0.0)
    coordinates = _coordinates(table, sites.get_indexer(site), len(sites), parameters, where)
    exposure = None
    if columns.exposure is not None:
        values = _numbers(table, columns.exposure, where, above=0.0)
        exposure = grid(values, np.nan)
        _refuse_filled(exposure, columns.exposure, sites, periods, where)
    features, names = [], [*parameters.features]
    known_by = np.isin(split, ("train", "valid", "test"))
    for name in names:
        values = grid(_numbers(table, name, where, allow_missing=~known_by[place // shape[1]]), np.nan)
        _refuse_filled(values[known_by], name, sites, periods[known_by], where)
        features.append(values)
    for lag in range(1, parameters.lags + 1):
        names.append(f"lag{lag}")
        features.append(lagged(counts, lag))
    if parameters.neighbours:
        names.append(NEIGHBOUR_MEAN)
        features.append(lagged(counts, 1)[:, nearest(coordinates, parameters.neighbours)].mean(axis=2))
    return Panel(
        sites,
        periods,
        split,
        np.arange(shape[0], dtype=np.float64),
        counts,
        np.stack(features, axis=2) if features else np.zeros((*shape, 0)),
        names,
        exposure,
        coordinates,
        parameters.k,
        origin,
    )


def lagged(counts: np.ndarray, lag: int) -> np.ndarray:
    """Counts `lag` periods before, float64 like `counts` [T, S]; 0 before the first period.

    >>> lagged(np.array([[1.0], [2.0], [3.0]]), 2).ravel().tolist()
    [0.0, 0.0, 1.0]
    """
    earlier = np.zeros_like(counts)
    earlier[lag:] = counts[: max(len(counts) - lag, 0)]
    return earlier


def nearest(coordinates: np.ndarray, n: int) -> np.ndarray:
    """int64 [S, n]: the nearest other sites by great-circle distance; `coordinates` [S, 2] in degrees, n < S.

    >>> nearest(np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 5.0]]), 1).ravel().tolist()
    [1, 0, 1]
    """
    from sklearn.neighbors import BallTree

    radians = np.radians(coordinates)
    found = BallTree(radians, metric="haversine").query(radians, k=n + 1, return_distance=False).astype(np.int64)
    # a site is its own nearest, but not always the first one found where several lie on one point
    other = found != np.arange(len(found))[:, None]
    other[other.all(axis=1), -1] = False
    return found[other].reshape(len(found), n)


def _check_columns(table: pd.DataFrame, parameters: params.Panel, where: str) -> None:
    roles = {role: name for role, name in parameters.columns if name is not None}
    repeated = [name for name, n in Counter(roles.values()).items() if n > 1]
    if repeated:
        both = " and ".join(role for role, name in roles.items() if name == repeated[0])
        raise UserError(f"{where}: column {repeated[0]} is named as {both}; every role needs a column of its own")
    for name in (*roles.values(), *parameters.features):
        found = list(table.columns).count(name)
        if found != 1:
            what = "is missing" if found == 0 else f"appears {found} times"
            raise UserError(f"{where}: column {name} {what}; there are {', '.join(map(str, table.columns))}")
    made = {f"lag{lag}" for lag in range(1, parameters.lags + 1)} | (
        {NEIGHBOUR_MEAN} if parameters.neighbours else set()
    )
    for name in parameters.features:
        if name == parameters.columns.count:
            raise UserError(f"{where}: feature {name} is the count itself, which is not known before the period")
        if name in made:
            raise UserError(
                f"{where}: feature {name} is in the table and also made from the counts; leave it out of features, or "
                f"set {'neighbours' if name == NEIGHBOUR_MEAN else 'lags'}: 0"
            )
        if name in TAKEN:
            raise UserError(f"{where}: a feature may not be called {name}; not allowed: {', '.join(TAKEN)}")
    if len(table) == 0:
        raise UserError(f"{where}: the table has no rows")
    if (parameters.columns.latitude is None) != (parameters.columns.longitude is None):
        raise UserError(f"{where}: latitude and longitude are needed together; name both columns or none")
    if parameters.neighbours and parameters.columns.latitude is None:
        raise UserError(f"{where}: neighbours: {parameters.neighbours} needs the columns latitude and longitude")


def _text(column: pd.Series, where: str) -> np.ndarray:
    """Identifiers as text: 7 and 7.0 become "7", a day becomes "2024-05-01"."""
    missing = column.isna().to_numpy()
    if missing.any():
        raise UserError(f"{where}: row {int(missing.argmax())}: the value is missing")
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if pd.api.types.is_bool_dtype(column.dtype):
        raise UserError(f"{where} has type {column.dtype}; text, whole numbers or dates are needed")
    if pd.api.types.is_float_dtype(column.dtype):
        odd = ~(np.isfinite(column) & (column == column.round())).to_numpy()
        if odd.any():
            row = int(odd.argmax())
            raise UserError(
                f"{where}: row {row}: {float(column.iloc[row])!r} is no identifier; text or whole numbers are needed"
            )
        column = column.astype("int64")
    elif pd.api.types.is_datetime64_any_dtype(column.dtype):
        days = (column == column.dt.normalize()).all()
        return column.dt.strftime("%Y-%m-%d" if days else "%Y-%m-%dT%H:%M:%S").to_numpy(dtype=object)
    elif column.map(lambda value: isinstance(value, list | dict | tuple | set | np.ndarray | bytes)).any():
        raise UserError(f"{where} holds nested values; text, whole numbers or dates are needed")
    return column.astype(str).to_numpy(dtype=object)


def _in_time_order(period: np.ndarray, where: str) -> pd.Index:
    distinct = pd.Series(sorted(set(period)))
    value = pd.to_numeric(distinct, errors="coerce")
    if not np.isfinite(value).all():
        value = pd.to_datetime(distinct, format="ISO8601", errors="coerce", utc=True)
    if value.isna().any():
        return pd.Index(distinct, name="period")
    twin = value.duplicated(keep=False).to_numpy()
    if twin.any():
        first, second = distinct[twin].iloc[:2]
        raise UserError(f"{where}: {first!r} and {second!r} are the same period; one spelling is needed")
    order = np.argsort(value.to_numpy(), kind="stable")
    periods = pd.Index(distinct.iloc[order], name="period")
    _refuse_gap(value.iloc[order].reset_index(drop=True), periods, where)
    return periods


def _refuse_gap(value: pd.Series, periods: pd.Index, where: str) -> None:
    """Lags take the row before for the period before: a year without any row would shift them all in silence."""
    if pd.api.types.is_numeric_dtype(value.dtype):
        months = (value >= 100_000) & (value < 1_000_000) & (value % 100 >= 1) & (value % 100 <= 12)
        number = value // 100 * 12 + value % 100 if months.all() else value  # 202412, 202501
    elif value.dt.day.nunique() == 1:
        number = value.dt.year * 12 + value.dt.month
    else:
        number = value.astype("int64")
    steps = np.diff(number.to_numpy(np.float64))
    if len(steps) < 2:
        return
    usual, times = Counter(steps).most_common(1)[0]
    gaps = (steps > usual) & (steps % usual == 0)
    if 2 * times > len(steps) and gaps.any() and (gaps | (steps == usual)).all():
        after = int(gaps.argmax())
        raise UserError(
            f"{where}: nothing between {periods[after]!r} and {periods[after + 1]!r}, where the other periods follow at "
            "equal distance; add rows for the periods that lack, or name the periods in text that is no number or date"
        )


def _splits(n_periods: int, parameters: params.Panel, where: str) -> np.ndarray:
    parts = {"history": parameters.history, "train": 0, "valid": parameters.valid, "test": parameters.test}
    parts["train"] = n_periods - sum(parts.values())
    if parts["train"] < 1:
        needed = n_periods - parts["train"] + 1
        raise UserError(
            f"{where}: {n_periods} periods leave none for training; history {parameters.history}, valid "
            f"{parameters.valid} and test {parameters.test} need at least {needed}"
        )
    return np.repeat(np.array(list(parts), dtype=object), list(parts.values()))


def _check_cells(
    place: np.ndarray, sites: pd.Index, periods: pd.Index, split: np.ndarray, parameters: params.Panel, where: str
) -> None:
    columns, n_sites = parameters.columns, len(sites)

    def cell(number: int) -> str:
        return f"{columns.site} {sites[number % n_sites]!r}, {columns.period} {periods[number // n_sites]!r}"

    rows = np.bincount(place, minlength=len(periods) * n_sites)
    if (rows > 1).any():
        twice = pd.Series(place).duplicated().to_numpy()
        row = int(twice.argmax())
        first = int((place == place[row]).argmax())
        raise UserError(
            f"{where}: row {row}: {cell(place[row])} appears again, first in row {first}; one row is allowed"
        )
    absent = rows == 0
    if absent.any() and parameters.zero_cells == "error":
        raise UserError(
            f"{where}: no row for {cell(int(absent.argmax()))} ({int(absent.sum())} such cells); add the rows, or set "
            "zero_cells: fill where no row means no event"
        )
    early = np.isin(split, ("history", "train"))
    unseen = absent.reshape(len(periods), n_sites)[early].all(axis=0)
    if unseen.any():
        raise UserError(
            f"{where}: {columns.site} {sites[int(unseen.argmax())]!r} has no row before the validation periods "
            f"({int(unseen.sum())} such sites); nothing can be learnt about it: leave it out or add its rows"
        )


def _numbers(
    table: pd.DataFrame,
    name: str,
    where: str,
    *,
    lowest: float | None = None,
    above: float | None = None,
    highest: float | None = None,
    allow_missing: np.ndarray | bool = False,
) -> np.ndarray:
    """A column as float64; the first fault is named with its row and value."""
    column = table[name]
    where = f"{where}: column {name}"
    kind = column.dtype
    text = pd.api.types.is_object_dtype(kind) or pd.api.types.is_string_dtype(kind)
    if pd.api.types.is_bool_dtype(kind) or not (text or pd.api.types.is_numeric_dtype(kind)) or kind.kind == "c":
        raise UserError(f"{where} has type {kind}; numbers are needed")
    missing = column.isna().to_numpy()
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    allowed = "a finite number" if lowest is None and above is None else "a finite number of at least 0"
    allowed = f"a finite number above {above:g}" if above is not None else allowed
    allowed = f"a number from {lowest:g} to {highest:g}" if highest is not None else allowed
    wrong = ~np.isfinite(numbers) & ~missing
    with np.errstate(invalid="ignore"):
        if lowest is not None:
            wrong |= numbers < lowest
        if highest is not None:
            wrong |= numbers > highest
        if above is not None:
            wrong |= numbers <= above
    lacking = missing & ~np.broadcast_to(allow_missing, missing.shape)
    faulty = wrong | lacking
    if faulty.any():
        row = int(faulty.argmax())
        value = column.iloc[row]
        what = (
            "the value is missing"
            if missing[row]
            else f"{value.item() if hasattr(value, 'item') else value!r} is not allowed"
        )
        raise UserError(f"{where}: row {row}: {what}; needed is {allowed}")
    return numbers


def _coordinates(
    table: pd.DataFrame, site: np.ndarray, n_sites: int, parameters: params.Panel, where: str
) -> np.ndarray | None:
    columns = parameters.columns
    if columns.latitude is None:
        return None
    places = np.empty((n_sites, 2))
    for axis, (name, limit) in enumerate(((columns.latitude, 90.0), (columns.longitude, 180.0))):
        values = _numbers(table, name, where, lowest=-limit, highest=limit)
        places[site, axis] = values
        # the last row of a site stands in `places`; every other row must say the same
        moved = values != places[site, axis]
        if moved.any():
            row = int(moved.argmax())
            raise UserError(
                f"{where}: column {name}: row {row}: {float(values[row])!r}, but {float(places[site[row], axis])!r} in "
                f"another row of the same {columns.site} {table[columns.site].iloc[row]!s}; a site does not move"
            )
    if parameters.neighbours >= n_sites:
        raise UserError(
            f"{where}: neighbours: {parameters.neighbours}, but a site has only {n_sites - 1} others; "
            f"allowed: 0 to {n_sites - 1}"
        )
    return places


def _refuse_filled(values: np.ndarray, name: str, sites: pd.Index, periods: pd.Index, where: str) -> None:
    """Filled cells have a count of 0, but nothing says what their features or exposure are."""
    absent = np.isnan(values)
    if absent.any():
        t, s = divmod(int(absent.ravel().argmax()), len(sites))
        raise UserError(
            f"{where}: column {name}: no value for site {sites[s]!r}, period {periods[t]!r}, a cell without a row; "
            "zero_cells: fill knows only its count"
        )
