"""What the scorers of one data set are worth: best of n, votes, outcome and step AUC, localisation, with intervals.

Scorers and candidates: see `scored`. A *role* is a candidate that was chosen on the validation problems: ``without``
and ``with`` the reference, and ``control``, of the untrained reference.
"""

from collections.abc import Callable

import numpy as np

from tasks.prm import localisation
from tasks.prm.params import AGGREGATIONS, Evaluate
from tasks.prm.resampling import Bootstrap, Estimate, harmonic
from tasks.prm.scored import BASELINES, CONTROL, KINDS, Responses, Steps
from tasks.prm.selection import best_of_n, draw_subsets, expected_vote, pass_at_k
from tasks.stage import random_generator
from tasks.tables import significant

ROLES = (*KINDS.values(), "control")


def evaluate_responses(name: str, responses: dict[str, Responses], parameters: Evaluate) -> dict[str, object]:
    """Flat metrics of one data set; estimates on the test problems with `.low` and `.high` of `Bootstrap`. The keys:

    - `data.nll.correct`, `data.nll.wrong`: mean −log-probability of a response by the reference, nats, validation and test
      together; `data.beta.<loss>`.
    - `choice.*`, from the validation problems and never from the test. `choice.n`: candidates a problem at which is
      chosen: `choose_at`, or the largest smaller number that validation problems have, above 1. By accuracy of the best
      of so many: `choice.<scorer>`, its aggregation (min where there is no n); `choice.<role>`, a candidate;
      `choice.prm`, the better of `choice.without` and `choice.with`. By F1: `choice.threshold.<scorer>`, and
      `choice.localisation`, the losses' best scorer. Of equals, the first in the order of scorers and AGGREGATIONS.
      `choice.prm_best_on_test` is named only to be known.
    - `<split>.problems.<n>`: problems with at least n samples, over which the following are means.
      `<split>.pass.<n>` (pass@k, pass@1), `.majority.<n>`, `.best_of.<n>.<candidate>`, `.vote.<n>.<candidate>` (weights:
      sigmoid of the score): accuracies, in expectation over all subsets of n samples, votes over `subsets` random ones.
      Votes, and intervals of best_of, only where n is `choice.n` or the candidate has a role; n = 1 is pass@1 for all.
    - `difference.<a>.minus.<b>`: of these at `choice.n`, paired; `growth.<role>`: best of `choice.largest` minus best of
      `choice.n`, on the problems that have so many.
    - `<split>.auc.<candidate>`: probability that a right answer scores above a wrong one, over all responses.
    - `<split>.judged`: responses whose steps are judged. `<split>.f1.<scorer>`: the harmonic mean of `.found.<scorer>`,
      the share of those with a wrong step whose first wrong step was found, and `.cleared.<scorer>`, the share of those
      without one in which none was found; also for `position`, `length`, `first_step` (always the first) and `chance`.
      `<split>.step_auc.<scorer>`: probability that a right step has a higher reward than a first wrong one.
      `difference.f1.<scorer>`, `difference.step_auc.<scorer>`: of the losses' scorers, minus those of the control.
    - `test.false_positive_share`: of the right answers with judged steps, those with a wrong step;
      `test.false_positive_auc.<candidate>`: probability that a wholly right response scores above such a one.
    """
    valid = _Split(name, "valid", responses["valid"], parameters, n_resamples=0)
    test = _Split(name, "test", responses["test"], parameters, n_resamples=parameters.n_resamples)
    choice = _choose(valid)
    thresholds = _thresholds(responses["valid"])
    for split in (valid, test):
        split.put_accuracies(choice)
        split.put_auc(choice)
        split.put_localisation(thresholds)
    test.put_false_positives(choice)
    scorers = [scorer for scorer in responses["valid"].scorers() if scorer != CONTROL]
    choice["localisation"] = _best({s: valid.metrics.get(f"valid.f1.{s}", np.nan) for s in scorers})
    choice |= {f"threshold.{scorer}": value for scorer, value in thresholds.items()}
    differences: dict[str, object] = {}
    if choice["n"] in test.n:
        differences = test.differences(choice)
        values = {c: _mean(test.best_of(choice["n"], c)) for s in scorers for c in test.candidates(s)}
        choice |= {"prm_best_on_test": _best(values), "largest": test.n[-1]}
    return {
        **_describe_scorers(responses),
        **{f"choice.{key}": value for key, value in choice.items()},
        **differences,
        **test.localisation_differences(),
        **test.metrics,
        **valid.metrics,
    }


