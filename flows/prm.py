"""Implicit process reward models as a flow: ``python -m flows.prm --workers 2``."""

from prefect import flow
from prefect.states import State

from flows.method import Force, Workers, current, main, run
from tasks.prm.params import Parameters

DEFAULTS = current("prm", Parameters)


@flow(name="prm")
def prm(parameters: Parameters = DEFAULTS, workers: Workers = 2, force: Force = False) -> State:
    """Train step rewards from outcome labels, choose among samples with them, and find the first wrong step.

    Args:
        parameters: values other than those in params.yaml run as a DVC experiment; the workspace stays as it is
        workers: stages that run at the same time
        force: run every stage, also those that DVC finds unchanged
    """
    return run("prm", parameters, workers, force)


if __name__ == "__main__":
    main(prm)
