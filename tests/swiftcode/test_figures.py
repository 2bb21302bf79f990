"""Points, intervals and bands of the pictures lie at their numbers."""

import numpy as np
import pandas as pd
import pytest

from tasks.swiftcode import figures
from tests.swiftcode import finished


@pytest.fixture
def drawn(monkeypatch):
    found = []
    monkeypatch.setattr(figures, "save", lambda figure, path: found.append(figure))
    return found


def estimate(key: str, value: float, reach: float = 0.1) -> dict[str, float]:
    return {key: value, f"{key}.low": value - reach, f"{key}.high": value + 2 * reach}


def metrics(**changes) -> dict:
    found = {"data.tasks": 9, "data.languages": "python", "data.cost": "cpu", "noise.factor": 1.1}
    for i, name in enumerate(("base", "random-correct", "fastest")):
        found |= {f"{name}.answers": 36, f"{name}.compared": 3 + i}
        found |= estimate(f"{name}.pass.1", 0.2 + i / 10) | estimate(f"{name}.pass.4", 0.5 + i / 10)
        found |= estimate(f"{name}.reference", 0.5 + i / 10)
    for i, pair in enumerate(("fastest.random-correct", "fastest.base")):
        found |= {f"pair.{pair}.overlap": 1 + i}
        found |= estimate(f"pair.{pair}.pass.1", 0.1 - i / 5) | estimate(f"pair.{pair}.pass.4", 0.2)
        found |= estimate(f"pair.{pair}.time", 0.6 + i) | estimate(f"pair.{pair}.memory", 0.9)
    return found | changes


def places(container) -> tuple[np.ndarray, np.ndarray, list[list[float]]]:
    """x, y, and the ends of the intervals, of an error bar."""
    line, _, bars = container
    return line.get_xdata(), line.get_ydata(), list(bars[0].get_segments())


def test_models_and_pairs_are_those_of_the_metrics():
    assert figures.generators_of(metrics()) == ["base", "random-correct", "fastest"]
    assert figures.pairs_of(metrics()) == [("fastest", "random-correct"), ("fastest", "base")]
    assert figures.counts_of(metrics(**{"base.pass.10": 0.5})) == [1, 4, 10]


def test_correct_answers_lie_at_their_numbers(drawn, tmp_path):
    figures.correctness({"here": metrics(), "there": metrics(**{"data.tasks": 1})}, tmp_path / "a.png", 0.9)
    here, there = drawn[0].axes
    assert here.get_title() == "here: 9 test tasks in python"
    assert there.get_title() == "there: 1 test task in python"
    assert [label.get_text() for label in here.get_xticklabels()] == ["pass@1", "pass@4"]
    assert [c.get_label() for c in here.containers] == ["base model", "random-correct (control)", "fastest"]
    x, y, segments = places(here.containers[1])
    assert y == pytest.approx([0.3, 0.6])
    assert x == pytest.approx([0, 1])  # the middle one of three
    assert segments[1][:, 1] == pytest.approx([0.5, 0.8])
    assert "90%" in drawn[0]._suptitle.get_text()


def results(rows: list[tuple]) -> pd.DataFrame:
    columns = ["task", "language", "generator", "verdict", "time", "reference_time"]
    return pd.DataFrame(rows, columns=columns)


RESULTS = results(
    [
        ("t", "python", "fastest", "accepted", 0.1, 0.2),
        ("t", "python", "fastest", "accepted", 0.4, 0.2),
        ("u", "python", "fastest", "accepted", 0.6, 0.2),
        ("u", "cpp", "fastest", "accepted", 0.6, np.nan),
        ("u", "python", "fastest", "wrong_answer", np.nan, 0.2),
        ("t", "python", "base", "accepted", 0.3, 0.2),
        ("t", "python", "pool", "accepted", 0.2, 0.2),
    ]
)


def test_ratios_of_a_unit_are_geometric_means_of_its_answers():
    found = figures.task_ratios(RESULTS)
    assert found["ratio"].to_numpy() == pytest.approx([1.5, 1.0, 3.0])  # sqrt(.5 · 2) = 1
    assert found[["generator", "task"]].values.tolist() == [["base", "t"], ["fastest", "t"], ["fastest", "u"]]
    categories = RESULTS.astype({"task": "category", "language": "category", "generator": "category"})
    pd.testing.assert_frame_equal(figures.task_ratios(categories), found)


