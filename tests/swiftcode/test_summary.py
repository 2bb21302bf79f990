"""The text of the report: what it claims follows the numbers, and it has words where there are none."""

import re

import numpy as np
import pandas as pd
import pytest

from tasks.report import method
from tasks.swiftcode.report_tables import (
    correctness_table,
    costs_table,
    estimate,
    overlap_table,
    pairs_table,
    peers_table,
)
from tasks.swiftcode.summary import Evidence, beats, caveats, compared, headline, measured, runs, selected, summarise
from tests.swiftcode import finished
from tests.swiftcode.measured import runs as rows_of

TIME = "pair.fastest.random-correct.time"


def evidence(**changes) -> Evidence:
    table, margins, trained = finished.selection()
    metrics, _, tested = finished.evaluated()
    parameters = finished.parameters()
    found = {
        "metrics": metrics,
        "dropped": finished.DROPPED,
        "margins": margins,
        "arms": {name: finished.arm(name) for name in parameters.arms},
        "selection": table,
        "memory_groups": [("table", "python")],
        "runs": runs(pd.concat([trained, tested])),
        "parameters": parameters,
        "model": "smollm2",
        "generate": parameters.generate["small"],
        "answers": parameters.answers["small"],
    }
    return Evidence(**{**found, **changes})


@pytest.fixture(scope="module")
def one() -> Evidence:
    return evidence()


def timed(metrics: dict, low: float | None, value: float | None, high: float | None, n: int = 20, **more) -> dict:
    where = TIME.removesuffix(".time")
    changed = {TIME: value, f"{TIME}.low": low, f"{TIME}.high": high, f"{where}.overlap": n, "noise.factor": 1.02}
    return {**metrics, **changed, **more}


@pytest.mark.parametrize(
    ("interval", "answer"),
    [
        ((0.5, 0.7, 0.99), "**yes**: net time 0.700 [0.500, 0.990] × that of the control on 20 tasks that both solve"),
        ((0.5, 0.7, 1.0), "**cannot be told**: net time 0.700 [0.500, 1.00] × "),
        ((1.0, 1.0, 1.0), "**cannot be told**: net time 1.00 [1.00, 1.00] × "),
        ((0.8, 1.3, 1.5), "**cannot be told**: "),
        ((1.01, 1.3, 1.5), "**no**, it is slower: net time 1.30 [1.01, 1.50] × "),
        ((None, 0.2, None), "**cannot be told**: net time 0.200 × "),
        ((None, None, None), "**cannot be told**, because there is no test task that both solve and that was measured"),
    ],
)
def test_fastest_beats_the_control_only_with_the_whole_interval(one, interval, answer):
    said = beats(timed(one.metrics, *interval))
    assert said.startswith(answer)
    assert "measured twice" not in said


def test_few_tasks_decide_nothing(one):
    assert beats(timed(one.metrics, 0.1, 0.2, 0.3, n=6)).startswith("**yes**")
    said = beats(timed(one.metrics, 0.1, 0.2, 0.3, n=5))
    assert said.startswith("**cannot be told**: ")
    assert said.endswith("on 5 tasks that both solve (fewer than 6 decide nothing)")


def test_a_difference_below_the_noise_is_called_so(one):
    words = "less than one program differs from itself when it is measured twice (× 1.02)"
    assert words in beats(timed(one.metrics, 0.98, 0.985, 0.99))
    assert words in beats(timed(one.metrics, 1.01, 1.015, 1.02))
    assert words not in beats(timed(one.metrics, 0.9, 0.95, 0.99))
    assert words not in beats(timed(one.metrics, 0.98, 0.985, 1.01))
    assert words not in beats(timed(one.metrics, 0.98, 0.985, 0.99, **{"noise.factor": None}))


def test_without_the_control_arm_nothing_is_claimed(one):
    without = {key: value for key, value in one.metrics.items() if "random-correct" not in key}
    assert beats(without) == "**cannot be told**, because there is no arm random-correct"
    assert "no arm random-correct: whether the selection helps is not tested" in caveats(
        {"small": evidence(metrics=without)}, 0.9
    )


def test_the_headline_names_every_data_set_and_whether_tasks_are_enough(one):
    enough = evidence(metrics={**timed(one.metrics, 0.5, 0.7, 0.9), "data.claim": True})
    text = headline({"small": one, "large": enough})
    assert "control, random-correct)? On small: **" in text
    assert "; on large: **yes**: net time 0.700 [0.500, 0.900]" in text
    assert text.endswith("Too few test tasks for a claim about the method (small), whichever way it comes out.")
    assert "Too few" not in headline({"large": enough})


