"""Crowdsourced label completion as a flow: ``python -m flows.label_completion --workers 2``."""

from prefect import flow
from prefect.states import State

from flows.method import Force, Workers, current, main, run
from tasks.label_completion.params import Parameters

DEFAULTS = current("label_completion", Parameters)


@flow(name="label_completion")
def label_completion(parameters: Parameters = DEFAULTS, workers: Workers = 2, force: Force = False) -> State:
    """Complete the sparse answers of crowd workers (WSLC, LDPLC), infer the truth, compare with baselines.

    Args:
        parameters: values other than those in params.yaml run as a DVC experiment; the workspace stays as it is
        workers: stages that run at the same time
        force: run every stage, also those that DVC finds unchanged
    """
    return run("label_completion", parameters, workers, force)


if __name__ == "__main__":
    main(label_completion)
