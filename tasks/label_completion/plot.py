"""Stage: pictures and the text of the report, over all data sets."""

from pathlib import Path

from tasks import stage
from tasks.label_completion.params import Parameters


@stage.command("label_completion", Parameters)
def plot(parameters: Parameters, metrics: Path, study: Path, *, figures: Path, summary: Path) -> None:
    """Draw accuracies, differences and imputed cells; say in words what they show and what they do not."""
    from tasks.label_completion import figures as draw
    from tasks.label_completion.summary import summarise
    from tasks.pictures import take_study
    from tasks.tables import read_json, write_json

    datasets, confidence = parameters.datasets, parameters.evaluate.confidence
    found = {name: read_json(metrics / f"{name}.json") for name in datasets}
    figures.mkdir()
    with_truth = {name: values for name, values in found.items() if "accuracy.raw.majority" in values}
    captions = {}
    if with_truth:
        draw.accuracies(with_truth, figures / "accuracy.png", confidence)
        captions["accuracy.png"] = {
            "title": "Accuracy of the inferred labels",
            "caption": "Every aggregator on the raw answers, and on the matrices that WSLC and LDPLC completed; "
            "instance-level propagation gives its labels directly. Tasks without any answer count; their raw label is drawn.",
        }
        draw.differences(with_truth, figures / "differences.png", confidence)
        captions["differences.png"] = {
            "title": "Paired differences",
            "caption": "Differences of majority voting after one completion and another, on the same tasks and draws. "
            "An interval that covers 0 shows no difference.",
        }
        draw.cells(with_truth, figures / "cells.png", confidence)
        captions["cells.png"] = {
            "title": "Imputed cells",
            "caption": "Share of right labels among the imputed cells; strokes: accuracy of the workers' own answers.",
        }
    study_text = take_study(
        study,
        figures,
        captions,
        title="Simulated study",
        caption="LDPLC with majority voting minus its alternatives: one point per feature table, "
        "diamonds are means with 95 % intervals. Left of 0: the alternative is better.",
    )
    write_json(figures / "captions.json", captions)
    summary.write_text(summarise(found, study_text), encoding="utf-8")


if __name__ == "__main__":
    plot.run()
