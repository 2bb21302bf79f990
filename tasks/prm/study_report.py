"""What the study says: losses, seeds, beta, and adapters against the whole model, as a text and a picture.

Both functions take the runs, one dictionary a training::

    {"seed": 1, "loss": "ce", "beta": 1.0, "lora": False, "metrics": {…}}

``metrics`` are those that `evaluate.evaluate_dataset` returns for the one loss of the run (``losses=[loss]``), so that its
aggregations are chosen on validation as everywhere. Runs may come in any order; a setting is (loss, beta, lora), and
each of its seeds stands once. The usual beta of a loss is the one that most of its runs with the whole model have.
"""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tasks.pictures import save, start
from tasks.prm.figures import LOSSES
from tasks.prm.scored import CONTROL
from tasks.prm.summary import number, verdict

Run = dict[str, Any]


class Setting(NamedTuple):
    """What is trained; its runs differ by their seed."""

    loss: str
    beta: float
    lora: bool


MEASURES = {  # titles; {n} is filled in
    "without": "best of {n}, without reference",
    "with": "best of {n}, with reference",
    "majority": "majority of {n}",
    "control": "best of {n}, control",
    "without_majority": "without − majority",
    "with_majority": "with − majority",
    "without_control": "without − control",
    "with_without": "with − without",
    "auc_without": "step AUC, without",
    "auc_with": "step AUC, with",
    "auc_control": "step AUC, control",
    "f1_without": "F1, without",
    "f1_with": "F1, with",
    "f1_control": "F1, control",
}
SIGNED = ("without_majority", "with_majority", "without_control", "with_without")


def measured(run: Run) -> dict[str, float | None]:
    """The values of one run by the names of MEASURES; None where its metrics have none."""
    m, loss = run["metrics"], run["loss"]
    n = m["choice.n"]
    keys = {role: f"test.best_of.{n}.{m.get(f'choice.{role}')}" for role in ("without", "with", "control")}
    keys |= {"majority": f"test.majority.{n}"}
    keys |= {f"{a}_{b}": f"difference.{a}.minus.{b}" for a, b in (name.split("_") for name in SIGNED)}
    for quantity, key in (("auc", "step_auc"), ("f1", "f1")):
        for role, scorer in (("without", f"{loss}.policy"), ("with", f"{loss}.ratio"), ("control", CONTROL)):
            keys[f"{quantity}_{role}"] = f"test.{key}.{scorer}"
    return {name: m.get(keys[name]) for name in MEASURES}


def settings(runs: list[Run]) -> dict[Setting, list[Run]]:
    """Runs by setting, losses in their usual order, then by beta, the whole model first; seeds rising."""
    order = sorted(runs, key=lambda run: (list(LOSSES).index(run["loss"]), run["beta"], run["lora"], run["seed"]))
    found: dict[Setting, list[Run]] = {}
    for run in order:
        found.setdefault(Setting(run["loss"], run["beta"], run["lora"]), []).append(run)
    return found


def parts(runs: list[Run]) -> dict[str, dict[Setting, list[Run]]]:
    """The settings of each question: "losses" (usual beta, whole model), "beta" (of losses with several), "lora" (of those
    with both); the last two may be empty."""
    found = settings(runs)
    counted = Counter()
    for setting, members in found.items():
        if not setting.lora:
            counted[setting.loss, setting.beta] += len(members)
    usual = {}
    for (loss, beta), _ in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
        usual.setdefault(loss, beta)
    several = {loss for loss in usual if sum(s.loss == loss and not s.lora for s in found) > 1}
    both = {loss for loss in usual if Setting(loss, usual[loss], True) in found}
    return {
        "losses": {s: r for s, r in found.items() if not s.lora and s.beta == usual[s.loss]},
        "beta": {s: r for s, r in found.items() if not s.lora and s.loss in several},
        "lora": {s: r for s, r in found.items() if s.loss in both and s.beta == usual[s.loss]},
    }


