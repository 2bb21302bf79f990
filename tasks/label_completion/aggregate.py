"""Stage: infer one label per task from raw and from completed answers."""

from pathlib import Path

from tasks import stage
from tasks.label_completion.params import Aggregate


@stage.command("label_completion.aggregate", Aggregate)
def aggregate(
    parameters: Aggregate, dataset: Path, completed: Path, votes: Path, *, aggregated: Path, workers: Path
) -> None:
    """Aggregate raw answers by all aggregators, WSLC's and LDPLC's matrices by this project's, instance mode directly."""
    import pandas as pd

    from tasks.compute import map_blocks
    from tasks.label_completion.answers import encode
    from tasks.label_completion.dataset import read_dataset, repeats
    from tasks.label_completion.schemas import AGGREGATED, COMPLETED, VOTES, WORKERS
    from tasks.tables import read_table, write_table

    data = read_dataset(dataset)
    tasks = data.features.index
    own = list(parameters.methods)
    blocks = []
    for repeat, answers in repeats(data.answers).items():
        encoded = encode(answers, tasks=tasks, classes=data.classes)
        blocks.append(("raw", repeat, encoded, [*own, *(f"crowdkit:{name}" for name in parameters.crowdkit)]))
    matrix = read_table(completed, COMPLETED)
    for (method, repeat), part in matrix.groupby(["method", "repeat"], observed=True):
        blocks.append((method, repeat, encode(part, tasks=tasks, classes=data.classes), own))
    soft = read_table(votes, VOTES)
    for (method, repeat), part in soft.groupby(["method", "repeat"], observed=True):
        # a completion without a matrix (instance mode, or output: votes) has one aggregator: its own scores
        if matrix.empty or method == "instance":
            column = "soft" if method == "instance" else "votes"
            scores = part.pivot(index="task", columns="class", values=column).reindex(index=tasks, columns=data.classes)
            blocks.append((method, repeat, scores, ["majority"]))

    labels, agreements = [], []
    for (completion, repeat, *_), result in zip(
        blocks, map_blocks(_aggregate, blocks, parameters, description="aggregate"), strict=True
    ):
        for aggregator, table, agreement in result:
            labels.append(table.assign(completion=completion, aggregator=aggregator, repeat=repeat))
            if completion == "raw":  # on a completed matrix, agreement says nothing of a worker
                agreements.append(agreement.assign(aggregator=aggregator, repeat=repeat))
    write_table(aggregated, pd.concat(labels, ignore_index=True), AGGREGATED)
    write_table(workers, pd.concat(agreements, ignore_index=True), WORKERS)


def _aggregate(parameters: Aggregate, block: tuple) -> list[tuple]:
    """(aggregator, table of labels, table of workers) for every aggregator of one completion of one repeat."""
    import warnings

    import numpy as np
    import pandas as pd

    from tasks.label_completion.aggregation import DegenerateFit, aggregate_encoded, choose_labels

    _, repeat, answers, aggregators = block
    seed = parameters.seed + repeat
    if isinstance(answers, pd.DataFrame):
        scores = answers.to_numpy(np.float64)
        code, tie = choose_labels(scores, "random", seed)
        total = np.maximum(scores.sum(1), 1e-300)
        table = pd.DataFrame(
            {
                "task": answers.index,
                "label": answers.columns.take(code),
                "confidence": scores[np.arange(len(code)), code] / total,
                "tie": tie,
            }
        )
        return [(aggregators[0], _rounded(table), None)]
    results = []
    for aggregator in aggregators:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateFit)  # the accuracies of the report show it
            result = aggregate_encoded(
                answers,
                aggregator,
                tie_break="random",
                n_iter=parameters.n_iter,
                tolerance=1e-6,
                smoothing=parameters.smoothing,
                seed=seed,
            )
        table = result.tasks.rename_axis("task").reset_index()
        results.append((aggregator, _rounded(table), result.workers.rename_axis("worker").reset_index()))
    return results


def _rounded(table):
    return table.assign(confidence=table["confidence"].round(9))


if __name__ == "__main__":
    aggregate.run()
