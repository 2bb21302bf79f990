"""Whether the generators of efficiency inputs work."""

from collections.abc import Sequence

from tasks.compute import map_blocks
from tasks.swiftcode import sandbox
from tasks.swiftcode.params import Limits
from tasks.swiftcode.task import Task
from tasks.swiftcode.values import shown

BLOCK = 16  # tasks


def generator_faults(
    tasks: Sequence[Task], limits: Limits, seed: int, *, unsafe_no_sandbox: bool = False
) -> list[str | None]:
    """What is wrong with each task's ``generate(size, seed)`` at the smallest size that it is used at; None: nothing.

    It must give the list of the function's arguments, or the text that a program reads.
    """
    blocks = [list(tasks[begin : begin + BLOCK]) for begin in range(0, len(tasks), BLOCK)]
    found = map_blocks(_faults, blocks, (limits, seed, unsafe_no_sandbox), description="try generators")
    return [fault for block in found for fault in block]


def _faults(shared: tuple[Limits, int, bool], block: Sequence[Task]) -> list[str | None]:
    return [_fault(task, *shared) for task in block]


def _fault(task: Task, limits: Limits, seed: int, unsafe: bool) -> str | None:
    size = min(task.sizes.values(), default=1)
    try:
        (made,) = sandbox.call(task.generator, "generate", [[size, seed]], limits, unsafe_no_sandbox=unsafe)
    except sandbox.CallError as error:
        return str(error)
    needed, name = (list, "the list of arguments") if task.kind == "function" else (str, "the text of stdin")
    return None if isinstance(made, needed) else f"generate({size}, {seed}) gave {shown(made)}; {name} is needed"
