"""The text of the report, from metrics and tables: headline, comparisons in words, tables, and what the data do not show."""

from dataclasses import dataclass

import pandas as pd

from tasks.swiftcode.figures import NAMES, counts_of, generators_of, pairs_of
from tasks.swiftcode.params import BASE, Generate, Parameters, Sampling
from tasks.swiftcode.report_tables import (
    correctness_table,
    costs_table,
    estimate,
    number,
    overlap_table,
    pairs_table,
    peers_table,
)

FEWEST = 6  # tasks; of fewer even a difference of one sign in all of them is no evidence at 5 %: 2 · (1/2)^5 > .05
QUESTION = ("fastest", "random-correct")  # the pair that the method's claim is about
PARAMETERS_OF = {"smollm2": "SmolLM2-135M-Instruct, 135 million parameters"}


@dataclass(frozen=True)
class Evidence:
    """What one data set's part of the text is made of.

    `dropped` and `margins`: of the stages `gather` and `select`; `arms`: ``arm.json`` by arm; `selection`: SELECTION;
    `memory_groups`: the (task, language) in which memory decides; `runs`: of `runs`; `model`, `generate`, `answers`: the
    data set's parameters, `model` the name of its fetched base model, or None.
    """

    metrics: dict
    dropped: dict
    margins: dict
    arms: dict[str, dict]
    selection: pd.DataFrame
    memory_groups: list[tuple[str, str]]
    runs: dict
    parameters: Parameters
    model: str | None
    generate: Generate
    answers: Sampling


def runs(measurements: pd.DataFrame) -> dict:
    """How it was measured, of MEASUREMENTS: `runs`, `machines` (sorted), `calibration` (least, largest), `waited`.

    `waited` is the share of the runs' seconds in which they were ready to run and had no core.
    """
    calibration = measurements["calibration"].dropna()
    return {
        "runs": len(measurements),
        "machines": sorted(set(measurements["machine"].astype(str))),
        "calibration": (float(calibration.min()), float(calibration.max())) if len(calibration) else None,
        "waited": float(measurements["waited_s"].sum() / max(measurements["wall_s"].sum(), 1e-9)),
    }


def summarise(found: dict[str, Evidence], confidence: float) -> str:
    """Markdown: a title, a headline paragraph, then sections."""
    parts = ["# Fine-tuning on the fastest correct program (SwiftCode)", headline(found)]
    parts += ["## What was run", _items(found, _run)]
    parts += ["## Correct answers", *_tables(found, correctness_table)]
    parts += [
        "## Time and memory of correct answers",
        LEGEND,
        *_tables(found, costs_table),
        *_tables(found, peers_table),
    ]
    parts += ["## Does the selection make the difference", _items(found, compared)]
    parts += [*_tables(found, pairs_table), OVERLAP, *_tables(found, overlap_table)]
    parts += ["## What was selected", _items(found, selected)]
    parts += ["## How it was measured", _items(found, measured)]
    parts += ["## What these data do not show", caveats(found, confidence)]
    return "\n\n".join(parts) + "\n"


LEGEND = (
    "Means over the tasks and languages that the model solves, so over different ones for each model: compare models in "
    "the next section. ET: net time; MU: net peak memory; TMU: memory integrated over time; NET, NMU, NTMU: the same "
    "relative to the reference solution, as mean of ratios (EffiCoder) and as ratio of sums (EffiBench, where tasks of large "
    "cost decide). Less is better, 1 is the reference solution."
)
OVERLAP = (
    "As the publication counts: means of each of the two on the tasks and languages that both solve. Reduction is "
    "1 − ET of the first / ET of the second; tasks of large cost decide it."
)


def verdict(m: dict, key: str, neutral: float, number_of: str) -> str | None:
    """Of a paired difference or ratio: "above" or "below" `neutral` with the whole interval, or "undecided".

    Undecided also where fewer than `FEWEST` tasks and languages are behind it; None where nothing was compared.

    >>> m = {"r": 0.8, "r.low": 0.7, "r.high": 0.9, "n": 20, "few": 3}
    >>> verdict(m, "r", 1.0, "n"), verdict(m, "r", 0.75, "n"), verdict(m, "r", 1.0, "few"), verdict(m, "q", 1.0, "n")
    ('below', 'undecided', 'undecided', None)
    """
    low, high = m.get(f"{key}.low"), m.get(f"{key}.high")
    if m.get(key) is None:
        return None
    if low is None or high is None or (m.get(number_of) or 0) < FEWEST:
        return "undecided"
    return "below" if high < neutral else "above" if low > neutral else "undecided"


