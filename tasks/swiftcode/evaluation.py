"""How often and how fast base and arms solve the test tasks: each against the reference solutions, and in pairs.

A *unit* is a (task, language) that all generators were asked. What an answer costs is known where it is accepted and
was measured; a generator's cost of a unit is the mean over these of its answers, or the mean of logarithms where it goes
into a geometric mean.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from tasks.stage import UserError, random_generator
from tasks.swiftcode import metrics
from tasks.swiftcode.estimates import COSTS
from tasks.swiftcode.params import BASE, Evaluate
from tasks.swiftcode.resampling import draw_weights, interval
from tasks.swiftcode.results import POOL, UNIT
from tasks.tables import significant

PAIRS = (("fastest", "random-correct"), ("fastest", BASE), ("fastest", "slowest"), ("random-correct", BASE))
CLAIM_TASKS = 100  # fewer tasks decide no difference of the size that is to be expected
MEANS = {"time": "et", "memory_mb": "mu", "tmu_mb_s": "tmu"}  # the field's names of the means; n… of those of ratios
RATIOS = {"time": "time", "memory_mb": "memory", "tmu_mb_s": "tmu"}


def evaluate_results(results: pd.DataFrame, generators: list[str], parameters: Evaluate) -> dict[str, object]:
    """Flat metrics of these generators, shares between 0 and 1; with ± also `.low` and `.high`, from a bootstrap over tasks.

    Args:
        results: RESULTS, all answers and the known solutions, in any order; each generator has answers to the same units.

    Returns:
        Of a generator g:

        - `g.answers`, `g.programs` (answers with one), `g.correct`, `g.verdict.<verdict>`: answers; `g.solved`: units with
          a correct one; `g.pass.<k>` ±, over all units.
        - `g.unmeasured`: correct answers without a cost or without a reference. `g.compared`: units with both, over which
          the following are: `g.et`, `g.mu`, `g.tmu`, mean costs; `g.net.mean_of_ratios` ± and `.ratio_of_sums` ±, and so
          nmu, ntmu: costs relative to the reference; `g.reference` ±, `g.best` ±: geometric means of the time relative to
          that of the reference and of the fastest known solution; `g.wins`, `g.ties`, `g.losses`, `g.above_5` of the
          first; `g.dps` ±, per cent.
        - `g.eff.<k>` ±: over units with a measured reference. `g.beyond` ±: over those with known solutions of different
          times. Answers that are wrong, or that had no cost there, count 0.

        Of a pair (a, b) of PAIRS, after `pair.a.b`: `.pass.<k>` ±, the difference a − b over all units; `.overlap`,
        `.overlap_share`: units that both are compared in, over which the following are: `.time` ±, `.memory` ±, `.tmu` ±:
        geometric means of cost of a / cost of b; `.wins`, `.ties`, `.losses`, `.above_5` of the first; `.reduction`, 1 − ET
        of a / ET of b; `.et.a`, `.mu.a`, `.mean_tmu.a`, `.net.mean_of_ratios.a`, …, and of b, each as above.

    Raises:
        UserError: a k of the parameters above the number of answers to some unit.
    """
    results = results.sort_values([*UNIT, "generator", "sample"], ignore_index=True)
    units = results.loc[results["generator"].isin(generators), UNIT].drop_duplicates(ignore_index=True)
    generator = random_generator(parameters.seed, "tasks")
    weights = draw_weights(units["task"].to_numpy(), parameters.n_resamples, generator)
    reference = _References.of(results, units)
    scores = {name: _Scores.of(name, results, reference, units, parameters) for name in generators}
    found: dict[str, object] = {}
    put = partial(_put, found, confidence=parameters.confidence)
    for name in generators:
        found |= _counts(name, results[results["generator"] == name], scores[name])
        _put_scores(put, name, scores[name], reference, weights, parameters)
    for a, b in PAIRS:
        if a in scores and b in scores:
            _put_pair(put, a, b, scores, reference, weights, parameters)
    return found


def describe(units: pd.DataFrame, results: pd.DataFrame) -> dict[str, object]:
    """`data.*`: test tasks and units that were asked, those with a measured reference, and whether they are enough."""
    measured = results.loc[results["reference_time"].notna(), UNIT].drop_duplicates()
    n = int(units["task"].nunique())
    return {
        "data.tasks": n,
        "data.units": len(units),
        "data.languages": ", ".join(sorted(set(units["language"]))),
        "data.measured": len(measured),
        "data.claim_tasks": CLAIM_TASKS,
        "data.claim": n >= CLAIM_TASKS,
    }


def noise(costs: pd.DataFrame, parameters: Evaluate) -> dict[str, object]:
    """`noise.*`: how much a program differs from itself, of all that were measured twice (copies 0 and 1).

    `noise.pairs`; `noise.ratio` ±, the geometric mean of the two times' ratio; `noise.factor`, exp(mean |ln ratio|);
    `noise.ties`, the share within the tie band.
    """
    keys = [*UNIT, "candidate"]
    first, second = (costs[costs["copy"] == copy].set_index(keys)["time"] for copy in (0, 1))
    ratio = (second / first).dropna().sort_index()
    logs = np.log(ratio.to_numpy(np.float64))
    tasks = ratio.index.get_level_values("task").to_numpy()
    weights = draw_weights(tasks, parameters.n_resamples, random_generator(parameters.seed, "noise"))
    found: dict[str, object] = {"noise.pairs": len(ratio)}
    _put(found, "noise.ratio", metrics.geometric_mean(logs, weights), parameters.confidence)
    found["noise.factor"] = float(metrics.geometric_mean(np.abs(logs)))
    found["noise.ties"] = metrics.win_tie_loss(ratio.to_numpy(np.float64), parameters.tie)[1]
    return found


def flat(content: dict[str, object]) -> dict[str, object]:
    """Metrics as they are stored: floats with 6 significant digits, None where there is no (finite) value."""
    return {
        key: (significant(value) if np.isfinite(value) else None) if isinstance(value, float) else value
        for key, value in content.items()
    }


@dataclass(frozen=True)
class _References:
    """Costs of the known solutions of U units: the reference's [U], NaN where not measured, and times of all."""

    costs: dict[str, np.ndarray]
    known: list[np.ndarray]  # times, NaN-free; empty where none was measured

    @classmethod
    def of(cls, results: pd.DataFrame, units: pd.DataFrame) -> "_References":
        first = results.drop_duplicates(UNIT).merge(units, on=UNIT)
        pool = results[(results["generator"] == POOL) & results["time"].notna()]
        times = {unit: group["time"].to_numpy() for unit, group in pool.groupby(UNIT)}
        known = [times.get(unit, np.empty(0)) for unit in units.itertuples(index=False, name=None)]
        return cls({cost: first[f"reference_{cost}"].to_numpy(np.float64) for cost in COSTS}, known)


