"""Net costs of candidates from their runs: robust estimates over interleaved rounds, with paired bootstrap intervals.

Notation: candidate c of a (task, language) was run once in each of R rounds, and so was the baseline b, a program that
does nothing. HL is the Hodges–Lehmann estimate, the median of all means of two values: nearly as exact as the mean
where nothing disturbs, and unmoved by a few disturbed runs (Hodges and Lehmann, Annals of Mathematical Statistics, 1963).

    time c    = HL(CPU seconds of c) − HL(CPU seconds of b), or so with instructions
    memory c  = median(peak of c) − median(peak of b)
    TMU c     = HL(memory-time of c) − HL(memory-time of b)
"""

import numpy as np
import pandas as pd

from tasks.stage import UserError, random_generator
from tasks.swiftcode.schemas import BASELINE

# Net costs below these are not told from nothing, and are raised to them: ratios stay finite, and of two such costs it is 1.
FLOOR_S = 1e-3  # the start of an interpreter, 10 to 40 ms, differs by more from run to run
FLOOR_INSTRUCTIONS = 1000.0  # as many as a handful of an interpreter's operations
FLOOR_MB = 0.25  # Linux charges memory to a control group in portions of 64 pages
CHUNK_CELLS = 2**20  # values looked at together by the bootstrap, 8 MB an array; changes no result
GROUP = ["task", "language"]
ACCEPTED = "accepted"  # the verdict of a run that is a measurement
COSTS = ["time", "memory_mb", "tmu_mb_s"]
INTERVALS = ["time_low", "time_high", "ratio", "ratio_low", "ratio_high"]
COLUMNS = {
    **dict.fromkeys([*GROUP, "candidate"], "str"),
    **dict.fromkeys(["copy", "runs"], "int64"),
    **dict.fromkeys(COSTS, "float64"),
    "below_noise": "bool",
    **dict.fromkeys(INTERVALS, "float64"),
}


def hodges_lehmann(values: np.ndarray) -> np.ndarray:
    """median over i ≤ j of (x_i + x_j) / 2 along the last axis, float64 [..., R] → [...]; NaN are left out.

    >>> float(hodges_lehmann(np.array([1.0, 2.0, 9.0])))
    3.5
    """
    first, second = np.triu_indices(values.shape[-1])
    return _median((values[..., first] + values[..., second]) / 2)


def _median(values: np.ndarray) -> np.ndarray:
    """Along the last axis without NaN, NaN where nothing is left; numpy's nanmedian is slow on many short rows."""
    ordered = np.sort(values, axis=-1)  # NaN last
    known = (~np.isnan(values)).sum(-1)
    middle = np.stack([np.maximum(known - 1, 0) // 2, np.minimum(known // 2, values.shape[-1] - 1)], -1)
    return np.take_along_axis(ordered, middle, -1).mean(-1)


def failed(measurements: pd.DataFrame) -> pd.DataFrame:
    """Candidates of which a run is no measurement, and which therefore have no costs: (task, language, candidate), sorted."""
    runs = measurements[(measurements["candidate"] != BASELINE) & (measurements["verdict"] != ACCEPTED)]
    keys = [*GROUP, "candidate"]
    return runs[keys].astype("str").drop_duplicates().sort_values(keys, ignore_index=True)


def unit_of_time(measurements: pd.DataFrame) -> str | None:
    """What `time` counts: "cpu" seconds, "instructions", or None where no run is a measurement.

    Raises UserError where instructions were counted in some of the runs only.
    """
    counted = measurements.loc[measurements["verdict"] == ACCEPTED, "instructions"].notna()
    if not len(counted):
        return None
    if counted.any() and not counted.all():
        raise UserError(
            "measurements: instructions: missing in some rows; allowed: counted in all or in none; measure again"
        )
    return "instructions" if counted.all() else "cpu"


def costs(measurements: pd.DataFrame, *, seed: int, n_resamples: int = 1000, confidence: float = 0.95) -> pd.DataFrame:
    """Net costs of every candidate whose runs all are measurements.

    Args:
        measurements: MEASUREMENTS, in any order.
        n_resamples: bootstrap samples of rounds. A round is drawn as a whole, with its runs of all candidates and of
            the baseline, because what disturbs a machine disturbs neighbours in time.
        confidence: of the percentile intervals; they have no width where there is one round, or where all are equal,
            and are missing without resamples.

    Returns:
        One row a (task, language, candidate, copy), sorted by these: `runs`; `time` (see `unit_of_time`), `memory_mb`
        and `tmu_mb_s`, net, at least the floors above; `below_noise` where the time was raised to its floor;
        `time_low`, `time_high`; `ratio`, `ratio_low`, `ratio_high` of the time to that of the group's candidate of least
        time (of equals, the smallest identity; copies 1 do not count).

    Raises:
        UserError: a run that took no CPU time or memory, a group without a measured baseline or on several machines, the same
            run twice, or instructions in a part of the rows.
    """
    counts = unit_of_time(measurements)
    keys = [*GROUP, "candidate", "copy", "round"]
    runs = measurements[measurements["verdict"] == ACCEPTED].copy()
    runs[[*GROUP, "candidate"]] = runs[[*GROUP, "candidate"]].astype("str")
    runs = runs.sort_values(keys, ignore_index=True)
    _check(runs, keys, ["cpu_s", "peak_mb", *(["instructions"] if counts == "instructions" else [])])
    runs["time"] = runs["cpu_s"] if counts == "cpu" else runs["instructions"].astype("float64")
    candidate = [*GROUP, "candidate"]
    without = pd.MultiIndex.from_frame(failed(measurements))
    runs = runs[~pd.MultiIndex.from_frame(runs[candidate]).isin(without)]
    found = []
    for (task, language), group in runs.groupby(GROUP, sort=True, observed=True):
        is_baseline = group["candidate"] == BASELINE
        candidates = group[~is_baseline]
        if not len(candidates):
            continue
        if not is_baseline.any():
            raise UserError(
                f"measurements: task {task}, language {language}: no run of the baseline is accepted; measure again"
            )
        generator = random_generator(seed, "rounds", task, language)
        rows = _group_costs(candidates, group[is_baseline], generator, n_resamples, confidence, counts)
        found.append(rows.assign(task=task, language=language))
    if not found:
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in COLUMNS.items()})
    return pd.concat(found, ignore_index=True)[list(COLUMNS)]