def headline(found: dict[str, Evidence]) -> str:
    """One paragraph: does training on the fastest program beat training on a random correct one, by data set."""
    said = "; ".join(f"on {name}: {beats(one.metrics)}" for name, one in found.items())
    claim = [name for name, one in found.items() if not one.metrics["data.claim"]]
    few = (
        f" Too few test tasks for a claim about the method ({', '.join(claim)}), whichever way it comes out."
        if claim
        else ""
    )
    return (
        "Several programs that solve a task are executed, the most efficient correct one is selected, and a model is "
        "fine-tuned on the selection. Does that give faster programs than fine-tuning on any correct program (the control, "
        f"random-correct)? {_capital(said)}.{few}"
    )


def beats(m: dict) -> str:
    """Whether `fastest` is faster than the control: yes, no, or cannot be told; strictly from the interval."""
    a, b = QUESTION
    where = f"pair.{a}.{b}"
    if (a, b) not in pairs_of(m):
        lacking = [arm for arm in QUESTION if arm not in generators_of(m)]
        return f"**cannot be told**, because there is no arm {' and no arm '.join(lacking)}"
    n = m[f"{where}.overlap"]
    said = verdict(m, f"{where}.time", 1.0, f"{where}.overlap")
    if said is None:
        return "**cannot be told**, because there is no test task that both solve and that was measured"
    answer = {"below": "**yes**", "above": "**no**, it is slower", "undecided": "**cannot be told**"}[said]
    text = f"{answer}: net time {estimate(m, f'{where}.time')} × that of the control on {_units(m, n)} that both solve"
    if n < FEWEST:
        text += f" (fewer than {FEWEST} decide nothing)"
    factor = m.get("noise.factor")
    if said != "undecided" and factor and max(m[f"{where}.time"], 1 / m[f"{where}.time"]) <= factor:
        text += f", which is less than one program differs from itself when it is measured twice (× {number(factor)})"
    return text


def compared(one: Evidence) -> str:
    """The question of the headline, then all pairs in words."""
    m, k = one.metrics, counts_of(one.metrics)[0]
    sentences = [f"Is fastest faster than random-correct? {_capital(beats(m))}"]
    correct = {"above": "more often correct", "below": "less often correct", None: "correctness not compared"}
    faster = {"below": "faster", "above": "slower", None: "no times to compare"}
    for a, b in pairs_of(m):
        where = f"pair.{a}.{b}"
        often = correct.get(verdict(m, f"{where}.pass.{k}", 0.0, "data.units"), "correctness not to be told apart")
        fast = faster.get(verdict(m, f"{where}.time", 1.0, f"{where}.overlap"), "times not to be told apart")
        solved = _units(m, m[f"{where}.overlap"])
        ratio = f" (× {estimate(m, f'{where}.time')}, {solved})" if m.get(f"{where}.time") is not None else ""
        difference = estimate(m, f"{where}.pass.{k}", signed=True)
        sentences.append(f"{_capital(NAMES[a])} against {NAMES[b]}: {often} (pass@{k} {difference}), {fast}{ratio}")
    return ". ".join(sentences) + "."


def _run(one: Evidence) -> str:
    m, arms = one.metrics, one.arms
    known = f" ({PARAMETERS_OF[one.model]})" if one.model else ""
    sources = ["known solutions", *(f"answers of {name}" for name in sorted(one.generate.generators))]
    counts = next(iter(arms.values()))["counts"]
    kinds = "adapters" if next(iter(arms.values()))["adapter"] else "the whole model"
    tokens = ", ".join(f"{arm} {about['tokens']['response']}" for arm, about in arms.items())
    drawn = one.answers.samples + one.answers.greedy
    reasons = ", ".join(f"{reason} {len(tasks)}" for reason, tasks in one.dropped["dropped"].items())
    return (
        f"{one.dropped['kept']} of {_tasks(one.dropped['read'])} were kept{f' (left out: {reasons})' if reasons else ''}. "
        f"Candidates from {' and '.join(sources)}: {one.margins['candidates']} distinct correct programs of "
        f"{one.margins['groups']} training tasks and languages, selected by the rule {one.margins['rule']}. Base: "
        f"`{next(iter(arms.values()))['base']}`{known}. Arms: {', '.join(arms)}, {kinds} trained on {counts['used']} "
        f"examples in {counts['steps']} steps; the same tasks, prompts and order for all, response tokens of one pass: "
        f"{tokens}; all arms have the same program in {counts['same_program']} of the examples. Then {drawn} answers "
        f"of base and arms to each of {_units(m, m['data.units'])} of the test, {m['data.languages']}."
    )


