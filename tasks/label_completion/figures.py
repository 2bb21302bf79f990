"""Pictures of the evaluation; tables of metrics in, PNG files out."""

from pathlib import Path

import numpy as np

from tasks.pictures import save, start

COMPLETIONS = {"raw": "no completion", "wslc": "WSLC", "ldplc": "LDPLC", "instance": "instance-level"}
COLOURS = dict(zip(COMPLETIONS, ("C0", "C1", "C2", "C3"), strict=True))
AGGREGATORS = {
    "majority": "majority vote",
    "dawid_skene": "Dawid–Skene",
    "iwmv": "IWMV",
    "wawa": "WAWA",
    "gtic": "GTIC-like",
}


def name_of(aggregator: str) -> str:
    return AGGREGATORS.get(aggregator, aggregator.replace("crowdkit_", "crowd-kit "))


def accuracies(metrics: dict[str, dict], path: Path, confidence: float) -> None:
    """Accuracy of the inferred labels by completion and aggregator, one panel per data set, with intervals."""
    plt = start()
    fig, axes = _panels(plt, metrics, 3.2)
    for axis, (name, values) in zip(axes, metrics.items(), strict=True):
        rows = _keys(metrics, "accuracy.")
        for row, aggregator in enumerate(rows):
            for shift, completion in zip((0.27, 0.09, -0.09, -0.27), COMPLETIONS, strict=True):
                key = f"accuracy.{completion}.{aggregator}"
                if key in values:
                    _interval(axis, values, key, row + shift, COLOURS[completion])
        axis.set_yticks(range(len(rows)), [name_of(a) for a in rows])
        axis.set_ylim(-0.6, len(rows) - 0.4)
        axis.set_title(f"{name}: {values['data.tasks']} tasks, {values['data.classes']} classes")
        axis.set_xlabel("accuracy of the inferred labels (%)")
    handles = [plt.Line2D([], [], marker="o", color=COLOURS[c], label=label) for c, label in COMPLETIONS.items()]
    fig.legend(handles=handles, loc="lower center", ncols=4, bbox_to_anchor=(0.5, -0.02), frameon=False)
    fig.suptitle(f"Inferred labels against the truth, {confidence:.0%} bootstrap intervals over tasks and draws")
    fig.tight_layout(rect=(0, 0.04, 1, 1))
    save(fig, path)


def differences(metrics: dict[str, dict], path: Path, confidence: float) -> None:
    """Paired differences of accuracy with intervals; an interval that covers 0 shows no difference."""
    plt = start()
    wanted = [
        "wslc.majority.minus.raw.majority",
        "ldplc.majority.minus.raw.majority",
        "ldplc.majority.minus.wslc.majority",
        "instance.majority.minus.raw.majority",
        "instance.majority.minus.ldplc.majority",
    ]
    rows = [w for w in wanted if any(f"difference.{w}" in values for values in metrics.values())]
    fig, axes = _panels(plt, metrics, 2.3)
    for axis, (name, values) in zip(axes, metrics.items(), strict=True):
        for row, key in enumerate(reversed(rows)):
            if f"difference.{key}" in values:
                _interval(axis, values, f"difference.{key}", row, "black")
        axis.axvline(0, color="grey", lw=1)
        labels = [
            " − ".join(COMPLETIONS[part.split(".")[0]] for part in key.split(".minus.")) for key in reversed(rows)
        ]
        axis.set_yticks(range(len(rows)), labels)
        axis.set_title(name)
        axis.set_xlabel("difference of accuracy (percentage points)")
    fig.suptitle(f"Majority vote: paired differences, {confidence:.0%} bootstrap intervals")
    fig.tight_layout()
    save(fig, path)


def cells(metrics: dict[str, dict], path: Path, confidence: float) -> None:
    """Accuracy of the imputed cells beside the accuracy of the workers' own answers."""
    plt = start()
    fig, axis = plt.subplots(figsize=(7, 0.8 + 0.7 * len(metrics)))
    for row, values in enumerate(metrics.values()):
        for shift, method in ((0.15, "wslc"), (-0.15, "ldplc")):
            if f"cells.{method}" in values:
                label = f"imputed by {COMPLETIONS[method]}" if row == 0 else None
                _interval(axis, values, f"cells.{method}", row + shift, COLOURS[method], label)
        if values["data.answer_accuracy"] is not None:
            label = "workers' own answers" if row == 0 else None
            axis.plot(100 * values["data.answer_accuracy"], row, "k|", ms=16, label=label)
    axis.set_yticks(range(len(metrics)), list(metrics))
    axis.set_xlabel("accuracy (%)")
    axis.set_title(f"Imputed cells against the truth, {confidence:.0%} bootstrap intervals")
    axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    save(fig, path)


def _panels(plt, metrics: dict, height: float):
    columns = min(2, len(metrics))
    rows = -(-len(metrics) // columns)
    fig, axes = plt.subplots(rows, columns, figsize=(4.8 * columns, height * rows + 0.6), squeeze=False)
    for axis in axes.flat[len(metrics) :]:
        axis.set_visible(False)
    return fig, list(axes.flat[: len(metrics)])


def _keys(metrics: dict[str, dict], prefix: str) -> list[str]:
    found = {
        k.split(".")[2] for values in metrics.values() for k in values if k.startswith(prefix) and k.count(".") == 2
    }
    return sorted(
        found, key=lambda a: (a not in AGGREGATORS, list(AGGREGATORS).index(a) if a in AGGREGATORS else 0, a)
    )[::-1]


def _interval(axis, values: dict, key: str, y: float, colour: str, label: str | None = None) -> None:
    value, low, high = (100 * values.get(k, np.nan) for k in (key, f"{key}.low", f"{key}.high"))
    axis.errorbar(
        value, y, xerr=[[value - low], [high - value]], fmt="o", ms=4, capsize=2.5, color=colour, label=label, lw=1.2
    )
