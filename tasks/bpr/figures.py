"""Pictures of the evaluation; metrics and tables in, PNG files out."""

import math
from pathlib import Path

import numpy as np
import pandas as pd

from tasks.bpr.evaluation import BASELINES, moving_average
from tasks.pictures import save, start

RULES = {"mean": "mean", "delta_ratio": "ratio in closed form", "ratio": "ratio", "topk_ratio": "top-K ratio"}
MARKERS = "osD^v<>ph"
AVERAGE, BASELINE = "black", "grey"


def name_of(forecast: str) -> str:
    """A forecast in words.

    >>> name_of("average5"), name_of("daml0.8.ratio"), name_of("ml.mean"), name_of("ridge")
    ('average of 5', 'DAML ε = 0.8, ratio', 'ML, mean', 'ridge regression')
    """
    length = moving_average(forecast)
    if length is not None:
        return "last period" if length == 1 else f"average of {length}"
    model, _, rule = forecast.rpartition(".")
    if rule in RULES and model:
        return f"{model_name_of(model)}, {RULES[rule]}"
    return BASELINES.get(forecast, forecast)


def model_name_of(model: str) -> str:
    """A model in words.

    >>> model_name_of("ml"), model_name_of("bpr"), model_name_of("daml1")
    ('ML', 'BPR only', 'DAML ε = 1')
    """
    return {"ml": "ML", "bpr": "BPR only"}.get(model) or f"DAML ε = {model.removeprefix('daml')}"


def forecasts_of(metrics: dict, prefix: str = "bpr.") -> list[str]:
    """The forecasts that a metric stands for, in the order of the file."""
    return [
        key.removeprefix(prefix)
        for key in metrics
        if key.startswith(prefix) and not key.endswith((".low", ".high", ".seed_sd", ".period_sd"))
    ]


def models_of(metrics: dict) -> list[str]:
    return forecasts_of(metrics, "nll.")


def colours(metrics: dict[str, dict]) -> dict[str, tuple[str, str]]:
    """{model: (colour, marker)}, the same in all pictures."""
    models = dict.fromkeys(model for values in metrics.values() for model in models_of(values))
    return {model: (f"C{i}", MARKERS[i % len(MARKERS)]) for i, model in enumerate(models)}


def reached(metrics: dict[str, dict], path: Path, confidence: float) -> None:
    """BPR of every forecast with its interval, one panel per data set, with the lines of chance and of the oracle."""
    plt = start()
    looks = colours(metrics)
    fig, axes = _panels(plt, [0.9 + 0.19 * len(forecasts_of(values)) for values in metrics.values()], 4.9)
    for axis, (name, values) in zip(axes, metrics.items(), strict=True):
        forecasts = forecasts_of(values)[::-1]
        for row, forecast in enumerate(forecasts):
            _interval(axis, values, f"bpr.{forecast}", row, *_look(forecast, looks))
        chance = axis.axvline(
            values["data.chance"] if values["data.chance"] is not None else np.nan, color="C3", ls=":"
        )
        oracle = axis.axvline(1, color="C2", ls="--")
        labels = [name_of(f) + (" ★" if f == values["comparison.average"] else "") for f in forecasts]
        axis.set_yticks(range(len(forecasts)), labels)
        axis.set_ylim(-0.6, len(forecasts) - 0.4)
        axis.set_title(f"{name}: K = {values['data.k']} of {values['data.sites']} sites,\n{_intervals(values)}")
        axis.set_xlabel("BPR-K: events at the chosen sites / events at the K best sites")
    handles = [plt.Line2D([], [], marker="o", ls="", color=AVERAGE, label="moving average (★: chosen on validation)")]
    handles += [plt.Line2D([], [], marker="o", ls="", color=BASELINE, label="other baseline")]
    handles += [
        plt.Line2D([], [], marker=m, ls="", color=c, label=f"{model_name_of(model)}, ranking rule")
        for model, (c, m) in looks.items()
    ]
    chance.set_label("sites chosen at random")
    oracle.set_label("best K sites in hindsight")
    fig.legend(
        handles=[*handles, chance, oracle], loc="upper center", ncols=3, bbox_to_anchor=(0.5, 0.0), frameon=False
    )
    fig.suptitle(f"Events reached in the test periods, with {confidence:.0%} intervals")
    fig.tight_layout()
    save(fig, path)


