"""Pictures of the evaluation; metrics and tables in, PNG files out."""

from pathlib import Path

import numpy as np
import pandas as pd

from tasks.pictures import save, start
from tasks.swiftcode.params import ARMS, BASE

GENERATORS = (BASE, *ARMS)
NAMES = {BASE: "base model", "random-correct": "random-correct (control)", "fastest": "fastest", "slowest": "slowest"}
COLOURS = {BASE: "black", "random-correct": "C3", "fastest": "C0", "slowest": "C1"}
MARKERS = {"pool": "o", "model": "^", "both": "D"}
ORIGINS = {"pool": "bundled or given solution", "model": "answer of a model", "both": "both"}
UNITS = {"cpu": "net CPU time (s)", "instructions": "net instructions"}
TICKS = (
    (2, (1.1, 1.25, 1.5, 2)),
    (30, (2, 5, 10, 20)),
    (np.inf, 10.0 ** np.arange(1, 10)),
)  # by the largest ratio shown
ENDS = ("", ".low", ".high")  # of an estimate's keys
MOST_GROUPS = 40  # rows of `selection`
MOST_PANELS = 6  # of `memory`


def generators_of(metrics: dict) -> list[str]:
    """Base and arms that the metrics hold, in the order of GENERATORS."""
    return [name for name in GENERATORS if f"{name}.answers" in metrics]


def pairs_of(metrics: dict) -> list[tuple[str, str]]:
    """The pairs (a, b) that the metrics compare, in their order.

    >>> pairs_of({"pair.fastest.base.overlap": 3, "pair.fastest.random-correct.overlap": 4, "base.answers": 1})
    [('fastest', 'base'), ('fastest', 'random-correct')]
    """
    found = [key.split(".") for key in metrics if key.startswith("pair.") and key.endswith(".overlap")]
    return [(a, b) for _, a, b, _ in found]


def counts_of(metrics: dict) -> list[int]:
    """The numbers k of pass@k, sorted."""
    prefix = f"{generators_of(metrics)[0]}.pass."
    tails = [key.removeprefix(prefix) for key in metrics if key.startswith(prefix)]
    return sorted(int(tail) for tail in tails if tail.isdigit())


def origin_kind(origin: str) -> str:
    """Where a candidate came from, of its generators' names.

    >>> origin_kind("pool"), origin_kind("smollm2"), origin_kind("pool,smollm2")
    ('pool', 'model', 'both')
    """
    names = origin.split(",")
    return "model" if "pool" not in names else "pool" if len(names) == 1 else "both"


def task_ratios(results: pd.DataFrame) -> pd.DataFrame:
    """Time of a unit's answers as a multiple of the reference solution's: what `<generator>.reference` is the mean of.

    Args:
        results: rows as in RESULTS.

    Returns:
        columns generator, task, language, ratio, sorted: geometric mean of the times of the accepted and measured answers /
        reference time; without known solutions (generator "pool") and units that have no such answer.
    """
    known = results[(results["verdict"] == "accepted") & (results["generator"] != "pool")]
    known = known[known["time"].notna() & known["reference_time"].notna()]
    keys = ["generator", "task", "language"]
    texts = {key: known[key].astype(str) for key in keys}  # not categories, whose absent combinations would be counted
    known = known.assign(**texts, ratio=np.log(known["time"] / known["reference_time"]))
    found = known.groupby(keys, as_index=False, sort=True)["ratio"].mean()
    return found.assign(ratio=np.exp(found["ratio"]))