def test_pairs_in_words(one):
    where = "pair.fastest.base"
    changes = {f"{where}.pass.1": 0.2, f"{where}.pass.1.low": 0.1, f"{where}.pass.1.high": 0.3, f"{where}.overlap": 8}
    changes |= {f"{where}.time": 1.4, f"{where}.time.low": 1.2, f"{where}.time.high": 1.6}
    other = "pair.random-correct.base"
    changes |= {f"{other}.pass.1": -0.2, f"{other}.pass.1.low": -0.3, f"{other}.pass.1.high": -0.1}
    changes |= {f"{other}.time{end}": None for end in ("", ".low", ".high")} | {f"{other}.overlap": 0}
    text = compared(evidence(metrics={**one.metrics, **changes}))
    assert text.startswith("Is fastest faster than random-correct? **")
    assert (
        "Fastest against base model: more often correct (pass@1 +0.200 [+0.100, +0.300]), slower (× 1.40 [1.20" in text
    )
    assert text.endswith(
        "Random-correct (control) against base model: less often correct (pass@1 −0.200 [−0.300, −0.100]), "
        "no times to compare."
    )
    undecided = {f"{where}.pass.1.low": -0.1, f"{where}.time.low": 0.9}
    text = compared(evidence(metrics={**one.metrics, **changes, **undecided}))
    assert "base model: correctness not to be told apart (pass@1 +0.200 [−0.100" in text
    assert "times not to be told apart (× 1.40 [0.900" in text
    few = compared(evidence(metrics={**one.metrics, **changes, "data.units": 5}))
    assert "Fastest against base model: correctness not to be told apart" in few


def cells(text: str, row: int) -> list[str]:
    return [cell.strip() for cell in text.split("\n")[row].strip("|").split("|")]


def test_table_of_correct_answers(one):
    m = {**one.metrics, "slowest.verdict.time_limit": 7}
    text = correctness_table(m)
    head = ["model", "answers", "correct", "no program", "time limit", "wrong answer", "solved", "pass@1", "pass@2"]
    assert cells(text, 0) == head
    names = [cells(text, row)[0] for row in range(2, 6)]
    assert names == ["base model", "random-correct (control)", "fastest", "slowest"]
    slowest = cells(text, 5)
    assert slowest[1:6] == [
        *(str(m[f"slowest.{key}"]) for key in ("answers", "correct", "verdict.no_program")),
        "7",
        str(m["slowest.verdict.wrong_answer"]),
    ]
    assert cells(text, 2)[4] == "0"
    assert slowest[6:] == [f"{m['slowest.solved']} of 12", estimate(m, "slowest.pass.1"), estimate(m, "slowest.pass.2")]


def test_table_of_costs_has_both_definitions(one):
    m = {
        **one.metrics,
        "fastest.net.ratio_of_sums": 0.123,
        "fastest.nmu.mean_of_ratios": 4.56,
        "fastest.ntmu.ratio_of_sums": 7.89,
    }
    text = costs_table(m)
    assert cells(text, 0)[2:5] == ["ET (s)", "NET, mean of ratios", "NET, ratio of sums"]
    row = dict(zip(cells(text, 0), cells(text, 4), strict=True))
    assert row["model"] == "fastest"
    assert row["compared"] == str(m["fastest.compared"])
    assert row["ET (s)"] == f"{m['fastest.et']:#.3g}"
    assert row["NET, ratio of sums"].startswith("0.123 [")
    assert row["NMU, mean of ratios"].startswith("4.56 [")
    assert row["NTMU, ratio of sums"].startswith("7.89 [")
    assert "ET (instructions)" in costs_table({**m, "data.cost": "instructions"})


def test_table_of_other_scores(one):
    m = one.metrics
    text = peers_table(m)
    row = dict(zip(cells(text, 0), cells(text, 4), strict=True))
    for name, key in {
        "time / reference, geometric mean": "reference",
        "time / fastest known": "best",
        "DPS": "dps",
        "eff@1": "eff.1",
        "eff@2": "eff.2",
        "Beyond": "beyond",
    }.items():
        assert row[name] == estimate(m, f"fastest.{key}")
    shares = [float(part) for part in row["faster, tied, slower"].split(" / ")]
    assert shares == pytest.approx([m[f"fastest.{key}"] for key in ("wins", "ties", "losses")], abs=1e-3)


