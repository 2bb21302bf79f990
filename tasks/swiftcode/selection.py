"""Which correct candidate of a (task, language) is chosen: the rules, and the arms that are trained on the choices.

One *group* is a table of the distinct correct candidates of one (task, language), in any order, with the columns
`candidate`, `source`, `time`, `memory_mb`, `tmu_mb_s`, `ratio`, `ratio_low` of `estimates.costs`. Every choice is a function
of this set alone. The publication takes "the lowest execution time and memory usage" and leaves open what holds where
they disagree (Huang et al., ICML 2025, arXiv 2410.10209); the rules say how each of them decides it.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from tasks.stage import random_generator
from tasks.swiftcode.candidates import candidates
from tasks.swiftcode.estimates import FLOOR_MB
from tasks.swiftcode.params import ARMS, RULES, Select

Mask = np.ndarray  # bool [candidates]


def correct_candidates(samples: pd.DataFrame, verdicts: pd.DataFrame, tasks: pd.Series) -> pd.DataFrame:
    """The accepted candidates of these tasks: task, language, candidate, source, `origin` and `count`, sorted.

    Args:
        samples, verdicts: SAMPLES and VERDICTS of these and other tasks, in any order.

    Returns:
        One row a candidate; `origin` names the generators that gave it, sorted and comma-separated, `count` is the
        number of answers that are it.
    """
    keys = ["task", "language", "candidate"]
    samples, verdicts = (part[part["task"].isin(tasks)] for part in (samples, verdicts))
    accepted = verdicts.loc[verdicts["verdict"] == "accepted", keys].astype("str")
    answers = samples.dropna(subset="candidate").astype(dict.fromkeys([*keys, "generator"], "str"))
    origins = answers.groupby(keys)["generator"].agg(origin=lambda names: ",".join(sorted(set(names))), count="size")
    found = candidates(samples).astype(dict.fromkeys(keys, "str")).merge(accepted, on=keys)
    return found.merge(origins.reset_index(), on=keys).sort_values(keys, ignore_index=True)


def tied_times(group: pd.DataFrame, parameters: Select) -> Mask:
    """Candidates whose time is not told from the least: ratio ≤ 1 + tie, or 1 within the ratio's interval."""
    return ((group["ratio"] <= 1 + parameters.tie) | (group["ratio_low"] <= 1)).to_numpy()


def _least(values: pd.Series, among: Mask, slack: Callable[[float], float] = float) -> Mask:
    """Those of `among` whose value is at most slack(the least of them)."""
    return among & (values <= slack(values[among].min())).to_numpy()


def _least_memory(group: pd.DataFrame, among: Mask, parameters: Select) -> Mask:
    def slack(least: float) -> float:
        return max(least * (1 + parameters.tie), least + parameters.memory_tie_mb)

    return _least(group["memory_mb"], among, slack)


def _lexi(group: pd.DataFrame, among: Mask, parameters: Select) -> Mask:
    times = among & tied_times(group, parameters)
    memories = _least_memory(group, times, parameters)
    return _least(group["tmu_mb_s"], memories, lambda least: least * (1 + parameters.tie))


def non_dominated(group: pd.DataFrame) -> Mask:
    """Candidates to which no other is better in time or memory without being worse in the other."""
    time, memory = (group[column].to_numpy() for column in ("time", "memory_mb"))
    no_worse = (time[:, None] <= time) & (memory[:, None] <= memory)
    better = (time[:, None] < time) | (memory[:, None] < memory)
    return ~(no_worse & better).any(axis=0)


def _score(group: pd.DataFrame, rule: str, parameters: Select) -> pd.Series:
    """What product and weighted make least. Memory below its tie is not told apart, and counts as the tie."""
    memory = group["memory_mb"].clip(lower=max(parameters.memory_tie_mb, FLOOR_MB))
    weight = 0.5 if rule == "product" else parameters.weight
    return weight * np.log(group["time"]) + (1 - weight) * np.log(memory)


def choose(group: pd.DataFrame, rule: str, parameters: Select) -> list[str]:
    """The candidates that a rule selects: one, except of `pareto`; the first of them is the one for training.

    - lexi: of those whose time is tied with the least (`tied_times`) those of least memory, ties within `tie` or
      `memory_tie_mb`; of these those of least TMU, ties within `tie`.
    - time: least time. memory: least memory, ties as above, of these the least time. tmu: least TMU.
    - product: least time × memory. weighted: least weight · ln time + (1 − weight) · ln memory.
    - pareto: all that are not dominated in (time, memory); first the one that lexi selects of them.

    Where several are left, the shortest source is taken, then the smallest identity.
    """
    every = np.ones(len(group), bool)
    if rule == "lexi":
        left = _lexi(group, every, parameters)
    elif rule == "time":
        left = _least(group["time"], every)
    elif rule == "memory":
        left = _least(group["time"], _least_memory(group, every, parameters))
    elif rule == "tmu":
        left = _least(group["tmu_mb_s"], every)
    elif rule in ("product", "weighted"):
        left = _least(_score(group, rule, parameters), every)
    elif rule == "pareto":
        front = non_dominated(group)
        first = _first(group[_lexi(group, front, parameters)])
        return [first, *sorted(set(group["candidate"][front]) - {first})]
    else:
        raise ValueError(f"rule is {rule!r}; allowed: {', '.join(RULES)}")
    return [_first(group[left])]