def correctness(metrics: dict[str, dict], path: Path, confidence: float) -> None:
    """pass@k of base and arms with intervals, a panel per data set."""
    plt = start()
    fig, axes = plt.subplots(len(metrics), 1, figsize=(8.2, 3.3 * len(metrics) + 0.6), squeeze=False)
    for axis, (name, values) in zip(axes[:, 0], metrics.items(), strict=True):
        shown, ks = generators_of(values), counts_of(values)
        for place, generator in enumerate(shown):
            keys = [f"{generator}.pass.{k}" for k in ks]
            shift = 0.16 * (place - (len(shown) - 1) / 2)
            _intervals(axis, values, keys, np.arange(len(ks)) + shift, NAMES[generator], COLOURS[generator])
        axis.set_xticks(range(len(ks)), [f"pass@{k}" for k in ks])
        axis.set_xlim(-0.6, len(ks) - 0.4)
        axis.set_ylim(-0.03, 1.03)
        axis.set_title(f"{name}: {_tasks(values['data.tasks'])} in {values['data.languages']}")
        axis.set_ylabel("share of the test tasks")
        axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    fig.suptitle(f"Correct answers of base and arms, with {confidence:.0%} intervals over tasks")
    fig.tight_layout()
    save(fig, path)


def speed(metrics: dict[str, dict], results: dict[str, pd.DataFrame], path: Path, confidence: float) -> None:
    """Time as a multiple of the reference solution's: a point a unit, geometric mean with interval, noise floor.

    Args:
        results: by data set, rows as in RESULTS.
    """
    plt = start()
    heights = [0.55 * len(generators_of(values)) + 1.1 for values in metrics.values()]
    fig, axes = plt.subplots(
        len(metrics), 1, figsize=(8.6, sum(heights) + 0.9), height_ratios=heights, squeeze=False, layout="constrained"
    )
    for axis, (name, values) in zip(axes[:, 0], metrics.items(), strict=True):
        shown, ratios = generators_of(values), task_ratios(results[name])
        _floor(axis, values.get("noise.factor"))
        drawn = []
        for row, generator in enumerate(shown):
            points = ratios.loc[ratios["generator"] == generator, "ratio"].to_numpy()
            drawn.append(points)
            shifts = 0.12 * np.sin(2.4 * np.arange(len(points)))  # so that equal ones do not hide each other
            axis.plot(points, row - 0.12 + shifts, "o", ms=3.5, alpha=0.5, mew=0, color=COLOURS[generator])
            key = f"{generator}.reference"
            _intervals(axis, values, [key], [row + 0.24], None, COLOURS[generator], marker="D", upright=False)
            if not len(points):
                axis.text(0.5, row, "no correct answer to compare", fontsize=8, ha="center", va="center", color="grey",
                          transform=axis.get_yaxis_transform())  # fmt: skip
        axis.set_yticks(range(len(shown)), [f"{NAMES[g]}\n({_tasks(values[f'{g}.compared'], '')})" for g in shown])
        axis.set_ylim(len(shown) - 0.4, -0.6)
        _ratio_axis(axis, np.concatenate([*drawn, [values.get("noise.factor") or 1.0]]))
        axis.set_title(f"{name}: {_tasks(values['data.tasks'])} in {values['data.languages']}")
        cost = {"instructions": "instructions"}.get(values.get("data.cost"), "CPU time")
        axis.set_xlabel(f"net {cost} of correct answers / that of the reference solution (below 1: faster)")
    handles = [
        plt.Line2D([], [], color="grey", marker="o", ls="", ms=4, alpha=0.6, label="a task and language"),
        plt.Line2D(
            [], [], color="grey", marker="D", ms=4, label=f"geometric mean, {confidence:.0%} interval over tasks"
        ),
        plt.Rectangle((0, 0), 1, 1, color="grey", alpha=0.25, label="the same program measured twice"),
    ]
    fig.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    fig.suptitle("Time of correct answers against the reference solution, by base and arms")
    save(fig, path)


