"""Stage: train a panel's models."""

from pathlib import Path

from tasks import stage
from tasks.bpr.params import Train


@stage.command("bpr.train.{dataset}", Train)
def train(parameters: Train, dataset: str, panel: Path, *, out: Path) -> None:
    """Train one model for every objective, epsilon and seed, and write them with what was seen on the way."""
    from tasks.bpr.dataset import read_panel
    from tasks.bpr.training import fit_all, write_models

    data = read_panel(panel)
    write_models(out, data, parameters, fit_all(data, parameters))


if __name__ == "__main__":
    train.run()
