"""The text of the report, from the metrics: headline, comparisons in words, tables, and what the data do not show."""

from collections.abc import Iterable

from tasks.bpr.figures import differences_of, forecasts_of, model_name_of, models_of, name_of
from tasks.bpr.resampling import FEW_SITES, MANY_PERIODS


def summarise(metrics: dict[str, dict], study: str, confidence: float) -> str:
    """Markdown: a title, a headline paragraph, then sections. `study` is the text of the public panels' study, or empty."""
    parts = ["# Where to intervene: choosing the K sites with most events", headline(metrics)]
    parts += ["## Data", _data(metrics), "## What the figures say", words(metrics, confidence)]
    parts += ["## BPR on the test periods", bpr_table(metrics)]
    if any(differences_of(m) for m in metrics.values()):
        parts += ["## BPR minus that of the moving average chosen on validation", _differences(metrics)]
    parts += ["## Errors of the expected counts", _errors(metrics)]
    trained = {name: m for name, m in metrics.items() if models_of(m)}
    if trained:
        parts += ["## Training", training_table(trained)]
    if study:
        parts += ["## Study on the public panels", study.strip()]
    parts += ["## What these data do not show", caveats(metrics, confidence)]
    return "\n\n".join(parts) + "\n"


def verdict(metrics: dict, forecast: str) -> str | None:
    """ "better", "worse" or "undecided" than the moving average chosen on validation; None where not compared."""
    key = differences_of(metrics).get(forecast)
    if key is None or metrics.get(f"{key}.low") is None or metrics.get(f"{key}.high") is None:
        return None
    return "better" if metrics[f"{key}.low"] > 0 else "worse" if metrics[f"{key}.high"] < 0 else "undecided"


def _verdicts(metrics: dict) -> dict[str, str]:
    found = {forecast: verdict(metrics, forecast) for forecast in differences_of(metrics)}
    return {forecast: said for forecast, said in found.items() if said is not None}


def headline(metrics: dict[str, dict]) -> str:
    """Whether models beat the moving average, from the intervals."""
    chosen = {name: verdict(m, m["comparison.model"]) for name, m in metrics.items() if m["comparison.model"]}
    chosen = {name: said for name, said in chosen.items() if said is not None}
    every = [said for m in metrics.values() for said in _verdicts(m).values()]
    if not every:
        return "No forecast could be compared with a moving average on these data."
    better = every.count("better")
    rest = (
        f"Of all {len(every)} comparisons with the moving average, baselines included, {better} "
        f"{'is' if better == 1 else 'are'} better outside the interval and {every.count('worse')} worse."
    )
    if not chosen:
        return f"No trained model to compare. {rest}"
    counts = {said: [name for name, s in chosen.items() if s == said] for said in ("better", "worse", "undecided")}
    n = len(chosen)
    if n == 1:
        (name,) = chosen
        said = {
            "better": "reaches more events than the moving average, outside the interval of the difference",
            "worse": "reaches fewer events than the moving average, outside the interval of the difference",
            "undecided": "cannot be told from the moving average: the interval of their difference covers 0",
        }[chosen[name]]
        return f"On {name} the model {said} (each chosen on validation, compared on test). {rest}"
    clauses = [f"{said} on {_listed(names)}" for said, names in counts.items() if names]
    return (
        "The trained model against the moving average (each chosen on validation, compared on test): "
        f"{'; '.join(clauses)}. {rest}"
    )


def words(metrics: dict[str, dict], confidence: float) -> str:
    """One paragraph a data set: the comparison, what chance alone could do, and likelihoods."""
    return "\n".join(f"- **{name}**: {_words_of(values, confidence)}" for name, values in metrics.items())


def _words_of(m: dict, confidence: float) -> str:
    average = m["comparison.average"]
    if average is None:
        return "no validation period has events: no moving average could be chosen, and nothing is compared."
    if m[f"bpr.{average}"] is None:
        return "no test period has events: nothing is compared."
    text = (
        f"the {name_of(average)} (chosen on validation) reaches {estimate(m, f'bpr.{average}')} of the possible events"
    )
    best = m["comparison.average_best_on_test"]
    if best != average:
        text += f"; with hindsight, the {name_of(best)} would have been the best on test ({number(m[f'bpr.{best}'])})"
    sentences = [text]
    model = m["comparison.model"]
    if model is not None and verdict(m, model) is not None:
        key = differences_of(m)[model]
        said = {
            "better": "better outside the interval",
            "worse": "worse outside the interval",
            "undecided": "no difference shown",
        }[verdict(m, model)]
        events = m[f"reached.{model}"] - m[f"reached.{average}"]
        sentences.append(
            f"The model chosen on validation ({name_of(model)}) differs by {estimate(m, key, signed=True)}, "
            f"{_signed(events)} events over all test periods: {said}"
        )
    verdicts = _verdicts(m)
    if verdicts:
        sentences.append(_all_of(verdicts, confidence))
    sentences += _likelihoods(m)
    return (
        ". ".join(sentence[:1].upper() + sentence[1:] if i else sentence for i, sentence in enumerate(sentences)) + "."
    )


