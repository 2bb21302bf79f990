"""Stage: draw one of the paper's synthetic panels."""

from pathlib import Path

from tasks import stage
from tasks.bpr.params import SIMULATED, Simulate
from tasks.stage import UserError


@stage.command("bpr.simulate", Simulate)
def simulate(parameters: Simulate, dataset: str, *, out: Path) -> None:
    """Draw independent periods of a synthetic panel: columns site, period, count, and the wedge's places and features."""
    if dataset not in SIMULATED:
        raise UserError(f"params.yaml: bpr.simulated: {dataset!r} is not one of {', '.join(SIMULATED)}")
    import pyarrow as pa

    from tasks.bpr import simulation
    from tasks.tables import write_table

    n_periods = parameters.wedge_periods if dataset == "wedge" else parameters.periods
    table = getattr(simulation, dataset)(n_periods, stage.random_generator(parameters.seed, dataset))
    schema = pa.schema([(name, pa.string() if name in ("site", "period") else pa.float64()) for name in table.columns])
    write_table(out, table, schema)


if __name__ == "__main__":
    simulate.run()
