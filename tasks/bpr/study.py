"""Stage, off by default (`make study METHOD=bpr`): the method and its baselines on the three public panels.

Reads a folder with `<name>/data.parquet` for each of `public.PUBLIC`: columns site, period, count, split and features.
"""

from pathlib import Path

from tasks import stage
from tasks.bpr.params import Baselines, Evaluate, Rank, Train
from tasks.stage import UserError

# the project's defaults, at two epsilons and from five starts
SETTINGS = {
    "train": Train(objectives=["ml", "bpr", "daml"], epsilons=[1.0, 0.8], seeds=[0, 1, 2, 3, 4], epochs=300),
    "rank": Rank(n_samples=1000),
    "baselines": Baselines(),
    "evaluate": Evaluate(n_resamples=1000),
}


@stage.command(None)
def study(tables: Path, *, out: Path) -> None:
    """Train on every public panel, compare with baselines and with published numbers, write text and picture."""
    from tempfile import TemporaryDirectory

    from tasks.bpr.public import PUBLIC
    from tasks.bpr.study_report import figure, text
    from tasks.tables import write_json

    for name in PUBLIC:
        if not (tables / name / "data.parquet").is_file():
            raise UserError(
                f"{tables / name / 'data.parquet'}: there is no such file; the study needs all of {', '.join(PUBLIC)}"
            )
    with TemporaryDirectory() as folder:
        found = {
            name: study_panel(name, tables / name / "data.parquet", Path(folder) / name, SETTINGS) for name in PUBLIC
        }
    confidence = SETTINGS["evaluate"].confidence
    out.mkdir()
    write_json(out / "study.json", found)
    (out / "study.md").write_text(text(found, confidence), encoding="utf-8")
    figure(found, out / "study.png", confidence)


def study_panel(name: str, table: Path, folder: Path, settings: dict) -> dict[str, object]:
    """The stages one after the other on one public panel, in a scratch folder; the metrics of `evaluate`."""
    import pandas as pd

    from tasks.bpr.baselines import baselines
    from tasks.bpr.dataset import write_panel
    from tasks.bpr.evaluate import evaluate_dataset
    from tasks.bpr.public import public_panel
    from tasks.bpr.rank import rank
    from tasks.bpr.train import train

    panel, models = folder / "panel", folder / "models"
    folder.mkdir()
    write_panel(panel, public_panel(pd.read_parquet(table), name))
    baselines(settings["baselines"], panel, out=folder / "baselines.parquet")
    train(settings["train"], name, panel, out=models)
    rank(settings["rank"], panel, models, scores=folder / "scores.parquet", forecasts=folder / "forecasts.parquet")
    return evaluate_dataset(settings["evaluate"], name, folder, trained=True)


if __name__ == "__main__":
    study.run()
