"""Stage: judge every candidate of a split in the sandbox, on the tests of its task."""

import sys
from pathlib import Path

from tasks import stage
from tasks.stage import UserError
from tasks.swiftcode.params import Judge


@stage.command("swiftcode.judge", Judge)
def execute(parameters: Judge, split: str, tasks: Path, samples: list[Path], *, out: Path) -> None:
    """Judge distinct candidates; what was judged before under the same limits is not run again. `samples`: tables or folders.

    One block of work is a task with all its candidates. On a slow machine limits of time grow with its calibration.
    """
    import pandas as pd

    from tasks.compute import map_blocks
    from tasks.swiftcode.candidates import candidates, judged_task, read_samples, read_tasks
    from tasks.swiftcode.isolation import require
    from tasks.swiftcode.judging import judge_task
    from tasks.swiftcode.schemas import VERDICTS
    from tasks.tables import write_table

    print(require(parameters.unsafe_no_sandbox).said, file=sys.stderr)
    wanted = read_tasks(tasks)
    wanted = wanted[wanted["split"] == split]
    found = candidates(read_samples(samples))
    found = found[found["task"].isin(wanted["task"])]
    if not len(found):
        raise UserError(f"{', '.join(map(str, samples))}: there is no program for a task of split {split!r}")
    by_task = dict(list(found.groupby("task")))
    blocks = [
        (
            row.task,
            judged_task(row),
            list(by_task[row.task][["language", "candidate", "source"]].itertuples(index=False)),
        )
        for row in wanted.itertuples()
        if row.task in by_task
    ]
    blocks = [(name, task, [tuple(one) for one in programs]) for name, task, programs in blocks]
    shared = (parameters.limits, parameters.unsafe_no_sandbox)
    rows = [row for block in map_blocks(judge_task, blocks, shared, description=f"judge {split}") for row in block]
    failed = [row for row in rows if row["verdict"] == "harness_error"]
    if failed:
        raise UserError(
            f"{len(failed)} candidates could not be judged, the first of task {failed[0]['task']}: {failed[0]['message']}"
        )
    table = pd.DataFrame(rows).sort_values(["task", "language", "candidate"], ignore_index=True)
    table["test"] = table["test"].astype("Int32")
    write_table(out, table, VERDICTS)


if __name__ == "__main__":
    execute.run()
