"""Stage: score the sites by the trained models' predictive distributions."""

from pathlib import Path

from tasks import stage
from tasks.bpr.params import Rank


@stage.command("bpr.rank", Rank)
def rank(parameters: Rank, panel: Path, models: Path, *, scores: Path, forecasts: Path) -> None:
    """Score every site of the validation and test periods by every run and rule, and write the forecasts themselves."""
    import pandas as pd

    from tasks.bpr.dataset import read_panel
    from tasks.bpr.prediction import forecast, rule_scores
    from tasks.bpr.schemas import FORECASTS, SCORES
    from tasks.bpr.training import batch_of, read_models
    from tasks.tables import write_table

    whole = read_panel(panel)
    about, standardizer, trained = read_models(models, whole)
    data = whole.part("valid", "test")
    batch = batch_of(data, standardizer)
    cells = pd.MultiIndex.from_product([data.periods, data.sites]).to_frame(index=False, name=["period", "site"])
    scored, forecasted = [], []
    for name, model in stage.progress(trained, "rank"):
        arrays = rule_scores(model, batch, data.k, parameters, name, about["denominator_offset"])
        scored += [cells.assign(run=name, rule=rule, score=array.ravel()) for rule, array in arrays.items()]
        columns = {key: array.ravel() for key, array in forecast(model, batch, data.counts).items()}
        forecasted.append(cells.assign(run=name, **columns))
    write_table(scores, pd.concat(scored, ignore_index=True), SCORES)
    write_table(forecasts, pd.concat(forecasted, ignore_index=True), FORECASTS)


if __name__ == "__main__":
    rank.run()
