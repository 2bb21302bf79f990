"""A toy method: written as a real one's file is."""

from prefect import flow
from prefect.states import State
from tasks.toy.params import NAME_MODEL as Parameters

from flows.method import Force, Workers, current, main, run

DEFAULTS = current("NAME", Parameters)


@flow(name="NAME")
def NAME(parameters: Parameters = DEFAULTS, workers: Workers = 2, force: Force = False) -> State:
    """A toy.

    Args:
        workers: stages that run at the same time
    """
    return run("NAME", parameters, workers, force)


if __name__ == "__main__":
    main(NAME)
