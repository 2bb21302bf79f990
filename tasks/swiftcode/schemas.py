"""Columns and types of this method's tables."""

import pyarrow as pa

TEXT = pa.dictionary(pa.int32(), pa.string())  # identifiers: each text is stored once

# `tests`: [[arguments, expected], …] of a function, [[stdin, expected stdout], …] of a program, as `values.dumps` writes
# them; `generator`: Python source of `generate(size, seed)`, which makes an input of that size (arguments, or stdin), else
# missing; `sizes`: JSON, language → size at which measuring begins (absent languages: 1)
TASKS = pa.schema(
    [
        ("task", pa.string()),
        ("split", TEXT),  # train, test
        ("kind", TEXT),  # function, stdio
        ("entry_point", pa.string()),  # of a function; missing for a program
        ("prompt", pa.string()),  # of a function: signature and docstring; of a program: the statement
        ("languages", pa.list_(pa.string())),
        ("tests", pa.string()),
        ("compare", TEXT),  # exact, float, unordered, tokens
        ("rtol", pa.float64()),
        ("atol", pa.float64()),
        ("generator", pa.string()),
        ("sizes", pa.string()),
    ]
)
# known solutions, all of them correct by the task's own tests; `rank` is 0 for the task's reference (`canonical`) solution
SOLUTIONS = pa.schema(
    [
        ("task", TEXT),
        ("language", TEXT),
        ("name", pa.string()),
        ("rank", pa.int32()),
        ("source", pa.string()),
    ]
)
# one row an answer; `generator` is "pool" for known solutions, a generator's name, or of answers the arm ("base", …);
# `candidate` is `extraction.identity(source, language)`, missing with `source` where no program was found in the response
SAMPLES = pa.schema(
    [
        ("task", TEXT),
        ("language", TEXT),
        ("generator", TEXT),
        ("sample", pa.int32()),
        ("hint", pa.bool_()),  # asked for speed
        ("response", pa.string()),
        ("tokens", pa.int32()),  # of the response; 0 where it was not sampled here
        ("finished", pa.bool_()),
        ("source", pa.string()),
        ("candidate", pa.string()),
    ]
)
# one row a distinct candidate of a task; `test`: number of the first failed test, missing where none is to blame
VERDICTS = pa.schema(
    [
        ("task", TEXT),
        ("language", TEXT),
        ("candidate", pa.string()),
        ("verdict", TEXT),
        ("test", pa.int32()),
        ("message", pa.string()),
    ]
)
# one row a run; `candidate` "baseline" is a program that does nothing, `copy` 1 the same candidate measured a second time.
# `cpu_s` and `peak_mb` are gross, of all the candidate's processes; `instructions` is missing where they were not counted
MEASUREMENTS = pa.schema(
    [
        ("task", TEXT),
        ("language", TEXT),
        ("candidate", pa.string()),
        ("copy", pa.int8()),
        ("round", pa.int32()),
        ("size", pa.int64()),
        ("verdict", TEXT),  # accepted, or why the run is no measurement
        ("cpu_s", pa.float64()),
        ("wall_s", pa.float64()),
        ("peak_mb", pa.float64()),
        ("tmu_mb_s", pa.float64()),  # integral of memory over time
        ("instructions", pa.int64()),
        ("waited_s", pa.float64()),  # ready to run, and no core was free: how disturbed the run was
        (
            "calibration",
            pa.float64(),
        ),  # CPU seconds of `machine.KERNEL` just before, by those of the machine of the defaults
        ("machine", TEXT),  # `machine.machine_name`
    ]
)
BASELINE = "baseline"
# one row a correct candidate of a (task, language): net costs, what the rule made of them, and for which arms it was chosen
SELECTION = pa.schema(
    [
        ("task", TEXT),
        ("language", TEXT),
        ("candidate", pa.string()),
        ("origin", pa.string()),  # generators it came from, comma-separated, sorted
        ("count", pa.int32()),  # answers that gave it
        ("source", pa.string()),
        ("time", pa.float64()),  # net CPU seconds, or instructions
        ("time_low", pa.float64()),
        ("time_high", pa.float64()),
        ("memory_mb", pa.float64()),  # net peak
        ("tmu_mb_s", pa.float64()),
        ("ratio", pa.float64()),  # time / least time of its group
        ("tied", pa.bool_()),  # with the least time
        ("choice", pa.bool_()),  # the group has something to choose
        ("selected", pa.bool_()),  # by the rule; of pareto several
        ("arms", pa.list_(pa.string())),
    ]
)
CURVE = pa.schema(
    [
        ("step", pa.int32()),
        ("loss", pa.float32()),  # nats a response token
        ("gradient_norm", pa.float32()),
        ("learning_rate", pa.float32()),
    ]
)
# one row a (generator, task) of the test split and its accepted answers; costs are of the answer, * of the reference solution
RESULTS = pa.schema(
    [
        ("task", TEXT),
        ("language", TEXT),
        ("generator", TEXT),
        ("sample", pa.int32()),
        ("candidate", pa.string()),
        ("verdict", TEXT),
        ("time", pa.float64()),
        ("memory_mb", pa.float64()),
        ("tmu_mb_s", pa.float64()),
        ("reference_time", pa.float64()),
        ("reference_memory_mb", pa.float64()),
        ("reference_tmu_mb_s", pa.float64()),
    ]
)
