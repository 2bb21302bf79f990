"""Stage: BPR, errors and likelihood of all data sets' forecasts, with intervals."""

from pathlib import Path

from tasks import stage
from tasks.bpr.params import Evaluate, Parameters


@stage.command("bpr", Parameters)
def evaluate(parameters: Parameters, data: Path, *, out: Path) -> None:
    """Compare the chosen sites of every forecast with the best in hindsight, on the test periods; one JSON a data set."""
    from tasks.tables import write_json

    # one stage for all data sets: its folder is written anew, so that a data set that was dropped leaves no metrics
    out.mkdir()
    for name in stage.progress(parameters.datasets, "evaluate"):
        found = evaluate_dataset(parameters.evaluate, name, data / name, trained=name in parameters.train)
        write_json(out / f"{name}.json", found)


def evaluate_dataset(parameters: Evaluate, name: str, folder: Path, *, trained: bool) -> dict[str, object]:
    """The metrics of one data set, from its folder."""
    from tasks.bpr.dataset import read_panel
    from tasks.bpr.evaluation import describe_panel, describe_training, evaluate_panel, flat

    panel = read_panel(folder / "panel")
    predictions, runs = read_predictions(folder, panel, trained=trained)
    metrics = describe_panel(panel)
    if runs is not None:
        metrics |= describe_training(runs)
    generator = stage.random_generator(parameters.seed, name)
    metrics |= evaluate_panel(panel.part("valid", "test"), predictions, generator, parameters)
    return flat(metrics)


def read_predictions(folder: Path, panel, *, trained: bool):
    """(`Predictions`, RUNS or None) of a data set's folder; models left by an earlier run are looked at only if trained."""
    from tasks.bpr.evaluation import gather
    from tasks.bpr.schemas import BASELINES, FORECASTS, RUNS, SCORES
    from tasks.tables import read_table

    tables = [read_table(folder / "baselines.parquet", BASELINES)]
    if trained:
        tables += [
            read_table(folder / "models/runs.parquet", RUNS),
            read_table(folder / "scores.parquet", SCORES),
            read_table(folder / "forecasts.parquet", FORECASTS),
        ]
    predictions = gather(panel.part("valid", "test"), *tables, where=f"{folder}/")
    return predictions, tables[1] if trained else None


if __name__ == "__main__":
    evaluate.run()
