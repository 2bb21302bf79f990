"""Stage, off by default (`make study METHOD=label_completion`): the simulated study over many feature tables.

Reads a folder of tables: sub-folders with features.parquet, truth.parquet and schema.json, or *.arff files.
"""

from pathlib import Path

from tasks import stage
from tasks.stage import UserError

SETTINGS = ("uniform", "gaussian")
AGGREGATORS = ("majority", "dawid_skene", "iwmv")


@stage.command(None)
def study(tables: Path, *, out: Path) -> None:
    """Simulate workers on every table, complete, aggregate, compare by Wilcoxon's test over tables."""
    import pandas as pd

    from tasks.compute import map_blocks
    from tasks.label_completion.study_report import figure, results, text
    from tasks.tables import write_json

    sets = _tables(tables)
    # many repeats where they are cheap: as the reference study that this one is compared with
    blocks = [
        (name, setting, repeat)
        for name, (features, _, _) in sets.items()
        for setting in SETTINGS
        for repeat in range(10 if len(features) <= 1100 else 5 if len(features) <= 5000 else 2)
    ]
    blocks.sort(key=lambda block: -len(sets[block[0]][0]))
    shared = _with_graphs(sets)
    rows = pd.concat(map_blocks(_repeat, blocks, shared, description="study"), ignore_index=True)
    found = results(rows)
    out.mkdir()
    write_json(out / "study.json", found)
    (out / "study.md").write_text(text(found), encoding="utf-8")
    figure(found, out / "study.png")


def _tables(folder: Path) -> dict:
    """{name: (features, truth codes, number of classes)}, features with nominal columns as categoricals."""
    import pandas as pd

    from tasks.label_completion.ceka import parse_arff
    from tasks.tables import read_json

    found = {}
    for schema_file in sorted(folder.glob("uci_*/schema.json")):
        schema = read_json(schema_file)
        features = pd.read_parquet(schema_file.parent / "features.parquet").set_index("task")
        for attribute in schema["attributes"]:
            if attribute["type"] == "nominal":
                column = features[attribute["name"]]
                features[attribute["name"]] = pd.Categorical.from_codes(
                    column.fillna(-1).astype(int), attribute["values"]
                )
        truth = pd.read_parquet(schema_file.parent / "truth.parquet").set_index("task")["label"]
        found[schema_file.parent.name.removeprefix("uci_")] = features, truth.to_numpy(), schema["n_classes"]
    if not found:
        for file in sorted(folder.rglob("*.arff")):
            table = parse_arff(file.read_text(encoding="utf-8", errors="replace"), str(file))
            features = table.features.copy()
            for column, values in table.nominal.items():
                features[column] = pd.Categorical(features[column], categories=values)
            found[file.stem] = features, pd.Index(table.classes).get_indexer(table.truth), len(table.classes)
    if not found:
        raise UserError(f"{folder}: no uci_*/schema.json and no *.arff in it")
    return found


def _with_graphs(sets: dict) -> dict:
    from tasks.label_completion.completion import task_graph
    from tasks.label_completion.graph import prepare_features

    shared = {}
    for name, (features, truth, n_classes) in stage.progress(list(sets.items()), "task graphs"):
        nominal = [c for c in features if features[c].dtype == "category"]
        prepared = prepare_features(features.set_axis(range(len(features))), nominal)
        shared[name] = prepared, task_graph(prepared, 5), truth, n_classes
    return shared


def _repeat(shared: dict, block: tuple[str, str, int]):
    """One draw of workers: accuracies (%) of every completion and aggregator, and of the imputed cells."""
    import warnings

    import numpy as np
    import pandas as pd

    from tasks.label_completion.aggregation import DegenerateFit, aggregate_encoded
    from tasks.label_completion.answers import encode
    from tasks.label_completion.completion import complete_encoded
    from tasks.label_completion.simulation import simulate_answers

    name, setting, repeat = block
    features, graph, truth, n_classes = shared[name]
    generator = np.random.default_rng([1000 + repeat, SETTINGS.index(setting)])
    drawn = simulate_answers(truth, n_classes, generator, accuracy=setting)
    options = {"tasks": features.tasks, "classes": range(n_classes)}
    answers = encode(drawn, **options)

    def accuracy(table: pd.DataFrame) -> dict[str, float]:
        encoded = encode(table, **options)
        right = {}
        for aggregator in AGGREGATORS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DegenerateFit)
                result = aggregate_encoded(
                    encoded, aggregator, tie_break="random", n_iter=20, tolerance=1e-6, smoothing=0.01, seed=repeat
                )
            right[aggregator] = _expected_accuracy(result.scores.to_numpy(), truth)
        return right

    rows = [{"completion": "raw", "zero_vector": "", **accuracy(drawn)}]
    for zero_vector in ("neutral", "drop"):
        for method in ("wslc", "ldplc", "instance") if zero_vector == "neutral" else ("wslc", "ldplc"):
            result = complete_encoded(
                answers,
                features,
                graph,
                method=method,
                alpha=0.5,
                n_iter=5,
                zero_vector=zero_vector,
                return_="matrix",
                run_blocks=lambda compute, blocks: (compute(*b) for b in blocks),
            )
            imputed = result.imputed.to_numpy() & (result.codes >= 0)
            cells = 100 * float((result.codes == truth[:, None])[imputed].mean())
            row = {"completion": method, "zero_vector": zero_vector, "cells": cells}
            if method == "instance":  # the task's own distribution; its matrix would only repeat its label
                row["majority"] = _expected_accuracy(result.soft.to_numpy(), truth)
            else:
                row |= accuracy(result.to_answers())
            rows.append(row)
    return pd.DataFrame(rows).assign(set=name, setting=setting, repeat=repeat)


def _expected_accuracy(scores, truth) -> float:
    """Accuracy in percent where ties are broken at random, its expected value."""
    import numpy as np

    tied = scores >= scores.max(1, keepdims=True) - 1e-9
    return 100 * float((tied[np.arange(len(truth)), truth] / tied.sum(1)).mean())


if __name__ == "__main__":
    study.run()
