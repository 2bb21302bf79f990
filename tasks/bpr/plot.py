"""Stage: pictures and the text of the report, over all data sets."""

from pathlib import Path

from tasks import stage
from tasks.bpr.params import Parameters


@stage.command("bpr", Parameters)
def plot(parameters: Parameters, data: Path, metrics: Path, study: Path, *, figures: Path, summary: Path) -> None:
    """Draw what was reached, differences, frontier, maps and training; say in words what they show and what they do not."""
    from tasks.bpr.dataset import read_panel
    from tasks.bpr.evaluate import read_predictions
    from tasks.bpr.summary import summarise
    from tasks.pictures import take_study
    from tasks.tables import read_json, write_json

    confidence = parameters.evaluate.confidence
    found = {name: read_json(metrics / f"{name}.json") for name in parameters.datasets}
    results = {}  # panel, predictions and runs of every data set
    for name in parameters.datasets:
        panel = read_panel(data / name / "panel")
        results[name] = panel, *read_predictions(data / name, panel, trained=name in parameters.train)
    figures.mkdir()
    captions = _comparisons(found, figures, confidence)
    captions |= _models(
        {name: results[name] for name in found if name in parameters.train}, data, found, figures, confidence
    )
    captions |= _maps(results, figures)
    study_text = take_study(
        study,
        figures,
        captions,
        title="Study on the public panels",
        caption="Difference of BPR to the moving average chosen on validation, with intervals over subsets of the "
        "sites; few test periods each. Left of 0: worse than the average.",
    )
    write_json(figures / "captions.json", captions)
    summary.write_text(summarise(found, study_text, confidence), encoding="utf-8")


def _comparisons(found: dict, figures: Path, confidence: float) -> dict:
    from tasks.bpr import figures as draw

    draw.reached(found, figures / "reached.png", confidence)
    captions = {
        "reached.png": {
            "title": "Events reached",
            "caption": "BPR-K of every forecast: events at the K sites that it chose, divided by the events at the K best "
            "sites in hindsight, mean over the test periods (and over seeds for models). Each title says over what the "
            "intervals are: an interval over sites is not one over years. Dotted: sites chosen at random; dashed: the "
            "best that was possible.",
        }
    }
    compared = {name: values for name, values in found.items() if draw.differences_of(values)}
    if compared:
        draw.differences(compared, figures / "differences.png", confidence)
        captions["differences.png"] = {
            "title": "Differences to the moving average",
            "caption": "BPR minus that of the moving average that was best on the validation periods, on the same "
            "resamples. An interval that covers 0 shows no difference.",
        }
    return captions


def _models(results: dict, data: Path, found: dict, figures: Path, confidence: float) -> dict:
    from tasks.bpr import figures as draw
    from tasks.bpr.evaluation import model_name, per_run
    from tasks.bpr.schemas import EPOCHS
    from tasks.tables import read_table

    if not results:
        return {}
    found = {name: found[name] for name in results}
    points, epochs = {}, {}
    for name, (panel, predictions, runs) in results.items():
        table = per_run(panel.part("valid", "test"), predictions)
        rule = next(rule for rule in ("delta_ratio", "ratio", "topk_ratio", "mean") if (table["rule"] == rule).any())
        points[name] = table[table["rule"] == rule]
        named = [model_name(o, e) for o, e in zip(runs["objective"], runs["epsilon"], strict=True)]
        model_of = dict(zip(runs["run"].astype("str"), named, strict=True))
        seen = read_table(data / name / "models/epochs.parquet", EPOCHS)
        seen["run"] = seen["run"].astype("str")
        epochs[name] = seen.assign(model=seen["run"].map(model_of)).sort_values(["run", "epoch"])
    draw.frontier(points, found, figures / "frontier.png", confidence)
    draw.training(epochs, found, figures / "training.png")
    return {
        "frontier.png": {
            "title": "BPR against likelihood",
            "caption": "One point per training run, on the test periods: up, more events reached; left, counts predicted "
            "better. The line is the moving average chosen on validation, with the band of its interval.",
        },
        "training.png": {
            "title": "Training",
            "caption": "BPR and negative log-likelihood by epoch, one thin line per seed; solid: training periods, dashed: "
            "validation periods. Where the dashed lines turn while the solid ones go on, the model learns its training "
            "periods by heart.",
        },
    }


def _maps(results: dict, figures: Path) -> dict:
    from tasks.bpr import figures as draw
    from tasks.bpr.evaluation import sites_on_map

    maps = {}
    for name, (panel, predictions, _) in results.items():
        if panel.coordinates is not None:
            drawn = sites_on_map(panel.part("valid", "test"), predictions)
            if drawn is not None:
                maps[name] = {**drawn, "forecast": f"{draw.name_of(drawn['forecast'])} {drawn['run']}".strip()}
    if not maps:
        return {}
    draw.sites(maps, figures / "sites.png")
    return {
        "sites.png": {
            "title": "Chosen sites",
            "caption": "The K sites that the model run (or, without models, the moving average) with the largest "
            "validation BPR chose for the last test period with events, and the K sites where most events happened.",
        }
    }


if __name__ == "__main__":
    plot.run()
