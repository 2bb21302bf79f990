"""Columns and types of this method's tables."""

import pyarrow as pa

TEXT = pa.dictionary(pa.int32(), pa.string())  # identifiers: each text is stored once

# of a panel's cells; its other columns are the features (float64) and, where known, `exposure` (float64)
CELLS = pa.schema([("site", TEXT), ("period", TEXT), ("count", pa.float64())])
PERIODS = pa.schema([("period", pa.string()), ("time", pa.float64()), ("split", pa.string())])
SITES = pa.schema([("site", pa.string()), ("latitude", pa.float64()), ("longitude", pa.float64())])

# `score` ranks, `mean` is the expected count (missing where a baseline has none)
BASELINES = pa.schema(
    [("baseline", TEXT), ("period", TEXT), ("site", TEXT), ("score", pa.float64()), ("mean", pa.float64())]
)
# one row per run and epoch that was looked at; likelihoods in nats per site and period
EPOCHS = pa.schema(
    [
        ("run", TEXT),
        ("epoch", pa.int32()),
        ("loss", pa.float64()),
        ("train_nll", pa.float64()),
        ("train_bpr", pa.float64()),
        ("train_bpr_least", pa.float64()),
        ("valid_nll", pa.float64()),
        ("valid_bpr", pa.float64()),
        ("sigma", pa.float64()),
    ]
)
RUNS = pa.schema(
    [
        ("run", TEXT),
        ("objective", TEXT),
        ("epsilon", pa.float64()),
        ("seed", pa.int64()),
        ("kept_epoch", pa.int32()),
        ("last_train_bpr", pa.float64()),
        ("last_train_bpr_least", pa.float64()),
        ("last_train_nll", pa.float64()),
        ("feasible_periods", pa.int32()),
        ("train_periods", pa.int32()),
    ]
)
SCORES = pa.schema([("run", TEXT), ("rule", TEXT), ("period", TEXT), ("site", TEXT), ("score", pa.float64())])
# the predictive distribution by itself: expected count, variance, and log probability of what was counted
FORECASTS = pa.schema(
    [
        ("run", TEXT),
        ("period", TEXT),
        ("site", TEXT),
        ("mean", pa.float64()),
        ("variance", pa.float64()),
        ("log_prob", pa.float64()),
    ]
)
