"""Independent blocks of one computation, over local processes or an existing Dask cluster. Results never depend on which.

The user chooses by environment, not by parameters, because the choice changes no result:
    METHODWORKS_SCHEDULER=tcp://host:8786   an existing Dask cluster whose workers have this project installed
    METHODWORKS_WORKERS=4                   local processes (default 1: no other process)
"""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

from tasks.stage import UserError, progress

Block = TypeVar("Block")
Result = TypeVar("Result")

CONNECT_TIMEOUT = "20s"
_shared: Any = None  # in a worker process: what all blocks of the current map need


def map_blocks(
    function: Callable[[Any, Block], Result],
    blocks: Sequence[Block],
    shared: Any,
    *,
    description: str,
    workers: int | None = None,
) -> Iterator[Result]:
    """Yield `function(shared, block)` for every block, in the order of `blocks`, with progress.

    `function` must be importable (module level); `shared` is sent once to each worker, a block with each call. A Dask
    worker that dies is replaced by another one's work on the same block. `workers`: local processes, whatever the
    environment says.

    Raises:
        UserError: METHODWORKS_WORKERS is not a positive number, or no scheduler answers at METHODWORKS_SCHEDULER.
    """
    scheduler = os.environ.get("METHODWORKS_SCHEDULER")
    if scheduler and workers is None:
        results = _on_cluster(scheduler, function, blocks, shared)
    else:
        workers = min(_local_workers() if workers is None else workers, len(blocks))
        results = _in_processes(workers, function, blocks, shared) if workers > 1 else _here(function, blocks, shared)
    yield from progress(results, description, total=len(blocks))


def _local_workers() -> int:
    text = os.environ.get("METHODWORKS_WORKERS", "1")
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"environment variable METHODWORKS_WORKERS: {text!r} is not a whole number of at least 1")
    return int(text)


def _here(function: Callable, blocks: Sequence, shared: Any) -> Iterator:
    return (function(shared, block) for block in blocks)


def _in_processes(workers: int, function: Callable, blocks: Sequence, shared: Any) -> Iterator:
    # spawn: a forked child would inherit the locks of threads that it does not have
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=_set_shared, initargs=(shared,)) as pool:
        futures = [pool.submit(_call, function, block) for block in blocks]
        try:
            while futures:
                yield futures.pop(0).result()
        finally:
            for future in futures:
                future.cancel()


def _set_shared(shared: Any) -> None:
    global _shared
    _shared = shared


def _call(function: Callable, block: Any) -> Any:
    return function(_shared, block)


def _on_cluster(address: str, function: Callable, blocks: Sequence, shared: Any) -> Iterator:
    from distributed import Client

    if "://" not in address:
        raise UserError(f"METHODWORKS_SCHEDULER={address}: not an address such as tcp://host:8786")
    try:
        client = Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"METHODWORKS_SCHEDULER={address}: no Dask scheduler answers there: {reason}") from None
    with client:
        everywhere = client.scatter(shared, broadcast=True, hash=False)
        futures = client.map(_with_shared, [function] * len(blocks), blocks, shared=everywhere, pure=False)
        while futures:
            yield futures.pop(0).result()


def _with_shared(function: Callable, block: Any, shared: Any) -> Any:
    return function(shared, block)
