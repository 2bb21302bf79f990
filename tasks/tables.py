"""Tables on disk: parquet with a fixed order and type of columns, the same bytes for the same content."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.stage import UserError


def write_table(path: Path, table: pd.DataFrame | pa.Table, schema: pa.Schema) -> None:
    """Write the columns of `schema`, in its order and types, zstd-compressed, without index or pandas metadata.

    The types come from the schema and not from the values, so an empty table or an all-missing column keeps them. Text
    is written as text whatever held it in memory, so that the order of categories never reaches the file.
    """
    arrays = [_array(table[field.name], _plain(field.type)) for field in schema]
    plain = pa.schema([(field.name, _plain(field.type)) for field in schema])
    pq.write_table(pa.Table.from_arrays(arrays, schema=plain), path, compression="zstd")


def _array(column: pd.Series | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if isinstance(column, pa.ChunkedArray):
        return column.cast(kind)
    if isinstance(column.dtype, pd.CategoricalDtype):
        return pa.array(column).cast(kind)
    return pa.array(column.astype("str") if kind == pa.string() else column, kind, from_pandas=True)


def read_table(path: Path, schema: pa.Schema, *, more_columns: bool = False) -> pd.DataFrame:
    """Read a table and check that it has the columns of `schema`; dictionary columns become categoricals.

    Raises:
        UserError: not a parquet file, a column lacks, has another type, or (unless `more_columns`) is not expected.
    """
    try:
        file = pq.ParquetFile(path, read_dictionary=[f.name for f in schema if pa.types.is_dictionary(f.type)])
        table = file.read()
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path}: not a readable parquet table: {str(error).splitlines()[0]}") from None
    for field in schema:
        if field.name not in table.column_names:
            raise UserError(f"{path}: column {field.name} is missing; there are {', '.join(table.column_names)}")
        found = table.schema.field(field.name).type
        if _plain(found) != _plain(field.type):
            raise UserError(f"{path}: column {field.name} has type {_plain(found)}; {_plain(field.type)} is needed")
    unexpected = [name for name in table.column_names if name not in schema.names]
    if unexpected and not more_columns:
        raise UserError(f"{path}: column {unexpected[0]} is not expected; allowed: {', '.join(schema.names)}")
    return table.to_pandas()


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def write_json(path: Path, content: Any) -> None:
    """Readable, byte-stable JSON; NaN is refused (use None)."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Raises UserError where the file is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON: {error}") from None


def significant(value: float, digits: int = 6) -> float:
    """Round to significant digits, as metrics are stored."""
    return float(f"{value:.{digits}g}")
