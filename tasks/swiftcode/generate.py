"""Stage: candidates for the tasks of a data set."""

import os
from pathlib import Path

from tasks import stage
from tasks.stage import UserError
from tasks.swiftcode.params import Generate

KEY = "METHODWORKS_API_KEY"  # environment variable; what it holds is sent to the servers among the generators


@stage.command("swiftcode.generate.{dataset}", Generate)
def generate(parameters: Generate, dataset: str, base: Path, tasks: Path, solutions: Path, *, out: Path) -> None:
    """Gather the known solutions of all tasks, and the answers of every generator to the training tasks."""
    import pandas as pd

    from tasks.lm.chat import Chat
    from tasks.lm.device import settle
    from tasks.lm.loading import load
    from tasks.swiftcode.candidates import read_tasks
    from tasks.swiftcode.generation import ORDER, POOL, answers, known, questions
    from tasks.swiftcode.schemas import SAMPLES, SOLUTIONS
    from tasks.tables import read_table, write_table

    key = f"params.yaml: swiftcode.generate.{dataset}"
    folders = {
        n: base if g.kind == "base" else Path(g.path) for n, g in parameters.generators.items() if g.kind != "endpoint"
    }
    if POOL in parameters.generators:
        raise UserError(f"{key}.generators: {POOL} stands for the known solutions; another name is needed")
    for name, folder in folders.items():
        if not folder.is_dir():
            raise UserError(f"{key}.generators.{name}.path: {folder}: there is no such folder")
    table = read_tasks(tasks)
    asked = questions(table[(table["split"] == "train") & table["kind"].isin(parameters.kinds)], parameters.languages)
    parts = [known(read_table(solutions, SOLUTIONS))]
    device = settle(parameters.sampling.device, parameters.sampling.threads)
    for name, generator in sorted(parameters.generators.items()):
        if generator.kind == "endpoint":
            model = Chat(generator.url, generator.model, key=os.environ.get(KEY))
        else:
            model = load(folders[name], device=device)
        try:
            parts.append(answers(model, name, asked, parameters.sampling))
        except ValueError as error:
            raise UserError(f"{key}: {name}: {error}") from None
    write_table(out, pd.concat(parts, ignore_index=True).sort_values(ORDER), SAMPLES)


if __name__ == "__main__":
    generate.run()