def differences(metrics: dict[str, dict], path: Path, confidence: float) -> None:
    """Paired differences of BPR to the moving average that was chosen on validation."""
    plt = start()
    looks = colours(metrics)
    compared = {name: differences_of(values) for name, values in metrics.items()}
    fig, axes = _panels(plt, [0.9 + 0.19 * len(rows) for rows in compared.values()], 4.9)
    for axis, (name, values) in zip(axes, metrics.items(), strict=True):
        found = list(compared[name].items())[::-1]
        for row, (forecast, key) in enumerate(found):
            _interval(axis, values, key, row, *_look(forecast, looks))
        axis.axvline(0, color="grey", lw=1)
        axis.locator_params(axis="x", nbins=5)
        axis.set_yticks(range(len(found)), [name_of(f) for f, _ in found])
        axis.set_ylim(-0.6, len(found) - 0.4)
        average = values["comparison.average"]
        axis.set_title(f"{name}: {_intervals(values)}")
        axis.set_xlabel(f"difference of BPR-K to: {name_of(average)}" if average else "no comparison")
    fig.suptitle(
        f"BPR minus that of the moving average chosen on validation, {confidence:.0%} paired intervals\n"
        "left of 0: worse than the average"
    )
    fig.tight_layout()
    save(fig, path)


def differences_of(metrics: dict) -> dict[str, str]:
    """{forecast: key of its difference to the moving average chosen on validation}."""
    suffix = f".minus.{metrics['comparison.average']}"
    found = {
        f.removesuffix(suffix): f"difference.{f}" for f in forecasts_of(metrics, "difference.") if f.endswith(suffix)
    }
    return {forecast: key for forecast, key in found.items() if metrics[key] is not None}


def frontier(runs: dict[str, pd.DataFrame], metrics: dict[str, dict], path: Path, confidence: float) -> None:
    """BPR against likelihood on the test periods: a point per trained run, the moving average as a line with its band.

    Args:
        runs: by data set, rows as `evaluation.per_run` gives them, of one ranking rule.
    """
    plt = start()
    looks = colours(metrics)
    fig, axes = _panels(plt, [3.4] * len(runs), 4.9)
    for axis, (name, rows) in zip(axes, runs.items(), strict=True):
        values = metrics[name]
        for model, part in rows.groupby("model", sort=False):
            colour, marker = looks[model]
            axis.plot(part["nll"], part["bpr"], marker, color=colour, ms=5, alpha=0.7, mec="white", mew=0.5)
        average = values["comparison.average"]
        key = f"bpr.{average}"
        if values.get(key) is not None:
            axis.axhline(values[key], color=AVERAGE, lw=1.2, label=f"{name_of(average)} (chosen on validation)")
            if values[f"{key}.low"] is not None:
                band = f"its {confidence:.0%} interval {values['data.interval']}"
                axis.axhspan(values[f"{key}.low"], values[f"{key}.high"], color=AVERAGE, alpha=0.1, lw=0, label=band)
            axis.legend(frameon=False, fontsize=7)
        rules = ", ".join(RULES[rule] for rule in rows["rule"].unique())
        axis.set_title(f"{name}: {_periods(values)}, ranking rule: {rules}")
        axis.set_xlabel("negative log-likelihood (nats per site and period; left is better)")
        axis.set_ylabel(f"BPR-{values['data.k']} (up is better)")
        axis.margins(0.12)
    _legend_of_models(plt, fig, looks)
    fig.suptitle("Events reached against likelihood in the test periods: one point per training run")
    fig.tight_layout()
    save(fig, path)


def training(epochs: dict[str, pd.DataFrame], metrics: dict[str, dict], path: Path) -> None:
    """BPR and likelihood by epoch, training and validation, a thin line per seed.

    Args:
        epochs: by data set, rows as in EPOCHS with one column more, `model`.
    """
    plt = start()
    looks = colours(metrics)
    fig, axes = plt.subplots(len(epochs), 2, figsize=(9.8, 3.1 * len(epochs) + 0.6), squeeze=False)
    for row, (name, table) in zip(axes, epochs.items(), strict=True):
        for axis, quantity, unit in zip(
            row,
            ("bpr", "nll"),
            (f"BPR-{metrics[name]['data.k']}", "−log likelihood (nats per site, period)"),
            strict=True,
        ):
            for (model, _), part in table.groupby(["model", "run"], sort=False, observed=True):
                part = part.sort_values("epoch")
                for split, style in (("train", "-"), ("valid", "--")):
                    drawn = part.dropna(subset=f"{split}_{quantity}")
                    axis.plot(
                        drawn["epoch"], drawn[f"{split}_{quantity}"], style, color=looks[model][0], lw=0.8, alpha=0.7
                    )
            if quantity == "nll" and (table[["train_nll", "valid_nll"]].stack() > 0).all():
                axis.set_yscale("log")
                for kind in (axis.yaxis.set_major_formatter, axis.yaxis.set_minor_formatter):
                    kind("{x:g}")
            axis.set_title(f"{name}: {'events reached' if quantity == 'bpr' else 'fit of the counts'}")
            axis.set_xlabel("epoch")
            axis.set_ylabel(unit)
    styles = [
        plt.Line2D([], [], color="grey", ls=style, label=label)
        for style, label in (("-", "training periods"), ("--", "validation periods"))
    ]
    _legend_of_models(plt, fig, looks, styles, lines=True)
    fig.suptitle("Training: one thin line per seed")
    fig.tight_layout()
    save(fig, path)


