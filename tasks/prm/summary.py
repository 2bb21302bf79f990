"""The text of the report, from the metrics: headline, comparisons in words, tables, and what the data do not show."""

import math

from tasks.prm.figures import AGGREGATIONS, LOSSES, REFERENCE, candidate_name, scorer_name
from tasks.prm.scored import BASELINES, CONTROL, KINDS

SAID = {"better": "better than", "worse": "worse than", "undecided": "not to be told from", None: "not compared with"}
FEW_PROBLEMS = 100
# Yuan et al. (arXiv 2412.01981), table 3: their trained models as generators, accuracy on MATH-500
PUBLISHED_POLICIES = (
    "45 % right on MATH-500 before the training; 29 % after CE, 26 % after DPO, 36 % after NCA, 47 % after KTO"
)


def summarise(metrics: dict[str, dict], study: str, confidence: float) -> str:
    """Markdown: a title, a headline paragraph, then sections. `study` is the text of the study, or empty."""
    parts = ["# Step rewards from outcome labels: implicit process reward models", headline(metrics)]
    parts += ["## Responses", _data(metrics), "## Choosing one of several responses", selection(metrics)]
    for name, m in metrics.items():
        if is_selected(m):
            parts += [f"### {name}: best of {m['choice.n']}, all losses", selection_table(m)]
    parts += ["## Which step is the first wrong one", steps(metrics)]
    for name, m in metrics.items():
        if m["test.judged"]:
            parts += [f"### {name}: steps of the test responses", steps_table(m)]
    if study:
        parts += ["## Study: losses, seeds, beta and adapters", study.strip()]
    parts += ["## What these data do not show", caveats(metrics, bool(study), confidence)]
    return "\n\n".join(parts) + "\n"


def verdict(metrics: dict, key: str) -> str | None:
    """Of a difference: "better" or "worse" outside its interval, or "undecided"; None where it is not known.

    >>> verdict({"d": 0.2, "d.low": 0.1, "d.high": 0.3}, "d"), verdict({"d": 0.2, "d.low": -0.1, "d.high": 0.3}, "d")
    ('better', 'undecided')
    """
    low, high = metrics.get(f"{key}.low"), metrics.get(f"{key}.high")
    if low is None or high is None:
        return None
    return "better" if low > 0 else "worse" if high < 0 else "undecided"


def is_selected(metrics: dict) -> bool:
    """Whether a choice among responses was made and could be tested."""
    return metrics.get("choice.prm_best_on_test") is not None


def role_of_prm(metrics: dict) -> str:
    """ "without" or "with": whichever role `choice.prm` has."""
    return next(role for role in KINDS.values() if metrics[f"choice.{role}"] == metrics["choice.prm"])


def scorers_of(metrics: dict) -> list[str]:
    """The scorers of the metrics, in their order."""
    found = [key.removeprefix("test.auc.") for key in metrics if key.startswith("test.auc.")]
    return [key.rpartition(".")[0] for key in found if not key.endswith((".low", ".high"))]


def headline(metrics: dict[str, dict]) -> str:
    """What the chosen PRM is worth on every data set, beside majority and control, from the intervals."""
    sentences = []
    for name, m in metrics.items():
        if not is_selected(m):
            sentences.append(f"On {name} there are not several responses a problem to choose from.")
            continue
        n, role = m["choice.n"], role_of_prm(m)
        of_prm, of_control = (f"test.best_of.{n}.{m[f'choice.{key}']}" for key in ("prm", "control"))
        majority = f"{_said(m, f'difference.{role}.minus.majority')} the majority ({estimate(m, f'test.majority.{n}')})"
        control = f"{_said(m, f'difference.{role}.minus.control')} the untrained reference ({estimate(m, of_control)})"
        sentences.append(
            f"Best of {n} responses on {name}: the PRM ({candidate_name(m['choice.prm'])}) answers {estimate(m, of_prm)} of "
            f"the test problems, {majority} and {control}."
        )
    return " ".join(sentences) + " Loss and aggregation are chosen on validation problems; brackets are intervals."


def selection(metrics: dict[str, dict]) -> str:
    """One item a data set: differences of the roles, votes, and what more responses bring."""
    return "\n".join(f"- **{name}**: {_selection_of(m)}" for name, m in metrics.items())


