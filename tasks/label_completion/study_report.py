"""What the simulated study says: means over tables, Wilcoxon's tests, a text and a picture. No files but the picture."""

from pathlib import Path

import numpy as np
import pandas as pd

# Means of the reference study (uniform, Gaussian accuracies; 34 tables, percent): an independent implementation of the
# published rule (zero_vector "drop") with the same protocol.
REFERENCE = {
    "uniform": {
        "raw.majority": 72.58, "raw.dawid_skene": 72.46, "raw.iwmv": 73.37, "instance.majority": 83.49,
        "wslc.majority": 73.05, "wslc.dawid_skene": 72.75, "wslc.iwmv": 73.01,
        "ldplc.majority": 82.78, "ldplc.dawid_skene": 82.74, "ldplc.iwmv": 82.80,
        "wslc.cells": 69.4, "ldplc.cells": 78.0,
    },
    "gaussian": {
        "raw.majority": 73.43, "raw.dawid_skene": 75.14, "raw.iwmv": 75.38, "instance.majority": 83.87,
        "wslc.majority": 74.44, "wslc.dawid_skene": 74.15, "wslc.iwmv": 74.50,
        "ldplc.majority": 83.30, "ldplc.dawid_skene": 83.28, "ldplc.iwmv": 83.34,
        "wslc.cells": 70.5, "ldplc.cells": 78.7,
    },
}  # fmt: skip
NAMES = {"majority": "MV", "dawid_skene": "DS", "iwmv": "IWMV", "cells": "cells"}
TESTS = [
    ("ldplc.majority", "wslc.majority"),
    ("ldplc.dawid_skene", "wslc.dawid_skene"),
    ("ldplc.iwmv", "wslc.iwmv"),
    ("ldplc.majority", "raw.majority"),
    ("ldplc.dawid_skene", "raw.dawid_skene"),
    ("ldplc.iwmv", "raw.iwmv"),
    ("wslc.majority", "raw.majority"),
    ("wslc.dawid_skene", "raw.dawid_skene"),
    ("wslc.iwmv", "raw.iwmv"),
    ("ldplc.majority", "instance.majority"),
]


def results(rows: pd.DataFrame) -> dict:
    """{setting: {zero_vector: {"means", "errors", "sets", "tests"}}} from one row per set, repeat and completion.

    `means` are over sets of the means over repeats, in percent; `errors` their standard errors over sets, of which most
    is the difference between sets; `tests` Wilcoxon's signed-rank tests over sets.
    """
    from scipy.stats import wilcoxon

    long = rows.melt(
        id_vars=["set", "setting", "repeat", "completion", "zero_vector"],
        value_vars=["majority", "dawid_skene", "iwmv", "cells"],
        var_name="aggregator",
    ).dropna()
    long["key"] = long["completion"] + "." + long["aggregator"]
    found: dict = {}
    for setting, part in long.groupby("setting", sort=False):
        for zero_vector in ("neutral", "drop"):
            # raw and instance know no worker similarity: they are the same in both
            here = part[part["zero_vector"].isin([zero_vector, ""]) | (part["completion"] == "instance")]
            sets = here.pivot_table(index="set", columns="key", values="value", aggfunc="mean")
            tests = []
            for a, b in TESTS:
                difference = sets[a] - sets[b]
                tests.append(
                    {
                        "a": a,
                        "b": b,
                        "mean_difference": round(difference.mean(), 3),
                        "wins": int((difference > 0).sum()),
                        "losses": int((difference < 0).sum()),
                        "p": float(f"{wilcoxon(difference).pvalue:.2g}"),
                    }
                )
            found.setdefault(str(setting), {})[zero_vector] = {
                "n_sets": len(sets),
                "means": {key: round(value, 3) for key, value in sets.mean().items()},
                "errors": {key: round(value, 3) for key, value in (sets.std() / np.sqrt(len(sets))).items()},
                "sets": {name: {k: round(v, 2) for k, v in row.items()} for name, row in sets.to_dict("index").items()},
                "tests": tests,
            }
    return found


