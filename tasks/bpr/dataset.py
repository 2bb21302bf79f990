"""A panel in memory and on disk: counts of every site in every period, features, split in time."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tasks.bpr.schemas import CELLS, PERIODS, SITES
from tasks.stage import UserError
from tasks.tables import read_json, read_table, write_json, write_table

SPLITS = ("history", "train", "valid", "test")


@dataclass(frozen=True)
class Panel:
    """T periods in time order × S sites sorted by name.

    Attributes:
        counts: float64 [T, S], events, not negative.
        features: float64 [T, S, F], known before the period begins; not standardised. NaN only in history periods.
        time: float64 [T], the number of the period.
        split: one of `SPLITS` for every period; in time order history, train, valid, test.
        exposure: float64 [T, S] > 0, or None.
        coordinates: float64 [S, 2], latitude and longitude in degrees, or None.
        k: sites that can be chosen.
    """

    sites: pd.Index
    periods: pd.Index
    split: np.ndarray
    time: np.ndarray
    counts: np.ndarray
    features: np.ndarray
    feature_names: list[str]
    exposure: np.ndarray | None
    coordinates: np.ndarray | None
    k: int
    origin: str = ""

    def part(self, *splits: str) -> "Panel":
        """The periods of these splits."""
        rows = np.isin(self.split, splits)
        exposure = None if self.exposure is None else self.exposure[rows]
        return Panel(
            self.sites,
            self.periods[rows],
            self.split[rows],
            self.time[rows],
            self.counts[rows],
            self.features[rows],
            self.feature_names,
            exposure,
            self.coordinates,
            self.k,
            self.origin,
        )


def write_panel(folder: Path, panel: Panel) -> None:
    """Write `cells.parquet`, `periods.parquet`, `sites.parquet` and `panel.json` into a new folder."""
    import pyarrow as pa

    folder.mkdir()
    n_periods, n_sites = panel.counts.shape
    columns = {
        "site": np.tile(panel.sites.to_numpy(), n_periods),
        "period": np.repeat(panel.periods.to_numpy(), n_sites),
        "count": panel.counts.ravel(),
    }
    more = {} if panel.exposure is None else {"exposure": panel.exposure.ravel()}
    more |= {name: panel.features[:, :, i].ravel() for i, name in enumerate(panel.feature_names)}
    schema = pa.schema([*CELLS, *((name, pa.float64()) for name in more)])
    write_table(folder / "cells.parquet", pd.DataFrame({**columns, **more}), schema)
    periods = pd.DataFrame({"period": panel.periods, "time": panel.time, "split": panel.split})
    write_table(folder / "periods.parquet", periods, PERIODS)
    places = np.full((n_sites, 2), np.nan) if panel.coordinates is None else panel.coordinates
    sites = pd.DataFrame({"site": panel.sites, "latitude": places[:, 0], "longitude": places[:, 1]})
    write_table(folder / "sites.parquet", sites, SITES)
    about = {
        "k": panel.k,
        "features": panel.feature_names,
        "exposure": panel.exposure is not None,
        "coordinates": panel.coordinates is not None,
        "origin": panel.origin,
    }
    write_json(folder / "panel.json", about)


def read_panel(folder: Path) -> Panel:
    """Raises UserError where a file is missing, damaged, or the cells are not one per site and period."""
    about = read_json(folder / "panel.json")
    periods = read_table(folder / "periods.parquet", PERIODS)
    sites = read_table(folder / "sites.parquet", SITES)
    cells = read_table(folder / "cells.parquet", CELLS, more_columns=True)
    for file, names in (("periods", periods["period"]), ("sites", sites["site"])):
        if not names.is_unique:
            raise UserError(f"{folder / file}.parquet: {names[names.duplicated()].iloc[0]!r} stands there twice")
    shape = len(periods), len(sites)
    row = pd.Index(periods["period"]).get_indexer(cells["period"].astype("str"))
    column = pd.Index(sites["site"]).get_indexer(cells["site"].astype("str"))
    place = row * len(sites) + column
    if (row < 0).any() or (column < 0).any() or not np.array_equal(np.sort(place), np.arange(shape[0] * shape[1])):
        raise UserError(f"{folder / 'cells.parquet'}: not one row for every site and period")
    order = np.argsort(place)

    def grid(name: str) -> np.ndarray:
        return cells[name].to_numpy(np.float64)[order].reshape(shape)

    features = [grid(name) for name in about["features"]]
    return Panel(
        pd.Index(sites["site"], name="site"),
        pd.Index(periods["period"], name="period"),
        periods["split"].to_numpy(),
        periods["time"].to_numpy(),
        grid("count"),
        np.stack(features, axis=2) if features else np.zeros((*shape, 0)),
        about["features"],
        grid("exposure") if about["exposure"] else None,
        sites[["latitude", "longitude"]].to_numpy() if about["coordinates"] else None,
        about["k"],
        about["origin"],
    )