def _selection_of(m: dict) -> str:
    if not is_selected(m):
        return "there are not several responses a problem; nothing can be chosen."
    n = m["choice.n"]
    sentences = [
        f"one response is right for {estimate(m, 'test.pass.1')} of the problems, at least one of {n} for "
        f"{estimate(m, f'test.pass.{n}')}"
    ]
    for role, words in (("without", "Without"), ("with", "With")):
        candidate, said = m[f"choice.{role}"], []
        for other, name in (("majority", "the majority"), ("control", "the untrained reference")):
            key = f"difference.{role}.minus.{other}"
            said.append(f"{_said(m, key)} {name} ({estimate(m, key, signed=True)})")
        value = estimate(m, f"test.best_of.{n}.{candidate}")
        sentences.append(f"{words} the reference ({_bare(candidate)}) best of {n} gives {value}: {' and '.join(said)}")
    key = "difference.with.minus.without"
    sentences.append(
        f"With the reference it is {_said(m, key)} without ({estimate(m, key, signed=True)}); validation chose "
        f"{role_of_prm(m)}"
    )
    key = f"difference.vote_{role_of_prm(m)}.minus.majority"
    sentences.append(f"A vote weighted by the PRM is {_said(m, key)} a plain one ({estimate(m, key, signed=True)})")
    names = {"without": "without the reference", "with": "with it", "control": "by the control"}
    grown = [f"{words} {_grown(m, f'growth.{role}')}" for role, words in names.items() if f"growth.{role}" in m]
    if grown:
        sentences.append(f"From {n} to {m['choice.largest']} responses, the accuracy {'; '.join(grown)}")
    return ". ".join(sentences) + "."


def selection_table(m: dict) -> str:
    """Best of n and votes of all losses, each with the aggregation chosen on validation, beside the baselines."""
    n = m["choice.n"]
    rows = [f"| scorer | aggregation | best of {n} | vote of {n} | outcome AUC |", "|---|---|---:|---:|---:|"]
    for scorer in scorers_of(m):
        how = m[f"choice.{scorer}"]
        candidate = f"{scorer}.{how}"
        star = " ★" if candidate == m["choice.prm"] else ""
        cells = [estimate(m, f"test.{quantity}.{candidate}") for quantity in (f"best_of.{n}", f"vote.{n}", "auc")]
        rows.append(f"| {scorer_name(scorer)}{star} | {AGGREGATIONS[how]} | {' | '.join(cells)} |")
    rows.append(f"| majority | – | – | {estimate(m, f'test.majority.{n}')} | – |")
    for words, size in (("one response (pass@1)", 1), (f"any of {n} is right (pass@{n})", n)):
        rows.append(f"| {words} | – | {estimate(m, f'test.pass.{size}')} | – | – |")
    sizes = f"{m[f'test.problems.{n}']} of {m['data.test.problems']} test problems have {n} responses or more."
    return "\n".join(rows) + f"\n\n★ chosen on validation. {sizes}"


def steps(metrics: dict[str, dict]) -> str:
    """One item a data set: localisation against the control, and right answers with wrong steps."""
    return "\n".join(f"- **{name}**: {_steps_of(m)}" for name, m in metrics.items())


def _steps_of(m: dict) -> str:
    scorer = m["choice.localisation"]
    if not m["test.judged"]:
        return "which steps of the test responses are wrong is not known."
    sentences = []
    if scorer is None or m.get(f"test.f1.{scorer}") is None:
        sentences.append("F1 is not defined, because no response has a wrong step, or all have one")
    else:
        found, cleared, f1 = (estimate(m, f"test.{quantity}.{scorer}") for quantity in ("found", "cleared", "f1"))
        key = f"difference.f1.{scorer}"
        sentences.append(
            f"the best scorer on validation ({scorer_name(scorer)}) finds the first wrong step of {found} of the responses "
            f"that have one, and clears {cleared} of the others: F1 {f1}, {_said(m, key)} the untrained "
            f"reference ({estimate(m, f'test.f1.{CONTROL}')}, difference {estimate(m, key, signed=True)})"
        )
        sentences.append(
            "A right step gets a higher reward than a first wrong one with probability "
            f"{estimate(m, f'test.step_auc.{scorer}')}, {_said(m, f'difference.step_auc.{scorer}')} the untrained reference "
            f"({estimate(m, f'test.step_auc.{CONTROL}')})"
        )
    for quantity, words in (("f1", "F1"), ("step_auc", "Step AUC")):
        counted = [f"{REFERENCE[kind]} {_counted(m, quantity, kind)}" for kind in KINDS if _counted(m, quantity, kind)]
        if counted:
            sentences.append(f"{words} against the untrained reference, all losses: {'; '.join(counted)}")
    if m.get("test.false_positive_share") is not None:
        share = estimate(m, "test.false_positive_share")
        sentences.append(
            f"Right answers with a wrong step: {m['data.test.false_positives']}, {share} of the right answers"
        )
        key = f"test.false_positive_auc.{scorer}.{m.get(f'choice.{scorer}')}"
        if m.get(key) is not None:
            apart = {
                "better": "above them",
                "worse": "below them, not above,",
                "undecided": "no better than chance",
                None: "",
            }
            low, high = (None if m[f"{key}.{end}"] is None else m[f"{key}.{end}"] - 0.5 for end in ("low", "high"))
            said = apart[verdict({"auc.low": low, "auc.high": high}, "auc")]
            sentences.append(f"The same scorer puts wholly right responses {said} (AUC {estimate(m, key)})")
    return ". ".join(sentences) + "."


