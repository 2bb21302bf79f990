"""Columns and types of this method's tables."""

import pyarrow as pa

TEXT = pa.dictionary(pa.int32(), pa.string())  # identifiers: each text is stored once

ANSWERS = pa.schema([("repeat", pa.int16()), ("task", TEXT), ("worker", TEXT), ("label", TEXT)])
TRUTH = pa.schema([("task", pa.string()), ("label", pa.string())])
TASK = pa.schema([("task", pa.string())])  # of a feature table; its other columns are the features

COMPLETED = pa.schema(
    [
        ("method", TEXT),
        ("repeat", pa.int16()),
        ("task", TEXT),
        ("worker", TEXT),
        ("label", TEXT),
        ("imputed", pa.bool_()),
        ("margin", pa.float32()),
    ]
)
VOTES = pa.schema(
    [
        ("method", TEXT),
        ("repeat", pa.int16()),
        ("task", TEXT),
        ("class", TEXT),
        ("votes", pa.int64()),
        ("soft", pa.float64()),
    ]
)
AGGREGATED = pa.schema(
    [
        ("completion", TEXT),
        ("aggregator", TEXT),
        ("repeat", pa.int16()),
        ("task", TEXT),
        ("label", TEXT),
        ("confidence", pa.float64()),
        ("tie", pa.bool_()),
    ]
)
WORKERS = pa.schema(
    [
        ("aggregator", TEXT),
        ("repeat", pa.int16()),
        ("worker", TEXT),
        ("answers", pa.int64()),
        ("agreement", pa.float64()),
    ]
)