def selected(one: Evidence) -> str:
    """What there was to choose, who won, and how much hangs on the rule."""
    s, groups = one.margins, one.margins["groups"]
    wins = ", ".join(
        f"{words} {s[f'wins.{key}']} ({s[f'wins_choice.{key}']} with a choice)" for key, words in WINNERS.items()
    )
    sentences = [
        f"{s['choice']} of {groups} training tasks and languages have a choice ({_tasks(s['choice_tasks'])}): their slowest "
        f"correct program takes more than {number(1 + one.parameters.select.choice)} × the time of the fastest. Medians over "
        f"those with two candidates or more: the second fastest takes {number(s['margin.second'])} ×, the median one "
        f"{number(s['margin.median'])} × the time of the fastest",
        f"Where the selected programs come from: {wins}",
        f"Memory decides, or overrules time, in {len(one.memory_groups)} of {groups}",
        f"The control has the selected program by chance in {s['random_is_fastest']:.0%} of them, the arm slowest in "
        f"{s['slowest_is_fastest']:.0%}: there the arms learn the same",
    ]
    others = {key.removeprefix("sensitivity."): value for key, value in s.items() if key.startswith("sensitivity.")}
    listed = ", ".join(
        f"{rule} {number(value)} ({number(s[f'sensitivity_choice.{rule}'])} with a choice)"
        for rule, value in others.items()
    )
    if listed:
        sentences.append(f"Another rule would select another program in a share of: {listed}")
    if s["below_noise"]:
        sentences.append(f"{s['below_noise']} candidates take too little time to be told from nothing")
    if s["failed"] or s["unmeasured"]:
        sentences.append(
            f"{_tasks(s['failed'], 'correct candidate')} failed on the large input, {s['unmeasured']} in all have no costs"
        )
    return ". ".join(sentences) + "."


WINNERS = {"pool": "known solutions", "models": "models", "both": "both"}


def measured(one: Evidence) -> str:
    """Cost, rounds, machine, isolation and the noise floor."""
    m, measure = one.metrics, one.parameters.measure
    runs, rounds = one.runs, measure.rounds if measure.cost == "cpu" else 1
    cost = {"cpu": "CPU seconds of all processes", "instructions": "instructions by valgrind"}[measure.cost]
    walls = (
        "isolation was not required (unsafe_no_sandbox): programs may have run beside everything else on the machine"
        if measure.unsafe_no_sandbox
        else "isolated in namespaces, which the stage demands"
    )
    kinds = "machine" if len(runs["machines"]) == 1 else "machines"
    sentences = [
        f"{cost}, net of a program that does nothing; {_tasks(runs['runs'], 'run')}, in {_tasks(rounds, 'round')} of fresh "
        f"processes in which the candidates of a task take turns; {kinds} {', '.join(runs['machines'])}; {walls}"
    ]
    if runs["calibration"]:
        low, high = map(number, runs["calibration"])
        sentences.append(
            f"A fixed kernel took {low} to {high} times as long as on the machine of the default limits, and runs waited "
            f"{runs['waited']:.0%} of their time for a core"
        )
    if m["noise.pairs"]:
        sentences.append(
            f"Noise floor: {m['noise.pairs']} programs that were measured twice under two names differ by a factor of "
            f"{number(m['noise.factor'])} on average (ratio {estimate(m, 'noise.ratio')}), {m['noise.ties']:.0%} of them "
            f"by less than the tie band of {one.parameters.evaluate.tie:.0%}"
        )
    else:
        sentences.append("Noise floor: nothing was measured twice, so it is not known")
    sentences.append(
        f"The reference solution was measured in {m['data.measured']} of {m['data.units']} test tasks and languages; "
        f"{m['data.failed']} correct test programs failed on the large input"
    )
    return ". ".join(sentences) + "."