@dataclass(frozen=True)
class _Scores:
    """One generator's scores of U units, float64 [U]; NaN where a unit has none."""

    n: np.ndarray  # answers, whole numbers
    correct: np.ndarray  # of them
    compared: np.ndarray  # bool
    mean: dict[str, np.ndarray]  # of costs
    logs: dict[str, np.ndarray]
    eff: dict[int, np.ndarray]
    beyond: np.ndarray
    dps: np.ndarray

    @classmethod
    def of(
        cls, name: str, results: pd.DataFrame, reference: _References, units: pd.DataFrame, parameters: Evaluate
    ) -> "_Scores":
        own = results[results["generator"] == name]
        groups = [group for _, group in own.groupby(UNIT, sort=True)]
        n = np.array([len(group) for group in groups])
        if max(parameters.k) > n.min():
            task, language = units.iloc[int(n.argmin())]
            raise UserError(
                f"swiftcode.evaluate.k: {max(parameters.k)}; allowed: at most {n.min()}, the answers of {name} to task "
                f"{task} in {language}"
            )
        correct = np.array([int((group["verdict"] == "accepted").sum()) for group in groups])
        has_reference = ~np.isnan(reference.costs["time"])
        costs = {c: [group[c].to_numpy(np.float64) for group in groups] for c in COSTS}
        return cls(
            n=n,
            correct=correct,
            compared=has_reference & np.array([bool(np.isfinite(times).any()) for times in costs["time"]]),
            mean={c: np.array([_known_mean(values) for values in costs[c]]) for c in COSTS},
            logs={c: np.array([_known_mean(np.log(values)) for values in costs[c]]) for c in COSTS},
            **_peers(costs["time"], reference, has_reference, parameters),
        )


def _peers(times: list[np.ndarray], reference: _References, measured: np.ndarray, parameters: Evaluate) -> dict:
    """eff@k, Beyond and DPS of every unit, from the times of all its answers (NaN: wrong)."""
    eff = {k: np.full(len(times), np.nan) for k in parameters.k}
    beyond, dps = np.full((2, len(times)), np.nan)
    for unit in np.flatnonzero(measured):
        known, of_answers = reference.known[unit], times[unit]
        scores = metrics.efficiency(of_answers, known)
        for k in parameters.k:
            eff[k][unit] = metrics.efficiency_at_k(scores, k)
        beyond[unit] = metrics.beyond(of_answers, known).mean()
        timed = of_answers[~np.isnan(of_answers)]
        dps[unit] = _known_mean(metrics.differential_performance(timed, known, parameters.tie))
    return {"eff": eff, "beyond": beyond, "dps": dps}


