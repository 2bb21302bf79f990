"""Stage: measure the correct candidates of a split. Its output is times, which differ from run to run."""

import sys
from pathlib import Path

from tasks import stage
from tasks.stage import UserError
from tasks.swiftcode.params import Measure


@stage.command("swiftcode.measure", Measure)
def measure(parameters: Measure, split: str, tasks: Path, verdicts: Path, samples: list[Path], *, out: Path) -> None:
    """Run every correct candidate several times on large inputs. What this machine has measured before is not run again."""
    import pandas as pd

    from tasks.compute import map_blocks
    from tasks.swiftcode.callgrind import valgrind
    from tasks.swiftcode.candidates import KEY, candidates, judged_task, read_samples, read_tasks, sizes_of
    from tasks.swiftcode.isolation import require
    from tasks.swiftcode.measuring import Program, measure_task
    from tasks.swiftcode.schemas import MEASUREMENTS, VERDICTS
    from tasks.tables import read_table, write_table

    print(require(parameters.unsafe_no_sandbox).said, file=sys.stderr)
    if parameters.cost == "instructions":
        valgrind()
    wanted = read_tasks(tasks)
    wanted = wanted[wanted["split"] == split]
    rows = read_samples(samples)
    known = rows[(rows["generator"] == "pool") & (rows["sample"] == 0)][KEY].assign(reference=True)
    judged = read_table(verdicts, VERDICTS).astype({"task": "str", "language": "str", "verdict": "str"})
    good = judged[(judged["verdict"] == "accepted") & judged["task"].isin(wanted["task"])][KEY]
    found = candidates(rows).merge(good, on=KEY).merge(known.drop_duplicates(KEY), on=KEY, how="left")
    if not len(found):
        raise UserError(f"{verdicts}: no candidate of split {split!r} is accepted; there is nothing to measure")
    programs = {
        name: [Program(r.language, r.candidate, r.source, r.reference is True) for r in part.itertuples()]
        for name, part in found.groupby("task")
    }
    blocks = [
        (
            row.task,
            judged_task(row),
            row.generator if isinstance(row.generator, str) else None,
            sizes_of(row),
            programs[row.task],
        )
        for row in wanted.itertuples()
        if row.task in programs
    ]
    measured = map_blocks(measure_task, blocks, parameters, description=f"measure {split}")
    table = pd.DataFrame([row for block in measured for row in block])
    table["instructions"] = table["instructions"].astype("Int64")
    order = ["task", "language", "candidate", "copy", "round"]
    write_table(out, table.sort_values(order, ignore_index=True), MEASUREMENTS)


if __name__ == "__main__":
    measure.run()
