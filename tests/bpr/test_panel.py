"""From tables to panels: order in time, lags, neighbours, splits; and one exact line for each bad input."""

import dataclasses

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.bpr import params
from tasks.bpr.arrangement import arrange, nearest
from tasks.bpr.dataset import read_panel, write_panel
from tasks.stage import UserError


def settings(**values):
    values = {"k": 2, "lags": 2, **values}
    columns = params.Columns(**values.pop("columns", {}))
    return params.Panel(path="table.csv", columns=columns, **values)


@pytest.fixture
def table():
    """3 sites × 5 periods; count = 10 × period + site, x its negative half."""
    rows = [(s, t, 10.0 * t + i) for t in range(2015, 2020) for i, s in enumerate("abc")]
    table = pd.DataFrame(rows, columns=["site", "period", "count"])
    places = {"a": (0.0, 0.0), "b": (0.0, 1.0), "c": (0.0, 5.0)}
    return table.assign(
        count=table["count"] - 20150,
        x=-table["count"] / 2,
        lat=table["site"].map(lambda s: places[s][0]),
        lon=table["site"].map(lambda s: places[s][1]),
        people=100,
    )


PLACES = {"latitude": "lat", "longitude": "lon"}


def test_lags_neighbours_splits_and_features(table):
    panel = arrange(table, settings(neighbours=1, features=["x"], history=1, columns=PLACES), where="table.csv")
    assert panel.sites.tolist() == ["a", "b", "c"]
    assert panel.periods.tolist() == ["2015", "2016", "2017", "2018", "2019"]
    assert panel.split.tolist() == ["history", "train", "train", "valid", "test"]
    assert panel.time.tolist() == [0, 1, 2, 3, 4]
    assert panel.counts.tolist() == [[10 * t + s for s in range(3)] for t in range(5)]
    assert panel.feature_names == ["x", "lag1", "lag2", "neighbour_mean"]
    assert panel.features[3].tolist() == [
        [-(20150 + 30) / 2, 20, 10, 21],
        [-(20150 + 31) / 2, 21, 11, 20],
        [-(20150 + 32) / 2, 22, 12, 21],
    ]
    assert panel.features[0, :, 1:].tolist() == [[0, 0, 0]] * 3
    assert panel.features[1, :, 1:].tolist() == [[0, 0, 1], [1, 0, 0], [2, 0, 1]]
    assert panel.coordinates.tolist() == [[0, 0], [0, 1], [0, 5]]
    assert panel.exposure is None
    assert arrange(table, settings(columns={"exposure": "people"}), where="t").exposure.tolist() == [[100] * 3] * 5


@given(st.permutations(range(15)), st.booleans())
def test_the_order_of_rows_never_matters(order, shifted_index):
    rows = [(s, f"2020-0{t}-01", float(t * 3 + i), i * 1.0, i * 2.0) for t in range(1, 6) for i, s in enumerate("abc")]
    table = pd.DataFrame(rows, columns=["site", "period", "count", "lat", "lon"])
    parameters = settings(neighbours=2, columns=PLACES, features=["lat"])
    expected = arrange(table, parameters, where="t")
    mixed = table.iloc[list(order)]
    found = arrange(mixed if shifted_index else mixed.reset_index(drop=True), parameters, where="t")
    for field in dataclasses.fields(found):
        np.testing.assert_array_equal(getattr(found, field.name), getattr(expected, field.name), field.name)


@pytest.mark.parametrize(
    ("given_", "ordered"),
    [
        ([10, 9, 8, 11], ["8", "9", "10", "11"]),
        ([9.0, 10.0, 8.0, 11.0], ["8", "9", "10", "11"]),
        (["10", "9", "8", "11"], ["8", "9", "10", "11"]),
        (["2020-02-01", "2020-01-01", "2019-12-01"], ["2019-12-01", "2020-01-01", "2020-02-01"]),
        (pd.to_datetime(["2020-02-01", "2020-01-01", "2019-12-01"]), ["2019-12-01", "2020-01-01", "2020-02-01"]),
        ([202001, 201912, 202003, 202002], ["201912", "202001", "202002", "202003"]),
        (["b", "10", "a", "9"], ["10", "9", "a", "b"]),
        (["2001-02-28_to_x", "2000-12-25_to_x", "2001-10-20_to_"], ["2000-12-25_to_x", "2001-02-28_to_x", "2001-10-20_to_"]),
    ],
)  # fmt: skip
def test_periods_are_ordered_as_numbers_then_as_dates_then_as_text(given_, ordered):
    table = pd.DataFrame({"site": 1, "period": given_, "count": 1})
    assert arrange(table, settings(k=1), where="t").periods.tolist() == ordered


@pytest.mark.parametrize("site", [17031010100, 17031010100.0, "17031010100"])
def test_identifiers_are_text_however_they_are_stored(site):
    table = pd.DataFrame({"site": [site] * 3, "period": [1, 2, 3], "count": 1})
    assert arrange(table, settings(k=1), where="t").sites.tolist() == ["17031010100"]


