"""Speed of label completion against its peers: ``make bench METHOD=label_completion``.

Every figure is CPU seconds of one thread, the best of several runs in this process after compilation; ratios are
between two things measured in turn in the same run. Peak memory is measured in a process of its own. Writes
``reports/label_completion/benchmark.json`` and prints a table. A bound that is missed is printed as MISSED, exit 1.
"""

import json
import multiprocessing
import sys
import time
from collections.abc import Callable

from tests.bench.measure import ROOT, cpu_seconds, memory_mb, pipeline, reset_peak, row, write

import numpy as np  # isort: skip
import pandas as pd  # isort: skip

DATA = ROOT.parent / "shared/data/ldplc"
# Authors' Java (LDPLC.java, exact QP in place of MATLAB's), CPU seconds, measured elsewhere: for orientation only.
JAVA = {"labelme": 11.9, "reuters": 17.1}


def simulated(n_tasks: int, n_workers: int, n_answers: int, n_classes: int, n_features: int, seed: int = 0):
    """Answers of workers of accuracy U(.6, .9) on tasks whose features carry the class: (answers, features, truth)."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, n_classes, n_tasks)
    centres = generator.normal(size=(n_classes, n_features))
    features = pd.DataFrame(generator.normal(size=(n_tasks, n_features)) + centres[truth])
    cells = np.unique(generator.integers(0, n_tasks * n_workers, int(1.02 * n_answers)))
    task, worker = np.divmod(generator.permutation(cells)[:n_answers], n_workers)
    right = generator.random(len(task)) < generator.uniform(0.6, 0.9, n_workers)[worker]
    wrong = (truth[task] + generator.integers(1, n_classes, len(task))) % n_classes
    return pd.DataFrame({"task": task, "worker": worker, "label": np.where(right, truth[task], wrong)}), features, truth


def real_set(name: str):
    schema = json.loads((DATA / name / "schema.json").read_text())
    answers = pd.read_parquet(DATA / name / "answers.parquet")
    features = pd.read_parquet(DATA / name / "features.parquet").set_index("task")
    nominal = [a["name"] for a in schema["attributes"] if a["type"] == "nominal"]
    return answers, features, {"nominal": nominal, "classes": list(range(schema["n_classes"]))}


def real_sets() -> list[dict]:
    from tasks.label_completion.completion import complete_labels

    rows = []
    for name, bound in (("labelme", 0.12), ("reuters", 0.5)):
        if not (DATA / name).exists():
            print(f"{DATA / name} is absent: not measured")
            continue
        answers, features, options = real_set(name)
        value = cpu_seconds(lambda: complete_labels(answers, features, **options).labels)  # noqa: B023
        rows.append(row(f"LDPLC, {name}", value, "CPU s", bound))
        rows.append(row(f"authors' Java / this, {name} (Java: {JAVA[name]} CPU s elsewhere)", JAVA[name] / value, "×"))
    return rows


def large(memory: multiprocessing.Queue, size: tuple, return_: str) -> None:
    """One completion in its own process: CPU seconds and peak memory above the interpreter with its imports and data."""
    from tasks.label_completion.completion import complete_labels

    answers, features, _ = simulated(60, 20, 300, size[3], size[4])
    complete_labels(answers, features, return_=return_).labels  # noqa: B018  (compiles)
    answers, features, truth = simulated(*size)
    reset_peak()
    before = memory_mb("VmRSS")
    begin = time.process_time()
    done = complete_labels(answers, features, return_=return_)
    labels = done.labels
    seconds = time.process_time() - begin
    peak = memory_mb("VmHWM")
    above = peak - before
    accuracy = float((done.votes.to_numpy().argmax(1) == truth).mean())
    memory.put((seconds, above, peak, accuracy, None if labels is None else labels.shape))


def scales(full: bool) -> list[dict]:
    rows = []
    cases = [("matrix, 1e4 tasks × 1e3 workers, 1e5 answers, C=4, D=32", (10_000, 1_000, 100_000, 4, 32), "matrix")]
    if full:
        cases.append(
            ("votes, 1e5 tasks × 1e4 workers, 1e6 answers, C=4, D=32", (100_000, 10_000, 1_000_000, 4, 32), "votes")
        )
    for name, size, return_ in cases:
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        process = context.Process(target=large, args=(queue, size, return_))
        process.start()
        seconds, above, peak, accuracy, _ = queue.get()
        process.join()
        rows.append(row(f"LDPLC, {name}", seconds, "CPU s", 4.0 if return_ == "matrix" else None))
        if return_ == "matrix":
            rows.append(row("  memory above the interpreter", above, "MB", 300))
        else:
            rows.append(row("  peak memory of the process", peak, "MB", 1024))
        rows.append(row("  accuracy of majority voting on it", 100 * accuracy, "%"))
    return rows


def dawid_skene() -> list[dict]:
    """CPU time of one EM round: the difference of a long and a short fit, so that set-up costs drop out."""
    from crowdkit.aggregation import DawidSkene

    from tasks.label_completion.aggregation import aggregate_encoded
    from tasks.label_completion.answers import encode

    options = {"tie_break": "first", "tolerance": 0.0, "smoothing": 0.01, "seed": 0}
    rows = []
    for size, short, long, bound in (
        ((10_000, 1_000, 100_000, 4, 1), 2, 12, 25.0),
        ((100_000, 10_000, 1_000_000, 4, 1), 1, 4, 10.0),
    ):
        answers, _, _ = simulated(*size)
        encoded = encode(answers)
        own, peer = [], []
        for _ in range(3):  # in turn, so that a slow moment of the machine meets both
            own.append(_round(lambda n: aggregate_encoded(encoded, "dawid_skene", n_iter=n, **options), 5, 55))  # noqa: B023
            peer.append(_round(lambda n: DawidSkene(n_iter=n, tol=-1).fit(answers), short, long))  # noqa: B023
        ratio = float(np.median([b / a for a, b in zip(own, peer, strict=True)]))
        rows.append(row(f"Dawid–Skene round, {size[2]:.0e} answers", 1000 * float(np.median(own)), "CPU ms"))
        rows.append(row("  crowd-kit's round / this one", ratio, "×", -bound))
    return rows


def _round(fit: Callable[[int], object], short: int, long: int) -> float:
    times = []
    for n_iter in (short, long):
        begin = time.process_time()
        fit(n_iter)
        times.append(time.process_time() - begin)
    return (times[1] - times[0]) / (long - short)


def main() -> None:
    rows = [*real_sets(), *dawid_skene(), *scales(full="--quick" not in sys.argv), *pipeline("label_completion", 120)]
    write("label_completion", rows)


if __name__ == "__main__":
    main()