def flat(metrics: dict[str, object]) -> dict[str, object]:
    """Metrics as they are stored: floats with 6 significant digits, None where there is no (finite) value."""
    return {
        key: (significant(value) if np.isfinite(value) else None) if isinstance(value, float) else value
        for key, value in metrics.items()
    }


class _Split:
    """Metrics of one split's responses. Accuracies are float64 [P], a problem each, NaN where it has fewer than n samples.

    Attributes:
        n: those of the parameters, 1 and `choose_at`, of which there are problems; rising.
        metrics: what was put so far, with intervals where there are resamples.
    """

    def __init__(self, name: str, split: str, responses: Responses, parameters: Evaluate, n_resamples: int) -> None:
        self.name, self.split, self.responses, self.parameters = name, split, responses, parameters
        most = max(rows.shape[1] for _, rows in responses.blocks)
        self.n = sorted(n for n in {1, *parameters.n, parameters.choose_at} if n <= most)
        generator = random_generator(parameters.seed, name, split, "problems")
        self.bootstrap = Bootstrap(len(responses.problems), n_resamples, generator)
        self.metrics: dict[str, object] = {}
        self._scores: dict[str, np.ndarray] = {}
        self._localised: dict[str, Estimate] = {}  # F1 and step AUC by their keys

    def candidates(self, scorer: str) -> list[str]:
        return [f"{scorer}.{how}" for how in AGGREGATIONS]

    def scores(self, candidate: str) -> np.ndarray:
        if candidate not in self._scores:
            self._scores[candidate] = self.responses.scores(candidate)
        return self._scores[candidate]

    def pass_at(self, n: int) -> np.ndarray:
        return self._each(n, lambda rows: pass_at_k(self.responses.correct[rows], n))

    def best_of(self, n: int, candidate: str) -> np.ndarray:
        scores = self.scores(candidate)
        return self._each(n, lambda rows: best_of_n(scores[rows], self.responses.correct[rows], n))

    def vote(self, n: int, candidate: str | None = None) -> np.ndarray:
        """Weighted by the candidate's scores; without one, the majority."""
        scores = None if candidate is None else self.scores(candidate)

        def accuracy(rows: np.ndarray) -> np.ndarray:
            generator = random_generator(self.parameters.seed, self.name, self.split, "subsets", rows.shape[1], n)
            subsets = draw_subsets(rows.shape[1], n, self.parameters.subsets, generator)
            weighing = {} if scores is None else {"scores": scores[rows]}
            return expected_vote(self.responses.codes[rows], self.responses.correct[rows], subsets, **weighing)

        return self._each(n, accuracy)

    def _each(self, n: int, accuracy: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        values = np.full(len(self.responses.problems), np.nan)
        for problems, rows in self.responses.blocks:
            if rows.shape[1] >= n:
                values[problems] = accuracy(rows)
        return values

    def put_accuracies(self, choice: dict) -> None:
        roles = {choice.get(role) for role in ROLES}
        for n in self.n:
            has_n = [len(problems) for problems, rows in self.responses.blocks if rows.shape[1] >= n]
            self.metrics[f"{self.split}.problems.{n}"] = sum(has_n)
            self._put(f"pass.{n}", self.bootstrap.mean(self.pass_at(n)))
            if n == 1:
                continue  # whatever chooses, it is pass@1
            self._put(f"majority.{n}", self.bootstrap.mean(self.vote(n)))
            for scorer in self.responses.scorers():
                for candidate in self.candidates(scorer):
                    accuracy, key = self.best_of(n, candidate), f"best_of.{n}.{candidate}"
                    if n == choice["n"] or candidate in roles:
                        self._put(key, self.bootstrap.mean(accuracy))
                        self._put(f"vote.{n}.{candidate}", self.bootstrap.mean(self.vote(n, candidate)))
                    else:
                        self.metrics[f"{self.split}.{key}"] = _mean(accuracy)

    def put_auc(self, choice: dict) -> None:
        for scorer in self.responses.scorers():
            candidate = f"{scorer}.{choice[scorer]}"
            found = self.bootstrap.auc(self.scores(candidate), self.responses.correct, self.responses.problem)
            self._put(f"auc.{candidate}", found)

    def put_localisation(self, thresholds: dict[str, float | None]) -> None:
        responses = self.responses
        judged, problem = responses.judged, responses.problem[responses.judged]
        self.metrics[f"{self.split}.judged"] = int(judged.sum())
        if not judged.any():
            return
        for scorer in [*responses.scorers(), *BASELINES]:
            steps, rewards, lengths, first_wrong = _judged(responses, scorer)
            index, limit = steps.index[judged[steps.response]], np.repeat(first_wrong, lengths)
            looked_at = (limit < 0) | (index <= limit)  # what follows an error is neither right nor wrong
            key = f"step_auc.{scorer}"
            is_right, of_problem = (index != limit)[looked_at], np.repeat(problem, lengths)[looked_at]
            if thresholds[scorer] is not None:
                predicted = localisation.first_below(rewards, lengths, thresholds[scorer])
                self._put_f1(scorer, predicted == first_wrong, first_wrong, problem)
            self._localised[key] = self.bootstrap.auc(rewards[looked_at], is_right, of_problem)
            self._put(key, self._localised[key])
        _, _, lengths, first_wrong = _judged(responses, CONTROL)
        guesses = {
            "first_step": localisation.processbench_f1(np.zeros_like(first_wrong), first_wrong),
            "chance": localisation.chance(lengths, first_wrong),
        }
        for baseline, found in guesses.items():
            for quantity, value in zip(("f1", "found", "cleared"), found, strict=True):
                self.metrics[f"{self.split}.{quantity}.{baseline}"] = np.nan if value is None else value

    def _put_f1(self, scorer: str, found: np.ndarray, first_wrong: np.ndarray, problem: np.ndarray) -> None:
        def share(of: np.ndarray) -> Estimate:
            sums = (np.bincount(problem, weights, len(self.responses.problems)) for weights in (found & of, of))
            return self.bootstrap.ratio(*sums)

        wrong, right = share(first_wrong >= 0), share(first_wrong < 0)
        self._localised[f"f1.{scorer}"] = harmonic(wrong, right)
        self._put(f"f1.{scorer}", self._localised[f"f1.{scorer}"])
        self._put(f"found.{scorer}", wrong)
        self._put(f"cleared.{scorer}", right)

    def put_false_positives(self, choice: dict) -> None:
        responses = self.responses
        asked = responses.correct & responses.known
        right, problem = responses.first_wrong[asked] < 0, responses.problem[asked]
        if not asked.any():
            return
        sums = (np.bincount(problem, weights, len(responses.problems)) for weights in (~right, np.ones(len(right))))
        self._put("false_positive_share", self.bootstrap.ratio(*sums))
        if right.all() or not right.any():
            return
        for scorer in responses.scorers():
            candidate = f"{scorer}.{choice[scorer]}"
            scores = self.scores(candidate)[asked]
            self._put(f"false_positive_auc.{candidate}", self.bootstrap.auc(scores, right, problem))

    def differences(self, choice: dict) -> dict[str, object]:
        """`difference.*` and `growth.*` of accuracies at `choice.n`."""
        n, largest = choice["n"], self.n[-1]
        of = {role: self.best_of(n, choice[role]) for role in ROLES} | {"majority": self.vote(n)}
        of |= {f"vote_{role}": self.vote(n, choice[role]) for role in ROLES}
        pairs = [(role, other) for role in KINDS.values() for other in ("majority", "control")]
        pairs += [("with", "without"), ("control", "majority"), *((f"vote_{role}", "majority") for role in ROLES)]
        compared = {f"difference.{a}.minus.{b}": of[a] - of[b] for a, b in pairs}
        if largest > n:
            compared |= {f"growth.{role}": self.best_of(largest, choice[role]) - of[role] for role in ROLES}
        return self._with_intervals({key: self.bootstrap.mean(values) for key, values in compared.items()})

    def localisation_differences(self) -> dict[str, object]:
        """`difference.f1.<scorer>` and `difference.step_auc.<scorer>`: of the losses' scorers, to the control."""
        return self._with_intervals(
            {
                f"difference.{key}": found - self._localised[control]
                for key, found in self._localised.items()
                if (control := f"{key.partition('.')[0]}.{CONTROL}") != key and key.count(".") == 2
            }
        )

    def _put(self, key: str, estimate: Estimate) -> None:
        self.metrics |= self._with_intervals({f"{self.split}.{key}": estimate})

    def _with_intervals(self, estimates: dict[str, Estimate]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, estimate in estimates.items():
            found[key] = estimate.value
            if len(estimate.drawn):
                found[f"{key}.low"], found[f"{key}.high"] = estimate.interval(self.parameters.confidence)
        return found


def _choose(valid: _Split) -> dict[str, object]:
    """What accuracies choose, on the validation problems alone."""
    n = max((n for n in valid.n if 1 < n <= valid.parameters.choose_at), default=None)
    choice: dict[str, object] = {"n": n}
    values = {}
    for scorer in valid.responses.scorers():
        found = {c: _mean(valid.best_of(n, c)) if n else 0.0 for c in valid.candidates(scorer)}
        best = _best(found)
        choice[scorer] = best.rsplit(".", 1)[1]
        values[best] = found[best]
    if n:
        for kind, role in KINDS.items():
            choice[role] = _best({c: v for c, v in values.items() if c.split(".")[1] == kind})
        choice["control"] = f"{CONTROL}.{choice[CONTROL]}"
        choice["prm"] = _best({choice[role]: values[choice[role]] for role in KINDS.values()})
    return choice


def _thresholds(valid: Responses) -> dict[str, float | None]:
    """The thresholds of largest F1 on the judged validation responses."""
    found = {}
    for scorer in [*valid.scorers(), *BASELINES]:
        _, rewards, lengths, first_wrong = _judged(valid, scorer)
        found[scorer] = localisation.choose_threshold(rewards, lengths, first_wrong)
    return found


def _judged(responses: Responses, scorer: str) -> tuple[Steps, np.ndarray, np.ndarray, np.ndarray]:
    """(all steps, rewards of the steps of judged responses, their lengths, their first wrong steps)."""
    steps, rewards = responses.rewards(scorer)
    judged = responses.judged
    return steps, rewards[judged[steps.response]], steps.lengths[judged], responses.wrong_step(steps)[judged]


def _describe_scorers(responses: dict[str, Responses]) -> dict[str, object]:
    nll = np.concatenate([-part.scores(f"{CONTROL}.sum") for part in responses.values()])
    correct = np.concatenate([part.correct for part in responses.values()])
    losses = responses["test"].steps
    return {
        "data.nll.correct": _mean(nll[correct]),
        "data.nll.wrong": _mean(nll[~correct]),
        **{f"data.beta.{loss}": steps.beta for loss, steps in losses.items()},
    }


def _mean(values: np.ndarray) -> float:
    """Without NaN; NaN where nothing is left."""
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else float("nan")


def _best(values: dict[str, float]) -> str | None:
    """The name of the largest value, of equals the first; None where no value is known."""
    # rounded, so that values that are equal but for the order of adding are
    known = {name: round(value, 9) for name, value in values.items() if not np.isnan(value)}
    return max(known, key=known.__getitem__) if known else None