def test_tables_of_pairs(one):
    m = one.metrics
    row = dict(zip(cells(pairs_table(m), 0), cells(pairs_table(m), 2), strict=True))
    where = "pair.fastest.random-correct"
    assert row["first and second"] == "fastest and random-correct (control)"
    assert row["pass@2, difference"] == estimate(m, f"{where}.pass.2", signed=True)
    assert row["both solve"] == f"{m[f'{where}.overlap']} ({m[f'{where}.overlap_share']:.3f})"
    assert (row["time ratio"], row["memory ratio"]) == (estimate(m, TIME), estimate(m, f"{where}.memory"))
    text = overlap_table(m)
    assert text.count("\n") == 2 * 4 + 1
    first, second = (dict(zip(cells(text, 0), cells(text, row), strict=True)) for row in (2, 3))
    assert (first["model"], second["model"]) == ("fastest", "random-correct (control)")
    assert float(first["reduction"]) == pytest.approx(m[f"{where}.reduction"], rel=1e-2)
    assert second["reduction"] == ""
    assert float(second["TMU (MB s)"]) == pytest.approx(m[f"{where}.mean_tmu.random-correct"], rel=1e-2)
    assert float(second["NET, ratio of sums"]) == pytest.approx(
        m[f"{where}.net.ratio_of_sums.random-correct"], rel=1e-2
    )
    assert overlap_table({"base.answers": 3, "base.pass.1": 0.1, "data.cost": None}) == ""


def test_the_selection_in_words(one):
    s = {
        **one.margins,
        **{"wins.pool": 30, "wins.models": 5, "wins.both": 7, "wins_choice.pool": 3, "wins_choice.models": 2},
        **{
            "wins_choice.both": 1,
            "groups": 42,
            "choice": 6,
            "choice_tasks": 4,
            "margin.second": 1.5,
            "margin.median": 12.0,
        },
        **{
            "random_is_fastest": 0.25,
            "slowest_is_fastest": 0.1,
            "sensitivity.time": 0.2,
            "sensitivity_choice.time": None,
        },
        **{"below_noise": 3, "failed": 2, "unmeasured": 4},
    }
    text = selected(evidence(margins=s))
    for words in (
        "6 of 42 training tasks and languages have a choice (4 tasks)",
        "more than 1.20 × the time",
        "the second fastest takes 1.50 ×, the median one 12.0 × the time of the fastest",
        "known solutions 30 (3 with a choice), models 5 (2 with a choice), both 7 (1 with a choice)",
        "Memory decides, or overrules time, in 1 of 42",
        "by chance in 25% of them, the arm slowest in 10%",
        "time 0.200 (– with a choice)",
        "3 candidates take too little time",
        "2 correct candidates failed on the large input, 4 in all have no costs",
    ):
        assert words in text
    bare = {key: value for key, value in s.items() if not key.startswith("sensitivity")}
    text = selected(evidence(margins={**bare, "below_noise": 0, "failed": 0, "unmeasured": 0}))
    for words in ("Another rule", "too little time", "have no costs"):
        assert words not in text


def test_how_it_was_measured_in_words(one):
    text = measured(one)
    m = one.metrics
    assert "CPU seconds of all processes" in text
    assert "in 3 rounds of fresh processes" in text
    assert "machine one; isolated in namespaces" in text
    assert (
        f"Noise floor: 12 programs that were measured twice under two names differ by a factor of {m['noise.factor']:.3g}"
        in text
    )
    assert "by less than the tie band of 5%" in text
    assert "measured in 12 of 12 test tasks" in text
    unsafe = finished.parameters(measure={"cost": "instructions", "unsafe_no_sandbox": True})
    text = measured(
        evidence(parameters=unsafe, metrics={**m, "noise.pairs": 0, "noise.factor": None, "data.failed": 3})
    )
    assert text.startswith("instructions by valgrind, net of")
    assert "in 1 round of fresh" in text
    assert "isolation was not required (unsafe_no_sandbox)" in text
    assert "Noise floor: nothing was measured twice, so it is not known" in text
    assert "3 correct test programs failed on the large input" in text


