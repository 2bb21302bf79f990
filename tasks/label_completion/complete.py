"""Stage: complete the label matrix of every repeat."""

from functools import partial
from pathlib import Path

from tasks import stage
from tasks.label_completion.params import Complete


@stage.command("label_completion.complete", Complete)
def complete(parameters: Complete, dataset: Path, *, completed: Path, votes: Path) -> None:
    """Fill the empty cells by WSLC, LDPLC and instance-level propagation."""
    import pyarrow as pa

    from tasks.compute import map_blocks
    from tasks.label_completion.answers import encode
    from tasks.label_completion.completion import task_graph
    from tasks.label_completion.dataset import read_dataset, repeats
    from tasks.label_completion.graph import prepare_features
    from tasks.label_completion.schemas import COMPLETED, VOTES
    from tasks.tables import write_table

    data = read_dataset(dataset)
    features = prepare_features(data.features, data.nominal)
    encoded = {
        repeat: encode(answers, tasks=features.tasks, classes=data.classes)
        for repeat, answers in repeats(data.answers).items()
    }
    graph = task_graph(features, parameters.n_neighbors)
    blocks = [(method, repeat) for method in parameters.methods for repeat in encoded]
    shared = (encoded, features, graph, parameters)
    if len(encoded) > 1:  # repeats are the blocks; the workers of each are completed in one place
        results = map_blocks(_complete_repeat, blocks, shared, description="complete")
    else:
        results = (_complete_workers(shared, block) for block in blocks)
    parts = [_tables(method, repeat, result) for (method, repeat), result in zip(blocks, results, strict=True)]
    write_table(completed, pa.concat_tables([c for c, _ in parts]).unify_dictionaries(), COMPLETED)
    write_table(votes, pa.concat_tables([v for _, v in parts]).unify_dictionaries(), VOTES)


def _complete(shared: tuple, block: tuple[str, int], run_blocks):
    from tasks.label_completion.completion import complete_encoded

    encoded, features, graph, parameters = shared
    method, repeat = block
    return complete_encoded(
        encoded[repeat],
        features,
        graph,
        method=method,
        alpha=parameters.alpha,
        n_iter=parameters.n_iter,
        zero_vector=parameters.zero_vector,
        return_=parameters.output,
        run_blocks=run_blocks,
    )


def _complete_repeat(shared: tuple, block: tuple[str, int]):
    return _complete(shared, block, lambda compute, blocks: (compute(*b) for b in blocks))


def _complete_workers(shared: tuple, block: tuple[str, int]):
    from tasks.compute import map_blocks

    run_blocks = partial(map_blocks, _call, description=f"complete {block[0]}")
    return _complete(shared, block, lambda compute, blocks: run_blocks(blocks, compute))


def _call(compute, block: tuple[int, int]):
    return compute(*block)


def _tables(method: str, repeat: int, result):
    """One part of completed.parquet and votes.parquet. The cells of "instance" only repeat the task's label: left out."""
    import numpy as np
    import pyarrow as pa

    from tasks.label_completion.schemas import COMPLETED, VOTES

    answers = result.answers
    n_tasks, _, n_classes = answers.shape

    def text(codes, names) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(list(names), pa.string()))

    if result.codes is None or method == "instance":
        completed = COMPLETED.empty_table()
    else:
        task, worker = np.nonzero(result.codes >= 0)
        columns = [
            text(np.zeros(len(task)), [method]),
            pa.array(np.full(len(task), repeat, np.int16)),
            text(task, answers.tasks),
            text(worker, answers.workers),
            text(result.codes[task, worker], answers.classes),
            pa.array(result.imputed.to_numpy()[task, worker]),
            # six decimals: what is left of rounding must not reach the file
            pa.array(np.round(result.margins[task, worker], 6)),
        ]
        completed = pa.Table.from_arrays(columns, schema=COMPLETED)
    n = n_tasks * n_classes
    columns = [
        text(np.zeros(n), [method]),
        pa.array(np.full(n, repeat, np.int16)),
        text(np.repeat(np.arange(n_tasks), n_classes), answers.tasks),
        text(np.tile(np.arange(n_classes), n_tasks), answers.classes),
        pa.array(result.votes.to_numpy().ravel()),
        pa.array(np.round(result.soft.to_numpy().ravel(), 9)),
    ]
    return completed, pa.Table.from_arrays(columns, schema=VOTES)


if __name__ == "__main__":
    complete.run()
