"""Stage: a table of counts by site and period becomes a checked panel."""

import sys
from pathlib import Path

from tasks import stage
from tasks.bpr.params import Panel
from tasks.stage import UserError


@stage.command("bpr.panel.{dataset}", Panel)
def panel(parameters: Panel, dataset: str, source: Path, *, out: Path) -> None:
    """Read a CSV or parquet table, refuse what the later stages could not use, add lags, split in time, fix K."""
    from tasks.bpr.arrangement import arrange
    from tasks.bpr.dataset import write_panel

    if Path(parameters.path) != source:
        raise UserError(
            f"params.yaml: bpr.panel.{dataset}.path is {parameters.path}, but {source} is given; use the former"
        )
    try:
        arranged = arrange(_read(source, parameters), parameters, where=str(source), origin=source.name)
    except UserError as error:
        raise UserError(f"{error} (rows are counted from 0)" if " row " in str(error) else str(error)) from None
    known = arranged.features[arranged.split == "train"]
    for name, constant in zip(arranged.feature_names, (known == known[:1, :1]).all(axis=(0, 1)), strict=True):
        if constant:
            print(f"note: {source}: feature {name} is the same in all training cells; it cannot help", file=sys.stderr)
    write_panel(out, arranged)


def _read(source: Path, parameters: Panel):
    import pandas as pd

    if source.suffix not in (".csv", ".parquet"):
        raise UserError(f"{source}: not a table that can be read; allowed: .csv, .parquet")
    try:
        if source.suffix == ".parquet":
            return pd.read_parquet(source)
        # identifiers keep their leading zeros; only an empty cell is missing: a site may well be called NA
        identifiers = dict.fromkeys((parameters.columns.site, parameters.columns.period), "str")
        return pd.read_csv(
            source, dtype=identifiers, keep_default_na=False, na_values=[""], encoding="utf-8-sig", low_memory=False
        )
    except (ValueError, OSError) as error:
        raise UserError(f"{source}: not a readable table: {str(error).splitlines()[0]}") from None


if __name__ == "__main__":
    panel.run()
