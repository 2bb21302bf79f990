"""Slow, plain versions of the method's formulas, written from their definitions; tests compare with them."""

import numpy as np


def pearson(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson's correlation; 0 where a side does not vary."""
    a, b = a - a.mean(), b - b.mean()
    if np.allclose(a, 0, atol=1e-12) or np.allclose(b, 0, atol=1e-12):
        return 0.0
    return float((a @ b) / np.sqrt((a @ a) * (b @ b)))


def worker_vector(rows: np.ndarray, labels: np.ndarray, nominal: np.ndarray) -> np.ndarray:
    """A worker's vector from the features of the tasks labelled, (n, D), and the labels given, (n,)."""
    vector = np.zeros(rows.shape[1])
    for d, column in enumerate(rows.T):
        for q in np.unique(labels):
            said = (labels == q).astype(float)
            if not nominal[d]:
                vector[d] += said.mean() * pearson(column, said)
                continue
            for p in np.unique(column):
                here = (column == p).astype(float)
                if (here * said).any():
                    vector[d] += (here * said).mean() * pearson(here, said)
    return vector


def neighbors(values: np.ndarray, nominal: np.ndarray, k: int) -> np.ndarray:
    """The k nearest rows of each: scaled differences squared and added in the order of columns; ties to the smaller."""
    low, high = values.min(0), values.max(0)
    scaled = np.where(nominal, values, (values - low) / np.where(high > low, high - low, 1))
    out = []
    for i, row in enumerate(scaled):
        distance = np.zeros(len(values))
        for d in range(values.shape[1]):
            distance += (scaled[:, d] != row[d]) if nominal[d] else (scaled[:, d] - row[d]) ** 2
        distance[i] = np.inf
        out.append(np.argsort(distance, kind="stable")[:k])
    return np.array(out)


def similarity(vectors: np.ndarray, zero_vector: str) -> np.ndarray:
    n = len(vectors)
    out = np.zeros((n, n))
    for r in range(n):
        for s in range(n):
            dot = float(vectors[r] @ vectors[s])
            size = float(np.linalg.norm(vectors[r]) * np.linalg.norm(vectors[s]))
            if r != s and size > 0 and (dot != 0 or zero_vector == "neutral"):
                out[r, s] = max(0.0, 0.5 * (1 + dot / size))
                out[r, s] = 0 if out[r, s] < 1e-12 else out[r, s]
            elif r != s and zero_vector == "neutral":
                out[r, s] = 0.5
    return out


def start_distributions(codes: np.ndarray, similar: np.ndarray, n_classes: int) -> np.ndarray:
    """(N, R, C) from the answers as a matrix of class codes, −1 where there is none."""
    n_tasks, n_workers = codes.shape
    out = np.zeros((n_tasks, n_workers, n_classes))
    for i in range(n_tasks):
        for r in range(n_workers):
            if codes[i, r] >= 0:
                out[i, r, codes[i, r]] = 1
                continue
            for s in range(n_workers):
                if codes[i, s] >= 0:
                    out[i, r, codes[i, s]] += similar[r, s]
            if out[i, r].sum() > 0:
                out[i, r] /= out[i, r].sum()
    return out


def propagate(start: np.ndarray, observed: np.ndarray, near: np.ndarray, weights: np.ndarray, alpha: float, n: int):
    """n rounds of F ← (1 − α) D0 + α W F for the cells that are not observed."""
    current = start
    for _ in range(n):
        mixed = (1 - alpha) * start + alpha * np.einsum("ik,ikrc->irc", weights, current[near])
        current = np.where(observed[..., None], start, mixed)
    return current


def dawid_skene(answers, n_iter: int, smoothing: float) -> np.ndarray:
    """Posteriors by textbook EM, one worker and one answer at a time, in logarithms."""
    n_tasks, n_workers, n_classes = answers.shape
    rows = list(zip(answers.task, answers.worker, answers.label, answers.weight, strict=True))
    posterior = np.zeros((n_tasks, n_classes))
    for task, _, label, weight in rows:
        posterior[task, label] += weight
    posterior /= np.maximum(posterior.sum(1, keepdims=True), 1e-300)
    answered = np.unique(answers.task)
    for _ in range(n_iter):
        prior = np.log(np.maximum(posterior[answered].sum(0) / posterior[answered].sum(), 1e-10))
        confusion = np.full((n_workers, n_classes, n_classes), smoothing)  # worker, label, class
        for task, worker, label, weight in rows:
            confusion[worker, label] += weight * posterior[task]
        confusion = np.log(np.maximum(confusion / np.maximum(confusion.sum(1, keepdims=True), 1e-10), 1e-10))
        score = np.tile(prior, (n_tasks, 1))
        for task, worker, label, weight in rows:
            score[task] += weight * confusion[worker, label]
        score = np.exp(score - score.max(1, keepdims=True))
        posterior = score / score.sum(1, keepdims=True)
    return posterior


def iterated_weighted_majority(answers, n_iter: int) -> np.ndarray:
    """Labels of IWMV: v_w = C a_w − 1; tied classes share a task in a_w, and the first of them is its label."""
    n_tasks, n_workers, n_classes = answers.shape
    weight = np.ones(n_workers)
    winners = None
    for _ in range(n_iter + 1):
        votes = np.zeros((n_tasks, n_classes))
        for task, worker, said in zip(answers.task, answers.worker, answers.label, strict=True):
            votes[task, said] += weight[worker]
        votes = np.round(votes, 9)
        before, winners = winners, [np.flatnonzero(row == row.max()).tolist() for row in votes]
        if before == winners:
            break
        for worker in range(n_workers):
            agreed = [
                (said in winners[task]) / len(winners[task])
                for task, who, said in zip(answers.task, answers.worker, answers.label, strict=True)
                if who == worker
            ]
            weight[worker] = n_classes * (np.mean(agreed) if agreed else 0) - 1
    return np.array([tied[0] for tied in winners])


def krippendorff_alpha(rows: list[tuple]) -> float:
    """From all pairs of answers (task, label) of one task, and all pairs whatsoever."""
    by_task: dict = {}
    for task, label in rows:
        by_task.setdefault(task, []).append(label)
    paired = {task: labels for task, labels in by_task.items() if len(labels) > 1}
    everything = [label for labels in paired.values() for label in labels]
    if not everything:
        return float("nan")
    n = len(everything)
    observed = sum(
        sum(a != b for i, a in enumerate(labels) for j, b in enumerate(labels) if i != j) / (len(labels) - 1)
        for labels in paired.values()
    )
    expected = sum(a != b for i, a in enumerate(everything) for j, b in enumerate(everything) if i != j) / (n - 1)
    return 1.0 if expected == 0 else 1 - observed / expected
