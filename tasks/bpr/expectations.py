"""What must hold between the stages of BPR; checked by tasks/gate.py."""

import sys
from pathlib import Path

import great_expectations.expectations as gxe
import numpy as np
import pandas as pd

from tasks.bpr.dataset import SPLITS, read_panel
from tasks.bpr.schemas import CELLS, EPOCHS, PERIODS, RUNS, SITES
from tasks.gate import Check
from tasks.stage import UserError
from tasks.tables import read_json, read_table

LARGEST = sys.float_info.max  # a bound that only infinity is above


def _never_null(*columns: str) -> list:
    return [gxe.ExpectColumnValuesToNotBeNull(column=column) for column in columns]


def _finite(*columns: str) -> list:
    bounds = [gxe.ExpectColumnValuesToBeBetween(column=c, min_value=-LARGEST, max_value=LARGEST) for c in columns]
    return [*_never_null(*columns), *bounds]


def _share(column: str) -> list:
    return [*_never_null(column), gxe.ExpectColumnValuesToBeBetween(column=column, min_value=0, max_value=1)]


def panel(panel: Path) -> list[Check]:
    """Before training: one row per site and period, whole counts, splits in time order with events, no leak.

    A period without events is allowed (it counts for nothing) as long as each split has events. A feature that never
    changes is allowed too: it is standardised to 0.
    """
    about = read_json(panel / "panel.json")
    cells = read_table(panel / "cells.parquet", CELLS, more_columns=True)
    periods = read_table(panel / "periods.parquet", PERIODS)
    sites = read_table(panel / "sites.parquet", SITES)
    split = cells["period"].astype("str").map(periods.drop_duplicates("period").set_index("period")["split"])
    known = cells[(split != "history").to_numpy()]
    events = cells["count"].groupby(split).sum().reindex(["train", "valid", "test"], fill_value=0.0)
    rows = cells.groupby("period", observed=True).size().rename_axis("period").reset_index(name="rows")
    order = periods.assign(order=periods["split"].map({name: i for i, name in enumerate(SPLITS)}))
    k = pd.DataFrame({"k": [about["k"]], "sites": [len(sites)]})
    exposure = [gxe.ExpectColumnValuesToBeBetween(column="exposure", min_value=0, strict_min=True, max_value=LARGEST)]
    checks = [
        Check(
            "cells",
            cells,
            [
                *_never_null("site", "period", "count"),
                gxe.ExpectCompoundColumnsToBeUnique(column_list=["site", "period"]),
                gxe.ExpectColumnValuesToBeInSet(column="site", value_set=sites["site"].tolist()),
                gxe.ExpectColumnValuesToBeInSet(column="period", value_set=periods["period"].tolist()),
                gxe.ExpectColumnValuesToBeBetween(column="count", min_value=0, max_value=LARGEST),
                *([*_never_null("exposure"), *exposure] if about["exposure"] else []),
            ],
        ),
        # the laws of the counts have no probability for parts of an event
        Check(
            "counts",
            cells[["site", "period", "count"]].assign(fraction=cells["count"] % 1),
            [gxe.ExpectColumnValuesToBeInSet(column="fraction", value_set=[0.0])],
        ),
        Check("features after history", known, _finite(*about["features"])),
        Check(
            "rows of each period",
            rows.assign(sites=len(sites)),
            [
                gxe.ExpectColumnPairValuesToBeEqual(column_A="rows", column_B="sites"),
                gxe.ExpectTableRowCountToEqual(value=len(periods)),
            ],
        ),
        Check(
            "periods",
            order,
            [
                *_never_null("period", "time", "split"),
                gxe.ExpectColumnValuesToBeUnique(column="period"),
                gxe.ExpectColumnValuesToBeInSet(column="split", value_set=list(SPLITS)),
                gxe.ExpectColumnValuesToBeIncreasing(column="order"),
                gxe.ExpectColumnValuesToBeIncreasing(column="time", strictly=True),
            ],
        ),
        Check("sites", sites, [*_never_null("site"), gxe.ExpectColumnValuesToBeUnique(column="site")]),
        Check(
            "k",
            k,
            [
                gxe.ExpectColumnValuesToBeBetween(column="k", min_value=1),
                gxe.ExpectColumnPairValuesAToBeGreaterThanB(column_A="sites", column_B="k", or_equal=True),
            ],
        ),
        # BPR of a split without any event is not defined
        Check(
            "events of each split",
            events.rename_axis("split").reset_index(name="events"),
            [gxe.ExpectColumnValuesToBeBetween(column="events", min_value=0, strict_min=True)],
        ),
    ]
    # of a table that breaks these rules no statistics can be made
    values = [cells["count"], *(known[name] for name in about["features"])]
    sound = sites["site"].is_unique and periods["period"].is_unique and all(np.isfinite(v).all() for v in values)
    return [*checks, *(_leaks(panel) if sound else [])]


