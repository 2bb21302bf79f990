"""The stage `plot`: pictures with captions, and a text that says what the numbers say, also when they say the contrary."""

import json
import struct
from pathlib import Path

import pandas as pd
import pytest

from tasks.bpr import evaluate, figures, plot
from tasks.bpr.evaluation import model_name
from tasks.bpr.figures import colours, differences_of, forecasts_of
from tasks.bpr.summary import caveats, headline, summarise, verdict, words
from tasks.report import method
from tests.bpr.results import made_up_panel, tables, write_dataset
from tests.bpr.test_evaluate_stage import PARAMETERS

FIGURES = ["reached.png", "differences.png", "frontier.png", "training.png", "sites.png"]
PLOT = ("data", "metrics", "study", "--figures", "figures", "--summary", "summary.md")


@pytest.fixture
def filled(workspace):
    """`large` with models and coordinates, `small` with neither; evaluated; an empty folder for the study."""
    workspace.parameters(**PARAMETERS)
    fill(workspace, {})
    Path("study").mkdir()
    return workspace


def fill(workspace, noise):
    """The data sets' folders and their metrics, where forecasts err by `noise`."""
    for name, panel in (
        ("large", made_up_panel()),
        ("small", made_up_panel(n_sites=9, n_test=12, k=3, coordinates=False)),
    ):
        write_dataset(Path("data") / name, panel, tables(panel, noise))
    code, said = workspace.run(evaluate, "data", "--out", "metrics")
    assert code == 0, said


def run(workspace) -> dict[str, bytes]:
    code, said = workspace.run(plot, *PLOT)
    assert code == 0, said
    return {"summary.md": Path("summary.md").read_bytes()} | {
        path.name: path.read_bytes() for path in sorted(Path("figures").iterdir())
    }


def test_pictures_captions_and_text_make_a_page_and_are_the_same_again(filled):
    found = run(filled)
    captions = json.loads(found["captions.json"])
    assert list(captions) == FIGURES
    assert set(found) == {*FIGURES, "captions.json", "summary.md"}
    for name in FIGURES:
        assert found[name].startswith(method.PNG_SIGNATURE)
        width, height = struct.unpack(">II", found[name][16:24])
        assert 400 < width < 2500
        assert 300 < height < 3000
        assert b"Software" not in found[name][:400]
        assert len(captions[name]["caption"]) > 60
    assert run(filled) == found
    shown = method.read_figures(Path("figures"))
    assert len(shown) == len(FIGURES)
    text = method.prose.render(found["summary.md"].decode(), "bpr", method.SECTIONS)
    assert [title for _, title in text.sections] == [
        "Data",
        "What the figures say",
        "BPR on the test periods",
        "BPR minus that of the moving average chosen on validation",
        "Errors of the expected counts",
        "Training",
        "What these data do not show",
    ]


def test_every_picture_shows_its_numbers(filled):
    """Other numbers, another picture."""
    before = run(filled)
    panel = made_up_panel()
    noise = {
        "average1": 0.5,
        "average2": 1,
        "average4": 9,
        "ridge": 9,
        **dict.fromkeys(("ml", "bpr", "daml1", "daml0.8"), 9),
    }
    found = tables(panel, noise)
    found["epochs"]["train_bpr"] /= 2
    Path("data/large").rename("data/before")
    write_dataset(Path("data/large"), panel, found)
    assert filled.run(evaluate, "data", "--out", "metrics")[0] == 0
    after = run(filled)
    assert [name for name in FIGURES if after[name] == before[name]] == []


def test_points_and_bars_lie_at_their_numbers(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(figures, "save", lambda figure, path: drawn.append(figure))
    runs = pd.DataFrame(
        {"model": ["ml", "daml1"], "run": ["a", "b"], "rule": "ratio", "nll": [1.5, 2.5], "bpr": [0.7, 0.9]}
    )
    metrics = {"here": made_up_metrics(**differing("ml.ratio", 0.05))}
    figures.frontier({"here": runs}, metrics, tmp_path / "a.png", 0.95)
    lines = drawn[0].axes[0].get_lines()
    assert [line.get_xydata().tolist() for line in lines[:2]] == [[[1.5, 0.7]], [[2.5, 0.9]]]
    assert lines[2].get_ydata() == [0.8, 0.8]
    figures.differences(metrics, tmp_path / "b.png", 0.95)
    axis = drawn[1].axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()][2] == "ML, ratio"
    value, _, bars = axis.containers[2]
    assert value.get_xydata().tolist() == [[0.05, 2]]
    assert bars[0].get_segments()[0].tolist() == [[pytest.approx(0.03), 2], [pytest.approx(0.07), 2]]
    figures.reached(metrics, tmp_path / "c.png", 0.95)
    assert [label.get_text() for label in drawn[2].axes[0].get_yticklabels()][-1] == "average of 5 ★"
    assert drawn[2].axes[0].containers[4][0].get_xydata().tolist() == [[0.8, 4]]


