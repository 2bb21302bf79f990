"""Decision-aware top-K sites as a flow: ``python -m flows.bpr --workers 2``."""

from prefect import flow
from prefect.states import State

from flows.method import Force, Workers, current, main, run
from tasks.bpr.params import Parameters

DEFAULTS = current("bpr", Parameters)


@flow(name="bpr")
def bpr(parameters: Parameters = DEFAULTS, workers: Workers = 2, force: Force = False) -> State:
    """Rank sites by forecasts trained on likelihood, on BPR and on both; compare with moving averages.

    Args:
        parameters: values other than those in params.yaml run as a DVC experiment; the workspace stays as it is
        workers: stages that run at the same time
        force: run every stage, also those that DVC finds unchanged
    """
    return run("bpr", parameters, workers, force)


if __name__ == "__main__":
    main(bpr)