def differences(metrics: dict[str, dict], path: Path, confidence: float) -> None:
    """Paired differences of arms: pass@k against 0, time and memory ratios against 1; a row of panels per data set."""
    plt = start()
    height = max(len(pairs_of(values)) for values in metrics.values())
    size = 10.4, len(metrics) * (0.75 * height + 1.1) + 0.6
    fig, axes = plt.subplots(len(metrics), 2, figsize=size, squeeze=False)
    for (left, right), (name, values) in zip(axes, metrics.items(), strict=True):
        pairs = pairs_of(values)
        ks = counts_of(values)
        rows = np.arange(len(pairs))
        for i, k in enumerate(ks):
            keys = [f"pair.{a}.{b}.pass.{k}" for a, b in pairs]
            shift = 0.2 * (i - (len(ks) - 1) / 2)
            _intervals(left, values, keys, rows + shift, f"pass@{k}", f"C{4 + i}", upright=False)
        left.axvline(0, color="black", lw=0.8)
        left.set_title(f"{name}: correctness, {_tasks(values['data.tasks'])}")
        left.set_xlabel("difference of pass@k (above 0: the first is better)")
        _floor(right, values.get("noise.factor"))
        for shift, quantity, words, colour in ((-0.1, "time", "time", "C2"), (0.1, "memory", "memory", "C8")):
            keys = [f"pair.{a}.{b}.{quantity}" for a, b in pairs]
            _intervals(right, values, keys, rows + shift, words, colour, upright=False)
        keys = [f"pair.{a}.{b}.{cost}{end}" for a, b in pairs for cost in ("time", "memory") for end in ENDS]
        ends = _values(values, keys)
        _ratio_axis(right, ends[np.isfinite(ends)])
        right.set_title(f"{name}: cost on the tasks that both solve")
        right.set_xlabel("ratio of net costs (below 1: the first is better)")
        words = [f"{NAMES[a]}\nagainst {NAMES[b]}" for a, b in pairs]
        left.set_yticks(rows, words)
        right.set_yticks(rows, [_tasks(values[f"pair.{a}.{b}.overlap"], "") for a, b in pairs])
        for axis in (left, right):
            axis.set_ylim(len(pairs) - 0.4, -0.6)
            axis.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    fig.suptitle(
        f"Paired differences between arms, with {confidence:.0%} intervals over tasks (grey: measurement noise)"
    )
    fig.tight_layout()
    save(fig, path)


def selection(name: str, table: pd.DataFrame, margins: dict, cost: str, path: Path) -> int:
    """Net times of all correct candidates, a row a training task and language; the chosen one is ringed.

    Args:
        table: rows as in SELECTION.
        margins: of the selection; `margin.<task>.<language>.second` and `.median` stand beside each row.
        cost: "cpu" or "instructions".

    Returns:
        number of groups that are not shown: those without a choice first, then the last ones.
    """
    plt = start()
    groups = dict(_groups(table))
    order = sorted(groups, key=lambda key: not groups[key]["choice"].any())
    shown = sorted(order[:MOST_GROUPS])
    fig, axis = plt.subplots(figsize=(9.6, 0.27 * max(len(shown), 2) + 1.9), layout="constrained")
    for row, key in enumerate(shown):
        _row_of_candidates(axis, row, groups[key].sort_values("candidate"))
        numbers = [margins.get(f"margin.{key[0]}.{key[1]}.{what}") for what in ("second", "median")]
        said = " / ".join("–" if number is None else f"{number:.3g}" for number in numbers)
        axis.text(1.01, row, said, transform=axis.get_yaxis_transform(), fontsize=7.5, va="center")
    axis.text(
        1.01, -0.9, "2nd / median", transform=axis.get_yaxis_transform(), fontsize=7.5, va="center", style="italic"
    )
    axis.set_xscale("log")
    axis.set_yticks(range(len(shown)), [f"{task} ({language})" for task, language in shown], fontsize=7.5)
    axis.set_ylim(max(len(shown), 2) - 0.4, -1.3)
    axis.grid(axis="y", lw=0.3)
    axis.set_xlabel(f"{UNITS[cost]} at the task's input size")
    handles = [
        plt.Line2D([], [], color=f"C{i}", marker=marker, ls="", label=ORIGINS[kind])
        for i, (kind, marker) in enumerate(MARKERS.items())
    ]
    handles += [
        plt.Line2D([], [], color="black", marker="o", mfc="none", ms=10, ls="", label="chosen by the rule"),
        plt.Line2D([], [], color="black", marker="x", ls="", ms=5, label="taken by random-correct (control)"),
    ]
    fig.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    fig.suptitle(f"{name}: candidates of the training tasks and the chosen one")
    save(fig, path)
    return len(groups) - len(shown)