def test_a_missing_row_can_mean_no_event(table):
    fewer = table.drop(index=[4, 14])
    panel = arrange(fewer, settings(zero_cells="fill"), where="t")
    assert panel.counts[1].tolist() == [10, 0, 12]
    assert panel.counts[4].tolist() == [40, 41, 0]
    assert panel.features[2, :, 0].tolist() == [10, 0, 12]


def test_a_constant_feature_and_a_period_without_events_are_allowed(table):
    table.loc[table["period"] == 2016, "count"] = 0
    panel = arrange(table, settings(features=["people"]), where="t")
    assert (panel.features[:, :, 0] == 100).all()
    assert panel.counts[1].sum() == 0


def test_features_may_lack_in_history_only(table):
    table.loc[[0, 3], "x"] = np.nan
    assert np.isnan(arrange(table, settings(features=["x"], history=2), where="t").features[:, :, 0]).sum() == 2
    with pytest.raises(UserError, match=r"^t: column x: row 3: the value is missing; needed is a finite number$"):
        arrange(table, settings(features=["x"], history=1), where="t")


def test_own_lag_columns_are_used_as_they_are(table):
    table["lag1"] = 7.0
    assert (arrange(table, settings(features=["lag1"], lags=0), where="t").features == 7).all()
    assert (arrange(table, settings(lags=1), where="t").features[1:] != 7).all()


def test_nearest_sites_go_by_great_circles_and_never_are_the_site_itself():
    # at 60° north a degree of longitude is half as long as one of latitude
    assert nearest(np.array([[60.0, 0.0], [60.0, 1.5], [61.0, 0.0]]), 1).ravel().tolist() == [1, 0, 0]
    assert nearest(np.array([[0.0, 179.5], [0.0, -179.5], [0.0, 170.0]]), 1).ravel().tolist() == [1, 0, 0]
    found = nearest(np.zeros((4, 2)), 2)
    assert (found != np.arange(4)[:, None]).all()
    assert all(len(set(row)) == 2 for row in found.tolist())


def test_a_panel_survives_the_disk_and_has_the_same_bytes_for_any_order_of_rows(table, tmp_path):
    parameters = settings(neighbours=1, features=["x"], history=1, columns={**PLACES, "exposure": "people"})
    panel = arrange(table, parameters, where="t", origin="table.csv")
    write_panel(tmp_path / "a", panel)
    write_panel(
        tmp_path / "b", arrange(table.sample(frac=1, random_state=0), parameters, where="t", origin="table.csv")
    )
    read = read_panel(tmp_path / "a")
    for field in dataclasses.fields(panel):
        np.testing.assert_array_equal(getattr(read, field.name), getattr(panel, field.name), field.name)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def cell(row, column, value):
    def change(table):
        table[column] = table[column].astype(object)
        table.loc[row, column] = value
        return table.infer_objects()

    return change