def test_the_points_of_a_model_have_the_reported_geometric_mean():
    reported, rows, _ = finished.evaluated()
    ratios = figures.task_ratios(rows)
    for name in ("base", "random-correct", "fastest", "slowest"):
        own = ratios.loc[ratios["generator"] == name, "ratio"]
        assert len(own) == reported[f"{name}.compared"]
        assert np.exp(np.log(own).mean()) == pytest.approx(reported[f"{name}.reference"], rel=1e-5)


def test_times_lie_at_their_numbers_with_the_noise_around_1(drawn, tmp_path):
    figures.speed({"here": metrics()}, {"here": RESULTS}, tmp_path / "a.png", 0.9)
    (axis,) = drawn[0].axes
    assert [label.get_text() for label in axis.get_yticklabels()] == [
        "base model\n(3 tasks)",
        "random-correct (control)\n(4 tasks)",
        "fastest\n(5 tasks)",
    ]
    band = axis.patches[0].get_extents().transformed(axis.transData.inverted())
    assert (band.x0, band.x1) == pytest.approx((1 / 1.1, 1.1))
    x, y, segments = places(axis.containers[2])
    assert (x[0], y[0]) == pytest.approx((0.7, 2.24))
    assert segments[0][:, 0] == pytest.approx([0.6, 0.9])
    dots = [line for line in axis.lines if line.get_marker() == "o"]
    assert dots[2].get_xdata() == pytest.approx([1.0, 3.0])
    assert [text.get_text() for text in axis.texts] == ["no correct answer to compare"]  # of random-correct
    assert axis.texts[0].get_position()[1] == 1
    assert axis.get_xlim() == pytest.approx((0.8, 3.3))


def test_instructions_are_named(drawn, tmp_path):
    figures.speed({"here": metrics(**{"data.cost": "instructions"})}, {"here": RESULTS}, tmp_path / "a.png", 0.9)
    assert drawn[0].axes[0].get_xlabel().startswith("net instructions of correct answers")


def test_differences_lie_beside_no_difference(drawn, tmp_path):
    unknown = metrics(**{"pair.fastest.base.time": None, "pair.fastest.base.time.low": None, "noise.factor": None})
    unknown |= {"pair.fastest.base.time.high": None}
    figures.differences({"here": metrics(), "there": unknown}, tmp_path / "a.png", 0.9)
    left, right, _, without = drawn[0].axes
    assert [label.get_text() for label in left.get_yticklabels()] == [
        "fastest\nagainst random-correct (control)",
        "fastest\nagainst base model",
    ]
    assert [label.get_text() for label in right.get_yticklabels()] == ["1 task", "2 tasks"]
    x, y, segments = places(left.containers[0])
    assert x == pytest.approx([0.1, -0.1])
    assert y == pytest.approx([-0.1, 0.9])
    assert segments[0][:, 0] == pytest.approx([0.0, 0.3])
    assert [0, 0] in [list(line.get_xdata()) for line in left.lines]
    assert [1, 1] in [list(line.get_xdata()) for line in right.lines]
    assert [c.get_label() for c in right.containers] == ["time", "memory"]
    assert places(right.containers[0])[0] == pytest.approx([0.6, 1.6])
    assert places(right.containers[1])[0] == pytest.approx([0.9, 0.9])
    assert len(right.patches) == 1  # the noise
    assert len(without.patches) == 0
    assert places(without.containers[0])[0] == pytest.approx([0.6, np.nan], nan_ok=True)


def test_candidates_lie_at_their_times_and_the_chosen_one_is_ringed(drawn, tmp_path):
    table, margins, _ = finished.selection()
    assert figures.selection("here", table, margins, "cpu", tmp_path / "a.png") == 0
    (axis,) = drawn[0].axes
    labels = [label.get_text() for label in axis.get_yticklabels()]
    assert labels == ["only (python)", "sort (python)", "sum (python)", "table (python)"]
    times = table.set_index("candidate")["time"]
    of_sort = [c for c in axis.containers if c[0].get_ydata()[0] == 1]
    shown = {c[0].get_marker(): c[0].get_xdata() for c in of_sort}
    assert shown["^"] == pytest.approx([times["sort_mine"]])
    assert shown["o"] == pytest.approx([times["sort_fast"], times["sort_slow"]])
    rings = [line for line in axis.lines if line.get_markerfacecolor() == "none" and line.get_marker() == "o"]
    assert [line.get_ydata()[0] for line in rings] == [0, 1, 2, 3]
    chosen = ["only_one", "sort_fast", "sum_call", "table_thin"]
    assert [line.get_xdata()[0] for line in rings] == pytest.approx(list(times[chosen]))
    crosses = [line for line in axis.lines if line.get_marker() == "x"]
    control = table[["random-correct" in arms for arms in table["arms"]]]
    assert [line.get_xdata()[0] for line in crosses] == pytest.approx(list(control["time"]))
    low = of_sort[0][2][0].get_segments()[0][:, 0]
    row = table.set_index("candidate").loc["sort_fast"]
    assert low == pytest.approx([row["time_low"], row["time_high"]])
    said = [text.get_text() for text in axis.texts]
    assert said[0] == "– / 1"
    assert said[1] == f"{margins['margin.sort.python.second']:.3g} / {margins['margin.sort.python.median']:.3g}"
    assert axis.get_xlabel() == "net CPU time (s) at the task's input size"


