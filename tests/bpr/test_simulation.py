"""The synthetic panels follow their laws."""

import numpy as np
import pytest

from tasks.bpr import simulation
from tasks.stage import random_generator


def counts(table):
    return table["count"].to_numpy().reshape(table["period"].nunique(), -1)


def test_seven_sites_have_the_papers_means_and_spread():
    table = simulation.seven_sites(600, random_generator(360, "seven_sites"))
    drawn = counts(table)
    assert drawn.shape == (600, 7)
    assert np.abs(drawn.mean(axis=0) - [10, 20, 30, 40, 50, 60, 100]).max() < 0.06  # 4 standard errors
    # rounding N(0, 0.3²) gives ±1 with probability P(|z| > 5/3) = .0956
    off = np.abs(drawn - [10, 20, 30, 40, 50, 60, 100])
    assert set(np.unique(off)) == {0.0, 1.0}
    assert (off == 1).mean() == pytest.approx(0.0956, abs=0.018)


def test_nine_sites_are_independent_with_their_probabilities():
    drawn = counts(simulation.nine_sites(20_000, random_generator(360, "nine_sites")))
    assert (drawn[:, :3] == 7).all()
    assert set(np.unique(drawn[:, 3:6])) == {0.0, 10.0}
    assert set(np.unique(drawn[:, 6:])) == {0.0, 80.0}
    assert np.abs((drawn[:, 3:6] > 0).mean(axis=0) - 0.65).max() < 0.014
    assert np.abs((drawn[:, 6:] > 0).mean(axis=0) - 0.1).max() < 0.009
    assert np.abs(np.corrcoef(drawn[:, 3:].T) - np.eye(6)).max() < 0.03
    assert simulation.nine_sites(1, random_generator(0))["site"].tolist() == [
        f"{kind}{i}" for kind in "ABC" for i in (1, 2, 3)
    ]


def test_the_wedge_lies_where_the_thesis_puts_it():
    table = simulation.wedge(60, random_generator(360, "wedge"))
    assert table["site"].nunique() == 1600
    cells = table.groupby("site").agg(
        mean=("count", "mean"),
        x=("longitude", "first"),
        y=("latitude", "first"),
        cos=("cos", "first"),
        sin=("sin", "first"),
    )
    assert cells[["x", "y"]].abs().max().max() == pytest.approx(0.195)
    assert cells[["x", "y"]].sum().abs().max() < 1e-9
    angle = np.degrees(np.arctan2(cells["y"], cells["x"])) % 360
    np.testing.assert_allclose(cells["cos"], np.cos(np.radians(angle)), atol=1e-9)
    np.testing.assert_allclose(cells["sin"], np.sin(np.radians(angle)), atol=1e-9)
    in_wedge, in_band = angle.between(45, 90), angle.between(272, 280)
    assert in_wedge.sum() == 210
    np.testing.assert_allclose(cells["mean"][in_wedge], 14 - 5 * (angle[in_wedge] - 45) / 45, atol=0.3)
    assert in_band.sum() == 28
    np.testing.assert_allclose(cells["mean"][in_band], 20, atol=0.3)
    # elsewhere the noise alone: max(0, round(N(0, 0.5²))) is 1 with probability P(z > 1) = .159
    assert cells["mean"][~in_wedge & ~in_band].mean() == pytest.approx(0.16, abs=0.01)


@pytest.mark.parametrize("name", ["seven_sites", "nine_sites", "wedge"])
def test_the_same_seed_gives_the_same_table_and_another_one_another(name):
    draw = getattr(simulation, name)
    first = draw(5, random_generator(1, name))
    assert first.equals(draw(5, random_generator(1, name)))
    assert not first.equals(draw(5, random_generator(2, name)))
    assert first.columns[:3].tolist() == ["site", "period", "count"]
    assert first["period"].unique().tolist() == list("12345")