def _all_of(verdicts: dict[str, str], confidence: float) -> str:
    better = [name_of(f) for f, said in verdicts.items() if said == "better"]
    worse = sum(said == "worse" for said in verdicts.values())
    expected = len(verdicts) * (1 - confidence) / 2
    text = f"of {len(verdicts)} forecasts compared, {worse} {'is' if worse == 1 else 'are'} worse and {len(better)} "
    text += f"{'is' if len(better) == 1 else 'are'} better outside the interval"
    if better:
        text += (
            f" ({_listed(better, '; ')}); with so many comparisons {expected:.1f} would look better by chance alone if "
            "all were equal"
        )
    return text


def _likelihoods(m: dict) -> list[str]:
    known = {model: m[f"nll.{model}"] for model in models_of(m) if m[f"nll.{model}"] is not None}
    if len(known) < 2:
        return []
    least, most = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
    return [
        f"{model_name_of(least)} predicts the counts best ({known[least]:.3f} nats per site and period), "
        f"{model_name_of(most)} worst ({known[most]:.3f})"
    ]


def caveats(metrics: dict[str, dict], confidence: float) -> str:
    """What follows from the sizes of the data and the number of comparisons."""
    counted = {n: m["data.test_periods"] - m["data.test_periods_without_events"] for n, m in metrics.items()}
    over = {
        kind: [n for n, m in metrics.items() if m["data.interval"] == f"over {kind}"] for kind in ("sites", "periods")
    }
    lines = []
    if over["sites"]:
        lines.append(
            f"Intervals over sites ({_listed(over['sites'])}): other sites in the same test periods, with models as "
            "trained. They are not intervals over years, nor over trainings, and they take sites as independent, which "
            "neighbours are not."
        )
    if over["periods"]:
        lines.append(
            f"Intervals over periods ({_listed(over['periods'])}): other periods of the same sites, taken as independent, "
            "with models as trained."
        )
    few = {name: counted[name] for name in over["sites"] if counted[name] < MANY_PERIODS}
    if few:
        periods = ", ".join(f"{name}: {n}" for name, n in few.items())
        lines.append(f"Few test periods ({periods}): what holds in another year cannot be said from them.")
    for name, m in metrics.items():
        low, high = m.get("comparison.average_least_period"), m.get("comparison.average_greatest_period")
        if counted[name] > 1 and low is not None and high is not None:
            lines.append(
                f"{name}: from one test period to another, BPR of the {name_of(m['comparison.average'])} goes from "
                f"{number(low)} to {number(high)}."
            )
    few_sites = [name for name in over["sites"] if metrics[name]["data.sites"] < FEW_SITES]
    if few_sites:
        lines.append(
            f"Fewer than {FEW_SITES} sites and fewer than {MANY_PERIODS} test periods ({_listed(few_sites)}): the intervals "
            "say little there."
        )
    comparisons = sum(len(_verdicts(m)) for m in metrics.values())
    if comparisons > 1:
        lines.append(
            f"{comparisons} comparisons, each at {confidence:.0%}, without correction: if all forecasts were equal, about "
            f"{comparisons * (1 - confidence) / 2:.1f} would look better and as many worse."
        )
    validated = [f"{name}: {m['data.valid_periods']}" for name, m in metrics.items() if m["comparison.average"]]
    if validated:
        lines.append(
            "Moving averages, models and checkpoints are chosen on the validation periods "
            f"({', '.join(validated)}); the choice is itself uncertain, and no interval contains that."
        )
    skipped = {n: m["data.test_periods_without_events"] for n, m in metrics.items()}
    if any(skipped.values()):
        listed = ", ".join(f"{name}: {number}" for name, number in skipped.items() if number)
        lines.append(f"Test periods without any event are left out of BPR ({listed}).")
    lines.append("Reaching the sites where events happen does not say that an intervention there prevents any.")
    return "\n".join(f"- {line}" for line in lines)


