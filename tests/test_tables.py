"""Tables on disk."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.stage import UserError
from tasks.tables import read_json, read_table, significant, write_json, write_table

SCHEMA = pa.schema([("task", pa.dictionary(pa.int32(), pa.string())), ("value", pa.float64())])


def test_same_content_same_bytes_whatever_the_frame_looks_like(tmp_path):
    frame = pd.DataFrame({"value": [1.0, None], "task": ["a", "b"]}, index=[7, 3])
    write_table(tmp_path / "a.parquet", frame, SCHEMA)
    write_table(
        tmp_path / "b.parquet", frame.reset_index(drop=True)[["task", "value"]].astype({"task": "category"}), SCHEMA
    )
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert (
        pq.read_schema(tmp_path / "a.parquet").metadata is None
        or b"pandas" not in pq.read_schema(tmp_path / "a.parquet").metadata
    )


def test_an_empty_table_keeps_its_types(tmp_path):
    """An empty frame has columns of type object; without a schema the next reader meets type null (dask#3454)."""
    write_table(tmp_path / "a.parquet", pd.DataFrame({"task": [], "value": []}), SCHEMA)
    table = read_table(tmp_path / "a.parquet", SCHEMA)
    assert table.empty
    assert table["task"].dtype == "category"
    assert table["value"].dtype == "float64"


def test_an_all_missing_text_column_keeps_its_type(tmp_path):
    write_table(tmp_path / "a.parquet", pd.DataFrame({"task": [None, None], "value": [1.0, 2.0]}), SCHEMA)
    assert read_table(tmp_path / "a.parquet", SCHEMA)["task"].isna().all()


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"task": ["a"]}, "column value is missing; there are task"),
        ({"task": ["a"], "value": ["x"]}, "column value has type .*string; double is needed"),
        ({"task": ["a"], "value": [1.0], "more": [1]}, "column more is not expected; allowed: task, value"),
    ],
)
def test_wrong_columns_are_named(tmp_path, frame, message):
    pd.DataFrame(frame).to_parquet(tmp_path / "a.parquet", index=False)
    with pytest.raises(UserError, match=rf"a\.parquet: {message}"):
        read_table(tmp_path / "a.parquet", SCHEMA)


def test_a_file_that_is_no_table(tmp_path):
    (tmp_path / "a.parquet").write_text("no table")
    with pytest.raises(UserError, match=r"a\.parquet: not a readable parquet table"):
        read_table(tmp_path / "a.parquet", SCHEMA)
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(UserError, match=r"a\.json: not valid JSON"):
        read_json(tmp_path / "a.json")


def test_json_refuses_nan_and_keeps_order(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"a": float("nan")})
    write_json(tmp_path / "a.json", {"b": 1, "a": "α"})
    assert (tmp_path / "a.json").read_text() == '{\n "b": 1,\n "a": "α"\n}\n'


def test_significant_digits():
    assert significant(0.123456789) == 0.123457
    assert significant(-1234567.0) == -1234570.0
    assert significant(0.0) == 0.0