def test_of_many_groups_those_without_a_choice_are_left_out_first(drawn, tmp_path, monkeypatch):
    table, margins, _ = finished.selection()
    monkeypatch.setattr(figures, "MOST_GROUPS", 1)
    assert figures.selection("here", table, margins, "instructions", tmp_path / "a.png") == 3
    assert [label.get_text() for label in drawn[0].axes[0].get_yticklabels()] == ["sort (python)"]
    assert drawn[0].axes[0].get_xlabel().startswith("net instructions")


def test_memory_decides_where_tied_times_differ_in_memory_or_time_is_overruled():
    table, *_ = finished.selection()
    assert figures.memory_groups(table, 0.05, 1.0) == [("table", "python")]
    assert figures.memory_groups(table, 0.05, 77.5) == []  # 80 against 3 MB
    assert figures.memory_groups(table, 30.0, 1.0) == []
    overruled = table.assign(selected=table["candidate"].isin(["only_one", "sort_slow", "sum_call", "table_thin"]))
    assert figures.memory_groups(overruled, 0.05, 77.5) == [("sort", "python")]


def test_memory_lies_at_its_numbers(drawn, tmp_path):
    table, *_ = finished.selection()
    groups = [("sort", "python"), ("table", "python")]
    figures.memory("here", table, groups, "cpu", tmp_path / "a.png")
    sort, thin = drawn[0].axes
    assert sort.get_title() == "sort (python)"
    row = table.set_index("candidate").loc["table_thin"]
    assert (row["time"], row["memory_mb"]) == pytest.approx((0.2, 3.0), rel=0.1)
    ring = thin.lines[-1]
    assert (ring.get_xdata()[0], ring.get_ydata()[0]) == pytest.approx((row["time"], row["memory_mb"]))
    wide = table.set_index("candidate").loc["table_wide"]
    assert sorted(thin.lines[0].get_ydata()) == pytest.approx([row["memory_mb"], wide["memory_mb"]])
    band = thin.patches[0].get_extents().transformed(thin.transData.inverted())
    assert band.x0 < min(row["time"], wide["time"]) < max(row["time"], wide["time"]) < band.x1
    model = [line for line in sort.lines if line.get_marker() == "^"]
    assert len(model[0].get_xdata()) == 1
    drawn.clear()
    figures.memory("here", table, groups * 4, "cpu", tmp_path / "a.png")
    assert len(drawn[0].axes) == figures.MOST_PANELS


def test_training_has_a_line_an_arm(drawn, tmp_path):
    steps = np.arange(1, 4)
    curve = pd.DataFrame({"step": steps, "loss": [3.0, 2.0, 1.0], "gradient_norm": [9.0, 8.0, 7.0]})
    arms = {"fastest": curve.sample(frac=1, random_state=0), "slowest": curve.assign(loss=[1.0, 1.0, 1.0])}
    figures.training({"here": arms}, tmp_path / "a.png")
    loss, norm = drawn[0].axes
    assert [list(line.get_ydata()) for line in loss.lines] == [[3.0, 2.0, 1.0], [1.0, 1.0, 1.0]]
    assert [line.get_label() for line in norm.lines] == ["fastest", "slowest"]
    assert list(norm.lines[0].get_ydata()) == [9.0, 8.0, 7.0]
    assert loss.get_ylabel() == "loss (nats a response token)"


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([1.05], ["0.8", "0.909", "1", "1.1", "1.25"]),
        ([0.6, 1.2], ["0.667", "0.8", "0.909", "1", "1.1", "1.25"]),
        ([8.0], ["1", "2", "5"]),
        ([0.001], ["0.001", "0.01", "0.1", "1"]),
        ([], ["0.8", "0.909", "1", "1.1", "1.25"]),
    ],
)
def test_ratios_have_readable_ticks(values, ticks):
    plt = figures.start()
    figure, axis = plt.subplots()
    figures._ratio_axis(axis, np.array(values))
    figure.canvas.draw()
    assert sorted((t.get_text() for t in axis.get_xticklabels()), key=float) == ticks
    plt.close(figure)
