"""Stage: implicit PRM, what the scorers of all data sets are worth, with intervals."""

from pathlib import Path

from tasks import stage
from tasks.prm.params import Evaluate, Parameters


@stage.command("prm", Parameters)
def evaluate(parameters: Parameters, data: Path, *, out: Path) -> None:
    """Choose loss, aggregation and reference on validation problems, report them on test problems; one JSON a data set."""
    from tasks.tables import write_json

    # one stage for all data sets: its folder is written anew, so that a data set that was dropped leaves no metrics
    out.mkdir()
    for name in stage.progress(parameters.datasets, "evaluate"):
        origin = {"data.responses": "sampled" if name in parameters.rollouts else "given"}
        found = evaluate_dataset(parameters.evaluate, name, data / name, parameters.losses)
        write_json(out / f"{name}.json", origin | found)


def evaluate_dataset(parameters: Evaluate, name: str, folder: Path, losses: list[str]) -> dict[str, object]:
    """The metrics of one data set, from its folder."""
    from tasks.prm.evaluation import evaluate_responses, flat
    from tasks.prm.schemas import PROBLEMS
    from tasks.prm.scored import describe
    from tasks.tables import read_table

    problems = read_table(folder / "problems.parquet", PROBLEMS)
    rollouts, responses = read_responses(folder, losses)
    return flat(describe(problems, rollouts) | evaluate_responses(name, responses, parameters))


def read_responses(folder: Path, losses: list[str]):
    """(ROLLOUTS, {split: `Responses`}) of a data set's folder, with the steps of these losses' models and of no others."""
    from tasks.prm.schemas import ROLLOUTS, STEPS
    from tasks.prm.scored import gather
    from tasks.tables import read_table

    rollouts = read_table(folder / "rollouts.parquet", ROLLOUTS)
    scores = {loss: read_table(folder / f"scores/{loss}.parquet", STEPS) for loss in losses}
    betas = {loss: read_beta(folder / f"models/{loss}/prm.json") for loss in losses}
    return rollouts, gather(rollouts, scores, betas, where=f"{folder}/")


def read_beta(file: Path) -> float:
    """Raises UserError where the file of a trained model holds none."""
    from tasks.tables import read_json

    content = read_json(file)
    beta = content.get("beta") if isinstance(content, dict) else None
    if isinstance(beta, bool) or not isinstance(beta, int | float) or not 0 < beta < float("inf"):
        raise stage.UserError(f"{file}: beta is {beta!r}; a number above 0 is allowed; train again")
    return float(beta)


if __name__ == "__main__":
    evaluate.run()