def caveats(found: dict[str, Evidence], confidence: float) -> str:
    """What follows from how the numbers were made, from their sizes, and from what was not measured."""
    lines = []
    for name, one in found.items():
        lines += [f"{name}: {line}" for line in _caveats_of(one)]
    lines += [
        "Training on any correct programs in the expected form can help by itself. Only the difference between fastest and "
        "random-correct says something about the selection; that between fastest and the base does not.",
        "Times are compared on tasks that both models solve, which are the easier ones; a model that solves more tasks is "
        "not rewarded there.",
        f"One training an arm, from one seed, and one draw of answers. The {confidence:.0%} intervals are over test tasks: "
        "they hold neither the luck of training and sampling nor errors of measurement that all rounds share.",
        "Times were taken on whatever else the machine was doing. Rounds take turns and CPU time is counted, not wall time, "
        "which still grows under load; differences below the tie band or the noise floor are none.",
    ]
    return "\n".join(f"- {line}" for line in lines)


def _caveats_of(one: Evidence) -> list[str]:
    m, s, lines = one.metrics, one.margins, []
    if not m["data.claim"]:
        lines.append(
            f"{_tasks(m['data.tasks'])} for the test; {m['data.claim_tasks']} or more, and a larger model, are needed for a "
            "claim about the method. These numbers show that the pipeline runs, and of the effect only what intervals say."
        )
    if one.model:
        lines.append(
            f"the base is small ({PARAMETERS_OF[one.model]}; the publication's "
            "have 7 to 14 billion): it solves easy tasks, in which there is little to gain."
        )
    if s["wins.pool"]:
        lines.append(
            f"{s['wins.pool']} of {s['groups']} selected programs ({s['wins_choice.pool']} of {s['choice']} with a choice) "
            "are known solutions, written by hand, which no model found here: what is learnt from them is not what a model "
            "learns from its own best answers."
        )
    tie = one.parameters.evaluate.tie
    if (m["noise.factor"] or 1.0) > 1 + tie:
        lines.append(
            f"one program differs from itself by a factor of {number(m['noise.factor'])} on average, more than the tie band "
            f"of {tie:.0%}: some of the wins and losses are noise. Measure on a quieter machine, or with more rounds."
        )
    for arm in generators_of(m):
        if not m[f"{arm}.compared"]:
            lines.append(f"{NAMES[arm]} has no correct and measured answer, so nothing is known of its times.")
        elif m[f"{arm}.unmeasured"]:
            lines.append(
                f"{m[f'{arm}.unmeasured']} correct answers of {NAMES[arm]} have no time and are left out of the costs."
            )
    missing = [arm for arm in QUESTION if arm not in generators_of(m)]
    if missing:
        lines.append(f"no arm {' and '.join(missing)}: whether the selection helps is not tested.")
    if s["choice"] < s["groups"]:
        lines.append(
            f"{s['groups'] - s['choice']} of {s['groups']} training tasks and languages have no choice to speak of, so the "
            "arms learn equally fast programs there, which dilutes any effect."
        )
    if BASE not in generators_of(m):
        lines.append("the base model has no answers, so nothing is said about what training as such does.")
    return lines


def _items(found: dict[str, Evidence], of) -> str:
    return "\n".join(f"- **{name}**: {of(one)}" for name, one in found.items())


def _capital(text: str) -> str:
    """The first letter large, also within marks of emphasis."""
    begin = len(text) - len(text.lstrip("*"))
    return text[: begin + 1].upper() + text[begin + 1 :]


def _tables(found: dict[str, Evidence], of) -> list[str]:
    """A table a data set, named where there are several."""
    made = {name: of(one.metrics) for name, one in found.items()}
    return [f"**{name}**\n\n{text}" if len(found) > 1 else text for name, text in made.items() if text]


def _units(m: dict, number: int) -> str:
    return _tasks(number) if ", " not in m["data.languages"] else f"{number} tasks and languages"


def _tasks(number: int, what: str = "task") -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
