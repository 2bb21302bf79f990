"""The task graph of LDPLC: nearest neighbours and locally linear reconstruction weights. Depends on features only."""

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numba import njit

from tasks.stage import UserError

# Ridge of the reconstruction weights, as a share of tr(G)/k. Smaller values (1e-10) are not reproducible between
# solvers on the singular G of nominal or low-dimensional data; 1e-8 to 1e-6 give the same labels.
RIDGE = 1e-7
LARGEST = 1e140  # of a feature: squared distances, up to 1e280 a column, must not overflow
_ROWS, _COLUMNS = 4, 512  # tile of the distance kernel: 4 accumulator rows of 512 float64 stay in the L1 cache


@dataclass(frozen=True)
class Features:
    """Complete task features.

    Attributes:
        values: float64 (N, D), nominal columns as codes.
        nominal: bool (D,).
        codes, n_codes: the nominal columns again as positions 0 … n_codes − 1, int32 (D_nominal, N) and (D_nominal,).
        tasks: the identifiers of the rows.
    """

    values: np.ndarray
    nominal: np.ndarray
    codes: np.ndarray
    n_codes: np.ndarray
    tasks: pd.Index


def prepare_features(features: pd.DataFrame, nominal: Collection[str] = (), *, where: str = "features") -> Features:
    """Check a table of features (index: task) and fill missing values: mean of a numeric column, mode of a nominal one.

    Nominal columns keep numbers as their codes; other values get their position among the sorted values (the
    categories of a categorical column). The most frequent code wins, the smaller one on a tie; a column without any
    value becomes 0. This is what the papers do before completion.

    Raises:
        UserError: no rows or columns, a repeated task, an infinite or huge value, text in a column that is not nominal, or a
            name in `nominal` that is not a column.
    """
    n_tasks, n_columns = features.shape
    if n_tasks == 0 or n_columns == 0:
        raise UserError(f"{where}: the table has {n_tasks} rows and {n_columns} columns; both must be at least 1")
    if features.index.hasnans:
        raise UserError(f"{where}: row {int(np.argmax(features.index.isna()))}: the task is missing")
    if features.index.has_duplicates:
        raise UserError(f"{where}: task {features.index[features.index.duplicated()][0]!r} appears more than once")
    if isinstance(nominal, str):
        raise UserError(f"{where}: nominal={nominal!r} is not a list of column names")
    names = set(nominal)
    absent = names.difference(features.columns)
    if absent:
        raise UserError(f"{where}: nominal column {min(map(str, absent))!r} does not exist")
    is_nominal = np.array([column in names for column in features.columns])

    values = np.empty((n_tasks, n_columns))
    is_number, is_complex = pd.api.types.is_numeric_dtype, pd.api.types.is_complex_dtype
    numbers = np.array([is_number(dtype) and not is_complex(dtype) for dtype in features.dtypes])
    values[:, numbers] = features.iloc[:, numbers].to_numpy(np.float64, na_value=np.nan)
    for d in np.flatnonzero(~numbers):
        values[:, d] = _codes_of(features.iloc[:, d], bool(is_nominal[d]), where)
    bad = (values > LARGEST) | (values < -LARGEST)
    if bad.any():
        row, d = np.argwhere(bad)[0]
        why = "is not a finite number" if np.isinf(values[row, d]) else f"is too large: up to ±{LARGEST:g} is allowed"
        raise UserError(f"{where}: column {features.columns[d]!r}, row {row}: {values[row, d]} {why}")
    for d in np.flatnonzero(np.isnan(values).any(0)):
        _fill(values[:, d], bool(is_nominal[d]))
    return Features(values, is_nominal, *_positions(values[:, is_nominal]), features.index)


def _codes_of(series: pd.Series, nominal: bool, where: str) -> np.ndarray:
    if not nominal:
        raise UserError(
            f"{where}: column {series.name!r} has values of type {series.dtype}; "
            "only numbers are allowed in columns that are not named as nominal"
        )
    codes = series.cat.codes if isinstance(series.dtype, pd.CategoricalDtype) else pd.factorize(series, sort=True)[0]
    return np.where(np.asarray(codes) < 0, np.nan, np.asarray(codes, np.float64))


def _fill(column: np.ndarray, nominal: bool) -> None:
    missing = np.isnan(column)
    if missing.all():
        column[:] = 0
    elif nominal:
        codes, counts = np.unique(column[~missing], return_counts=True)
        column[missing] = codes[np.argmax(counts)]
    else:
        column[missing] = column[~missing].mean()