def sites(maps: dict[str, dict], path: Path) -> None:
    """Where the chosen sites lie, and where most events happened.

    Args:
        maps: by data set: `coordinates` float64 [S, 2] (latitude, longitude in degrees), `chosen` and `best` bool [S],
            `forecast` and `period` (texts).
    """
    plt = start()
    fig, axes = _panels(plt, [4.4] * len(maps), 4.9)
    for axis, (name, found) in zip(axes, maps.items(), strict=True):
        latitude, longitude = found["coordinates"].T
        chosen, best = found["chosen"], found["best"]
        for mask, style, label in (
            (~chosen & ~best, {"c": "lightgrey", "s": 4, "lw": 0}, "neither"),
            (chosen & best, {"c": "C0", "s": 16, "lw": 0}, "hit: chosen, most events"),
            (best & ~chosen, {"facecolors": "none", "edgecolors": "black", "s": 18, "lw": 0.9}, "missed: most events"),
            (chosen & ~best, {"c": "C1", "s": 18, "marker": "x", "lw": 1}, "false: chosen, fewer events"),
        ):
            axis.scatter(longitude[mask], latitude[mask], label=f"{label} ({int(mask.sum())})", **style)
        axis.set_aspect(1 / math.cos(math.radians(float(np.mean(latitude)))))
        axis.set_title(f"{name}, period {found['period']}\nchosen by: {found['forecast']}")
        axis.set_xlabel("longitude (degrees)")
        axis.set_ylabel("latitude (degrees)")
        axis.legend(frameon=False, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    fig.suptitle("Sites chosen for a test period, and the K sites with most events in it")
    fig.tight_layout()
    save(fig, path)


def _periods(values: dict) -> str:
    number = values["data.test_periods"] - values["data.test_periods_without_events"]
    return f"{number} test period{'s' * (number != 1)}"


def _intervals(values: dict) -> str:
    return f"{_periods(values)}, intervals {values['data.interval']}"


def _look(forecast: str, looks: dict) -> tuple[str, str]:
    if moving_average(forecast) is not None:
        return AVERAGE, "o"
    return looks.get(forecast.rpartition(".")[0], (BASELINE, "o"))


def _legend_of_models(plt, fig, looks: dict, more: list | None = None, *, lines: bool = False) -> None:
    style = {"ls": "-"} if lines else {"ls": ""}
    handles = [
        plt.Line2D([], [], color=c, marker="" if lines else m, label=model_name_of(model), **style)
        for model, (c, m) in looks.items()
    ]
    handles += more or []
    fig.legend(handles=handles, loc="upper center", ncols=6, bbox_to_anchor=(0.5, 0.0), frameon=False)


def _panels(plt, heights: list[float], width: float):
    """Two panels side by side, as high (inches) as the higher of the two."""
    columns = min(2, len(heights))
    rows = [max(heights[i : i + columns]) for i in range(0, len(heights), columns)]
    size = width * columns, sum(rows) + 0.6
    fig, axes = plt.subplots(len(rows), columns, figsize=size, squeeze=False, height_ratios=rows)
    for axis in axes.flat[len(heights) :]:
        axis.set_visible(False)
    return fig, list(axes.flat[: len(heights)])


def _interval(axis, values: dict, key: str, y: float, colour: str, marker: str) -> None:
    value, low, high = (np.nan if values.get(k) is None else values[k] for k in (key, f"{key}.low", f"{key}.high"))
    low, high = (value if np.isnan(end) else end for end in (low, high))
    axis.errorbar(value, y, xerr=[[value - low], [high - value]], fmt=marker, ms=4, capsize=2.5, color=colour, lw=1.2)