def test_runs_are_counted_with_their_machines_and_waits():
    rows = rows_of("t", "a", [0.1, 0.2], waited_s=0.5, calibration=1.5) + rows_of("t", "b", [0.1], machine="another")
    found = runs(pd.DataFrame(rows))
    assert found["runs"] == 3
    assert found["machines"] == ["another", "one"]
    assert found["calibration"] == (1.0, 1.5)
    assert found["waited"] == pytest.approx(1 / 3)
    unknown = runs(pd.DataFrame(rows).assign(calibration=np.nan))
    assert unknown["calibration"] is None
    text = measured(evidence(runs=unknown))
    assert "machines another, one" in text
    assert "A fixed kernel" not in text


def test_caveats_follow_the_numbers(one):
    text = caveats({"small": one}, 0.9)
    assert "small: 12 tasks for the test; 100 or more, and a larger model, are needed" in text
    assert "small: the base is small (SmolLM2-135M-Instruct, 135 million parameters" in text
    assert "small: 3 of 4 selected programs (1 of 1 with a choice) are known solutions, written by hand" in text
    assert "small: 3 of 4 training tasks and languages have no choice" in text
    assert "The 90% intervals are over test tasks" in text
    assert "One training an arm, from one seed" in text
    assert "no correct and measured answer" not in text
    assert "differs from itself" not in text
    noisy = evidence(metrics={**one.metrics, "noise.factor": 1.06})
    assert (
        "small: one program differs from itself by a factor of 1.06 on average, more than the tie band of 5%"
        in caveats({"small": noisy}, 0.9)
    )
    m = {**one.metrics, "data.claim": True, "slowest.compared": 0, "fastest.unmeasured": 4}
    s = {**one.margins, "wins.pool": 0, "choice": 4}
    text = caveats({"there": evidence(metrics=m, margins=s, model=None)}, 0.95)
    assert "there: slowest has no correct and measured answer, so nothing is known of its times" in text
    assert "there: 4 correct answers of fastest have no time" in text
    for absent in ("larger model", "the base is small", "written by hand", "no choice to speak of", "no arm"):
        assert absent not in text
    trained = {key: value for key, value in one.metrics.items() if not key.startswith("base.") and ".base" not in key}
    assert "the base model has no answers" in caveats({"there": evidence(metrics=trained)}, 0.95)


def test_the_whole_text_where_nothing_is_solved():
    """No correct answer at all: dashes and words, and a page all the same."""
    metrics, *_ = finished.evaluated(shares=dict.fromkeys(finished.SHARES, 0.0))
    assert metrics["fastest.reference"] is None
    text = summarise({"small": evidence(metrics=metrics), "other": evidence()}, 0.95)
    assert text.startswith("# Fine-tuning on the fastest correct program (SwiftCode)\n\nSeveral programs")
    assert "On small: **cannot be told**, because there is no test task that both solve and that was measured" in text
    assert not re.search(r"\b(nan|None|inf)\b", text)
    for name in ("base model", "random-correct (control)", "fastest", "slowest"):
        assert f"small: {name} has no correct and measured answer" in text
    assert method.prose.render(text, "swiftcode").headline.startswith("Several programs")
    tables = [block.split("\n") for block in text.split("\n\n") if block.startswith("| ")]
    assert len(tables) == 2 * 5
    assert all(len({line.count("|") for line in lines}) == 1 for lines in tables)


def test_what_was_run_in_words(one):
    text = summarise({"small": one}, 0.95)
    assert "16 of 19 tasks were kept (left out: duplicate 2, risky 1)." in text
    assert (
        "Candidates from known solutions and answers of tiny: 8 distinct correct programs of 4 training tasks" in text
    )
    assert "Arms: random-correct, fastest, slowest, adapters trained on 4 examples in 3 steps" in text
    assert "random-correct 114, fastest 107, slowest 107; all arms have the same program in 1 of the examples" in text
    assert "Then 4 answers of base and arms to each of 12 tasks of the test, python." in text
    several = {**one.metrics, "data.languages": "cpp, python", "data.units": 24}
    whole = {name: {**about, "adapter": False} for name, about in one.arms.items()}
    text = summarise(
        {"small": evidence(metrics=several, arms=whole, dropped={**finished.DROPPED, "dropped": {}})}, 0.95
    )
    assert "16 of 19 tasks were kept. Candidates" in text
    assert "the whole model trained on 4 examples" in text
    assert "24 tasks and languages of the test, cpp, python." in text
