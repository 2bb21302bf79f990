"""What the study of the public panels says: our numbers beside published ones, a text and a picture."""

from pathlib import Path

from tasks.bpr.figures import differences, model_name_of, models_of, name_of
from tasks.bpr.summary import caveats, estimate, headline, number, training_table, words

TITLES = {
    "cook_county_overdose": "Cook County (Illinois), fatal opioid overdoses by census tract and year",
    "aransas_cranes": "Aransas (Texas), whooping cranes by 500 m box and third of the winter",
    "nyc_pedestrian_injury": "New York City, pedestrians injured by census tract and year",
}
# {our forecast: (BPR, MAE)}. Heuton et al., ICML 2025, supplement; its models rank by the ratio.
PUBLISHED = {
    "cook_county_overdose": {
        "average1": (0.76, 1.07),
        "average5": (0.80, 0.99),
        "chance": (0.20, 1.37),
        "ml.ratio": (0.78, 1.03),
        "bpr.ratio": (0.82, 70.31),
        "daml1.ratio": (0.80, 1.12),
    },
    "aransas_cranes": {
        "average1": (0.27, 0.24),
        "average10": (0.38, 0.25),
        "chance": (0.05, 0.15),
        "ml.ratio": (0.38, 0.35),
        "bpr.ratio": (0.41, 40495.0),
        "daml1.ratio": (0.39, 9.08),
    },
    "nyc_pedestrian_injury": {},
}
# Other published results on the same panels: (source, method, value with its interval or deviation over seeds, quantity).
OTHERS = {
    "cook_county_overdose": [
        ("ICML 2025", "SPO+", "0.74", "BPR"),
        ("ICML 2025", "PG", "0.80", "BPR"),
        ("ICML 2025", "EpiGNN", "0.32", "BPR"),
        ("AJE 2024", "Bayesian spatio-temporal (INLA)", "0.805 (0.789–0.821)", "BPR"),
        ("AJE 2024", "average of 4", "0.801 (0.762–0.843)", "BPR"),
        ("AJE 2024", "boosted trees", "0.771", "BPR"),
        ("benchmark 2026", "network, squared error, early stopping", "0.819 ± 0.008", "pooled BPR"),
        ("benchmark 2026", "network, SPO+", "0.817 ± 0.010", "pooled BPR"),
    ],
    "aransas_cranes": [
        ("ICML 2025", "SPO+", "0.18", "BPR"),
        ("ICML 2025", "PG", "0.35", "BPR"),
        ("ICML 2025", "EpiGNN", "0.06", "BPR"),
        ("benchmark 2026", "network, squared error, early stopping", "0.325 ± 0.009", "pooled BPR"),
        ("benchmark 2026", "network, SPO+", "0.310", "pooled BPR"),
    ],
    "nyc_pedestrian_injury": [
        ("benchmark 2026", "network, squared error, early stopping", "0.816 ± 0.004", "pooled BPR"),
        ("benchmark 2026", "network, SPO+", "0.797 ± 0.028", "pooled BPR"),
        ("benchmark 2026", "network, PG", "0.795", "pooled BPR"),
    ],
}
# An earlier run of the same estimator with one seed (300 epochs, lambda 30): BPR in training at the last epoch.
EARLIER_TRAINING_BPR = {"cook_county_overdose": {"bpr": 0.873, "daml1": 0.874, "daml0.8": 0.825}}


def text(found: dict[str, dict], confidence: float) -> str:
    """The study in words and tables (markdown).

    Args:
        found: by panel, metrics as `evaluate` writes them.
    """
    parts = [headline(found), words(found, confidence)]
    for name, metrics in found.items():
        parts += [f"### {TITLES[name]}", _about(metrics), _comparison(name, metrics)]
        parts += ["Published results of other methods on this panel:", _others(OTHERS[name])]
        if name == "nyc_pedestrian_injury":
            parts.append(
                "The benchmark's network sees the number of crashes of the same year, of which the count is a part; the "
                "forecasts here do not, so the numbers are not of the same task."
            )
    parts += ["### Training", training_table(found), _training(found)]
    parts += ["### Limits", caveats(found, confidence)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _about(m: dict) -> str:
    return (
        f"{m['data.sites']} sites, K = {m['data.k']}; {m['data.train_periods']} training, {m['data.valid_periods']} "
        f"validation and {m['data.test_periods']} test periods; {m['data.test_events']:g} events in the test, of which "
        f"{m['data.test_oracle']:g} lie at the best K sites. Brackets: intervals {m['data.interval']}; ±: standard "
        "deviation between seeds. The published values stand as printed, without intervals of their own."
    )


def _comparison(name: str, m: dict) -> str:
    published = PUBLISHED[name]
    rows = [
        "| forecast | BPR | published | pooled BPR | mean absolute error | published | −log likelihood (nats) |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    forecasts = [key.removeprefix("reached.") for key in m if key.startswith("reached.")]
    for forecast in forecasts:
        model = forecast.rpartition(".")[0]
        error = model if model in models_of(m) else forecast
        reached, mae = published.get(forecast, (None, None))
        deviation = m.get(f"bpr.{forecast}.seed_sd")
        likelihood = f"{m[f'nll.{model}']:.3f}" if m.get(f"nll.{model}") is not None else "–"
        absolute = f"{m[f'mae.{error}']:.3f}" if m.get(f"mae.{error}") is not None else "–"
        rows.append(
            f"| {name_of(forecast)} | {estimate(m, f'bpr.{forecast}')}{f' ± {deviation:.3f}' if deviation else ''} | "
            f"{'–' if reached is None else f'{reached:.2f}'} | {number(m[f'bpr_pooled.{forecast}'])} | {absolute} | "
            f"{'–' if mae is None else f'{mae:g}'} | {likelihood} |"
        )
    return "\n".join(rows)


def _others(rows: list[tuple]) -> str:
    lines = ["| source | method | value | quantity |", "|---|---|---:|---|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def _training(found: dict[str, dict]) -> str:
    lines = []
    for name, m in found.items():
        for model in models_of(m):
            last, earlier = m[f"training.{model}.last_bpr"], EARLIER_TRAINING_BPR.get(name, {}).get(model)
            if earlier is not None and last is not None:
                lines.append(
                    f"- {name}, {model_name_of(model)}: BPR {number(last)} in training at the last epoch; an independent "
                    f"implementation reached {number(earlier)} ({number(last - earlier, signed=True)})."
                )
    return "\n".join(lines)


def figure(found: dict[str, dict], path: Path, confidence: float) -> None:
    """Paired differences of BPR to the moving average chosen on validation, a panel per data set."""
    differences(found, path, confidence)