def _check(runs: pd.DataFrame, keys: list[str], used: list[str]) -> None:
    """`used`: columns of which every program that ran has used some."""
    if runs.duplicated(keys).any():
        row = runs[runs.duplicated(keys)].iloc[0]
        raise UserError(f"measurements: {_describe(row)}: stands there twice; allowed: once")
    for column in used:
        free = runs[~(runs[column] > 0)]
        if len(free):
            row = free.iloc[0]
            raise UserError(
                f"measurements: {_describe(row)}: {column} is {row[column]}; allowed: above 0; measure again"
            )
    machines = runs.drop_duplicates([*GROUP, "machine"]).groupby(GROUP).size()
    if (machines > 1).any():
        task, language = machines.index[machines > 1][0]
        raise UserError(
            f"measurements: task {task}, language {language}: measured on {machines[(task, language)]} machines; "
            "allowed: one, as their times do not compare; measure again"
        )


def _describe(row: pd.Series) -> str:
    names = ("task", "language", "candidate", "copy", "round")
    return ", ".join(f"{name} {row[name]}" for name in names)


def _group_costs(
    candidates: pd.DataFrame,
    baseline: pd.DataFrame,
    generator: np.random.Generator,
    n_resamples: int,
    confidence: float,
    counts: str,
) -> pd.DataFrame:
    """Costs of one group; `baseline` may hold several copies, whose mean in a round is taken."""
    rounds = np.unique(np.concatenate([candidates["round"], baseline["round"]]))
    index = candidates[["candidate", "copy"]].drop_duplicates().reset_index(drop=True)
    row = candidates.groupby(["candidate", "copy"], sort=True, observed=True).ngroup().to_numpy()

    def table(column: str) -> tuple[np.ndarray, np.ndarray]:
        """Values of candidates [C, R] and of the baseline [R], NaN where a round has none."""
        values = np.full((len(index), len(rounds)), np.nan)
        values[row, np.searchsorted(rounds, candidates["round"])] = candidates[column]
        return values, baseline.groupby("round")[column].mean().reindex(rounds).to_numpy(np.float64)

    floor = FLOOR_S if counts == "cpu" else FLOOR_INSTRUCTIONS
    runs, idle = table("time")
    net = hodges_lehmann(runs) - hodges_lehmann(idle)
    time = np.maximum(net, floor)
    peak, idle_peak = table("peak_mb")
    tmu, idle_tmu = table("tmu_mb_s")
    drawn = np.maximum(_resample(runs, idle, generator, n_resamples), floor)
    best = min(range(len(index)), key=lambda c: (index["copy"][c], time[c], c))
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = _intervals(drawn, tails)
    ratio_low, ratio_high = _intervals(drawn / drawn[best], tails)
    return index.assign(
        runs=(~np.isnan(runs)).sum(1),
        time=time,
        memory_mb=np.maximum(_median(peak) - _median(idle_peak), FLOOR_MB),
        tmu_mb_s=np.maximum(hodges_lehmann(tmu) - hodges_lehmann(idle_tmu), FLOOR_S * FLOOR_MB),
        below_noise=net <= floor,
        time_low=low,
        time_high=high,
        ratio=time / time[best],
        ratio_low=ratio_low,
        ratio_high=ratio_high,
    )


def _intervals(drawn: np.ndarray, tails: list[float]) -> np.ndarray:
    """Quantiles [2, C] of values [C, B] without NaN, NaN where nothing is left."""
    known = ~np.isnan(drawn).all(1)
    found = np.full((2, len(drawn)), np.nan)
    if known.any():
        found[:, known] = np.nanquantile(drawn[known], tails, axis=1)
    return found


def _resample(runs: np.ndarray, idle: np.ndarray, generator: np.random.Generator, n_resamples: int) -> np.ndarray:
    """Net times [C, n_resamples] of rounds that are drawn again, the same for all candidates and for the baseline."""
    rounds = runs.shape[1]
    drawn = generator.integers(rounds, size=(n_resamples, rounds))
    size = max(1, CHUNK_CELLS // (len(runs) * rounds * (rounds + 1)))
    both = np.vstack([runs, idle])
    found = np.empty((len(both), n_resamples))
    for begin in range(0, n_resamples, size):
        found[:, begin : begin + size] = hodges_lehmann(both[:, drawn[begin : begin + size]])
    return found[:-1] - found[-1]
