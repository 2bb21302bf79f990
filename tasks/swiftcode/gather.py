"""Stage: tasks with tests and known solutions, each of them validated."""

import sys
from pathlib import Path

from tasks import stage
from tasks.stage import UserError
from tasks.swiftcode.params import Gather


@stage.command("swiftcode.gather.{dataset}", Gather)
def gather(parameters: Gather, dataset: str, path: Path, *, tasks: Path, solutions: Path, dropped: Path) -> None:
    """Read tasks, leave out what is unusable, risky or double, and solutions that fail, and divide the rest into splits.

    `dropped`: ``{"read", "kept", "dropped": {reason: [{"task", "where", "why"}]}, "solutions_dropped": [{"task", "language",
    "name", "verdict", "why"}]}``. Of a pool, which people have written for this purpose, anything to drop is an error.
    """
    import pyarrow as pa

    from tasks.swiftcode.gathering import Gathering
    from tasks.swiftcode.isolation import require
    from tasks.swiftcode.schemas import SOLUTIONS, TASKS
    from tasks.tables import write_json, write_table

    if Path(parameters.path) != path:
        raise UserError(
            f"params.yaml: swiftcode.gather.{dataset}.path is {parameters.path}, but {path} is given; use the former"
        )
    print(require(parameters.unsafe_no_sandbox).said, file=sys.stderr)
    gathered = Gathering(parameters, path)
    gathered.collect()
    write_table(tasks, pa.Table.from_pylist(gathered.task_rows(), schema=TASKS), TASKS)
    write_table(solutions, pa.Table.from_pylist(gathered.solution_rows(), schema=SOLUTIONS), SOLUTIONS)
    write_json(dropped, gathered.report())


if __name__ == "__main__":
    gather.run()