def _first(group: pd.DataFrame) -> str:
    return min(zip(group["source"].str.len(), group["candidate"], strict=True))[1]


def slowest(group: pd.DataFrame) -> str:
    """The candidate of largest time; of equals that of larger memory, TMU, longer source, larger identity."""
    lengths = group["source"].str.len()
    return max(zip(group["time"], group["memory_mb"], group["tmu_mb_s"], lengths, group["candidate"], strict=True))[-1]


def random_correct(group: pd.DataFrame, seed: int, task: str, language: str) -> str:
    """One of the distinct candidates, each with the same probability."""
    candidates = sorted(group["candidate"])
    return candidates[random_generator(seed, "random-correct", task, language).integers(len(candidates))]


def has_choice(group: pd.DataFrame, parameters: Select) -> bool:
    """Whether the slowest takes more than 1 + `choice` times as long as the fastest."""
    return bool(group["time"].max() > (1 + parameters.choice) * group["time"].min())


def margins(group: pd.DataFrame) -> tuple[float | None, float]:
    """(t of the second fastest / t of the fastest, median t / t of the fastest): is there anything to learn?

    The first is None where there is one candidate.
    """
    times = np.sort(group["time"].to_numpy())
    return float(times[1] / times[0]) if len(times) > 1 else None, float(np.median(times) / times[0])


def select_group(group: pd.DataFrame, parameters: Select, task: str, language: str) -> pd.DataFrame:
    """The group, sorted by candidate, with `tied`, `choice`, `selected` and `arms`.

    `arms` are the names, in the order of ARMS, of the arms that train on the candidate: `fastest` on the (first) one
    that the rule selects, `slowest`, and `random-correct`; each arm has one candidate, so all have the same tasks.
    """
    group = group.sort_values("candidate", ignore_index=True)
    selected = choose(group, parameters.rule, parameters)
    of_arm = {
        "random-correct": random_correct(group, parameters.seed, task, language),
        "fastest": selected[0],
        "slowest": slowest(group),
    }
    return group.assign(
        tied=tied_times(group, parameters),
        choice=has_choice(group, parameters),
        selected=group["candidate"].isin(selected),
        arms=[[arm for arm in ARMS if of_arm[arm] == candidate] for candidate in group["candidate"]],
    )


def summarise(selection: pd.DataFrame, parameters: Select) -> dict[str, object]:
    """What there was to choose and who won, from all groups together; flat, keys as they are written.

    Args:
        selection: rows of `select_group`, with `task`, `language` and `origin` (generators, comma-separated).

    Returns:
        - `rule`, `groups`, `candidates`, `choice` (groups that have one), `choice_tasks`, `below_noise`.
        - `wins.<pool, models, both>`: groups by where the candidate of `fastest` came from: known solutions only,
          answers of models only, or both; `wins_choice.*`: of those with a choice.
        - `sensitivity.<rule>`: share of the groups where that rule's first candidate is another one than that of
          `fastest`; `sensitivity_choice.*`: of those with a choice, None where there are none.
        - `random_is_fastest`, `slowest_is_fastest`: share of groups where the control trains on the same program.
        - `margin.second`, `margin.median`: medians of `margins` over groups of two or more candidates, and for every
          group `margin.<task>.<language>.candidates`, `.second`, `.median`.
    """
    rows, each = [], {}
    for (task, language), group in selection.groupby(["task", "language"], sort=True, observed=True):
        second, median = margins(group)
        where = f"margin.{task}.{language}"
        each |= {f"{where}.candidates": len(group), f"{where}.second": second, f"{where}.median": median}
        of_arm = {arm: name for name, arms in zip(group["candidate"], group["arms"], strict=True) for arm in arms}
        origin = group.loc[group["candidate"] == of_arm["fastest"], "origin"].item().split(",")
        models = [name for name in origin if name != "pool"]
        others = {rule: choose(group, rule, parameters)[0] != of_arm["fastest"] for rule in RULES}
        rows.append(
            {
                "task": task,
                "choice": bool(group["choice"].iloc[0]),
                "winner": "pool" if not models else "both" if "pool" in origin else "models",
                "second": second,
                "median": median if second is not None else None,
                "random": of_arm["random-correct"] == of_arm["fastest"],
                "slowest": of_arm["slowest"] == of_arm["fastest"],
                **others,
            }
        )
    groups = pd.DataFrame(rows)
    chosen = groups[groups["choice"]]
    found: dict[str, object] = {
        "rule": parameters.rule,
        "groups": len(groups),
        "candidates": len(selection),
        "below_noise": int(selection["below_noise"].sum()),
        "choice": len(chosen),
        "choice_tasks": int(chosen["task"].nunique()),
    }
    for suffix, part in (("", groups), ("_choice", chosen)):
        found |= {f"wins{suffix}.{who}": int((part["winner"] == who).sum()) for who in ("pool", "models", "both")}
        others = [rule for rule in RULES if rule != parameters.rule]
        found |= {f"sensitivity{suffix}.{rule}": float(part[rule].mean()) if len(part) else None for rule in others}
    found |= {f"{arm}_is_fastest": float(groups[arm].mean()) for arm in ("random", "slowest")}
    for margin in ("second", "median"):
        known = groups[margin].dropna()
        found[f"margin.{margin}"] = float(known.median()) if len(known) else None
    return found | each
