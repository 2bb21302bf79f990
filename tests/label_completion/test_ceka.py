"""CEKA's text formats."""

import numpy as np
import pandas as pd
import pytest

from tasks.label_completion.ceka import parse_arff, parse_gold, parse_response
from tasks.stage import UserError

TABLE = """% a comment
@relation 'some table'

@ATTRIBUTE size NUMERIC
@attribute 'kind of leaf' {'long, thin', "round", x\\'y}
@attribute class {p, q}
@data
1.5, 'long, thin', p
% another
?,round,q
-2e3,x\\'y,?
"""


class TestArff:
    @pytest.mark.parametrize("ends", ["\n", "\r\n"])
    def test_columns_values_and_classes(self, ends):
        table = parse_arff(TABLE.replace("\n", ends), "t")
        assert table.features.columns.tolist() == ["size", "kind of leaf"]
        assert table.features["size"].tolist()[::2] == [1.5, -2000]
        assert np.isnan(table.features["size"].iloc[1])
        assert table.features["kind of leaf"].tolist() == ["long, thin", "round", "x'y"]
        assert table.nominal == {"kind of leaf": ["long, thin", "round", "x'y"]}
        assert table.classes == ["p", "q"]
        assert table.truth.tolist()[:2] == ["p", "q"]
        assert pd.isna(table.truth.iloc[2])
        assert table.features.index.tolist() == ["0", "1", "2"]

    def test_without_a_last_line_end(self):
        pd.testing.assert_frame_equal(parse_arff(TABLE.rstrip(), "t").features, parse_arff(TABLE, "t").features)

    def test_class_is_found_by_name_else_last(self):
        first = "@relation r\n@attribute class {p,q}\n@attribute f numeric\n@data\nq,1\n"
        assert parse_arff(first, "t").truth.tolist() == ["q"]
        assert parse_arff(first, "t").features.columns.tolist() == ["f"]
        last = "@relation r\n@attribute f numeric\n@attribute kind {p,q}\n@data\n1,q\n"
        assert parse_arff(last, "t").truth.tolist() == ["q"]

    def test_id_map(self):
        table = parse_arff(TABLE + "@ID-MAP\nb\na\n10\n", "t")
        assert table.features.index.tolist() == table.truth.index.tolist() == ["b", "a", "10"]

    @pytest.mark.parametrize("kind", ["numeric", "REAL", "integer"])
    def test_kinds_of_numbers(self, kind):
        assert parse_arff(TABLE.replace("NUMERIC", kind), "t").features["size"].dtype == np.float64

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("1.5,", "1.5x,", "line 8: attribute 'size': '1.5x' is not a number"),
            ("?,round", "?,square", r"line 10: attribute 'kind of leaf': 'square' is not one of 'long, thin', 'round'"),
            ("round,q", "round,r", "line 10: attribute 'class': 'r' is not one of 'p', 'q'"),
            ("?,round,q", "?,round", "line 10: 2 values; 3 attributes are declared"),
            ("?,round,q", "?,round,q,1", "line 10: 4 values; 3 attributes are declared"),
            ("?,round,q", "{0 1}", "line 10: sparse rows are not supported"),
            ("size NUMERIC", "size string", r"line 4: attribute 'size' has type 'string'; allowed are numeric and \{"),
            ("size NUMERIC", "size date", "line 4: attribute 'size' has type 'date'"),
            ("size NUMERIC", "size", "line 4: not an attribute declaration"),
            ("size NUMERIC", "'kind of leaf' NUMERIC", "line 5: attribute 'kind of leaf' is declared twice"),
            ("size NUMERIC", "task NUMERIC", "line 4: the name 'task' is taken"),
            ("{p, q}", "{p, q, p}", "line 6: attribute 'class' declares the value 'p' twice"),
            ("class {p, q}", "class numeric", "line 8: attribute 'class': 'p' is not a number"),
            ("@relation", "@title", "line 2: .*@title.* is not one of @relation, @attribute, @data"),
            ("@data", "@relation", r"line 8: .* is not one of @relation, @attribute, @data"),
        ],
    )
    def test_faults_name_line_and_value(self, old, new, message):
        assert old in TABLE
        with pytest.raises(UserError, match=rf"^leaf\.arff: {message}") as error:
            parse_arff(TABLE.replace(old, new), "leaf.arff")
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "no attributes found"),
            ("@relation r\n@attribute class {p,q}\n@data\n", "no data rows found"),
            (TABLE + "@ID-MAP\na\nb\n", "@ID-MAP lists 2 ids for 3 rows"),
            (TABLE + "@ID-MAP\na\nb\na\n", "task 'a' appears more than once in @ID-MAP"),
            ("@relation r\n@attribute class numeric\n@data\n1\n", "the class attribute 'class' must be nominal"),
        ],
    )
    def test_unusable_files(self, text, message):
        with pytest.raises(UserError, match=f"^t: {message}"):
            parse_arff(text, "t")


class TestResponse:
    def test_worker_task_label(self):
        table = parse_response("7\t0\t1\r\nw\tb 1\n\n".replace("b ", "b\t"), ["p", "q"], "r")
        assert table.columns.tolist() == ["task", "worker", "label"]
        assert table.to_numpy().tolist() == [["0", "7", "q"], ["b", "w", "q"]]

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("1\t2", "2 fields; 3 are needed"),
            ("1\t2\t0\t0", "4 fields; 3 are needed"),
            ("1\t2\t2", "label '2' is not a class number from 0 to 1"),
            ("1\t2\t-1", "label '-1' is not a class number"),
            ("1\t2\tp", "label 'p' is not a class number"),
            ("1\t2\t1.0", "label '1.0' is not a class number"),
        ],
    )
    def test_faults_name_the_line(self, line, message):
        with pytest.raises(UserError, match=f"^r: line 2: {message}"):
            parse_response(f"0\t0\t0\n{line}\n", ["p", "q"], "r")


class TestGold:
    def test_label_by_task(self):
        assert parse_gold("b\t1\na\t0", ["p", "q"], "g").to_dict() == {"b": "q", "a": "p"}

    def test_a_task_twice(self):
        with pytest.raises(UserError, match=r"^g: line 2: task 'b' appears more than once"):
            parse_gold("b\t1\nb\t1\n", ["p", "q"], "g")
