"""SwiftCode as a flow: ``python -m flows.swiftcode --workers 2``."""

from prefect import flow
from prefect.states import State

from flows.method import Force, Workers, current, main, run
from tasks.swiftcode.params import Parameters

DEFAULTS = current("swiftcode", Parameters)


@flow(name="swiftcode")
def swiftcode(parameters: Parameters = DEFAULTS, workers: Workers = 2, force: Force = False) -> State:
    """Generate programs, run them in a sandbox, choose the fastest correct ones, fine-tune on them, compare with controls.

    Args:
        parameters: values other than those in params.yaml run as a DVC experiment; the workspace stays as it is
        workers: stages that run at the same time
        force: run every stage, also those that DVC finds unchanged
    """
    return run("swiftcode", parameters, workers, force)


if __name__ == "__main__":
    main(swiftcode)