def memory_groups(table: pd.DataFrame, tie: float, tie_mb: float) -> list[tuple[str, str]]:
    """(task, language) of the groups in which memory decides, sorted.

    Memory decides where candidates that are tied with the least time differ in net memory by more than the tie, or where
    the rule passed over all that are tied in time.

    Args:
        table: rows as in SELECTION.
        tie: relative difference that is none.
        tie_mb: difference in MB that is none.
    """
    found = []
    for key, group in _groups(table):
        tied = group.loc[group["tied"], "memory_mb"]
        least, most = tied.min(), tied.max()
        passed_over = not (group["selected"] & group["tied"]).any()
        if passed_over or most - least > max(tie_mb, tie * least):
            found.append(key)
    return sorted(found)


def memory(name: str, table: pd.DataFrame, groups: list[tuple[str, str]], cost: str, path: Path) -> None:
    """Net memory against net time of all candidates, a panel for each of the first groups in which memory decides."""
    plt = start()
    shown = groups[:MOST_PANELS]
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    size = 3.3 * columns + 0.6, 2.9 * rows + 1.0
    fig, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for axis in axes.flat[len(shown) :]:
        axis.set_axis_off()
    for axis, key in zip(axes.flat, shown, strict=False):
        group = dict(_groups(table))[key].sort_values("candidate")
        for i, (kind, marker) in enumerate(MARKERS.items()):
            mine = group[group["origin"].map(origin_kind) == kind]
            axis.plot(mine["time"], mine["memory_mb"], marker, color=f"C{i}", ms=5, alpha=0.8, mew=0)
        chosen = group[group["selected"]]
        axis.plot(chosen["time"], chosen["memory_mb"], "o", mfc="none", mec="black", ms=11)
        tied = group.loc[group["tied"], "time"]
        axis.axvspan(tied.min() / 1.02, tied.max() * 1.02, color="grey", alpha=0.2, lw=0)
        _time_axis(axis, group["time"].min() / 1.6, group["time"].max() * 1.6)
        axis.set_title(f"{key[0]} ({key[1]})", fontsize=9)
        axis.set_xlabel(UNITS[cost])
        axis.set_ylabel("net peak memory (MB)")
    handles = [
        plt.Line2D([], [], color=f"C{i}", marker=marker, ls="", label=ORIGINS[kind])
        for i, (kind, marker) in enumerate(MARKERS.items())
    ]
    handles.append(plt.Line2D([], [], color="black", marker="o", mfc="none", ms=10, ls="", label="chosen by the rule"))
    handles.append(plt.Rectangle((0, 0), 1, 1, color="grey", alpha=0.25, label="tied in time"))
    fig.legend(handles=handles, loc="outside lower center", ncols=min(5, 2 * columns), frameon=False, fontsize=8)
    fig.suptitle(f"{name}: memory of the candidates\nwhere memory decides")
    save(fig, path)