def _known_mean(values: np.ndarray) -> float:
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else float("nan")


def _counts(name: str, own: pd.DataFrame, scores: _Scores) -> dict[str, object]:
    costs = own["time"].notna() & own["reference_time"].notna()
    verdicts = own["verdict"].value_counts().sort_index()
    return {
        f"{name}.answers": len(own),
        f"{name}.programs": int(own["candidate"].notna().sum()),
        f"{name}.correct": int(scores.correct.sum()),
        f"{name}.solved": int((scores.correct > 0).sum()),
        f"{name}.unmeasured": int(((own["verdict"] == "accepted") & ~costs).sum()),
        f"{name}.compared": int(scores.compared.sum()),
        **{f"{name}.verdict.{verdict}": int(count) for verdict, count in verdicts.items()},
    }


def _put_scores(
    put: partial, name: str, scores: _Scores, reference: _References, weights: np.ndarray, parameters: Evaluate
) -> None:
    for k in parameters.k:
        put(f"{name}.pass.{k}", metrics.mean(metrics.pass_at_k(scores.n, scores.correct, k), weights))
    on = scores.compared
    best = np.array([times.min() if len(times) else np.nan for times in reference.known])
    for cost, short in MEANS.items():
        put(f"{name}.{short}", metrics.mean(scores.mean[cost][on]))
        for how in (metrics.mean_of_ratios, metrics.ratio_of_sums):
            values = how(scores.mean[cost][on], reference.costs[cost][on], weights[on])
            put(f"{name}.n{short}.{how.__name__}", values)
    logs = scores.logs["time"][on] - np.log(reference.costs["time"][on])
    put(f"{name}.reference", metrics.geometric_mean(logs, weights[on]))
    put(f"{name}.best", metrics.geometric_mean(scores.logs["time"][on] - np.log(best[on]), weights[on]))
    _put_wins(put, name, logs, parameters.tie)
    of = {"dps": scores.dps, **{f"eff.{k}": values for k, values in scores.eff.items()}, "beyond": scores.beyond}
    for key, values in of.items():
        known = ~np.isnan(values)
        put(f"{name}.{key}", metrics.mean(values[known], weights[known]))


def _put_pair(
    put: partial,
    a: str,
    b: str,
    scores: dict[str, _Scores],
    reference: _References,
    weights: np.ndarray,
    parameters: Evaluate,
) -> None:
    where, of = f"pair.{a}.{b}", {a: scores[a], b: scores[b]}
    for k in parameters.k:
        values = [metrics.pass_at_k(each.n, each.correct, k) for each in of.values()]
        put(f"{where}.pass.{k}", metrics.mean(values[0] - values[1], weights))
    on = of[a].compared & of[b].compared
    put(f"{where}.overlap", int(on.sum()))
    put(f"{where}.overlap_share", float(on.mean()))
    for cost, short in RATIOS.items():
        logs = of[a].logs[cost][on] - of[b].logs[cost][on]
        put(f"{where}.{short}", metrics.geometric_mean(logs, weights[on]))
        if cost == "time":
            _put_wins(put, where, logs, parameters.tie)
    put(f"{where}.reduction", float(1 - metrics.ratio_of_sums(*(each.mean["time"][on] for each in of.values()))))
    for cost, short in MEANS.items():
        key = f"{where}.{'mean_tmu' if short == 'tmu' else short}"  # .tmu is the ratio
        for name, each in of.items():
            put(f"{key}.{name}", metrics.mean(each.mean[cost][on]))
            for how in (metrics.mean_of_ratios, metrics.ratio_of_sums):
                value = how(each.mean[cost][on], reference.costs[cost][on])
                put(f"{where}.n{short}.{how.__name__}.{name}", value)


def _put_wins(put: partial, where: str, logs: np.ndarray, tie: float) -> None:
    ratio = np.exp(logs)
    for key, share in zip(("wins", "ties", "losses"), metrics.win_tie_loss(ratio, tie), strict=True):
        put(f"{where}.{key}", share)
    put(f"{where}.above_5", metrics.share_above(ratio))


def _put(found: dict[str, object], key: str, values: np.ndarray | float | int, confidence: float) -> None:
    """A number, or a quantity [1 + R], its value first, with its interval."""
    if np.ndim(values) == 0:
        found[key] = values if isinstance(values, int) else float(values)
        return
    found[key] = float(values[0])
    found[f"{key}.low"], found[f"{key}.high"] = interval(values, confidence)
