"""Stage: SwiftCode, how often and how fast base and arms solve the test tasks, with intervals."""

from pathlib import Path

from tasks import stage
from tasks.swiftcode.params import Evaluate


@stage.command("swiftcode.evaluate", Evaluate)
def evaluate(
    parameters: Evaluate,
    tasks: Path,
    samples: Path,
    answers: Path,
    verdicts: Path,
    measurements: Path,
    *,
    metrics: Path,
    results: Path,
) -> None:
    """Compare base and arms in correctness and in costs, with the reference solutions and with each other."""
    from tasks.swiftcode.estimates import costs, failed, unit_of_time
    from tasks.swiftcode.evaluation import describe, evaluate_results, flat, noise
    from tasks.swiftcode.params import ARMS, BASE
    from tasks.swiftcode.results import asked_units, gather
    from tasks.swiftcode.schemas import MEASUREMENTS, RESULTS, SAMPLES, TASKS, VERDICTS
    from tasks.tables import read_table, write_json, write_table

    files = {name: answers / f"{name}.parquet" for name in (BASE, *ARMS)}
    given = {name: read_table(file, SAMPLES) for name, file in files.items() if file.exists()}
    if not given:
        raise stage.UserError(
            f"{answers}: holds no answers; allowed: {', '.join(file.name for file in files.values())}"
        )
    units = asked_units(read_table(tasks, TASKS), given)
    measured = read_table(measurements, MEASUREMENTS)
    measured = measured[measured["task"].isin(units["task"])]
    # the time's intervals are not asked for: those of the report are over tasks
    estimated = costs(measured, seed=parameters.seed, n_resamples=0)
    found = gather(units, read_table(samples, SAMPLES), given, read_table(verdicts, VERDICTS), estimated)
    write_table(results, found, RESULTS)
    content = {
        **describe(units, found),
        "data.cost": unit_of_time(measured),
        "data.failed": len(failed(measured)),
        **noise(estimated, parameters),
        **evaluate_results(found, list(given), parameters),
    }
    write_json(metrics, flat(content))


if __name__ == "__main__":
    evaluate.run()
