"""Stage: accuracies of all data sets, with intervals."""

from pathlib import Path

from tasks import stage
from tasks.label_completion.params import Evaluate, Parameters


@stage.command("label_completion", Parameters)
def evaluate(parameters: Parameters, data: Path, *, out: Path) -> None:
    """Compare inferred labels and completed cells with the truth; describe the data; one flat JSON file a data set."""
    from tasks.tables import write_json

    # one stage for all data sets: its folder is written anew, so that a data set that was dropped leaves no metrics
    out.mkdir()
    for name in stage.progress(parameters.datasets, "evaluate"):
        write_json(out / f"{name}.json", evaluate_dataset(parameters.evaluate, name, data / name))


def evaluate_dataset(parameters: Evaluate, name: str, folder: Path) -> dict[str, object]:
    """The metrics of one data set, from its folder."""
    import numpy as np

    from tasks.label_completion.answers import encode
    from tasks.label_completion.dataset import read_dataset, repeats, truth_codes
    from tasks.label_completion.metrics import Bootstrap, krippendorff_alpha
    from tasks.label_completion.schemas import AGGREGATED, COMPLETED
    from tasks.tables import read_table, significant

    data = read_dataset(folder / "dataset")
    truth = truth_codes(data)
    known = truth >= 0
    encoded = [encode(part, tasks=data.features.index, classes=data.classes) for part in repeats(data.answers).values()]
    metrics: dict[str, object] = {
        "data.origin": data.origin,
        "data.simulated_workers": data.simulated,
        "data.tasks": len(truth),
        "data.features": data.features.shape[1],
        "data.classes": len(data.classes),
        "data.workers": len(encoded[0].workers),
        "data.repeats": len(encoded),
        "data.answers_per_task": np.mean([len(a.task) / len(truth) for a in encoded]),
        "data.unlabelled_share": np.mean([(np.diff(a.task_start) == 0).mean() for a in encoded]),
        "data.krippendorff_alpha": np.mean([krippendorff_alpha(a) for a in encoded]),
        "data.answer_accuracy": _answer_accuracy(encoded, truth),
    }
    if known.any():
        bootstrap = Bootstrap(
            len(encoded),
            int(known.sum()),
            stage.random_generator(parameters.seed, name),
            n_resamples=parameters.n_resamples,
            confidence=parameters.confidence,
        )
        right = _right_labels(read_table(folder / "aggregated.parquet", AGGREGATED), data, truth)
        for key, values in right.items():
            _put(metrics, f"accuracy.{key}", bootstrap.ratio(values[:, known]))
        for key, minus in _differences(right):
            _put(metrics, f"difference.{key}.minus.{minus}", bootstrap.ratio((right[key] - right[minus])[:, known]))
        cells = read_table(folder / "completed.parquet", COMPLETED)
        for method, (correct, number) in _right_cells(cells, data, truth).items():
            _put(metrics, f"cells.{method}", bootstrap.ratio(correct[:, known], number[:, known]))
    return {
        key: (None if np.isnan(value) else significant(value)) if isinstance(value, float) else value
        for key, value in metrics.items()
    }


def _put(metrics: dict, key: str, estimate) -> None:
    metrics[key] = estimate.value
    if estimate.low is not None:
        metrics[f"{key}.low"], metrics[f"{key}.high"] = estimate.low, estimate.high


def _answer_accuracy(encoded: list, truth) -> float:
    import numpy as np

    right = [(truth[a.task] == a.label)[truth[a.task] >= 0] for a in encoded]
    together = np.concatenate(right)
    return float(together.mean()) if len(together) else float("nan")


def _right_labels(table, data, truth) -> dict:
    """{"completion.aggregator": int64 (repeats, tasks), 1 where the label is the truth}."""
    import numpy as np
    import pandas as pd

    classes, tasks = pd.Index(data.classes), data.features.index
    table = table.assign(
        right=classes.get_indexer(table["label"]) == truth[tasks.get_indexer(table["task"])],
        key=table["completion"].astype("str")
        + "."
        + table["aggregator"].astype("str").str.replace("crowdkit:", "crowdkit_"),
    )
    return {
        key: part.pivot(index="repeat", columns="task", values="right")
        .reindex(columns=tasks, fill_value=False)
        .to_numpy(np.int64)
        for key, part in table.groupby("key", sort=False)
    }


def _right_cells(table, data, truth) -> dict:
    """{method: (right labels among the imputed cells of a task, number of these cells)}, each int64 (repeats, tasks)."""
    import numpy as np
    import pandas as pd

    tasks = data.features.index
    table = table[table["imputed"]]
    code = pd.Index(data.classes).get_indexer(table["label"])
    row = tasks.get_indexer(table["task"])
    repeat = table["repeat"].to_numpy()
    n_repeats = int(data.answers["repeat"].max()) + 1
    cells = {}
    for method in table["method"].cat.categories:
        here = (table["method"] == method).to_numpy()
        flat = repeat[here].astype(np.int64) * len(tasks) + row[here]
        number = np.bincount(flat, minlength=n_repeats * len(tasks)).reshape(n_repeats, -1)
        correct = np.bincount(flat[code[here] == truth[row[here]]], minlength=n_repeats * len(tasks))
        cells[method] = correct.reshape(n_repeats, -1), number
    return cells


def _differences(right: dict) -> list[tuple[str, str]]:
    """The comparisons that matter: each completion against none, LDPLC against WSLC, instance mode against LDPLC."""
    aggregators = [key.removeprefix("raw.") for key in right if key.startswith("raw.") and "crowdkit" not in key]
    pairs = [(f"{method}.{a}", f"raw.{a}") for method in ("wslc", "ldplc") for a in aggregators]
    pairs += [(f"ldplc.{a}", f"wslc.{a}") for a in aggregators]
    pairs += [("instance.majority", "raw.majority"), ("instance.majority", "ldplc.majority")]
    return [(a, b) for a, b in pairs if a in right and b in right]


if __name__ == "__main__":
    evaluate.run()