def _counted(m: dict, quantity: str, kind: str) -> str:
    """How many scorers of a kind are better and worse than the control; "" where none is compared."""
    said = [verdict(m, f"difference.{quantity}.{scorer}") for scorer in scorers_of(m) if scorer.endswith(f".{kind}")]
    counts = [said.count(word) for word in ("better", "worse", "undecided")]
    return "{} better, {} worse, {} undecided".format(*counts) if sum(counts) else ""


def steps_table(m: dict) -> str:
    """Localisation of all scorers and baselines."""
    rows = [
        "| scorer | F1 | first wrong step found | error-free cleared | step AUC | wholly right above false positive |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for scorer in [*scorers_of(m), *BASELINES, "first_step", "chance"]:
        cells = [estimate(m, f"test.{quantity}.{scorer}") for quantity in ("f1", "found", "cleared", "step_auc")]
        cells.append(estimate(m, f"test.false_positive_auc.{scorer}.{m.get(f'choice.{scorer}')}"))
        star = " ★" if scorer == m["choice.localisation"] else ""
        rows.append(f"| {scorer_name(scorer)}{star} | {' | '.join(cells)} |")
    chosen = f"★ largest F1 on validation, where the thresholds are chosen too. {m['test.judged']} test responses."
    return "\n".join(rows) + f"\n\n{chosen}"


def _data(metrics: dict[str, dict]) -> str:
    counted = ("problems", "responses", "correct", "truncated", "unparseable", "duplicates", "one_class")
    rows = [
        "| data set | split | problems | responses | right | cut off | no answer read | duplicates | problems of one class | "
        "with a wrong step | right answer, wrong step |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, m in metrics.items():
        for split in ("train", "valid", "test"):
            values = {key: m[f"data.{split}.{key}"] for key in counted}
            known, wrong, both = (m[f"data.{split}.{key}"] for key in ("steps_known", "wrong_steps", "false_positives"))
            cells = [number(value) if key == "correct" else str(value) for key, value in values.items()]
            cells += [f"{wrong} of {known}", str(both)] if known else ["–", "–"]
            rows.append(f"| {name} | {split} | {' | '.join(cells)} |")
    return "\n".join([*rows, "", *(f"- {name}: {_likelihoods(m)}" for name, m in metrics.items())])


def _likelihoods(m: dict) -> str:
    """How far the reward of a right answer can go: h = beta (log policy − log reference) ≤ beta NLL."""
    correct, wrong = m["data.nll.correct"], m["data.nll.wrong"]
    text = (
        f"mean −log-probability of a response by the reference, validation and test: right {number(correct)}, wrong "
        f"{number(wrong)} nats."
    )
    if correct is None:
        return text
    reach = {loss: beta * correct for loss, beta in betas_of(m).items()}
    said = [f"{LOSSES[loss]} {number(h)} (sigmoid {1 / (1 + math.exp(-h)):.2f})" for loss, h in reach.items()]
    return f"{text} Times beta that is the most that the mean reward of right answers can reach: {', '.join(said)}."


def betas_of(metrics: dict) -> dict[str, float]:
    """Beta by loss."""
    return {key.removeprefix("data.beta."): metrics[key] for key in metrics if key.startswith("data.beta.")}


def caveats(metrics: dict[str, dict], has_study: bool, confidence: float) -> str:
    """What follows from how the numbers were made, from their sizes, and from what was not measured."""
    lines = [
        "The outcome losses constrain only the sum of a response's step rewards. How it is divided among the steps is weakly "
        "identified: scorers that select equally well can blame different steps, and nothing in the training says which "
        "of them is right. A good choice of responses is no proof of good step rewards.",
        "That the reward of a prefix is a soft-max-like forecast, beta log E exp(r / beta) over its continuations, is an "
        "identity of any two language models. It holds for the learned r and not for correctness; the temperature of the "
        "sampling plays no part in it.",
    ]
    cut = {name: m["data.test.truncated"] for name, m in metrics.items() if m["data.test.truncated"]}
    if cut:
        listed = ", ".join(f"{name}: {count}" for name, count in cut.items())
        lines.append(f"Test responses that were cut off ({listed}) count as wrong; the identity is about their prefix.")
    for name, m in metrics.items():
        lines += [f"{name}: {line}" for line in _caveats_of(m)]
    if not has_study:
        lines.append("One training a loss, from one seed: how far another seed would end from it is not measured here.")
    n_scorers = max(len(scorers_of(m)) - 1 for m in metrics.values())
    lines.append(
        f"The best of {n_scorers * len(AGGREGATIONS)} candidates on validation is reported, once, on test. The "
        f"{confidence:.0%} intervals are over test problems: they hold neither the luck of that choice, nor that of the "
        "training, nor that of the samples."
    )
    lines.append(
        "The trained policy is a scorer; as a generator it is not measured here. Yuan et al. sampled from theirs: "
        f"{PUBLISHED_POLICIES}."
    )
    return "\n".join(f"- {line}" for line in lines)


def _caveats_of(m: dict) -> list[str]:
    lines, n, best = [], m["choice.n"], m.get("choice.prm_best_on_test")
    if m["data.grader"] == "chain":
        lines.append(
            "toy arithmetic, a few operations on small numbers. It shows what the method does where every step can be "
            "checked, and not what it does on mathematics in words."
        )
    lines.append(
        "generator, reference and start of the policy are one model; the rewards of another model's responses are not tested."
        if m["data.responses"] == "sampled"
        else "the responses were given; they need not be such as the reference would write, which the method assumes."
    )
    if verdict(m, "growth.with") == "worse":
        lines.append(
            f"with the reference, best of {m['choice.largest']} is worse than best of {n} "
            f"({estimate(m, 'growth.with', signed=True)}): the ratio also rewards what the reference finds improbable, and "
            "among more responses there is more of it to find."
        )
    if best and best != m["choice.prm"]:
        values = [number(m[f"test.best_of.{n}.{candidate}"]) for candidate in (best, m["choice.prm"])]
        lines.append(
            f"{candidate_name(best)} is the best on test, with hindsight: {values[0]}, the chosen one {values[1]}."
        )
    if m.get("test.false_positive_share"):
        share = estimate(m, "test.false_positive_share")
        lines.append(
            f"{share} of the right answers come with a wrong step; to the labels of the training they are right."
        )
    if not m["data.test.steps_known"]:
        lines.append("which steps are wrong is not known, so the rewards of steps are not tested.")
    if min(m["data.valid.problems"], m["data.test.problems"]) < FEW_PROBLEMS:
        lines.append(
            f"few problems, {m['data.valid.problems']} for validation and {m['data.test.problems']} for the test; the choice "
            "and the comparisons rest on little."
        )
    weak = {loss: beta for loss, beta in betas_of(m).items() if beta * (m["data.nll.correct"] or math.inf) < 0.5}
    if weak:
        listed = ", ".join(f"{LOSSES[loss]} {beta:g}" for loss, beta in weak.items())
        lines.append(
            f"beta times the mean NLL of right answers is below 0.5 (beta: {listed}): right answers cannot get rewards far "
            "above 0, and the losses fall mostly by making wrong ones unlikely; try a larger beta."
        )
    one_class, problems = m["data.train.one_class"], m["data.train.problems"]
    if one_class:
        lines.append(
            f"{one_class} of {problems} training problems have answers of one class; pair losses cannot use them."
        )
    return lines


def _said(m: dict, key: str) -> str:
    return SAID[verdict(m, key)]


def _grown(m: dict, key: str) -> str:
    said = {"better": "rises", "worse": "falls", "undecided": "shows no change", None: "is not compared"}[
        verdict(m, key)
    ]
    return f"{said} ({estimate(m, key, signed=True)})"


def _bare(candidate: str) -> str:
    loss, _, how = candidate.split(".")
    return f"{LOSSES[loss]}, {AGGREGATIONS[how]}"


def estimate(m: dict, key: str, *, signed: bool = False) -> str:
    """A value with its interval, three decimals.

    >>> estimate({"a": 0.81234, "a.low": 0.79, "a.high": 0.8349}, "a"), estimate({"a": 0.1}, "a", signed=True)
    ('0.812 [0.790, 0.835]', '+0.100')
    """
    value, low, high = (m.get(k) for k in (key, f"{key}.low", f"{key}.high"))
    if value is None or low is None or high is None:
        return number(value, signed=signed)
    return f"{number(value, signed=signed)} [{number(low, signed=signed)}, {number(high, signed=signed)}]"


def number(value: float | None, *, signed: bool = False) -> str:
    """Three decimals, or a dash."""
    if value is None:
        return "–"
    return (f"{value:+.3f}" if signed else f"{value:.3f}").replace("-", "−")
