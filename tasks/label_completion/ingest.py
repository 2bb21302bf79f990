"""Stage: own data, from tables in crowd-kit's columns or from CEKA's files."""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from tasks import stage
from tasks.label_completion.params import Ingest, Name
from tasks.stage import UserError

WANTED = (
    "answers.csv or .parquet (task, worker, label) and features.csv or .parquet (task, …), with truth.csv or .parquet "
    "(task, label) where known; or CEKA's files *.response.txt and *.arff or *.arffx, with *.gold.txt where known"
)


@stage.command("label_completion.ingest.{name}", Ingest)
def ingest(parameters: Ingest, name: str, folder: Path, *, out: Path) -> None:
    """Read a folder of own data, refuse what the later stages could not use, and write it in this project's tables."""
    from tasks.label_completion.dataset import write_dataset

    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError as error:
        raise UserError(
            "; ".join(stage.describe_validation(error, f"params.yaml: label_completion.ingest.{name}"))
        ) from None
    if not folder.is_dir():
        raise UserError(f"{folder}: not a folder; it should hold {WANTED}")
    has_tables = any((folder / f"answers{ending}").exists() for ending in (".csv", ".parquet"))
    try:
        dataset = _checked((_tables if has_tables else _ceka)(folder, parameters), folder, parameters)
    except UserError as error:
        raise UserError(f"{error} (rows are counted from 0)" if " row " in str(error) else str(error)) from None
    write_dataset(out, dataset)


def _ceka(folder: Path, parameters: Ingest):
    import pandas as pd

    from tasks.label_completion.ceka import parse_arff, parse_gold, parse_response
    from tasks.label_completion.dataset import Dataset

    if parameters.nominal or parameters.classes:
        raise UserError(f"{folder}: nominal and classes are declared in CEKA's files; leave them out of params.yaml")
    table_file = _only(folder, ["*.arff", "*.arffx"])
    answer_file = _only(folder, ["*.response.txt", "*.response"])
    gold_file = _only(folder, ["*.gold.txt", "*.gold"], needed=False)
    table = parse_arff(_text(table_file), str(table_file))
    answers = parse_response(_text(answer_file), table.classes, str(answer_file))
    truth = parse_gold(_text(gold_file), table.classes, str(gold_file)) if gold_file else table.truth
    features = table.features.copy()
    for column, values in table.nominal.items():
        features[column] = pd.Categorical(features[column], categories=values)
    return Dataset(answers, features, truth, table.classes, f"CEKA files of {folder.name}")


def _tables(folder: Path, parameters: Ingest):
    import pandas as pd

    from tasks.label_completion.dataset import Dataset

    answers = _read(folder, "answers", ["task", "worker", "label"])
    features = _read(folder, "features", ["task"])
    truth = _read(folder, "truth", ["task", "label"], needed=False)
    where = f"{folder}/features"
    repeated = features["task"].duplicated()
    if repeated.any():
        row = int(repeated.to_numpy().argmax())
        raise UserError(f"{where}: row {row}, column task: {features['task'].iloc[row]!r} appears more than once")
    if features["task"].isna().any():
        raise UserError(
            f"{where}: row {int(features['task'].isna().to_numpy().argmax())}, column task: the value is missing"
        )
    features = features.set_index("task")
    features.columns = features.columns.map(str)
    for column in parameters.nominal:
        if column not in features.columns:
            raise UserError(f"{where}: nominal column {column!r} (params.yaml) does not exist")
    for column in features.columns:
        series = features[column]
        if column in parameters.nominal or not pd.api.types.is_numeric_dtype(series.dtype):
            if column not in parameters.nominal:
                _check_text(series, f"{where}: column {column}")
            features[column] = _nominal(series, f"{where}: column {column}")
        else:
            features[column] = series.astype("float64")
    known = [] if truth is None else list(truth["label"].dropna())
    classes = parameters.classes or _in_order([*answers["label"].dropna(), *known])
    if truth is None:
        labels = pd.Series(None, index=features.index, dtype="str")
    else:
        if truth["task"].isna().any():
            row = int(truth["task"].isna().to_numpy().argmax())
            raise UserError(f"{folder}/truth: row {row}, column task: the value is missing")
        strange = (truth["label"].notna() & ~truth["label"].isin(classes)).to_numpy()
        if strange.any():
            row, label = int(strange.argmax()), truth["label"][strange].iloc[0]
            allowed = ", ".join(map(repr, classes))
            raise UserError(f"{folder}/truth: row {row}, column label: {label!r} is not one of {allowed}")
        if truth["task"].duplicated().any():
            twice = truth["task"][truth["task"].duplicated()].iloc[0]
            raise UserError(f"{folder}/truth: task {twice!r} appears more than once")
        labels = truth.set_index("task")["label"]
    return Dataset(answers, features, labels, classes, f"tables of {folder.name}")


