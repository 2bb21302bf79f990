"""The package stage: a wheel in a folder in place of an index, and the real one where pip reaches an index."""

import hashlib
import json
import subprocess
import sys
import zipfile

import pandas as pd
import pytest

from tasks.prm import fetch
from tests.prm.conftest import shared_folder


def marked(text, start, end):
    return {"text": text, "start_idx": start, "end_idx": end, "author": "someone"}


PROBLEMS = {
    "P_2": {
        "category": "Number-Theory",
        "_raw_text": "Is @@2@@ even?",
        "_text": "Is 2 even?",
        "_answer": "yes",
        "fws_annotations": {
            "PaLM|No C w/o H": marked("2 is odd.\n\nSo no — ½.", 0, 9),
            "GPT-4|No C w/o H": marked("Yes.", None, None),
        },
        "conversations": {"GPT-4|0-Shot": {"messages": ["not annotated"]}},
    },
    "P_1": {
        "category": "Sequence",
        "_raw_text": "1, 2, ?",
        "_text": "1, 2, ?",
        "_answer": "3",
        "fws_annotations": {"GPT-4|Direct C w/ H": marked("It is\n\nfour.", 7, 12)},
        "conversations": {},
    },
}


@pytest.fixture
def wheel(tmp_path_factory, monkeypatch):
    """A champ-dataset wheel in a folder that pip looks into instead of an index, and its pin."""
    folder = tmp_path_factory.mktemp("index")
    file = folder / "champ_dataset-1.0.0-py3-none-any.whl"
    about = "champ_dataset-1.0.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("champ_dataset/dataset_files/v0.json", json.dumps({"problems": PROBLEMS, "concepts": {}}))
        archive.writestr("champ_dataset/__init__.py", "raise SystemExit('code of the package ran')")
        archive.writestr(f"{about}/LICENSE", "MIT")
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: champ-dataset\nVersion: 1.0.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    pin = {**fetch.PACKAGES["champ-dataset"], "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    monkeypatch.setitem(fetch.PACKAGES, "champ-dataset", pin)
    return pin


def test_annotated_solutions_and_the_licence_are_kept_and_nothing_else(workspace, wheel):
    assert workspace.run(fetch, "champ-dataset", "--out", "raw/champ-dataset") == (0, "")
    kept = {"raw", "raw/champ-dataset", "raw/champ-dataset/solutions.jsonl", "raw/champ-dataset/LICENSE"}
    assert workspace.files() == kept
    assert (workspace.root / "raw/champ-dataset/LICENSE").read_text() == "MIT"
    lines = (workspace.root / "raw/champ-dataset/solutions.jsonl").read_bytes().decode().splitlines()
    rows = [json.loads(line) for line in lines]
    assert rows[0] == {
        "problem": "P_1",
        "prompt": "1, 2, ?",
        "response": "It is\n\nfour.",
        "correct": False,
        "first_wrong": 7,
        "last_wrong": 12,
        "category": "Sequence",
        "reference_answer": "3",
        "model": "GPT-4",
        "request": "Direct C w/ H",
    }
    assert [(row["problem"], row["model"], row["correct"], row["first_wrong"], row["last_wrong"]) for row in rows] == [
        ("P_1", "GPT-4", False, 7, 12),
        ("P_2", "GPT-4", True, -1, -1),
        ("P_2", "PaLM", False, 0, 9),
    ]
    assert "— ½" in lines[2]


def test_another_wheel_and_an_unknown_package_are_refused(workspace, wheel):
    found, wheel["sha256"] = wheel["sha256"], "0" * 64
    code, said = workspace.run(fetch, "champ-dataset", "--out", "raw/champ-dataset")
    assert (code, said) == (
        1,
        "error: tasks.prm.fetch: champ-dataset==1.0.0: could not be fetched by pip: not the pinned file: "
        f"SHA-256 {found}\n",
    )
    code, said = workspace.run(fetch, "other", "--out", "raw/other")
    assert (code, said) == (1, "error: tasks.prm.fetch: package 'other' is not one of champ-dataset\n")
    assert workspace.files() == {"raw"}


def test_what_unpacks_to_more_than_the_pinned_file_is_refused(workspace, wheel, monkeypatch):
    monkeypatch.setattr(fetch, "LARGEST", 100)
    code, said = workspace.run(fetch, "champ-dataset", "--out", "raw/champ-dataset")
    assert (code, said) == (
        1,
        "error: tasks.prm.fetch: champ_dataset-1.0.0-py3-none-any.whl: unpacks to more than 100 bytes; refused\n",
    )
    assert workspace.files() == {"raw"}


def test_the_real_solutions_are_those_of_the_reference_table(workspace):
    """Skips where pip reaches no index that has the package, or the reference data are absent."""
    expected = pd.read_parquet(shared_folder("data") / "champ_steps.parquet")
    pip = [sys.executable, "-m", "pip", "--retries", "0", "--timeout", "10"]
    options = ["--no-deps", "--only-binary", ":all:", "--quiet", "-d", "probe"]
    asked = subprocess.run([*pip, "download", *options, "champ-dataset==1.0.0"], capture_output=True)
    if asked.returncode:
        pytest.skip("offline: pip reaches no package index that has champ-dataset, whose real file this test reads")
    assert workspace.run(fetch, "champ-dataset", "--out", "raw") == (0, "")
    assert (workspace.root / "raw/LICENSE").read_text().startswith("Copyright 2024 Yujun Mao")
    assert (workspace.root / "raw/solutions.jsonl").stat().st_size < 2_000_000
    found = pd.read_json(workspace.root / "raw/solutions.jsonl", lines=True, dtype=False)
    assert len(found) == 540
    assert (~found["correct"]).sum() == 444
    found.index = found["problem"].str.cat([found["model"], found["request"]], sep="|")
    expected = expected.set_index("solution_id")
    assert found.index.is_unique
    assert set(found.index) == set(expected.index)
    expected = expected.loc[found.index]
    for ours, theirs in {"prompt": "problem", "response": "text", "category": "category", "model": "model"}.items():
        assert found[ours].tolist() == expected[theirs].tolist()
    assert found["reference_answer"].tolist() == expected["reference_answer"].tolist()
    assert found["first_wrong"].tolist() == expected["error_start"].fillna(-1).astype(int).tolist()
    assert found["last_wrong"].tolist() == expected["error_end"].fillna(-1).astype(int).tolist()