MONTHS = ["2020-01-01", "2020-02-01", "2020-03-01", "2020-05-01", "2020-06-01"]
ALLOWED = "needed is a finite number of at least 0"
BAD = [
    # counts
    (cell(4, "count", -1.0), {}, f"column count: row 4: -1.0 is not allowed; {ALLOWED}"),
    (cell(4, "count", np.nan), {}, f"column count: row 4: the value is missing; {ALLOWED}"),
    (cell(4, "count", np.inf), {}, f"column count: row 4: inf is not allowed; {ALLOWED}"),
    (cell(4, "count", "many"), {}, f"column count: row 4: 'many' is not allowed; {ALLOWED}"),
    (lambda t: t.assign(count=t["count"] > 3), {}, "column count has type bool; numbers are needed"),
    (lambda t: t.assign(count=pd.Timestamp("2020-01-01")), {}, "column count has type datetime64[us]; numbers are needed"),
    # cells
    (
        lambda t: pd.concat([t, t[4:5]]),
        {},
        "row 15: site 'b', period '2016' appears again, first in row 4; one row is allowed",
    ),
    (
        lambda t: t.drop(index=[4, 7]),
        {},
        "no row for site 'b', period '2016' (2 such cells); add the rows, or set zero_cells: fill where no row means "
        "no event",
    ),
    (
        lambda t: t[(t["site"] != "c") | (t["period"] == 2019)],
        {"zero_cells": "fill"},
        "site 'c' has no row before the validation periods (1 such sites); nothing can be learnt about it: leave it out or "
        "add its rows",
    ),
    (
        lambda t: t.drop(index=4),
        {"zero_cells": "fill", "features": ["x"]},
        "column x: no value for site 'b', period '2016', a cell without a row; zero_cells: fill knows only its count",
    ),
    (
        lambda t: t[t["period"] != 2017],
        {},
        "column period: nothing between '2016' and '2018', where the other periods follow at equal distance; add rows for "
        "the periods that lack, or name the periods in text that is no number or date",
    ),
    (  # months follow at equal distance, though not in days
        lambda t: t.assign(period=t["period"].map(dict(zip(range(2015, 2020), MONTHS, strict=True)))),
        {},
        "column period: nothing between '2020-03-01' and '2020-05-01', where the other periods follow at equal distance; add "
        "rows for the periods that lack, or name the periods in text that is no number or date",
    ),
    (lambda t: t[:0], {}, "the table has no rows"),
    # identifiers
    (cell(4, "site", None), {}, "column site: row 4: the value is missing"),
    (cell(4, "period", 2016.5), {}, "column period: row 4: 2016.5 is no identifier; text or whole numbers are needed"),
    (lambda t: t.assign(site=True), {}, "column site has type bool; text, whole numbers or dates are needed"),
    (
        lambda t: t.assign(period=[*t["period"].astype(str)[:-1], "2019.0"]),
        {},
        "column period: '2019' and '2019.0' are the same period; one spelling is needed",
    ),
    # K and splits
    (lambda t: t, {"k": 4}, "k is 4, but there are only 3 sites; allowed: 1 to 3"),
    (
        lambda t: t,
        {"history": 1, "valid": 2, "test": 2},
        "5 periods leave none for training; history 1, valid 2 and test 2 need at least 6",
    ),
    # columns
    (lambda t: t.drop(columns="site"), {}, "column site is missing; there are period, count, x, lat, lon, people"),
    (lambda t: t, {"features": ["z"]}, "column z is missing; there are site, period, count, x, lat, lon, people"),
    (
        lambda t: t,
        {"columns": {"count": "period"}},
        "column period is named as period and count; every role needs a column of its own",
    ),
    (lambda t: t, {"features": ["count"]}, "feature count is the count itself, which is not known before the period"),
    (
        lambda t: t.assign(lag2=1.0),
        {"features": ["lag2"]},
        "feature lag2 is in the table and also made from the counts; leave it out of features, or set lags: 0",
    ),
    (
        lambda t: t.assign(neighbour_mean=1.0),
        {"features": ["neighbour_mean"], "neighbours": 1, "columns": PLACES},
        "feature neighbour_mean is in the table and also made from the counts; leave it out of features, or set "
        "neighbours: 0",
    ),
    (
        lambda t: t,
        {"features": ["period"]},
        "a feature may not be called period; not allowed: site, period, count, exposure",
    ),
    # features
    (cell(4, "x", "high"), {"features": ["x"]}, "column x: row 4: 'high' is not allowed; needed is a finite number"),
    (cell(4, "x", np.inf), {"features": ["x"]}, "column x: row 4: inf is not allowed; needed is a finite number"),
    (cell(0, "x", np.nan), {"features": ["x"]}, "column x: row 0: the value is missing; needed is a finite number"),
    # exposure
    (
        cell(4, "people", 0),
        {"columns": {"exposure": "people"}},
        "column people: row 4: 0 is not allowed; needed is a finite number above 0",
    ),
    # coordinates
    (cell(4, "lat", 91.0), {"columns": PLACES}, "column lat: row 4: 91.0 is not allowed; needed is a number from -90 to 90"),
    (
        cell(4, "lon", 181.0),
        {"columns": PLACES},
        "column lon: row 4: 181.0 is not allowed; needed is a number from -180 to 180",
    ),
    (
        cell(4, "lon", 1.5),
        {"columns": PLACES},
        "column lon: row 4: 1.5, but 1.0 in another row of the same site b; a site does not move",
    ),
    (lambda t: t, {"neighbours": 1}, "neighbours: 1 needs the columns latitude and longitude"),
    (
        lambda t: t,
        {"neighbours": 3, "columns": PLACES},
        "neighbours: 3, but a site has only 2 others; allowed: 0 to 2",
    ),
    (
        lambda t: t,
        {"columns": {"latitude": "lat"}},
        "latitude and longitude are needed together; name both columns or none",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("change", "values", "message"), BAD, ids=[message[:60] for _, _, message in BAD])
def test_bad_input_is_told_in_one_exact_line(table, change, values, message):
    with pytest.raises(UserError) as error:
        arrange(change(table), settings(**values), where="table.csv")
    assert str(error.value) == f"table.csv: {message}"


@pytest.mark.parametrize("file", ["sites", "periods"])
def test_a_panel_on_disk_that_names_something_twice_is_told_in_one_line(table, tmp_path, file):
    folder = tmp_path / "panel"
    write_panel(folder, arrange(table, settings(), where="table.csv"))
    path = folder / f"{file}.parquet"
    rows = pq.read_table(path)
    pq.write_table(pa.concat_tables([rows, rows.slice(1, 1)]), path)
    with pytest.raises(UserError, match=rf"{file}\.parquet: '(b|2016)' stands there twice"):
        read_panel(folder)
