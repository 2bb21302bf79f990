"""Columns and types of this method's tables."""

import pyarrow as pa

TEXT = pa.dictionary(pa.int32(), pa.string())  # identifiers: each text is stored once

# `answer` may be missing for given responses; `metadata` is JSON that the grader needs, else missing
PROBLEMS = pa.schema(
    [
        ("problem", pa.string()),
        ("split", TEXT),
        ("prompt", pa.string()),
        ("answer", pa.string()),
        ("grader", TEXT),
        ("metadata", pa.string()),
    ]
)
# `tokens` end with the end token exactly where `finished`; `first_wrong`: character at which the first wrong step begins,
# -1 where no step is wrong, missing where nobody knows
ROLLOUTS = pa.schema(
    [
        ("problem", TEXT),
        ("sample", pa.int32()),
        ("split", TEXT),
        ("response", pa.string()),
        ("tokens", pa.list_(pa.int32())),
        ("finished", pa.bool_()),
        ("answer", pa.string()),  # what the grader read out of the response; missing where it found none
        ("correct", pa.bool_()),
        ("first_wrong", pa.int32()),
    ]
)
# one row a step; half-open spans in characters and in tokens of the response; sums of log-probabilities in nats
STEPS = pa.schema(
    [
        ("problem", TEXT),
        ("sample", pa.int32()),
        ("step", pa.int32()),
        ("start_char", pa.int32()),
        ("end_char", pa.int32()),
        ("start_token", pa.int32()),
        ("end_token", pa.int32()),
        ("policy", pa.float32()),
        ("reference", pa.float32()),
    ]
)
# one row a step of training, means over its batch; `reward` is the response's h = beta × sum of log-ratios
CURVE = pa.schema(
    [
        ("step", pa.int32()),
        ("loss", pa.float32()),
        ("reward_correct", pa.float32()),
        ("reward_wrong", pa.float32()),
        ("gradient_norm", pa.float32()),
        ("learning_rate", pa.float32()),
    ]
)
