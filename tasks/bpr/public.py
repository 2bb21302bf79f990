"""The three public panels of the paper and its successor benchmark, with their authors' splits."""

import numpy as np
import pandas as pd

from tasks.bpr import params
from tasks.bpr.arrangement import arrange
from tasks.bpr.dataset import Panel

_LAGS = [f"lag{i}" for i in range(1, 6)]
_WHERE = {"latitude": "lat", "longitude": "lon"}
# K, features and numbers of periods of Heuton et al., ICML 2025 (Cook County, cranes), and of the successor benchmark
# (New York), whose feature of the same year's crashes is left out: the count is a part of it.
PUBLIC = {
    "cook_county_overdose": {
        "k": 100,
        "features": [
            *(f"svi_theme{i}" for i in range(1, 5)),
            *("svi_total", "lat", "lon", "timestep", "neighbour_mean_prev"),
            *_LAGS,
        ],
        "history": 1,
        "valid": 1,
        "test": 2,
    },
    "aransas_cranes": {
        "k": 50,
        "features": ["lat", "lon", "season_bin", "timestep", *_LAGS],
        "history": 5,
        "valid": 6,
        "test": 6,
    },
    "nyc_pedestrian_injury": {
        "k": 107,
        "features": [
            *("boro_code", "lat", "lon", "lag1", "crashes_lag1", "ped_injury_prob_lag1", "mean_lag1_3", "mean_lag1_5")
        ],
        "history": 1,
        "valid": 2,
        "test": 4,
    },
}


def public_panel(table: pd.DataFrame, name: str) -> Panel:
    """A `Panel` from the delivered table of one of `PUBLIC`.

    Raises:
        KeyError: another name.
        ValueError: the table's own column `split` says otherwise than the numbers of periods here.
        UserError: as `arrangement.arrange`.
    """
    parameters = params.Panel(path=name, columns=params.Columns(**_WHERE), lags=0, **PUBLIC[name])
    panel = arrange(table, parameters, where=name, origin=name)
    stated = table.assign(period=table["period"].astype(str)).drop_duplicates(["period", "split"]).set_index("period")
    if not stated.index.is_unique or not np.array_equal(stated["split"].reindex(panel.periods), panel.split):
        raise ValueError(f"{name}: column split does not agree with the splits in time order")
    return panel
