"""Initial label distributions and their propagation over the task graph, for a block of workers at a time.

Distributions are stored as (task, class, worker of the block): every inner loop runs over workers or over the whole
row of a task, contiguous in memory, and the compiler turns it into vector instructions.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit

from tasks.label_completion.answers import Answers
from tasks.label_completion.workers import Similarity

Method = Literal["wslc", "ldplc"]
NO_EVIDENCE = -1


def block_size(n_tasks: int, n_classes: int) -> int:
    """Workers per block: three float32 buffers of about 4 MB, from 16 (one cache line) to 128. Never by the machine."""
    fits = (4 << 20) // (4 * n_tasks * n_classes)
    return int(np.clip(fits // 16 * 16, 16, 128))


def worker_blocks(answers: Answers) -> list[tuple[int, int]]:
    """The ranges of workers that are completed together."""
    n_tasks, n_workers, n_classes = answers.shape
    size = block_size(n_tasks, n_classes)
    return [(start, min(start + size, n_workers)) for start in range(0, n_workers, size)]


@dataclass(frozen=True)
class Graph:
    """Neighbours int32 (N, k) and their weights float64 (N, k), rows summing to 1."""

    neighbors: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class Block:
    """Completed columns of workers start to stop.

    Attributes:
        label: int16 (N, B): class position, NO_EVIDENCE where the distribution is zero everywhere.
        margin: float32 (N, B): largest minus second largest entry of the distribution; 1 where observed.
        mass: float64 (N, C): sum of the distributions over the workers of the block.
    """

    start: int
    stop: int
    label: np.ndarray
    margin: np.ndarray
    mass: np.ndarray


def distributions(
    answers: Answers,
    similarity: Similarity,
    graph: Graph,
    *,
    start: int,
    stop: int,
    alpha: float = 0.5,
    n_iter: int = 5,
) -> np.ndarray:
    """Label distributions of workers start to stop after `n_iter` rounds, float32, shape (N, C, stop − start).

    Observed cells are one-hot. A missing cell starts with
        D0_irc = Σ_{s ∈ O_i, L_is = c} S_rs / Σ_c …   (zero everywhere where no similar worker labelled task i)
    and every round sets, for all missing cells at once,
        F_ir ← (1 − α) D0_ir + α Σ_j w_ij F_{j r},
    rows not renormalised. `n_iter=0` is WSLC's vote. Source: Wu, Jiang, Zhang, Li, "Label Distribution
    Propagation-based Label Completion for Crowdsourcing", ICML 2025.
    """
    observed = _observed(answers, start, stop)
    first = _start_distributions(
        answers.task_start,
        answers.worker,
        answers.label,
        similarity.block(start, stop).astype(np.float32),
        len(answers.classes),
    )
    _clamp(first, *observed)
    current = first
    if n_iter:
        other = np.empty_like(first)
        current = np.empty_like(first)
        current[:] = first
        weights = (alpha * graph.weights).astype(np.float32)
        for _ in range(n_iter):
            _round(_rows(first), _rows(current), _rows(other), graph.neighbors, weights, np.float32(1 - alpha))
            _clamp(other, *observed)
            current, other = other, current
    return current


def complete_block(
    answers: Answers,
    similarity: Similarity,
    graph: Graph,
    method: Method,
    start: int,
    stop: int,
    *,
    alpha: float = 0.5,
    n_iter: int = 5,
) -> Block:
    """Complete the columns of workers start to stop; ties go to the first class. See `distributions`."""
    final = distributions(
        answers, similarity, graph, start=start, stop=stop, alpha=alpha, n_iter=n_iter if method == "ldplc" else 0
    )
    label, margin, mass = _decide(final)
    task, column, observed = _observed(answers, start, stop)
    label[task, column] = observed
    margin[task, column] = 1
    return Block(start, stop, label, margin, mass)


def propagate_instances(votes: np.ndarray, graph: Graph, *, alpha: float = 0.5, n_iter: int = 5) -> np.ndarray:
    """Label distribution of every task, float64, shape (N, C), from its votes (N, C) and its neighbours'.

    D = votes / Σ votes (zero where there are none); F ← (1 − α) D + α W F, `n_iter` rounds from F = D. One distribution
    per task in place of one per task and worker: the instance-level ancestor of LDPLC (as MNLDP, Jiang et al., 2019).
    """
    total = votes.sum(1, keepdims=True)
    first = votes / np.where(total > 0, total, 1)
    current = first
    for _ in range(n_iter):
        current = (1 - alpha) * first + alpha * np.einsum("nk,nkc->nc", graph.weights, current[graph.neighbors])
    return current


def _rows(distribution: np.ndarray) -> np.ndarray:
    return distribution.reshape(len(distribution), -1)


def _observed(answers: Answers, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(task, column within the block, label) of the block's own answers."""
    inside = np.flatnonzero((answers.worker >= start) & (answers.worker < stop))
    return answers.task[inside], answers.worker[inside] - start, answers.label[inside]


@njit(cache=True, nogil=True)
def _start_distributions(task_start, worker, label, similarity, n_classes):
    n_tasks, width = len(task_start) - 1, similarity.shape[1]
    out = np.zeros((n_tasks, n_classes, width), np.float32)
    total = np.empty(width, np.float32)
    for i in range(n_tasks):
        for a in range(task_start[i], task_start[i + 1]):
            line, row = out[i, label[a]], similarity[worker[a]]
            for b in range(width):
                line[b] += row[b]
        total[:] = 0
        for c in range(n_classes):
            for b in range(width):
                total[b] += out[i, c, b]
        for b in range(width):
            total[b] = np.float32(1) / total[b] if total[b] > 0 else np.float32(0)
        for c in range(n_classes):
            for b in range(width):
                out[i, c, b] *= total[b]
    return out


@njit(cache=True, nogil=True)
def _clamp(distribution, task, column, label):
    for a in range(len(task)):
        distribution[task[a], :, column[a]] = 0
        distribution[task[a], label[a], column[a]] = 1


@njit(cache=True, nogil=True)
def _round(first, current, out, neighbors, weights, keep):
    n_tasks, width = first.shape
    for i in range(n_tasks):
        line, begin = out[i], first[i]
        for m in range(width):
            line[m] = keep * begin[m]
        for j in range(neighbors.shape[1]):
            w = weights[i, j]
            if w > 0:  # many weights are exactly zero
                other = current[neighbors[i, j]]
                for m in range(width):
                    line[m] += w * other[m]


@njit(cache=True, nogil=True)
def _decide(distribution):
    n_tasks, n_classes, width = distribution.shape
    label = np.empty((n_tasks, width), np.int16)
    margin = np.empty((n_tasks, width), np.float32)
    mass = np.empty((n_tasks, n_classes))
    best = np.empty(width, np.float32)
    second = np.empty(width, np.float32)
    which = np.empty(width, np.int16)
    for i in range(n_tasks):
        best[:] = 0
        second[:] = 0
        which[:] = -1
        for c in range(n_classes):
            line = distribution[i, c]
            total = 0.0
            for b in range(width):
                value = line[b]
                total += value
                larger = value > best[b]
                second[b] = best[b] if larger else max(second[b], value)
                which[b] = np.int16(c) if larger else which[b]
                best[b] = value if larger else best[b]
            mass[i, c] = total
        label[i] = which
        for b in range(width):
            margin[i, b] = best[b] - second[b]
    return label, margin, mass