def _checked(dataset, folder: Path, parameters: Ingest):
    """The same data set with duplicates and unknown tasks dealt with as told; faults name the file and row."""
    import pandas as pd

    from tasks.label_completion.answers import encode
    from tasks.label_completion.dataset import Dataset
    from tasks.label_completion.graph import prepare_features

    prepare_features(dataset.features, dataset.nominal, where=f"{folder}/features")
    encoded = encode(
        dataset.answers,
        tasks=dataset.features.index,
        classes=dataset.classes,
        on_duplicate=parameters.on_duplicate,
        on_unknown_task=parameters.on_unknown_task,
        where=f"{folder}/answers",
    )
    strangers = dataset.truth.index.difference(dataset.features.index)
    if len(strangers) and parameters.on_unknown_task == "error":
        raise UserError(f"{folder}/truth: task {strangers[0]!r} has no features ({len(strangers)} such rows)")
    answers = pd.DataFrame(
        {
            "repeat": 0,
            "task": encoded.tasks.take(encoded.task),
            "worker": encoded.workers.take(encoded.worker),
            "label": encoded.classes.take(encoded.label),
        }
    )
    return Dataset(answers, dataset.features, dataset.truth, dataset.classes, dataset.origin)


def _only(folder: Path, patterns: list[str], *, needed: bool = True) -> Path | None:
    found = sorted({path for pattern in patterns for path in folder.glob(pattern)})
    if len(found) > 1 or (needed and not found):
        raise UserError(f"{folder}: {len(found)} files match {' or '.join(patterns)}; the folder should hold {WANTED}")
    return found[0] if found else None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8 text: {error.reason} at byte {error.start}") from None


def _read(folder: Path, stem: str, columns: list[str], *, needed: bool = True):
    """A CSV or parquet table with identifiers as text."""
    import pandas as pd

    file = _only(folder, [f"{stem}.csv", f"{stem}.parquet"], needed=needed)
    if file is None:
        return None
    try:
        if file.suffix == ".csv":
            # only an empty cell is missing: a label may well be called NA or None
            table = pd.read_csv(file, dtype=dict.fromkeys(columns, "str"), keep_default_na=False, na_values=[""])
        else:
            table = pd.read_parquet(file)
    except (ValueError, OSError) as error:
        raise UserError(f"{file}: not a readable table: {str(error).splitlines()[0]}") from None
    for column in columns:
        if column not in table.columns:
            raise UserError(f"{file}: column {column} is missing; there are {', '.join(map(repr, table.columns))}")
        series = table[column]
        nested = pd.api.types.is_object_dtype(series.dtype) and not pd.api.types.is_string_dtype(series)
        if nested or pd.api.types.is_float_dtype(series.dtype):
            raise UserError(f"{file}: column {column} has type {series.dtype}; text or whole numbers are needed")
        missing = series.isna()
        table[column] = series.astype("str").mask(missing)
    if table.empty:
        raise UserError(f"{file}: the table has no rows")
    return table


def _in_order(values: list[str]) -> list[str]:
    import pandas as pd

    from tasks.label_completion.answers import argsort_identifiers

    distinct = pd.Index(sorted(set(values)), dtype="str")
    return distinct[argsort_identifiers(distinct)].tolist()


def _check_text(series, where: str) -> None:
    """Refuse what is no category: dates, lists, and numbers among which a few texts such as NA or ? hide."""
    import pandas as pd

    if not (isinstance(series.dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(series)):
        raise UserError(f"{where} has type {series.dtype}; numbers, text or categories are needed")
    present = series.dropna().astype("str")
    strange = pd.to_numeric(present, errors="coerce").isna().to_numpy()
    if strange.any() and 2 * strange.sum() <= len(strange):
        task, value = present.index[strange][0], present[strange].iloc[0]
        raise UserError(
            f"{where}, task {task!r}: {value!r} is not a number, as most of the others are ({int(strange.sum())} such "
            "cells); leave the cell empty where the value is missing, or name the column in params.yaml: nominal"
        )


def _nominal(series, where: str):
    """A categorical of text. Whole numbers are codes: all from 0 to the largest count as declared, so that the distance
    of two codes does not depend on which others occur."""
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(series.dtype):
        return pd.Categorical(
            series.astype("str").mask(series.isna()), categories=_in_order([str(v) for v in series.dropna()])
        )
    present = series.dropna()
    if (present != present.round()).any() or (present < 0).any() or (present > 10_000).any():
        raise UserError(f"{where}: a nominal column holds text or codes from 0 to 10000")
    declared = [str(code) for code in range(int(present.max()) + 1 if len(present) else 1)]
    return pd.Categorical.from_codes(series.fillna(-1).astype(int), declared)


if __name__ == "__main__":
    ingest.run()