def text(found: dict) -> str:
    """The study in words and tables (markdown)."""
    lines = []
    for setting, variants in found.items():
        n_sets = variants["drop"]["n_sets"]
        lines += [
            f"### {n_sets} feature tables, simulated workers, {setting} accuracies",
            "",
            "Mean accuracy in percent over tables. *published*: `zero_vector: drop`; *default*: `neutral`; *reference*: an "
            "independent implementation of the published rule with the same protocol. The default leaves the cells of tasks "
            "without answers empty in WSLC, so its accuracy of cells is over fewer cells than the published rule's.",
            "",
            "| completion | quantity | published | default | reference |",
            "|---|---|---:|---:|---:|",
        ]
        for key, reference in REFERENCE[setting].items():
            completion, quantity = key.split(".")
            values = [f"{variants[v]['means'][key]:.2f}" for v in ("drop", "neutral")]
            lines.append(f"| {completion} | {NAMES[quantity]} | {' | '.join(values)} | {reference:.2f} |")
        lines += [
            "",
            "Wilcoxon's signed-rank test over tables, default variant:",
            "",
            "| comparison | mean difference (points) | wins – losses | p |",
            "|---|---:|---:|---:|",
        ]
        for test in variants["neutral"]["tests"]:
            names = [f"{k.split('.')[0]} {NAMES[k.split('.')[1]]}" for k in (test["a"], test["b"])]
            counts = f"{test['wins']} – {test['losses']}"
            lines.append(f"| {names[0]} − {names[1]} | {test['mean_difference']:+.2f} | {counts} | {test['p']:.1g} |")
        lines += ["", _verdict(variants["neutral"]), ""]
    return "\n".join(lines)


def _verdict(variant: dict) -> str:
    tests = {(t["a"], t["b"]): t for t in variant["tests"]}
    against = tests["ldplc.majority", "instance.majority"]
    wslc = tests["wslc.majority", "raw.majority"]
    instance = (
        "Instance-level propagation without any completion is better for the final labels"
        if against["mean_difference"] < 0 and against["p"] < 0.05
        else "Instance-level propagation without any completion is as good for the final labels"
        if against["p"] >= 0.05
        else "Full completion is better for the final labels than instance-level propagation"
    )
    gain = "no significant gain" if wslc["p"] >= 0.05 else f"a difference of {wslc['mean_difference']:+.2f} points"
    return (
        f"{instance} (LDPLC + MV minus instance: {against['mean_difference']:+.2f} points, p = {against['p']:.1g}); "
        f"WSLC alone shows {gain} over raw majority voting (p = {wslc['p']:.1g}). The gain of LDPLC comes from the "
        "features through the task graph; the completed matrix is for those who need the matrix itself."
    )


def figure(found: dict, path: Path) -> None:
    """Differences of LDPLC + MV to the alternatives, one point per table, both settings."""
    from tasks.pictures import save, start

    plt = start()
    pairs = [("ldplc.majority", b) for b in ("raw.majority", "wslc.majority", "instance.majority")]
    fig, axes = plt.subplots(1, len(found), figsize=(9, 3.6), sharey=True, squeeze=False)
    for axis, (setting, variants) in zip(axes[0], found.items(), strict=True):
        sets = pd.DataFrame.from_dict(variants["neutral"]["sets"], orient="index")
        for row, (a, b) in enumerate(pairs):
            difference = np.sort((sets[a] - sets[b]).to_numpy())
            spread = np.linspace(-0.28, 0.28, len(difference))
            axis.plot(difference, row + spread, "o", ms=3.5, alpha=0.6, color=f"C{row}")
            error = 1.96 * difference.std(ddof=1) / np.sqrt(len(difference))
            axis.errorbar(difference.mean(), row, xerr=error, fmt="D", color="black", ms=5, capsize=4)
        axis.axvline(0, color="grey", lw=1)
        axis.set_yticks(range(len(pairs)), [f"minus {b.split('.')[0]} + MV" for _, b in pairs])
        axis.set_title(f"{setting} worker accuracies")
        axis.set_xlabel("accuracy of LDPLC + MV, difference (percentage points)")
    fig.suptitle(f"Simulated study: LDPLC + MV against the alternatives, {len(sets)} feature tables")
    fig.tight_layout()
    save(fig, path)
