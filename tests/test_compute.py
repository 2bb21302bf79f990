"""Blocks over processes and over a real Dask cluster: the same results in the same order."""

import os
import time

import numpy as np
import pytest

from tasks.compute import map_blocks
from tasks.stage import UserError

BLOCKS = list(range(9))


def scale(shared, block):
    """Later blocks end sooner, so that order is not kept by luck."""
    time.sleep(0.01 * (len(BLOCKS) - block))
    return os.getpid(), shared["vector"] * np.sin(block)


def fail(shared, block):
    if block == 5:
        raise UserError("block 5: not allowed")
    return block


@pytest.fixture
def shared():
    return {"vector": np.linspace(0, 1, 1000)}


def compute(monkeypatch, shared, **environment):
    for name in ("METHODWORKS_WORKERS", "METHODWORKS_SCHEDULER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(f"METHODWORKS_{name}", value)
    results = list(map_blocks(scale, BLOCKS, shared, description="test"))
    return {pid for pid, _ in results}, [array for _, array in results]


@pytest.fixture(scope="module")
def cluster():
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as here:
        yield here


def test_processes_and_cluster_give_the_same_results_in_order(monkeypatch, shared, cluster):
    here, expected = compute(monkeypatch, shared)
    assert here == {os.getpid()}
    assert all((array == shared["vector"] * np.sin(block)).all() for block, array in zip(BLOCKS, expected, strict=True))
    for environment in ({"WORKERS": "2"}, {"SCHEDULER": cluster.scheduler_address}):
        pids, results = compute(monkeypatch, shared, **environment)
        assert len(pids) == 2, environment
        assert os.getpid() not in pids
        assert all((a == b).all() for a, b in zip(expected, results, strict=True))


def test_a_dask_worker_that_dies_changes_nothing(monkeypatch, shared, cluster):
    _, expected = compute(monkeypatch, shared)
    monkeypatch.setenv("METHODWORKS_SCHEDULER", cluster.scheduler_address)
    results = map_blocks(scale, BLOCKS, shared, description="test")
    got = [next(results)[1]]
    victim = next(iter(cluster.workers.values()))
    os.kill(victim.process.pid, 9)
    got += [array for _, array in results]
    assert all((a == b).all() for a, b in zip(expected, got, strict=True))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_error_in_a_block_reaches_the_caller(monkeypatch, workers):
    monkeypatch.delenv("METHODWORKS_SCHEDULER", raising=False)
    monkeypatch.setenv("METHODWORKS_WORKERS", workers)
    with pytest.raises(UserError, match="block 5: not allowed"):
        list(map_blocks(fail, BLOCKS, None, description="test"))


@pytest.mark.parametrize("workers", ["0", "two", "-1", ""])
def test_a_bad_number_of_workers_is_named(monkeypatch, workers):
    monkeypatch.delenv("METHODWORKS_SCHEDULER", raising=False)
    monkeypatch.setenv("METHODWORKS_WORKERS", workers)
    with pytest.raises(UserError, match=f"METHODWORKS_WORKERS: '{workers}' is not a whole number"):
        list(map_blocks(fail, BLOCKS, None, description="test"))


def test_a_scheduler_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("METHODWORKS_SCHEDULER", "tcp://127.0.0.1:1")
    monkeypatch.setattr("tasks.compute.CONNECT_TIMEOUT", "1s")
    with pytest.raises(UserError, match=r"METHODWORKS_SCHEDULER=tcp://127.0.0.1:1: no Dask scheduler answers there"):
        list(map_blocks(fail, BLOCKS, None, description="test"))


def test_no_blocks_no_results(monkeypatch):
    monkeypatch.setenv("METHODWORKS_WORKERS", "4")
    monkeypatch.delenv("METHODWORKS_SCHEDULER", raising=False)
    assert list(map_blocks(fail, [], None, description="test")) == []