def _data(metrics: dict[str, dict]) -> str:
    rows = [
        "| data set | origin | sites | K | features | history / train / valid / test periods | events in test | "
        "possible at K sites | chance |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, m in metrics.items():
        periods = " / ".join(str(m[f"data.{part}_periods"]) for part in ("history", "train", "valid", "test"))
        rows.append(
            f"| {name} | {m['data.origin']} | {m['data.sites']} | {m['data.k']} | {m['data.features']} | {periods} | "
            f"{m['data.test_events']:g} | {m['data.test_oracle']:g} | {number(m['data.chance'])} |"
        )
    return "\n".join(rows)


def bpr_table(metrics: dict[str, dict]) -> str:
    """BPR with its interval, and between seeds ± their standard deviation."""
    return _table("forecast", "bpr.", metrics, _ordered(forecasts_of(m) for m in metrics.values()), name_of)


def _differences(metrics: dict[str, dict]) -> str:
    rows = [f"| forecast | {' | '.join(metrics)} |", f"|---|{'---:|' * len(metrics)}"]
    against = [name_of(m["comparison.average"]) if m["comparison.average"] else "–" for m in metrics.values()]
    rows.append(f"| *compared with* | {' | '.join(against)} |")
    for forecast in _ordered(differences_of(m) for m in metrics.values()):
        cells = [
            estimate(m, differences_of(m)[forecast], signed=True) if forecast in differences_of(m) else "–"
            for m in metrics.values()
        ]
        rows.append(f"| {name_of(forecast)} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _errors(metrics: dict[str, dict]) -> str:
    rows = _ordered(forecasts_of(m, "mae.") for m in metrics.values())
    models = set(_ordered(models_of(m) for m in metrics.values()))
    names = {row: model_name_of(row) if row in models else name_of(row) for row in rows}
    text = "Mean absolute error, events per site and period:\n\n" + _table("forecast", "mae.", metrics, rows, names.get)
    if models:
        trained = {name: m for name, m in metrics.items() if models_of(m)}
        listed = _ordered(models_of(m) for m in trained.values())
        text += "\n\nNegative log-likelihood, nats per site and period:\n\n"
        text += _table("model", "nll.", trained, listed, model_name_of)
    return text


def training_table(metrics: dict[str, dict]) -> str:
    """Training BPR at the last epoch, and how many periods reach epsilon."""
    rows = [
        "| data set | model | seeds | BPR in training, last epoch | least period | periods that reach ε | kept epoch |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for name, m in metrics.items():
        for model in models_of(m):
            key = f"training.{model}"
            share = m.get(f"{key}.feasible_share")
            reach = "–" if share is None else f"{share:.0%}"
            rows.append(
                f"| {name} | {model_name_of(model)} | {m[f'{key}.seeds']} | {number(m[f'{key}.last_bpr'])} | "
                f"{number(m[f'{key}.last_least_period'])} | {reach} | {m[f'{key}.kept_epoch']:.0f} |"
            )
    return "\n".join(rows)


def _table(head: str, prefix: str, metrics: dict[str, dict], rows: list[str], name) -> str:
    lines = [f"| {head} | {' | '.join(metrics)} |", f"|---|{'---:|' * len(metrics)}"]
    for row in rows:
        cells = []
        for m in metrics.values():
            deviation = m.get(f"{prefix}{row}.seed_sd")
            between = f" (seeds ± {deviation:.3f})" if deviation is not None else ""
            cells.append(estimate(m, f"{prefix}{row}") + between)
        lines.append(f"| {name(row)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def estimate(m: dict, key: str, *, signed: bool = False) -> str:
    """A value with its interval, three decimals.

    >>> estimate({"a": 0.81234, "a.low": 0.79, "a.high": 0.8349}, "a"), estimate({"a": 0.1}, "a", signed=True)
    ('0.812 [0.790, 0.835]', '+0.100')
    """
    value, low, high = (m.get(k) for k in (key, f"{key}.low", f"{key}.high"))
    if value is None or low is None or high is None:
        return number(value, signed=signed)
    return f"{number(value, signed=signed)} [{number(low, signed=signed)}, {number(high, signed=signed)}]"


def number(value: float | None, *, signed: bool = False) -> str:
    """Three decimals, or a dash."""
    if value is None:
        return "–"
    return (f"{value:+.3f}" if signed else f"{value:.3f}").replace("-", "−")


def _signed(events: float) -> str:
    return f"{events:+.1f}".replace("-", "−")


def _ordered(lists: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(name for names in lists for name in names))


def _listed(names: list[str], between: str = ", ") -> str:
    return between.join(names)
