"""Stage: SwiftCode, which correct program each arm learns for each training task."""

from pathlib import Path

from tasks import stage
from tasks.swiftcode.params import Select


@stage.command("swiftcode.select", Select)
def select(
    parameters: Select, tasks: Path, samples: Path, verdicts: Path, measurements: Path, *, out: Path, margins: Path
) -> None:
    """Choose among the correct candidates of every training task by their measured costs, for every arm."""
    import pandas as pd

    from tasks.swiftcode.estimates import costs, failed, unit_of_time
    from tasks.swiftcode.schemas import MEASUREMENTS, SAMPLES, SELECTION, TASKS, VERDICTS
    from tasks.swiftcode.selection import correct_candidates, select_group, summarise
    from tasks.tables import read_table, significant, write_json, write_table

    asked = read_table(tasks, TASKS)
    training = asked.loc[asked["split"] == "train", "task"]
    measured = read_table(measurements, MEASUREMENTS)
    measured = measured[measured["task"].isin(training)]
    correct = correct_candidates(read_table(samples, SAMPLES), read_table(verdicts, VERDICTS), training)
    estimated = costs(
        measured, seed=parameters.seed, n_resamples=parameters.n_resamples, confidence=parameters.confidence
    )
    estimated = estimated[estimated["copy"] == 0]
    table = correct.merge(estimated, on=["task", "language", "candidate"], validate="one_to_one")
    if len(table) < len(estimated):
        raise stage.UserError(f"{measurements}: not of the correct candidates of {samples}; measure again")
    if not len(table):
        raise stage.UserError(f"{measurements}: no correct candidate of a training task was measured; nothing to learn")
    groups = table.groupby(["task", "language"])
    selection = pd.concat([select_group(group, parameters, *key) for key, group in groups], ignore_index=True)
    write_table(out, selection, SELECTION)
    found = {
        "cost": unit_of_time(measured),
        "failed": len(failed(measured)),
        "unmeasured": len(correct) - len(table),
        **summarise(selection, parameters),
    }
    write_json(margins, {k: significant(v) if isinstance(v, float) else v for k, v in found.items()})


if __name__ == "__main__":
    select.run()