def training(curves: dict[str, dict[str, pd.DataFrame]], path: Path) -> None:
    """Loss and gradient norm by step, a row of panels per data set, a colour per arm.

    Args:
        curves: by data set and arm, rows as in CURVE.
    """
    plt = start()
    fig, axes = plt.subplots(len(curves), 2, figsize=(9.6, 2.9 * len(curves) + 0.7), squeeze=False)
    for row, (name, found) in zip(axes, curves.items(), strict=True):
        for arm, curve in found.items():
            curve = curve.sort_values("step")
            smooth = curve.rolling(max(1, len(curve) // 25), min_periods=1, center=True).mean()
            for axis, column in zip(row, ("loss", "gradient_norm"), strict=True):
                axis.plot(curve["step"], smooth[column], color=COLOURS[arm], lw=1.2, label=NAMES[arm])
        for axis, words in zip(row, ("loss (nats a response token)", "norm of the gradient"), strict=True):
            axis.set_title(f"{name}: {words.partition(' (')[0]}")
            axis.set_xlabel("step of training (batches)")
            axis.set_ylabel(words)
        row[1].legend(frameon=False, fontsize=8)
    fig.suptitle("Training of the arms, running means over a 25th of the steps")
    fig.tight_layout()
    save(fig, path)


def _row_of_candidates(axis, row: int, group: pd.DataFrame) -> None:
    times, kinds = group["time"].to_numpy(), group["origin"].map(origin_kind).to_numpy()
    bars = np.nan_to_num([times - group["time_low"], group["time_high"] - times]).clip(min=0)
    for i, (kind, marker) in enumerate(MARKERS.items()):
        mine = kinds == kind
        if mine.any():
            style = {"fmt": marker, "color": f"C{i}", "ms": 4, "lw": 0.8, "mew": 0}
            axis.errorbar(times[mine], np.full(mine.sum(), row), xerr=bars[:, mine], **style)
    chosen = times[group["selected"].to_numpy()]
    axis.plot(chosen, np.full(len(chosen), row), "o", mfc="none", mec="black", ms=9)
    control = times[["random-correct" in arms for arms in group["arms"]]]
    axis.plot(control, np.full(len(control), row), "x", color="black", ms=4)


def _groups(table: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    return list(table.groupby([table["task"].astype(str), table["language"].astype(str)], sort=True))


def _intervals(
    axis, values: dict, keys: list[str], places, label: str | None, colour: str, marker="o", upright: bool = True
) -> None:
    """Estimates with their intervals at `places`, upright or lying; estimates that are not known are left out."""
    center, low, high = (_values(values, [key + end for key in keys]) for end in ENDS)
    bars = np.nan_to_num([center - low, high - center])
    style = {"fmt": marker, "ms": 5, "capsize": 3, "lw": 1.3, "color": colour, "label": label}
    if upright:
        axis.errorbar(places, center, yerr=bars, **style)
    else:
        axis.errorbar(center, places, xerr=bars, **style)


def _floor(axis, factor: float | None) -> None:
    """Band in which the same program differs from itself, around the line at 1."""
    if factor is not None:
        axis.axvspan(1 / factor, factor, color="grey", alpha=0.25, lw=0)
    axis.axvline(1, color="black", lw=0.8)


def _ratio_axis(axis, values: np.ndarray) -> None:
    """Logarithmic, with 1 and some of both sides in sight, and plain numbers also where less than a decade is shown."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = min([1 / 1.25, *(values / 1.1)]), max([1.25, *(values * 1.1)])
    ticks = next(ticks for most, ticks in TICKS if max(1 / low, high) <= most)
    spots = [1, *ticks, *(1 / tick for tick in ticks)]
    axis.set_xscale("log")
    axis.set_xlim(low, high)
    axis.xaxis.set_major_locator(FixedLocator([spot for spot in spots if low <= spot <= high]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))


def _time_axis(axis, low: float, high: float) -> None:
    """Logarithmic, with plain numbers also where less than a decade is shown."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_xscale("log")
    axis.set_xlim(low, high)
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _values(metrics: dict, keys: list[str]) -> np.ndarray:
    return np.array([np.nan if metrics.get(key) is None else metrics[key] for key in keys])


def _tasks(number: int, which: str = "test ") -> str:
    return f"{number} {which}task{'' if number == 1 else 's'}"
