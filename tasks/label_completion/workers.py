"""Worker feature vectors and worker similarity, the same in WSLC and LDPLC."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit

from tasks.label_completion.answers import Answers
from tasks.label_completion.graph import Features

ZERO_NORM = 1e-10  # a vector that is zero in exact arithmetic comes out of rounding with a norm of about 1e-16


def worker_vectors(answers: Answers, features: Features) -> np.ndarray:
    """What each worker's labels correlate with, float64, shape (R, D).

    Over the n tasks that worker r labelled, with P relative frequencies and ρ Pearson's correlation (0 where a side
    does not vary):
        numeric column:  v_rd = Σ_q P(y = q) ρ(x_d, 1[y = q])
        nominal column:  v_rd = Σ_pq P(x_d = p, y = q) ρ(1[x_d = p], 1[y = q])
    A worker with one answer, one class, or (numeric columns) equally many answers per used class has the zero vector,
    exactly 0 here. Source: Wu, Jiang, Zhang, Li, "Worker Similarity-Based Label Completion for Crowdsourcing", 2025.
    """
    start, task, label = answers.by_worker()
    n_workers, n_classes = len(answers.workers), len(answers.classes)
    vectors = np.zeros((n_workers, len(features.nominal)))
    numeric = ~features.nominal
    if numeric.any():
        values = np.ascontiguousarray(features.values[:, numeric])
        vectors[:, numeric] = _numeric_part(start, task, label, n_classes, values)
    if features.nominal.any():
        vectors[:, features.nominal] = _nominal_part(start, task, label, n_classes, features.codes, features.n_codes)
    vectors[np.linalg.norm(vectors, axis=1) < ZERO_NORM] = 0
    return vectors


@dataclass(frozen=True)
class Similarity:
    """Similarity of workers, computed block by block: the full R × R matrix is never needed.

    S_rs = (1 + cos(v_r, v_s)) / 2 for r ≠ s and S_rr = 0. For a zero vector the cosine has no value: "neutral" takes 0
    for it, so S = 1/2 to everybody; "drop" gives S = 0, also for exactly orthogonal vectors, as published.
    """

    unit: np.ndarray
    zero_vector: Literal["neutral", "drop"]

    @classmethod
    def of(cls, vectors: np.ndarray, zero_vector: Literal["neutral", "drop"]) -> "Similarity":
        norm = np.linalg.norm(vectors, axis=1, keepdims=True)
        return cls(vectors / np.where(norm > 0, norm, 1), zero_vector)

    def block(self, start: int, stop: int) -> np.ndarray:
        """Columns start to stop of S, float64, shape (R, stop − start), each in [0, 1]."""
        cosine = _cosines(self.unit, np.ascontiguousarray(self.unit[start:stop].T))
        similarity = np.clip(0.5 * (1 + cosine), 0, 1)
        similarity[similarity < 1e-12] = 0  # opposite vectors: rounding must not count as evidence
        if self.zero_vector == "drop":
            similarity[cosine == 0] = 0
        columns = np.arange(stop - start)
        similarity[start + columns, columns] = 0
        return similarity


@njit(cache=True, nogil=True)
def _numeric_part(start, task, label, n_classes, values):
    n_workers, n_columns = len(start) - 1, values.shape[1]
    vectors = np.zeros((n_workers, n_columns))
    mean = np.empty(n_columns)
    square = np.empty(n_columns)
    spread = np.empty(n_columns)
    by_class = np.empty((n_classes, n_columns))
    count = np.empty(n_classes)
    for r in range(n_workers):
        n = start[r + 1] - start[r]
        if n < 2:
            continue
        mean[:] = 0.0
        square[:] = 0.0
        spread[:] = 0.0
        by_class[:] = 0.0
        count[:] = 0.0
        for a in range(start[r], start[r + 1]):
            row = values[task[a]]
            for d in range(n_columns):
                mean[d] += row[d]
                square[d] += row[d] * row[d]
        for d in range(n_columns):
            mean[d] /= n
        for a in range(start[r], start[r + 1]):  # centred in a second pass: no cancellation
            row, line = values[task[a]], by_class[label[a]]
            count[label[a]] += 1
            for d in range(n_columns):
                gap = row[d] - mean[d]
                spread[d] += gap * gap
                line[d] += gap
        for q in range(n_classes):
            if 0 < count[q] < n:
                variance = count[q] * (1 - count[q] / n)
                for d in range(n_columns):
                    if spread[d] > 1e-24 * square[d]:  # below, a constant column and its rounding
                        vectors[r, d] += count[q] / n * by_class[q, d] / np.sqrt(spread[d] * variance)
    return vectors


@njit(cache=True, nogil=True)
def _nominal_part(start, task, label, n_classes, codes, n_codes):
    n_workers, n_columns = len(start) - 1, len(codes)
    vectors = np.zeros((n_workers, n_columns))
    both = np.empty((n_codes.max(), n_classes))
    count = np.empty(n_classes)
    for r in range(n_workers):
        n = start[r + 1] - start[r]
        if n < 2:
            continue
        count[:] = 0.0
        for a in range(start[r], start[r + 1]):
            count[label[a]] += 1
        for d in range(n_columns):
            both[: n_codes[d]] = 0.0
            line = codes[d]
            for a in range(start[r], start[r + 1]):
                both[line[task[a]], label[a]] += 1
            total = 0.0
            for p in range(n_codes[d]):
                with_code = both[p].sum()
                if 0 < with_code < n:
                    for q in range(n_classes):
                        if both[p, q] > 0 and count[q] < n:
                            variance = with_code * (1 - with_code / n) * count[q] * (1 - count[q] / n)
                            total += both[p, q] / n * (both[p, q] - with_code * count[q] / n) / np.sqrt(variance)
            vectors[r, d] = total
    return vectors


@njit(cache=True, nogil=True)
def _cosines(unit, columns):
    """unit @ columns, summed in the order of the attributes: the same bits on every machine, which BLAS does not give."""
    n_workers, n_columns = unit.shape
    out = np.zeros((n_workers, columns.shape[1]))
    for s in range(n_workers):
        line = out[s]
        for d in range(n_columns):
            value, column = unit[s, d], columns[d]
            for b in range(len(line)):
                line[b] += value * column[b]
    return out
