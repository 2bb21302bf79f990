"""Stage: pictures and the text of the report, over all data sets."""

from pathlib import Path

from tasks import stage
from tasks.swiftcode.params import Parameters


@stage.command("swiftcode", Parameters)
def plot(parameters: Parameters, data: Path, metrics: Path, *, figures: Path, summary: Path) -> None:
    """Draw correctness, times, differences, selection and training; say what they show and what not."""
    from tasks.swiftcode import figures as draw
    from tasks.swiftcode.schemas import RESULTS
    from tasks.swiftcode.summary import summarise
    from tasks.tables import read_json, read_table, write_json

    confidence = parameters.evaluate.confidence
    found = {name: read_json(metrics / f"{name}.json") for name in parameters.datasets}
    results = {name: read_table(data / name / "results.parquet", RESULTS) for name in parameters.datasets}
    evidence = {name: _evidence(parameters, name, data / name, found[name]) for name in parameters.datasets}
    figures.mkdir()
    draw.correctness(found, figures / "correctness.png", confidence)
    draw.speed(found, results, figures / "speed.png", confidence)
    captions = {
        "correctness.png": {
            "title": "Correct answers: pass@k",
            "caption": "Probability that at least one of k answers passes all tests of its task, mean over the test tasks, "
            f"with {confidence:.0%} intervals over tasks. All arms were trained on the same tasks and differ only in which "
            "correct program of each they saw; random-correct is the control.",
        },
        "speed.png": {
            "title": "Time against the reference solution",
            "caption": "Net time of the correct answers as a multiple of the reference solution's, on the same large input. "
            "A point is a task and language that the model solves; models are compared on different tasks here, each on "
            "those that it solves. The band is how much one program differs from itself when it is measured twice.",
        },
    }
    if any(map(draw.pairs_of, found.values())):
        draw.differences(found, figures / "differences.png", confidence)
        captions["differences.png"] = {
            "title": "Paired differences between arms",
            "caption": "Left: pass@k of the first minus that of the second, on all test tasks. Right: ratios of net time and "
            "memory, on the tasks that both solve. An interval that holds the line (0, or 1) does not tell the two apart. "
            "What the selection does is the difference between fastest and random-correct, and not that from the base.",
        }
    captions |= _candidates(parameters, data, evidence, figures)
    captions |= _training(parameters, data, figures)
    write_json(figures / "captions.json", captions)
    summary.write_text(summarise(evidence, confidence), encoding="utf-8")


def _evidence(parameters: Parameters, name: str, folder: Path, metrics: dict):
    """What the text of the report is made of, for one data set."""
    import pandas as pd

    from tasks.swiftcode import figures as draw
    from tasks.swiftcode.schemas import MEASUREMENTS, SELECTION
    from tasks.swiftcode.summary import Evidence, runs
    from tasks.tables import read_json, read_table

    select = parameters.select
    table = read_table(folder / "selection.parquet", SELECTION)
    files = [folder / "measurements" / f"{split}.parquet" for split in ("train", "test")]
    measured = pd.concat([read_table(file, MEASUREMENTS) for file in files], ignore_index=True)
    return Evidence(
        metrics=metrics,
        dropped=read_json(folder / "dropped.json"),
        margins=read_json(folder / "margins.json"),
        arms={arm: read_json(folder / "models" / arm / "arm.json") for arm in parameters.arms},
        selection=table,
        memory_groups=draw.memory_groups(table, select.tie, select.memory_tie_mb),
        runs=runs(measured),
        parameters=parameters,
        model=parameters.models.get(name),
        generate=parameters.generate[name],
        answers=parameters.answers[name],
    )


def _candidates(parameters: Parameters, data: Path, evidence: dict, figures: Path) -> dict:
    from tasks.swiftcode import figures as draw

    cost, captions = parameters.measure.cost, {}
    for name, found in evidence.items():
        file = f"selection-{name}.png"
        hidden = draw.selection(name, found.selection, found.margins, cost, figures / file)
        left_out = f" {hidden} more are not shown, those without a choice first." if hidden else ""
        captions[file] = {
            "title": f"Selection among the candidates: {name}",
            "caption": "Net times of the distinct correct programs of each training task, with their intervals over rounds "
            f"of measurement, and the one that the rule {parameters.select.rule} chose. On the right: time of the second "
            "fastest, and the median time, as multiples of the fastest. Where all lie together there is nothing to learn. "
            f"Times too short to be told from nothing stand at the smallest one that can.{left_out}",
        }
        if found.memory_groups:
            file = f"memory-{name}.png"
            draw.memory(name, found.selection, found.memory_groups, cost, figures / file)
            captions[file] = {
                "title": f"Memory where it decides: {name}",
                "caption": f"Net peak memory against net time of the candidates, for the first {draw.MOST_PANELS} at most of "
                f"the {len(found.memory_groups)} tasks and languages where candidates that are tied in time differ in "
                "memory, or where the rule passed over the fastest ones.",
            }
    return captions


def _training(parameters: Parameters, data: Path, figures: Path) -> dict:
    from tasks.swiftcode import figures as draw
    from tasks.swiftcode.schemas import CURVE
    from tasks.tables import read_table

    curves = {
        name: {arm: read_table(data / name / "models" / arm / "curve.parquet", CURVE) for arm in parameters.arms}
        for name in parameters.datasets
    }
    draw.training(curves, figures / "training.png")
    return {
        "training.png": {
            "title": "Training of the arms",
            "caption": "Cross entropy of the programs' tokens before each step, and the norm of its gradient. Losses of "
            "different arms are of different programs: a lower one means programs that are easier to predict, not better "
            "ones.",
        }
    }


if __name__ == "__main__":
    plot.run()
