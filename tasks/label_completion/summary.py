"""The text of the report, from the metrics: headline, data, accuracies, and what the figures do not show."""

from tasks.label_completion.figures import COMPLETIONS, name_of


def summarise(metrics: dict[str, dict], study: str) -> str:
    """Markdown: a title, a headline paragraph, then sections. `study` is the text of the simulated study, or empty."""
    parts = ["# Label completion for crowdsourcing", _headline(metrics), "## Data", _data(metrics)]
    known = {name: m for name, m in metrics.items() if "accuracy.raw.majority" in m}
    if known:
        parts += ["## What the figures say", _words(known), "## Accuracy of the inferred labels (%)", _accuracy(known)]
    if study:
        parts += ["## Simulated study over many feature tables", study]
    parts += ["## What these data do not show", _caveats(metrics)]
    return "\n\n".join(parts) + "\n"


def _headline(metrics: dict[str, dict]) -> str:
    known = [m for m in metrics.values() if "accuracy.ldplc.majority" in m and "accuracy.raw.majority" in m]
    if not known:
        return "Completed label matrices without known truth: nothing to compare with."
    raw, ldplc = (100 * sum(m[f"accuracy.{c}.majority"] for m in known) / len(known) for c in ("raw", "ldplc"))
    text = f"Majority voting after LDPLC is right on {ldplc:.1f} % of the tasks, without completion on {raw:.1f} %"
    if all("accuracy.instance.majority" in m for m in known):
        instance = 100 * sum(m["accuracy.instance.majority"] for m in known) / len(known)
        text += f"; instance-level propagation, which completes nothing, reaches {instance:.1f} %"
    return f"{text} (means over {len(known)} data set{'s' * (len(known) > 1)})."


def _caveats(metrics: dict[str, dict]) -> str:
    lines = []
    if any(m["data.simulated_workers"] for m in metrics.values()):
        lines.append(
            "Simulated workers err independently of the task; real workers find the same tasks hard, and there the gain "
            "of completion is smaller."
        )
    small = [name for name, m in metrics.items() if m["data.tasks"] < 30]
    if small:
        lines.append(f"Fewer than 30 tasks ({', '.join(small)}): bootstrap intervals are too narrow there.")
    if any(m["data.repeats"] == 1 for m in metrics.values()):
        lines.append("With one set of answers the intervals cover the choice of tasks, not that of workers.")
    lines += [
        "Whether a feature graph helps depends on features that carry the classes.",
        "Agreement and confidence computed on a completed matrix say nothing of workers or labels: its columns are "
        "near-copies of one vote.",
        "The published tables could not be compared.",
    ]
    return "\n".join(f"- {line}" for line in lines)


def _data(metrics: dict[str, dict]) -> str:
    rows = [
        "| data set | origin | tasks | features | classes | workers | draws | answers per task | without answer "
        "| answer accuracy | α |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, m in metrics.items():
        accuracy = "–" if m["data.answer_accuracy"] is None else f"{100 * m['data.answer_accuracy']:.1f} %"
        alpha = "–" if m["data.krippendorff_alpha"] is None else f"{m['data.krippendorff_alpha']:.2f}"
        rows.append(
            f"| {name} | {m['data.origin']} | {m['data.tasks']} | {m['data.features']} | {m['data.classes']} | "
            f"{m['data.workers']} | {m['data.repeats']} | {m['data.answers_per_task']:.2f} | "
            f"{100 * m['data.unlabelled_share']:.1f} % | {accuracy} | {alpha} |"
        )
    return "\n".join(rows)


def _words(metrics: dict[str, dict]) -> str:
    lines = []
    for key, sentence in (
        ("ldplc.majority.minus.raw.majority", "LDPLC against no completion"),
        ("wslc.majority.minus.raw.majority", "WSLC against no completion"),
        ("ldplc.majority.minus.wslc.majority", "LDPLC against WSLC"),
        ("instance.majority.minus.ldplc.majority", "Instance-level propagation against LDPLC"),
    ):
        here = [m for m in metrics.values() if f"difference.{key}" in m]
        if here:
            better = sum(m[f"difference.{key}.low"] > 0 for m in here)
            worse = sum(m[f"difference.{key}.high"] < 0 for m in here)
            mean = 100 * sum(m[f"difference.{key}"] for m in here) / len(here)
            lines.append(
                f"- {sentence} (majority vote): {mean:+.1f} points on average; outside its interval better on {better}, "
                f"worse on {worse}, undecided on {len(here) - better - worse} of {len(here)} data sets."
            )
    return "\n".join(lines)


def _accuracy(metrics: dict[str, dict]) -> str:
    keys = sorted({k for m in metrics.values() for k in m if k.startswith("accuracy.") and k.count(".") == 2})
    keys.sort(key=lambda k: list(COMPLETIONS).index(k.split(".")[1]))
    rows = [
        f"| completion | aggregator | {' | '.join(metrics)} |",
        f"|---|---|{'---:|' * len(metrics)}",
    ]
    for key in keys:
        cells = [
            f"{100 * m[key]:.1f} [{100 * m[f'{key}.low']:.1f}, {100 * m[f'{key}.high']:.1f}]" if key in m else "–"
            for m in metrics.values()
        ]
        _, completion, aggregator = key.split(".")
        rows.append(f"| {COMPLETIONS[completion]} | {name_of(aggregator)} | {' | '.join(cells)} |")
    return "\n".join(rows)
