"""Ingestion of own data: good folders become a data set, bad ones one clear line and nothing written."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.label_completion import ingest
from tasks.label_completion.answers import encode
from tasks.label_completion.dataset import Dataset, read_dataset
from tests.label_completion.conftest import shared_folder
from tests.workspace import Workspace

ANSWERS = "task,worker,label\na,u,x\nb,u,y\na,v,x\n"
FEATURES = "task,f,g\na,1,red\nb,2,blue\nc,4,red\n"
TRUTH = "task,label\na,x\nb,y\n"
ARFF = """@relation r
@attribute f numeric
@attribute g {red,blue}
@attribute class {x,y}
@data
1,red,x
2,blue,y
4,red,?
"""
RESPONSE = "u\t0\t0\nu\t1\t1\nv\t0\t0\n"


@pytest.fixture
def own(workspace: Workspace):
    """Write files into the folder raw and ingest it: (exit code, stderr)."""

    def run(files: dict[str, str | bytes | pd.DataFrame], **parameters) -> tuple[int, str]:
        (workspace.root / "raw").mkdir(exist_ok=True)
        for name, content in files.items():
            if isinstance(content, pd.DataFrame):
                content.to_parquet(workspace.root / "raw" / name)
            else:
                workspace.write(f"raw/{name}", content)
        workspace.parameters(ingest={"own": {"path": "raw", **parameters}})
        return workspace.run(ingest, "own", "raw", "--out", "data/own/dataset")

    return run


def accepted(own, files: dict, **parameters) -> Dataset:
    code, said = own(files, **parameters)
    assert (code, said) == (0, "")
    return read_dataset(Path("data/own/dataset"))


def refused(own, workspace: Workspace, files: dict, **parameters) -> str:
    code, said = own(files, **parameters)
    assert code == 1
    assert said.count("\n") == 1
    assert said.startswith("error: tasks.label_completion.ingest: ")
    assert {name for name in workspace.files() if not name.startswith("raw/")} <= {
        "raw",
        "params.yaml",
        "data",
        "data/own",
    }
    return said


class TestTables:
    def test_csv(self, own):
        data = accepted(own, {"answers.csv": ANSWERS, "features.csv": FEATURES, "truth.csv": TRUTH})
        expected = [[0, "a", "u", "x"], [0, "a", "v", "x"], [0, "b", "u", "y"]]
        assert data.answers.to_numpy().tolist() == expected
        assert data.features.index.tolist() == ["a", "b", "c"]
        assert data.features["f"].tolist() == [1, 2, 4]
        assert data.nominal == ["g"]
        assert data.classes == ["x", "y"]
        assert data.truth.fillna("?").to_dict() == {"a": "x", "b": "y", "c": "?"}

    def test_parquet_gives_the_same_bytes_as_csv(self, own, workspace):
        accepted(own, {"answers.csv": ANSWERS, "features.csv": FEATURES, "truth.csv": TRUTH})
        written = {p.name: p.read_bytes() for p in Path("data/own/dataset").iterdir()}
        tables = {name: pd.read_csv(f"raw/{name}.csv") for name in ("answers", "features", "truth")}
        shutil.rmtree("raw")
        accepted(own, {f"{name}.parquet": table for name, table in tables.items()})
        assert {p.name: p.read_bytes() for p in Path("data/own/dataset").iterdir()} == written
        assert set(written) == {"answers.parquet", "features.parquet", "truth.parquet", "schema.json"}

    @pytest.mark.parametrize(
        "change", ["crlf", "bom", "no final newline", "rows turned", "columns turned", "more columns"]
    )
    def test_the_form_of_csv_does_not_matter(self, change, own):
        plain = accepted(own, {"answers.csv": ANSWERS, "features.csv": FEATURES}).answers
        header, *rows = ANSWERS.splitlines()
        text = {
            "crlf": ANSWERS.replace("\n", "\r\n"),
            "bom": "\ufeff" + ANSWERS,
            "no final newline": ANSWERS.rstrip(),
            "rows turned": "\n".join([header, *rows[::-1]]),
            "columns turned": "\n".join(",".join(line.split(",")[::-1]) for line in ANSWERS.splitlines()),
            "more columns": "\n".join(f"{line},when" for line in ANSWERS.splitlines()),
        }[change]
        found = accepted(own, {"answers.csv": text.encode(), "features.csv": FEATURES}).answers
        assert found.to_numpy().tolist() == plain.to_numpy().tolist()

    def test_without_truth(self, own):
        assert accepted(own, {"answers.csv": ANSWERS, "features.csv": FEATURES}).truth.isna().all()

    def test_labels_called_NA_and_None_are_labels(self, own):
        text = ANSWERS.replace("x", "NA").replace(",y", ",None")
        data = accepted(own, {"answers.csv": text, "features.csv": FEATURES})
        assert data.classes == ["NA", "None"]
        assert data.answers["label"].tolist() == ["NA", "NA", "None"]

    def test_identifiers_stay_text(self, own):
        answers = "task,worker,label\n01,007,1\n1,7,10\n01,7,9\n"
        data = accepted(own, {"answers.csv": answers, "features.csv": "task,f\n01,1\n1,2\n"})
        assert data.features.index.tolist() == ["01", "1"]
        assert set(data.answers["worker"]) == {"007", "7"}
        assert data.classes == ["1", "9", "10"]

    def test_whole_numbers_of_parquet_become_text(self, own):
        answers = pd.DataFrame({"task": [1, 2, 10], "worker": [3, 4, 3], "label": [10, 9, 2]})
        features = pd.DataFrame({"task": [1, 2, 10], "f": [1, 2, 3]})
        data = accepted(own, {"answers.parquet": answers, "features.parquet": features})
        assert data.features.index.tolist() == ["1", "2", "10"]
        assert data.classes == ["2", "9", "10"]

    @pytest.mark.parametrize("seed", ["0", "1", "2", "3"])
    def test_order_of_equal_numbers_does_not_depend_on_hashes(self, seed, own, workspace):
        """Labels 1, 01 and 001 are equal as numbers; sets of text are ordered differently in every process."""
        answers = "task,worker,label\na,u,1\nb,u,01\na,v,001\n"
        accepted(own, {"answers.csv": answers, "features.csv": FEATURES})
        arguments = ("tasks.label_completion.ingest", "own", "raw", "--out", "again")
        assert workspace.shell(*arguments, PYTHONHASHSEED=seed).returncode == 0
        assert read_dataset(Path("again")).classes == ["001", "01", "1"]

    def test_missing_features_stay_missing(self, own):
        data = accepted(own, {"answers.csv": ANSWERS, "features.csv": "task,f,g\na,,red\nb,2,\nc,4,red\n"})
        assert data.features["f"].isna().tolist() == [True, False, False]
        assert data.features["g"].isna().tolist() == [False, True, False]

    def test_codes_of_nominal_columns_are_those_declared(self, own):
        """All codes up to the largest count as declared; text is sorted, whole numbers in text by size."""
        features = "task,f,g\na,4,10\nb,0,9\nc,,x\n"
        data = accepted(own, {"answers.csv": ANSWERS, "features.csv": features}, nominal=["f", "g"])
        assert data.features["f"].cat.categories.tolist() == ["0", "1", "2", "3", "4"]
        assert data.features["f"].cat.codes.tolist() == [4, 0, -1]
        assert data.features["g"].cat.categories.tolist() == ["10", "9", "x"]

    @pytest.mark.parametrize(("keep", "label"), [("first", "y"), ("last", "x")])
    def test_duplicates_as_told(self, keep, label, own):
        data = accepted(own, {"answers.csv": ANSWERS + "b,u,x\n", "features.csv": FEATURES}, on_duplicate=keep)
        assert data.answers["label"].tolist() == ["x", "x", label]

    def test_unknown_tasks_as_told(self, own):
        files = {"answers.csv": ANSWERS + "Q,u,x\n", "features.csv": FEATURES, "truth.csv": TRUTH + "R,x\n"}
        data = accepted(own, files, on_unknown_task="drop")
        assert len(data.answers) == 3
        assert data.truth.index.tolist() == ["a", "b", "c"]


BAD_TABLES = {
    "answers absent, features there": ({"features.csv": FEATURES}, "raw: 0 files match *.arff or *.arffx"),
    "features absent": ({"answers.csv": ANSWERS}, "raw: 0 files match features.csv or features.parquet"),
    "answers twice": (
        {"answers.csv": ANSWERS, "answers.parquet": pd.DataFrame({"task": ["a"]}), "features.csv": FEATURES},
        "raw: 2 files match answers.csv or answers.parquet",
    ),
    "damaged parquet": (
        {"answers.parquet": b"PAR1 and no more", "features.csv": FEATURES},
        "answers.parquet: not a readable",
    ),
    "no text": (
        {"answers.csv": b"\xff\xfe\x00", "features.csv": FEATURES},
        "raw/answers.csv: not a readable table: 'utf-8'",
    ),
    "empty file": ({"answers.csv": "", "features.csv": FEATURES}, "raw/answers.csv: not a readable table: No columns"),
    "no rows": (
        {"answers.csv": "task,worker,label\n", "features.csv": FEATURES},
        "raw/answers.csv: the table has no rows",
    ),
    "long row": (
        {"answers.csv": ANSWERS + "a,z,x,y\n", "features.csv": FEATURES},
        "Expected 3 fields in line 5, saw 4",
    ),
    "open quote": ({"answers.csv": ANSWERS + 'a,"z,x\n', "features.csv": FEATURES}, "EOF inside string"),
    "short row": (
        {"answers.csv": ANSWERS + "a,z\n", "features.csv": FEATURES},
        "row 3, column label: the value is missing",
    ),
    "semicolons": (
        {"answers.csv": ANSWERS.replace(",", ";"), "features.csv": FEATURES},
        "raw/answers.csv: column task is missing; there are 'task;worker;label'",
    ),
    "column absent": (
        {"answers.csv": ANSWERS.replace("label", "answer"), "features.csv": FEATURES},
        "raw/answers.csv: column label is missing; there are 'task', 'worker', 'answer'",
    ),
    "task absent": (
        {"answers.csv": ANSWERS, "features.csv": FEATURES.replace("task", "id")},
        "raw/features.csv: column task is missing; there are 'id', 'f', 'g'",
    ),
    "no features": (
        {"answers.csv": ANSWERS, "features.csv": "task\na\nb\n"},
        "raw/features: the table has 2 rows and 0 columns; both must be at least 1",
    ),
    "fractions for labels": (
        {"answers.parquet": pd.DataFrame({"task": ["a"], "worker": ["u"], "label": [0.5]}), "features.csv": FEATURES},
        "raw/answers.parquet: column label has type float64; text or whole numbers are needed",
    ),
    "whole numbers with gaps for labels": (
        {
            "answers.parquet": pd.DataFrame({"task": ["a", "b"], "worker": "u", "label": pd.array([1, None], "Int64")}),
            "features.csv": FEATURES,
        },
        "raw/answers: row 1, column label: the value is missing (1 such rows",
    ),
    "lists for labels": (
        {"answers.parquet": pd.DataFrame({"task": ["a"], "worker": ["u"], "label": [[1]]}), "features.csv": FEATURES},
        "raw/answers.parquet: column label has type object; text or whole numbers are needed",
    ),
    "empty label": (
        {"answers.csv": ANSWERS + "b,v,\n", "features.csv": FEATURES},
        "row 3, column label: the value is miss",
    ),
    "empty worker": (
        {"answers.csv": ANSWERS + "b,,x\n", "features.csv": FEATURES},
        "row 3, column worker: the value is miss",
    ),
    "duplicate answer": (
        {"answers.csv": ANSWERS + "a,u,y\n", "features.csv": FEATURES},
        "raw/answers: row 3: worker 'u' has more than one answer for task 'a' (1 such rows; on_duplicate='first' or 'last'",
    ),
    "unknown task": (
        {"answers.csv": ANSWERS + "Q,u,y\n", "features.csv": FEATURES},
        "raw/answers: row 3, column task: 'Q' has no features (1 such rows; on_unknown_task='drop'",
    ),
    "task twice in features": (
        {"answers.csv": ANSWERS, "features.csv": FEATURES + "b,3,red\n"},
        "raw/features: row 3, column task: 'b' appears more than once",
    ),
    "empty task in features": (
        {"answers.csv": ANSWERS, "features.csv": FEATURES + ",3,red\n"},
        "raw/features: row 3, column task: the value is missing",
    ),
    "infinite feature": (
        {"answers.csv": ANSWERS, "features.csv": FEATURES.replace(",2,", ",-inf,")},
        "raw/features: column 'f', row 1: -inf is not a finite number",
    ),
    "word for a missing number": (
        {"answers.csv": ANSWERS, "features.csv": FEATURES.replace(",2,", ",NA,")},
        "raw/features: column f, task 'b': 'NA' is not a number, as most of the others are (1 such cells); leave",
    ),
    "question mark for a missing number": (
        {"answers.csv": ANSWERS, "features.csv": FEATURES.replace(",2,", ",?,")},
        "column f, task 'b': '?' is not a number",
    ),
    "decimal comma": (
        {"answers.csv": ANSWERS, "features.csv": FEATURES.replace(",2,", ',"2,5",')},
        "column f, task 'b': '2,5' is not a number",
    ),
    "dates": (
        {
            "answers.csv": ANSWERS,
            "features.parquet": pd.DataFrame({"task": list("abc"), "f": pd.to_datetime(["2020", "2021", "2022"])}),
        },
        "raw/features: column f has type datetime64",
    ),
    "lists for features": (
        {"answers.csv": ANSWERS, "features.parquet": pd.DataFrame({"task": list("abc"), "f": [[1], [2], [3]]})},
        "raw/features: column f has type object; numbers, text or categories are needed",
    ),
    "task twice in truth": (
        {"answers.csv": ANSWERS, "features.csv": FEATURES, "truth.csv": TRUTH + "a,y\n"},
        "raw/truth: task 'a' appears more than once",
    ),
    "unknown task in truth": (
        {"answers.csv": ANSWERS, "features.csv": FEATURES, "truth.csv": TRUTH + "Q,y\n"},
        "raw/truth: task 'Q' has no features (1 such rows)",
    ),
    "truth without labels": (
        {"answers.csv": ANSWERS, "features.csv": FEATURES, "truth.csv": "task\na\n"},
        "raw/truth.csv: column label is missing; there are 'task'",
    ),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables(case, own, workspace):
    files, message = BAD_TABLES[case]
    assert message in refused(own, workspace, files)


@pytest.mark.parametrize(
    ("value", "message"),
    [("-1", "codes from 0 to 10000"), ("1.5", "codes from 0 to 10000"), ("20000", "codes from 0 to 10000")],
)
def test_bad_nominal_codes(value, message, own, workspace):
    files = {"answers.csv": ANSWERS, "features.csv": FEATURES.replace(",2,", f",{value},")}
    said = refused(own, workspace, files, nominal=["f"])
    assert "raw/features: column f: " in said
    assert message in said


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"nominal": ["h"]}, "raw/features: nominal column 'h' (params.yaml) does not exist"),
        ({"on_duplicate": "newest"}, "params.yaml: label_completion.ingest.own.on_duplicate: 'newest' is not allowed"),
        ({"columns": []}, "params.yaml: label_completion.ingest.own.columns: unknown key"),
    ],
)
def test_bad_parameters(parameters, message, own, workspace):
    assert message in refused(own, workspace, {"answers.csv": ANSWERS, "features.csv": FEATURES}, **parameters)


def test_a_file_in_place_of_the_folder(own, workspace):
    workspace.write("raw", ANSWERS)
    workspace.parameters(ingest={"own": {"path": "raw"}})
    code, said = workspace.run(ingest, "own", "raw", "--out", "data/dataset")
    assert (code, said.count("\n")) == (1, 1)
    assert "raw: not a folder; it should hold answers.csv" in said


def test_an_absent_folder(workspace):
    workspace.parameters(ingest={"own": {"path": "raw"}})
    code, said = workspace.run(ingest, "own", "raw", "--out", "data/dataset")
    assert code == 1
    assert "raw: there is no such input file or folder" in said


def test_a_failed_run_leaves_the_last_good_one(own, workspace):
    accepted(own, {"answers.csv": ANSWERS, "features.csv": FEATURES})
    before = {p: p.read_bytes() for p in Path("data").rglob("*") if p.is_file()}
    code, _ = own({"answers.csv": ANSWERS + "a,u,y\n"})
    assert code == 1
    assert {p: p.read_bytes() for p in Path("data").rglob("*") if p.is_file()} == before


def test_in_a_process_of_its_own(own, workspace):
    code, _ = own({"answers.csv": ANSWERS + "Q,u,x\n", "features.csv": FEATURES})
    assert code == 1
    done = workspace.shell("tasks.label_completion.ingest", "own", "raw", "--out", "data/own/dataset")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: tasks.label_completion.ingest: raw/answers: row 3, column task: 'Q'")
    assert done.stderr.count("\n") == 1
    assert not list(workspace.root.rglob("*.partial"))


class TestCeka:
    def test_own_files(self, own):
        files = {"r.arff": ARFF, "r.response.txt": RESPONSE, "r.gold.txt": "0\t0\n2\t1\n"}
        data = accepted(own, files)
        assert data.answers.to_numpy().tolist() == [[0, "0", "u", "x"], [0, "0", "v", "x"], [0, "1", "u", "y"]]
        assert data.features["g"].cat.categories.tolist() == ["red", "blue"]
        assert data.truth.fillna("?").tolist() == ["x", "?", "y"]

    def test_the_form_of_the_text_does_not_matter(self, own):
        """CRLF, a byte order mark, no final newline: all occur in published files."""
        plain = accepted(own, {"r.arff": ARFF, "r.response.txt": RESPONSE, "r.gold.txt": "0\t0\n"})
        files = {"r.arff": ARFF, "r.response.txt": RESPONSE, "r.gold.txt": "0\t0\n"}
        files = {name: ("\ufeff" + text.replace("\n", "\r\n")).rstrip().encode() for name, text in files.items()}
        found = accepted(own, files)
        assert found.answers.to_numpy().tolist() == plain.answers.to_numpy().tolist()
        pd.testing.assert_frame_equal(found.features, plain.features)
        assert found.truth.fillna("?").tolist() == plain.truth.fillna("?").tolist()

    def test_truth_of_the_table_where_there_is_no_gold_file(self, own):
        assert accepted(own, {"r.arff": ARFF, "r.response": RESPONSE}).truth.fillna("?").tolist() == ["x", "y", "?"]

    @pytest.mark.parametrize(
        ("files", "message"),
        [
            ({"r.response.txt": RESPONSE}, "raw: 0 files match *.arff or *.arffx; the folder should hold"),
            ({"r.arff": ARFF}, "raw: 0 files match *.response.txt or *.response"),
            ({"r.arff": ARFF, "s.arff": ARFF, "r.response.txt": RESPONSE}, "raw: 2 files match *.arff or *.arffx"),
            (
                {"r.arff": b"\xff" + ARFF.encode(), "r.response.txt": RESPONSE},
                "raw/r.arff: not UTF-8 text: invalid start byte",
            ),
            (
                {"r.arff": ARFF[:-6], "r.response.txt": RESPONSE},
                "raw/r.arff: line 8: 2 values; 3 attributes are declared",
            ),
            ({"r.arff": ARFF, "r.response.txt": RESPONSE + "v\t9\t0\n"}, "row 3, column task: '9' has no features"),
            (
                {"r.arff": ARFF, "r.response.txt": RESPONSE + "v\t0\t1\n"},
                "row 3: worker 'v' has more than one answer for task '0'",
            ),
            ({"r.arff": ARFF, "r.response.txt": ""}, "the table has no rows"),
            (
                {"r.arff": ARFF, "r.response.txt": RESPONSE, "r.gold.txt": "9\t0\n"},
                "raw/truth: task '9' has no features",
            ),
            (
                {"r.arff": ARFF, "r.response.txt": RESPONSE, "r.gold.txt": "0\t7\n"},
                "raw/r.gold.txt: line 1: label '7' is not",
            ),
        ],
    )
    def test_bad_files(self, files, message, own, workspace):
        assert message in refused(own, workspace, files)

    @pytest.mark.parametrize("name", ["labelme", "leaves"])
    def test_published_files_equal_the_tidy_tables(self, name, own, reference_data, workspace):
        shutil.copytree(shared_folder("data") / "raw" / name, workspace.root / "raw")
        found, expected = accepted(own, {}), reference_data(name)
        assert found.classes == expected.schema["classes"]
        assert found.nominal == expected.nominal
        assert found.features.index.tolist() == expected.features.index.tolist()
        np.testing.assert_array_equal(found.features, expected.features)
        assert pd.Index(found.classes).get_indexer(found.truth).tolist() == expected.truth.tolist()
        a = encode(found.answers, tasks=found.features.index, classes=found.classes)
        b = encode(
            expected.answers.assign(
                worker=expected.answers["worker"].astype("str"),
                label=pd.Index(found.classes).take(expected.answers["label"]),
            ),
            tasks=found.features.index,
            classes=found.classes,
        )
        assert a.workers.tolist() == b.workers.tolist()
        for column in ("task", "worker", "label"):
            np.testing.assert_array_equal(getattr(a, column), getattr(b, column))


FEW_ANSWERS = "task,worker,label\na,u,x\na,v,y\nb,u,y\n"
FEW_FEATURES = "task,f\na,1\nb,2\nc,3\n"


def test_declared_classes_order_ties(own):
    files = {"answers.csv": FEW_ANSWERS, "features.csv": FEW_FEATURES}
    assert accepted(own, files, classes=["y", "x"]).classes == ["y", "x"]


def test_declared_classes_find_a_typo(own, workspace):
    files = {"answers.csv": FEW_ANSWERS, "features.csv": FEW_FEATURES}
    said = refused(own, workspace, files | {"answers.csv": FEW_ANSWERS + "c,u,z\n"}, classes=["x", "y"])
    assert "raw/answers: row 3, column label: 'z' is not one of 'x', 'y' (rows are counted from 0)" in said
    said = refused(own, workspace, files | {"truth.csv": "task,label\na,x\nb,zzz\n"}, classes=["x", "y"])
    assert "raw/truth: row 1, column label: 'zzz' is not one of 'x', 'y'" in said


def test_a_truth_without_its_task_is_told(own, workspace):
    said = refused(
        own, workspace, {"answers.csv": FEW_ANSWERS, "features.csv": FEW_FEATURES, "truth.csv": "task,label\n,x\n"}
    )
    assert "raw/truth: row 0, column task: the value is missing" in said


def test_nominal_of_ceka_files_is_refused(own, workspace):
    files = {
        "a.arff": "@relation r\n@attribute f numeric\n@attribute class {x,y}\n@data\n1,x\n2,y\n",
        "a.response.txt": "u\t0\t0\nv\t1\t1\n",
    }
    assert "nominal and classes are declared in CEKA's files" in refused(own, workspace, files, nominal=["f"])


@pytest.mark.parametrize("name", ["a b", "a;b", "checks", "-x", "ü"])
def test_odd_names_are_refused(workspace, name):
    workspace.write("raw/answers.csv", FEW_ANSWERS)
    workspace.write("raw/features.csv", FEW_FEATURES)
    workspace.parameters(ingest={name: {"path": "raw"}})
    code, said = workspace.run(ingest, "--out", "out", "--", name, "raw")
    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith(f"error: tasks.label_completion.ingest: params.yaml: label_completion.ingest.{name}")