def test_the_study_is_shown_where_there_is_one(filled):
    assert b"Study" not in run(filled)["summary.md"]
    Path("study/study.md").write_text("Text of the study.", encoding="utf-8")
    Path("study/study.png").write_bytes(Path("figures/reached.png").read_bytes())
    found = run(filled)
    assert b"## Study on the public panels\n\nText of the study.\n" in found["summary.md"]
    assert found["study.png"] == found["reached.png"]
    assert "study.png" in json.loads(found["captions.json"])


def test_without_models_maps_and_comparisons(filled):
    filled.parameters(
        **{**PARAMETERS, "datasets": ["small"], "train": {}, "panel": {"small": {"path": "t.csv", "k": 3}}}
    )
    found = run(filled)
    assert list(json.loads(found["captions.json"])) == ["reached.png", "differences.png"]
    text = found["summary.md"].decode()
    assert "No trained model to compare." in text
    assert "## Training" not in text
    assert "nats" not in text
    panel = made_up_panel()
    panel.counts[panel.split == "valid"] = 0
    for part in ("large", "small"):
        Path("data", part).rename(f"data/before_{part}")
    write_dataset(Path("data/large"), panel, tables(panel))
    filled.parameters(**{**PARAMETERS, "datasets": ["large"], "panel": {"large": {"path": "t.csv", "k": 6}}})
    assert filled.run(evaluate, "data", "--out", "metrics")[0] == 0
    found = run(filled)
    assert list(json.loads(found["captions.json"])) == ["reached.png", "frontier.png", "training.png"]
    assert "no validation period has events: no moving average could be chosen" in found["summary.md"].decode()


def test_test_periods_without_events(filled):
    panel = made_up_panel()
    panel.counts[panel.split == "test"] = 0
    Path("data/large").rename("data/before")
    write_dataset(Path("data/large"), panel, tables(panel))
    assert filled.run(evaluate, "data", "--out", "metrics")[0] == 0
    text = run(filled)["summary.md"].decode()
    assert "- **large**: no test period has events: nothing is compared." in text
    assert "Test periods without any event are left out of BPR (large: 2)." in text


# --- the words follow the numbers


def made_up_metrics(**values) -> dict:
    """One data set, four forecasts compared; by default all undecided."""
    metrics = {
        **{"data.origin": "made up", "data.sites": 1000, "data.k": 50, "data.features": 2, "data.history_periods": 0},
        **{"data.train_periods": 4, "data.valid_periods": 1, "data.test_periods": 2, "data.test_events": 900.0},
        **{"data.test_periods_without_events": 0, "data.test_oracle": 400.0, "data.chance": 0.2},
        "data.interval": "over sites",
        **{
            "comparison.average": "average5",
            "comparison.average_best_on_test": "average5",
            "comparison.model": "daml1.ratio",
        },
        **{"comparison.average_least_period": 0.79, "comparison.average_greatest_period": 0.81},
    }
    for name, value in (("average5", 0.8), ("ridge", 0.8), ("ml.ratio", 0.8), ("bpr.ratio", 0.8), ("daml1.ratio", 0.8)):
        metrics |= {f"bpr.{name}": value, f"bpr.{name}.low": value - 0.04, f"bpr.{name}.high": value + 0.04}
        metrics[f"reached.{name}"] = 320.0
        if name != "average5":
            key = f"difference.{name}.minus.average5"
            metrics |= {key: 0.0, f"{key}.low": -0.02, f"{key}.high": 0.02, f"{key}.period_sd": 0.01}
    for i, model in enumerate(("ml", "bpr", "daml1")):
        metrics |= {f"nll.{model}": 1.0 + i, f"mae.{model}": 2.0, f"training.{model}.seeds": 2}
        metrics |= {f"training.{model}.last_bpr": 0.9, f"training.{model}.last_least_period": 0.8}
        metrics[f"training.{model}.kept_epoch"] = 20.0
    return {**metrics, **{key.replace("__", "."): value for key, value in values.items()}}


def differing(forecast: str, value: float) -> dict:
    key = f"difference.{forecast}.minus.average5"
    return {
        key: value,
        f"{key}.low": value - 0.02,
        f"{key}.high": value + 0.02,
        f"reached.{forecast}": 320 + 400 * value,
    }


