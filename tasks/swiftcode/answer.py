"""Stage: a model's answers to the test tasks."""

from pathlib import Path

from tasks import stage
from tasks.stage import UserError
from tasks.swiftcode.params import Sampling


@stage.command("swiftcode.answers.{dataset}", Sampling)
def answer(parameters: Sampling, dataset: str, model_name: str, model: Path, tasks: Path, *, out: Path) -> None:
    """Draw a model's answers to the functions of the test split, and take the programs out of them."""
    from tasks.lm.device import settle
    from tasks.lm.loading import load
    from tasks.swiftcode.candidates import read_tasks
    from tasks.swiftcode.generation import answers, questions
    from tasks.swiftcode.schemas import SAMPLES
    from tasks.tables import write_table

    table = read_tasks(tasks)
    asked = questions(table[(table["split"] == "test") & (table["kind"] == "function")], ["python"])
    loaded = load(model, device=settle(parameters.device, parameters.threads))
    try:
        found = answers(loaded, model_name, asked, parameters)
    except ValueError as error:
        raise UserError(f"params.yaml: swiftcode.answers.{dataset}: {error}") from None
    write_table(out, found, SAMPLES)


if __name__ == "__main__":
    answer.run()