def _leaks(folder: Path) -> list[Check]:
    from tasks.bpr.leakage import leak_statistics

    try:
        data = read_panel(folder)
    except UserError:  # not one row for every cell: the rules above say where
        return []
    statistics = leak_statistics(data).round(6)
    limits = {"correlation": 0.999, "own_period": 0.25, "next_period": 0.75, "test_mean": 0.5}
    rules = [gxe.ExpectColumnValuesToBeBetween(column=c, min_value=0, max_value=top) for c, top in limits.items()]
    named = gxe.ExpectColumnValuesToBeInSet(column="named", value_set=[False])
    return [Check("features that know the counts to forecast", statistics, [named, *rules], may_be_empty=True)]


def models(panel: Path, models: Path) -> list[Check]:
    """After training: every run has finite parameters, a kept epoch, and BPR and likelihoods that are numbers."""
    from tasks.bpr.training import read_models

    read_models(models, read_panel(panel))  # refuses models of another panel
    runs = read_table(models / "runs.parquet", RUNS)
    epochs = read_table(models / "epochs.parquet", EPOCHS)
    looked = epochs.groupby("run", observed=True)["epoch"].agg(["size", "max"])
    names = runs["run"].astype("str")
    files = [_parameters(models / f"{name}.safetensors") for name in names]
    state = pd.DataFrame(files, columns=["parameters", "not_finite"]).assign(
        run=names,
        looks=names.map(looked["size"]).fillna(0).astype(int),
        kept=runs["kept_epoch"],
        last=names.map(looked["max"]),
    )
    return [
        Check(
            "runs",
            runs,
            [
                *_never_null("run", "objective", "seed", "kept_epoch"),
                gxe.ExpectColumnValuesToBeUnique(column="run"),
                *_share("last_train_bpr"),
                *_share("last_train_bpr_least"),
                *_finite("last_train_nll"),
                gxe.ExpectColumnValuesToBeBetween(column="train_periods", min_value=1),
                gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                    column_A="train_periods",
                    column_B="feasible_periods",
                    or_equal=True,
                    ignore_row_if="either_value_is_missing",
                ),
            ],
        ),
        Check(
            "parameters of each run",
            state,
            [
                gxe.ExpectColumnValuesToBeBetween(column="parameters", min_value=1),
                gxe.ExpectColumnValuesToBeInSet(column="not_finite", value_set=[0]),
                gxe.ExpectColumnValuesToBeBetween(column="looks", min_value=1),
                gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                    column_A="last", column_B="kept", or_equal=True, ignore_row_if="either_value_is_missing"
                ),
            ],
        ),
        Check(
            "epochs",
            epochs,
            [
                gxe.ExpectCompoundColumnsToBeUnique(column_list=["run", "epoch"]),
                gxe.ExpectColumnValuesToBeInSet(column="run", value_set=names.tolist()),
                *_finite("loss", "train_nll", "valid_nll", "sigma"),
                *(rule for column in ("train_bpr", "train_bpr_least", "valid_bpr") for rule in _share(column)),
            ],
        ),
    ]


def _parameters(file: Path) -> tuple[int, int]:
    """(parameters, those that are not finite) of a model; (0, 0) where the file lacks."""
    import safetensors.numpy
    from safetensors import SafetensorError

    if not file.exists():
        return 0, 0
    try:
        tensors = safetensors.numpy.load(file.read_bytes())
    except SafetensorError as error:
        raise UserError(f"{file}: not a readable model: {error}") from None
    values = [array.ravel() for array in tensors.values()]
    return sum(map(len, values)), int(sum((~np.isfinite(v)).sum() for v in values))