def test_headline_follows_the_intervals():
    plain = made_up_metrics()
    better, worse = ({**plain, **differing("daml1.ratio", value)} for value in (0.05, -0.05))
    assert [verdict(m, "daml1.ratio") for m in (plain, better, worse)] == ["undecided", "better", "worse"]
    assert verdict(plain, "average5") is None
    said = headline({"here": plain})
    assert said.startswith("On here the model cannot be told from the moving average")
    assert "Of all 4 comparisons with the moving average, baselines included, 0 are better outside" in said
    assert headline({"here": better}).startswith("On here the model reaches more events than the moving average")
    assert "1 is better outside the interval and 0 worse" in headline({"here": better})
    assert headline({"here": worse}).startswith("On here the model reaches fewer events")
    both = headline({"a": better, "b": worse, "c": plain})
    assert "better on a; worse on b; undecided on c. Of all 12 comparisons" in both
    # a model that was not chosen on validation makes no headline
    other = {**plain, **differing("ml.ratio", 0.05)}
    assert headline({"here": other}).startswith("On here the model cannot be told")
    assert "1 is better" in headline({"here": other})
    assert headline({"here": {**plain, "comparison.model": None}}).startswith("No trained model to compare. Of all 4")
    nothing = {k: v for k, v in plain.items() if not k.startswith("difference.")}
    assert headline({"here": nothing}).startswith("No forecast could be compared")


def test_words_follow_the_numbers():
    plain = made_up_metrics()
    text = words({"here": plain}, 0.95)
    assert (
        "the average of 5 (chosen on validation) reaches 0.800 [0.760, 0.840] of the possible events. The model" in text
    )
    assert (
        "(DAML ε = 1, ratio) differs by +0.000 [−0.020, +0.020], +0.0 events over all test periods: no difference"
        in text
    )
    assert "Of 4 forecasts compared, 0 are worse and 0 are better outside the interval." in text
    assert "ML predicts the counts best (1.000 nats per site and period), DAML ε = 1 worst (3.000)" in text
    changed = {
        **{**plain, **differing("daml1.ratio", -0.05), **differing("bpr.ratio", 0.06), "nll.daml1": 0.5},
        **{"comparison.average_best_on_test": "average1", "bpr.average1": 0.83},
    }
    text = words({"here": changed}, 0.9)
    assert "with hindsight, the last period would have been the best on test (0.830)" in text
    assert "differs by −0.050 [−0.070, −0.030], −20.0 events over all test periods: worse outside the interval" in text
    assert (
        "1 is worse and 1 is better outside the interval (BPR only, ratio); with so many comparisons 0.2 would" in text
    )
    assert "DAML ε = 1 predicts the counts best (0.500 nats per site and period), BPR only worst (2.000)" in text


def test_caveats_follow_the_sizes():
    few = made_up_metrics()
    text = caveats({"here": few}, 0.95)
    assert "Few test periods (here: 2): what holds in another year cannot be said" in text
    assert "here: from one test period to another, BPR of the average of 5 goes from 0.790 to 0.810." in text
    assert "4 comparisons, each at 95%, without correction: if all forecasts were equal, about 0.1 would" in text
    assert "chosen on the validation periods (here: 1)" in text
    assert "Fewer than 50 sites" not in text
    assert "without any event" not in text
    assert "over periods" not in text
    many = caveats({"there": made_up_metrics(**{"data.test_periods": 40, "data.valid_periods": 7})}, 0.8)
    assert "Few test periods" not in many
    assert "about 0.4 would" in many
    assert "(there: 7)" in many
    small = caveats({"a": {**few, "data.sites": 12}, "b": {**few, "data.interval": "over periods"}}, 0.95)
    assert "Fewer than 50 sites and fewer than 10 test periods (a): the intervals say little" in small
    assert "Intervals over sites (a)" in small
    assert "Intervals over periods (b)" in small
    assert "Few test periods (a: 2):" in small
    skipped = caveats({"a": {**few, "data.test_periods_without_events": 1}}, 0.95)
    assert "left out of BPR (a: 1)" in skipped
    assert "from one test period to another" not in skipped


def test_tables_hold_every_forecast_of_every_data_set():
    plain = made_up_metrics()
    more = {**plain, "bpr.poisson": 0.7, "bpr.ml.ratio.seed_sd": 0.0123}
    text = summarise({"a": plain, "b": more}, "", 0.95)
    assert "| Poisson regression | – | 0.700 |" in text
    assert "| ML, ratio | 0.800 [0.760, 0.840] | 0.800 [0.760, 0.840] (seeds ± 0.012) |" in text
    assert "| a | DAML ε = 1 | 2 | 0.900 | 0.800 | – | 20 |" in text
    assert forecasts_of(more) == ["average5", "ridge", "ml.ratio", "bpr.ratio", "daml1.ratio", "poisson"]
    assert list(differences_of(more)) == ["ridge", "ml.ratio", "bpr.ratio", "daml1.ratio"]


def test_models_look_the_same_in_every_picture():
    looks = colours({"a": made_up_metrics(), "b": made_up_metrics(**{"nll.daml0.8": 1.0})})
    assert list(looks) == ["ml", "bpr", "daml1", "daml0.8"]
    assert len(set(looks.values())) == 4
    names = pd.DataFrame({"objective": ["ml", "daml"], "epsilon": [None, 0.8]}).astype({"epsilon": float})
    assert [model_name(o, e) for o, e in names.itertuples(index=False)] == ["ml", "daml0.8"]