def text(runs: list[Run]) -> str:
    """The study in words and tables (markdown): the mean of each setting, and in brackets each seed's value."""
    n = runs[0]["metrics"]["choice.n"]
    found = parts(runs)
    sections = [_words(found, n), "### Losses", _table(found["losses"], n)]
    if found["beta"]:
        sections += ["### Beta", _table(found["beta"], n)]
    if found["lora"]:
        sections += ["### Adapters (LoRA) and the whole model", _table(found["lora"], n)]
    return "\n\n".join(sections) + "\n"


def name_of(setting: Setting) -> str:
    """A setting in words.

    >>> name_of(Setting("ce", 0.3, False)), name_of(Setting("dpo", 1.0, True))
    ('CE, beta 0.3', 'DPO, beta 1, adapters')
    """
    return f"{LOSSES[setting.loss]}, beta {setting.beta:g}{', adapters' if setting.lora else ''}"


def _table(found: dict[Setting, list[Run]], n: int) -> str:
    """A row a measure, a column a setting."""
    seeds = {setting: ", ".join(str(run["seed"]) for run in members) for setting, members in found.items()}
    rows = [f"| | {' | '.join(map(name_of, found))} |", f"|---|{'---:|' * len(found)}"]
    rows.append(f"| seeds | {' | '.join(seeds.values())} |")
    for measure, title in MEASURES.items():
        cells = []
        for members in found.values():
            values = [measured(run)[measure] for run in members]
            each = ", ".join(number(value, signed=measure in SIGNED) for value in values)
            mean = number(_mean(values), signed=measure in SIGNED)
            cells.append(f"{mean} ({each})" if len(values) > 1 else mean)
        rows.append(f"| {title.format(n=n)} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _words(found: dict[str, dict[Setting, list[Run]]], n: int) -> str:
    lines = [_against(found["losses"], n)]
    for role in ("without", "with"):
        lines.append(_spread(found["losses"], role, n))
    for setting_loss in dict.fromkeys(setting.loss for setting in found["beta"]):
        lines.append(_betas({s: r for s, r in found["beta"].items() if s.loss == setting_loss}, n))
    for setting_loss in dict.fromkeys(setting.loss for setting in found["lora"]):
        lines.append(
            _adapters({s.lora: r for s, r in found["lora"].items() if s.loss == setting_loss}, setting_loss, n)
        )
    return "\n".join(f"- {line}" for line in lines if line)


def _against(found: dict[Setting, list[Run]], n: int) -> str:
    """How many runs are better than majority and control, outside their intervals."""
    runs = [run["metrics"] for members in found.values() for run in members]
    clauses = []
    for a, b in (
        *((role, other) for other in ("majority", "control") for role in ("without", "with")),
        ("with", "without"),
    ):
        verdicts = Counter(verdict(m, f"difference.{a}.minus.{b}") for m in runs)
        clauses.append(f"{a} against {b} {verdicts['better']} better, {verdicts['worse']} worse")
    return (
        f"{len(runs)} trainings of {len(found)} losses at their usual beta, best of {n} without and with the reference, "
        f"better or worse outside the interval over test problems: {'; '.join(clauses)}."
    )


def _spread(found: dict[Setting, list[Run]], role: str, n: int) -> str:
    """Whether losses differ by more than seeds do."""
    values = {s: [v for run in members if (v := measured(run)[role]) is not None] for s, members in found.items()}
    values = {s: v for s, v in values.items() if v}
    if len(values) < 2 or max(map(len, values.values())) < 2:
        return ""
    means = {s: float(np.mean(v)) for s, v in values.items()}
    best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    between, within = means[best] - means[worst], max(max(v) - min(v) for v in values.values())
    said = "more than" if between > within else "no more than"
    return (
        f"Best of {n} {role} the reference, means over seeds: highest {LOSSES[best.loss]} ({number(means[best])}), lowest "
        f"{LOSSES[worst.loss]} ({number(means[worst])}). They differ by {number(between)}, {said} the seeds of one loss do "
        f"(up to {number(within)})."
    )


def _betas(found: dict[Setting, list[Run]], n: int) -> str:
    """Means over the seeds that every beta has."""
    shared = set.intersection(*({run["seed"] for run in members} for members in found.values()))
    said = []
    for role in ("without", "with"):
        means = {s.beta: _mean([measured(r)[role] for r in runs if r["seed"] in shared]) for s, runs in found.items()}
        if None not in means.values():
            listed = ", ".join(f"{beta:g}: {number(mean)}" for beta, mean in means.items())
            said.append(f"{role} the reference {listed} (highest at {max(means, key=means.__getitem__):g})")
    seeds = f"seed{'s' * (len(shared) > 1)} {', '.join(map(str, sorted(shared)))}"
    return f"{LOSSES[next(iter(found)).loss]} by beta, best of {n}, {seeds}: {'; '.join(said)}." if said else ""


def _adapters(found: dict[bool, list[Run]], loss: str, n: int) -> str:
    whole = {run["seed"]: measured(run) for run in found[False]}
    adapters = {run["seed"]: measured(run) for run in found[True]}
    said = []
    for role in ("without", "with"):
        pairs = [(adapters[seed][role], whole[seed][role]) for seed in adapters if seed in whole]
        differences = [a - b for a, b in pairs if a is not None and b is not None]
        if differences:
            each = ", ".join(number(d, signed=True) for d in differences)
            said.append(f"{role} the reference {number(_mean(differences), signed=True)} ({each})")
    return f"{LOSSES[loss]}, adapters minus whole model, best of {n}, seed by seed: {'; '.join(said)}." if said else ""


def figure(runs: list[Run], path: Path) -> None:
    """Best of n on the test problems, a point a run: by loss, by beta, and adapters beside the whole model."""
    plt = start()
    n = runs[0]["metrics"]["choice.n"]
    found = {part: members for part, members in parts(runs).items() if members}
    titles = {"losses": "losses", "beta": "beta", "lora": "adapters and whole model"}
    widths = [1.2 + len(members) for members in found.values()]
    size = max(7.5, 0.85 * sum(widths)), 4.2
    fig, axes = plt.subplots(1, len(found), figsize=size, sharey=True, squeeze=False, width_ratios=widths)
    for axis, (part, members) in zip(axes[0], found.items(), strict=True):
        for place, group in enumerate(members.values()):
            values = [measured(run) for run in group]
            for role, colour, shift in (("without", "C0", -0.14), ("with", "C1", 0.14)):
                drawn = [np.nan if v[role] is None else v[role] for v in values]
                spots = place + shift + 0.03 * (np.arange(len(drawn)) - (len(drawn) - 1) / 2)
                axis.plot(spots, drawn, "o", color=colour, ms=5, mec="white", mew=0.5)
        everyone = [measured(run) for group in members.values() for run in group]
        for measure, colour, style in (("majority", "black", "--"), ("control", "C3", "-")):
            known = [v[measure] for v in everyone if v[measure] is not None]
            if known:
                axis.axhspan(min(known), max(known), color=colour, alpha=0.12, lw=0)
                axis.axhline(float(np.mean(known)), color=colour, ls=style, lw=1)
        axis.set_xticks(range(len(members)), [name_of(s).replace(", ", "\n") for s in members], fontsize=7.5)
        axis.set_xlim(-0.6, len(members) - 0.4)
        axis.set_title(titles[part])
        axis.set_xlabel("setting, a point a seed")
    axes[0, 0].set_ylabel(f"accuracy of the best of {n} (share of test problems)")
    handles = [
        plt.Line2D([], [], marker="o", ls="", color="C0", label="without reference"),
        plt.Line2D([], [], marker="o", ls="", color="C1", label="with reference"),
        plt.Line2D([], [], color="black", ls="--", label="majority (mean, range)"),
        plt.Line2D([], [], color="C3", label="untrained control (mean, range)"),
    ]
    fig.legend(handles=handles, loc="upper center", ncols=4, bbox_to_anchor=(0.5, 0.0), frameon=False)
    fig.suptitle(f"Best of {n} by loss, seed, beta and adapters")
    fig.tight_layout()
    save(fig, path)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