def _positions(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes (N, D) as small integers (D, N) and their number per column; small non-negative integers stay as they are."""
    if codes.size and (codes >= 0).all() and (codes < 256).all() and (codes == np.floor(codes)).all():
        small = np.ascontiguousarray(codes.T.astype(np.int32))
        return small, small.max(1).astype(np.int64) + 1
    found = [np.unique(column, return_inverse=True) for column in codes.T]
    positions = [inverse.astype(np.int32) for _, inverse in found]
    return np.array(positions, np.int32).reshape(len(found), len(codes)), np.array([len(v) for v, _ in found], np.int64)


def nearest_neighbors(features: Features, n_neighbors: int, *, threads: int = 1) -> np.ndarray:
    """The k nearest tasks of every task, int32, shape (N, min(k, N - 1)), nearest first.

    Squared distance Σ_d δ_d²: numeric δ = difference after scaling the column to [0, 1]; nominal δ = 0 if equal, else
    1. Ties go to the smaller row number. Exact: float64, summed in the order of the columns.
    """
    n_tasks = len(features.values)
    k = min(n_neighbors, n_tasks - 1)
    neighbors = np.empty((n_tasks, k), np.int32)
    if k == 0:
        return neighbors
    if features.nominal.all() and features.n_codes.max() <= 256:
        kernel, arguments = _nearest_nominal, (features.codes.astype(np.uint8),)
    else:
        columns = np.ascontiguousarray(features.values.T)
        low, high = columns.min(1, keepdims=True), columns.max(1, keepdims=True)
        scale = np.where(features.nominal[:, None] | (high == low), 1, high - low)
        offset = np.where(features.nominal[:, None], 0, low)
        kernel, arguments = _nearest_mixed, ((columns - offset) / scale, features.nominal)
    _over_rows(kernel, arguments, neighbors, threads)
    return neighbors


def reconstruction_weights(features: Features, neighbors: np.ndarray, *, threads: int = 1) -> np.ndarray:
    """Weights w_i that rebuild each task from its neighbours, float64, shape (N, k); rows are ≥ 0 and sum to 1.

    w_i = argmin w'(G + 1e-7 tr(G)/k · I)w on the simplex, G_jl = (x_i − x_j)·(x_i − x_l) on the *unscaled* values,
    nominal columns by their codes (as published); w = 1/k where G = 0. Solved exactly by an active-set method.
    """
    weights = np.empty(neighbors.shape, np.float64)
    if neighbors.shape[1]:
        _over_rows(_reconstruct, (np.ascontiguousarray(features.values), neighbors), weights, threads)
    return weights


def _over_rows(kernel, arguments: tuple, out: np.ndarray, threads: int) -> None:
    """Run `kernel(*arguments, start, stop, out)` over blocks of rows; blocks are fixed, so threads change no bit."""
    blocks = [(start, min(start + 256, len(out))) for start in range(0, len(out), 256)]
    if threads == 1:
        for block in blocks:
            kernel(*arguments, *block, out)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda block: kernel(*arguments, *block, out), blocks))


@njit(cache=True, nogil=True)
def _insert(distance, index, best, who):
    """Insert into a list sorted by distance; an equal distance goes behind, so the smaller index stays first."""
    at = len(best) - 1
    while at > 0 and best[at - 1] > distance:
        best[at] = best[at - 1]
        who[at] = who[at - 1]
        at -= 1
    best[at] = distance
    who[at] = index


@njit(cache=True, nogil=True)
def _nearest_mixed(columns, nominal, start, stop, out):
    n_columns, n_tasks = columns.shape
    k = out.shape[1]
    total = np.empty((_ROWS, _COLUMNS))
    best = np.empty((_ROWS, k))
    for first in range(start, stop, _ROWS):
        rows = min(_ROWS, stop - first)
        best[:] = np.inf
        for begin in range(0, n_tasks, _COLUMNS):
            width = min(_COLUMNS, n_tasks - begin)
            total[:] = 0.0
            for d in range(n_columns):
                there = columns[d, begin : begin + width]
                for r in range(rows):
                    here = columns[d, first + r]
                    line = total[r, :width]
                    if nominal[d]:
                        for j in range(width):
                            line[j] += 0.0 if there[j] == here else 1.0
                    else:
                        for j in range(width):
                            difference = there[j] - here
                            line[j] += difference * difference
            for r in range(rows):
                for j in range(width):
                    if total[r, j] < best[r, k - 1] and begin + j != first + r:
                        _insert(total[r, j], begin + j, best[r], out[first + r])


@njit(cache=True, nogil=True)
def _nearest_nominal(columns, start, stop, out):
    """As `_nearest_mixed` for nominal columns alone: mismatches are counted in bytes, flushed every 255 columns."""
    n_columns, n_tasks = columns.shape
    k = out.shape[1]
    some = np.empty((_ROWS, _COLUMNS), np.uint8)
    total = np.empty((_ROWS, _COLUMNS), np.int32)
    best = np.empty((_ROWS, k), np.int32)
    for first in range(start, stop, _ROWS):
        rows = min(_ROWS, stop - first)
        best[:] = n_columns + 1
        for begin in range(0, n_tasks, _COLUMNS):
            width = min(_COLUMNS, n_tasks - begin)
            total[:] = 0
            for block in range(0, n_columns, 255):
                some[:] = 0
                for d in range(block, min(block + 255, n_columns)):
                    there = columns[d, begin : begin + width]
                    for r in range(rows):
                        here = columns[d, first + r]
                        line = some[r, :width]
                        for j in range(width):
                            line[j] += np.uint8(there[j] != here)
                for r in range(rows):
                    for j in range(width):
                        total[r, j] += some[r, j]
            for r in range(rows):
                for j in range(width):
                    if total[r, j] < best[r, k - 1] and begin + j != first + r:
                        _insert(total[r, j], begin + j, best[r], out[first + r])


@njit(cache=True, nogil=True)
def _reconstruct(values, neighbors, start, stop, out):
    n_columns, k = values.shape[1], neighbors.shape[1]
    gap = np.empty((k, n_columns))
    gram = np.empty((k, k))
    for i in range(start, stop):
        for j in range(k):
            here, there, line = values[i], values[neighbors[i, j]], gap[j]
            for d in range(n_columns):
                line[d] = here[d] - there[d]
        for j in range(k):
            for m in range(j + 1):
                a, b = gap[j], gap[m]
                s0 = s1 = s2 = s3 = 0.0
                for d in range(0, n_columns - 3, 4):  # four chains: the processor need not wait for each sum
                    s0 += a[d] * b[d]
                    s1 += a[d + 1] * b[d + 1]
                    s2 += a[d + 2] * b[d + 2]
                    s3 += a[d + 3] * b[d + 3]
                for d in range(n_columns - n_columns % 4, n_columns):
                    s0 += a[d] * b[d]
                gram[j, m] = gram[m, j] = (s0 + s1) + (s2 + s3)
        _simplex_weights(gram, out[i])


@njit(cache=True, nogil=True)
def _simplex_weights(gram, weights):
    """argmin w'(G/(tr G/k) + RIDGE·I)w on the simplex, into `weights`.

    With y ≥ 0 minimising y'Ay/2 − 1'y (a non-negative least-squares problem) the solution is y/Σy, as both have the
    same optimality conditions. Lawson and Hanson's active-set method ends in finitely many steps.
    """
    k = len(weights)
    trace = 0.0
    for j in range(k):
        trace += gram[j, j]
    if trace < 1e-290:  # 0, or differences so small that their products have lost their digits
        weights[:] = 1.0 / k
        return
    matrix = gram / (trace / k)
    for j in range(k):
        matrix[j, j] += RIDGE
    y = np.zeros(k)
    passive = np.zeros(k, np.bool_)
    for _ in range(10 * k + 10):
        # y grows to 1/RIDGE where G is singular, and the rounding of the slopes with it.
        entering, steepest = -1, 1e-14 * (1.0 + y.sum())
        for j in range(k):
            if not passive[j]:
                slope = 1.0
                for m in range(k):
                    slope -= matrix[j, m] * y[m]
                if slope > steepest:
                    entering, steepest = j, slope
        if entering < 0:
            break
        passive[entering] = True
        while True:
            target = _solve_passive(matrix, passive)
            step = 1.0
            for j in range(k):
                if passive[j] and target[j] <= 0.0:
                    step = min(step, y[j] / (y[j] - target[j]) if y[j] > target[j] else 0.0)
            if step >= 1.0:
                y[:] = target
                break
            for j in range(k):
                if passive[j]:
                    y[j] += step * (target[j] - y[j])
                    if target[j] <= 0.0 and y[j] <= 1e-14 * (1.0 + abs(target[j])):
                        y[j] = 0.0
                        passive[j] = False
    weights[:] = y / y.sum()


@njit(cache=True, nogil=True)
def _solve_passive(matrix, passive):
    """Solve A_PP y_P = 1 by Cholesky; zeros elsewhere."""
    where = np.flatnonzero(passive)
    n = len(where)
    factor = np.zeros((n, n))
    y = np.ones(n)
    for a in range(n):
        for b in range(a + 1):
            s = matrix[where[a], where[b]]
            for c in range(b):
                s -= factor[a, c] * factor[b, c]
            factor[a, b] = np.sqrt(max(s, 1e-300)) if a == b else s / factor[b, b]
    for a in range(n):
        for c in range(a):
            y[a] -= factor[a, c] * y[c]
        y[a] /= factor[a, a]
    for a in range(n - 1, -1, -1):
        for c in range(a + 1, n):
            y[a] -= factor[c, a] * y[c]
        y[a] /= factor[a, a]
    full = np.zeros(len(passive))
    for a in range(n):
        full[where[a]] = y[a]
    return full
