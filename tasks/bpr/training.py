"""Training of one panel's models: full-batch Adam, looks at the validation periods, and the trained models on disk."""

import hashlib
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import safetensors
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from tasks.bpr.dataset import Panel
from tasks.bpr.model import Batch, CountModel, Law, Standardizer, build
from tasks.bpr.objective import TOLERANCE, Loss, Objective, Target, delta_scores
from tasks.bpr.params import Train
from tasks.bpr.schemas import EPOCHS, RUNS
from tasks.compute import map_blocks
from tasks.stage import UserError, progress, random_generator
from tasks.tables import read_json, read_table, write_json, write_table

_OPTIONS = ("link", "site_effects", "prior", "components")  # of the models, see tasks.bpr.model.build
Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class State:
    """All that training needs to go on after `epoch` steps: parameters, Adam's moments, weights λ_t, the best so far."""

    epoch: int
    model: Tensors
    first: Tensors
    second: Tensors
    weight: torch.Tensor
    best: Tensors
    best_epoch: int
    best_loss: float
    looks: list[dict]


@dataclass(frozen=True)
class Fitted:
    """One trained model: `run` has the columns of RUNS, `epochs` those of EPOCHS."""

    model: CountModel
    standardizer: Standardizer
    run: dict
    epochs: pd.DataFrame
    state: State | None = None

    @property
    def name(self) -> str:
        return self.run["run"]


def run_name(objective: str, epsilon: float | None, seed: int) -> str:
    """
    >>> run_name("daml", 0.85, 3), run_name("ml", None, 0)
    ('daml0.85-3', 'ml-0')
    """
    return f"{objective}{'' if epsilon is None else f'{epsilon:g}'}-{seed}"


def fit(
    panel: Panel,
    params: Train,
    *,
    objective: str,
    epsilon: float | None = None,
    seed: int = 0,
    start: State | None = None,
) -> Fitted:
    """Train one model on the panel's training periods.

    Every draw comes from a generator of (seed, run, epoch), so that a run which goes on from `start` (the `state` of a
    shorter one) gives the same bits as one without a break. Raises UserError where a feature is missing in a period
    that is needed, or the loss is no longer a number.
    """
    with threads(params.threads):
        return _Run(panel, params, objective, epsilon, seed).fit(start)


def fit_all(panel: Panel, params: Train) -> list[Fitted]:
    """All objectives × epsilons × seeds, in this order; the same for any number of worker processes."""
    blocks = [
        (objective, epsilon, seed)
        for objective in params.objectives
        for epsilon in (params.epsilons if objective == "daml" else [None])
        for seed in params.seeds
    ]
    standardizer = standardize(panel)
    fitted = []
    for result in map_blocks(_fit_block, blocks, (panel, params), description="train"):
        parameters, run, epochs = result
        model = _build(panel, params)
        model.load_state_dict({name: torch.from_numpy(value) for name, value in parameters.items()})
        fitted.append(Fitted(model, standardizer, run, epochs))
    return fitted


def _fit_block(shared: tuple[Panel, Train], block: tuple) -> tuple[dict[str, np.ndarray], dict, pd.DataFrame]:
    """Plain arrays: tensors would go between processes through shared memory, which machines limit."""
    objective, epsilon, seed = block
    fitted = fit(*shared, objective=objective, epsilon=epsilon, seed=seed)
    return {name: value.numpy() for name, value in fitted.model.state_dict().items()}, fitted.run, fitted.epochs


def standardize(panel: Panel) -> Standardizer:
    """The inputs' centre and scale over the training periods. Raises UserError for a missing feature after history."""
    used = panel.part("train", "valid", "test")
    missing = np.argwhere(~np.isfinite(used.features))
    if len(missing):
        t, s, f = missing[0]
        raise UserError(
            f"feature {used.feature_names[f]} of site {used.sites[s]} in period {used.periods[t]} is "
            f"{used.features[t, s, f]}; a finite number is needed in every period after history"
        )
    train = panel.part("train")
    if not len(train.periods):
        raise UserError("the panel has no training period")
    return Standardizer.fit(train.features, train.time, train.exposure)


def batch_of(panel: Panel, standardizer: Standardizer) -> Batch:
    """The inputs of all periods of a panel (of a part of it, as a rule)."""
    return standardizer.batch(panel.features, panel.time, panel.exposure)


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Torch with this many threads: another number sums in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _build(panel: Panel, params: Train) -> CountModel:
    return build(
        params.model,
        len(panel.sites),
        len(panel.feature_names),
        **{name: getattr(params, name) for name in _OPTIONS},
    )


class _Run:
    """One run: the model, the data of the training and validation periods, and what training carries along."""

    def __init__(self, panel: Panel, params: Train, objective: str, epsilon: float | None, seed: int) -> None:
        self.params, self.seed, self.name = params, seed, run_name(objective, epsilon, seed)
        self.objective = Objective(objective, params, epsilon)
        self.standardizer = standardize(panel)
        train, valid = panel.part("train"), panel.part("valid")
        self.batch, self.target = batch_of(train, self.standardizer), Target.of(train.counts, panel.k)
        self.valid_batch, self.valid_target = batch_of(valid, self.standardizer), Target.of(valid.counts, panel.k)
        self.model = _build(panel, params)
        self.model.start(random_generator(seed, "start"), train.counts, seed, params.start_sd)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=params.learning_rate, foreach=False)
        self.weight = torch.full((len(train.periods),), params.bpr_weight, dtype=torch.float64)
        self.best, self.best_epoch, self.best_loss = self._parameters(), 0, math.inf
        self.looks: list[dict] = []

    def fit(self, start: State | None) -> Fitted:
        if start is not None:
            self._continue(start)
        for epoch in progress(range(start.epoch if start else 0, self.params.epochs + 1), self.name):
            law, loss = self._loss(epoch)
            if epoch == self.params.epochs:
                break
            if epoch % self.params.validate_every == 0:
                self._look(epoch, law, loss)
            self.optimizer.zero_grad()
            loss.value.backward()
            self.optimizer.step()
            if self.params.multiplier_step and (epoch + 1) % self.params.multiplier_every == 0:
                self._raise_weights(loss)
        state = self._state(epoch)
        self._look(epoch, law, loss)
        run = self._record(epoch, law)
        if run["kept_epoch"] != epoch:
            self.model.load_state_dict(self.best)
        return Fitted(self.model, self.standardizer, run, pd.DataFrame(self.looks, columns=EPOCHS.names), state)

    def _loss(self, epoch: int) -> tuple[Law, Loss]:
        law = self.model(self.batch)
        self._scores(law, epoch)
        loss = self.objective.loss(
            law,
            self.target,
            weight=self.weight,
            log_prior=self.model.log_prior(),
            generator=self._generator("train", epoch),
        )
        self._check_finite(loss.value.detach(), epoch)
        return law, loss

    def _scores(self, law: Law, epoch: int) -> torch.Tensor:
        with torch.no_grad():
            scores = delta_scores(law, self.params.denominator_offset)
        self._check_finite(scores.sum(), epoch)
        return scores

    def _check_finite(self, value: torch.Tensor, epoch: int) -> None:
        if not math.isfinite(value):
            raise UserError(
                f"run {self.name}: the loss is {value.item()} after {epoch} epochs; a smaller learning_rate may help"
            )

    def _look(self, epoch: int, law: Law, loss: Loss) -> None:
        """Note how training and validation stand, and keep the parameters if the validation loss is the least so far.

        That loss is the run's own objective on the validation periods, with the first weight λ and without the prior.
        """
        with torch.no_grad():
            nll, hard, sigma = self._assess(law, self.target, epoch)
            valid_law = self.model(self.valid_batch)
            valid_nll, valid_hard, _ = self._assess(valid_law, self.valid_target, epoch)
        weight = torch.full_like(valid_nll, self.params.bpr_weight)
        generator = self._generator("valid", 0)  # the same draws at every look
        valid = self.objective.loss(valid_law, self.valid_target, weight=weight, generator=generator).value.item()
        if valid < self.best_loss:
            self.best, self.best_epoch, self.best_loss = self._parameters(), epoch, valid
        self.looks.append(
            {
                "run": self.name,
                "epoch": epoch,
                "loss": loss.value.item(),
                "train_nll": nll.mean().item(),
                "train_bpr": hard.nanmean().item(),
                "train_bpr_least": _least(hard),
                "valid_nll": valid_nll.mean().item(),
                "valid_bpr": valid_hard.nanmean().item(),
                "sigma": sigma.mean().item(),
            }
        )

    def _assess(self, law: Law, target: Target, epoch: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Negative log likelihood per site, hard BPR and sigma of every period; scores in closed form, so without noise."""
        scores = self._scores(law, epoch)
        nll = -law.log_prob(target.counts, target.log_factorial).mean(-1)
        return nll, target.reached(scores), self.objective.sigma(scores, target.k)

    def _record(self, epoch: int, law: Law) -> dict:
        with torch.no_grad():
            _, hard, _ = self._assess(law, self.target, epoch)
        last, objective = self.looks[-1], self.objective
        reached = None
        if objective.epsilon is not None:
            reached = int((hard > objective.epsilon - TOLERANCE).sum())
        keep_last = self.params.keep == "last" or not math.isfinite(self.best_loss)
        return {
            "run": self.name,
            "objective": objective.kind,
            "epsilon": objective.epsilon,
            "seed": self.seed,
            "kept_epoch": epoch if keep_last else self.best_epoch,
            "last_train_bpr": last["train_bpr"],
            "last_train_bpr_least": last["train_bpr_least"],
            "last_train_nll": last["train_nll"],
            "feasible_periods": reached,
            "train_periods": int(self.target.has_events.sum()),
        }

    def _raise_weights(self, loss: Loss) -> None:
        """Augmented Lagrangian: λ_t grows by step × shortfall of period t, up to the largest weight."""
        if self.objective.kind == "daml":
            reached = loss.hard if self.params.constraint == "hard" else loss.smoothed.detach()
            grown = self.weight + self.params.multiplier_step * self.objective.shortfall(reached, self.target)
            self.weight = torch.maximum(self.weight, grown.clamp(max=self.params.multiplier_max))

    def _generator(self, purpose: str, epoch: int) -> torch.Generator | None:
        if self.params.estimator == "deterministic":
            return None
        return torch_generator(self.seed, self.name, purpose, epoch)

    def _parameters(self) -> Tensors:
        return {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def _state(self, epoch: int) -> State:
        """Taken before the last look, which an uninterrupted run takes too or does not take at all."""
        moments = [{}, {}]
        for name, parameter in self.model.named_parameters():
            kept = self.optimizer.state[parameter]
            for moment, key in zip(moments, ("exp_avg", "exp_avg_sq"), strict=True):
                moment[name] = kept[key].clone() if kept else torch.zeros_like(parameter)
        return State(
            epoch,
            self._parameters(),
            *moments,
            self.weight,
            self.best,
            self.best_epoch,
            self.best_loss,
            list(self.looks),
        )

    def _continue(self, start: State) -> None:
        self.model.load_state_dict(start.model)
        for name, parameter in self.model.named_parameters():
            self.optimizer.state[parameter] = {
                "step": torch.tensor(float(start.epoch)),
                "exp_avg": start.first[name].clone(),
                "exp_avg_sq": start.second[name].clone(),
            }
        self.weight, self.looks = start.weight, list(start.looks)
        self.best, self.best_epoch, self.best_loss = start.best, start.best_epoch, start.best_loss


def torch_generator(seed: int, *keys: int | str) -> torch.Generator:
    """A torch generator for one named purpose, see `tasks.stage.random_generator`."""
    return torch.Generator().manual_seed(int(random_generator(seed, *keys).integers(2**63)))


def _least(values: torch.Tensor) -> float:
    kept = values[~values.isnan()]
    return kept.min().item() if len(kept) else math.nan


# --- on disk


def write_models(folder: Path, panel: Panel, params: Train, fitted: list[Fitted]) -> None:
    """Write `<run>.safetensors`, `runs.parquet`, `epochs.parquet` and `model.json` into a new folder."""
    folder.mkdir()
    for one in fitted:
        save_file(folder / f"{one.name}.safetensors", one.model.state_dict())
    runs = pd.DataFrame([one.run for one in fitted], columns=RUNS.names)
    runs["epsilon"] = runs["epsilon"].astype("float64")
    runs["feasible_periods"] = runs["feasible_periods"].astype("Int32")
    write_table(folder / "runs.parquet", runs, RUNS)
    write_table(folder / "epochs.parquet", pd.concat([one.epochs for one in fitted], ignore_index=True), EPOCHS)
    standardizer = fitted[0].standardizer
    about = {
        "model": {name: getattr(params, name) for name in ("model", *_OPTIONS)},
        "denominator_offset": params.denominator_offset,
        "sites": _sites(panel),
        "features": panel.feature_names,
        "center": standardizer.center.tolist(),
        "scale": standardizer.scale.tolist(),
        "time": list(standardizer.time),
        "exposure": standardizer.exposure,
    }
    write_json(folder / "model.json", about)


def read_models(folder: Path, panel: Panel) -> tuple[dict, Standardizer, Iterator[tuple[str, CountModel]]]:
    """(`model.json`, standardizer, the models by the runs' names, one at a time).

    Raises UserError where the models were trained on other sites or features than the panel's, or a file is damaged.
    """
    about = read_json(folder / "model.json")
    runs = read_table(folder / "runs.parquet", RUNS)
    for what, found in (("sites", _sites(panel)), ("features", panel.feature_names)):
        if found != about[what]:
            raise UserError(f"{folder}: the models were trained on other {what} than the panel has; train them again")
    if (panel.exposure is None) != (about["exposure"] is None):
        raise UserError(
            f"{folder}: the models were trained {'without' if about['exposure'] is None else 'with'} exposure"
        )
    standardizer = Standardizer(
        np.array(about["center"], np.float64),
        np.array(about["scale"], np.float64),
        tuple(about["time"]),
        about["exposure"],
    )

    def models() -> Iterator[tuple[str, CountModel]]:
        for name in runs["run"].astype("str"):
            model = build(
                about["model"]["model"],
                len(panel.sites),
                len(panel.feature_names),
                **{name: about["model"][name] for name in _OPTIONS},
            )
            model.load_state_dict(load_file(folder / f"{name}.safetensors", model.state_dict()))
            yield name, model

    return about, standardizer, models()


def write_state(path: Path, state: State) -> None:
    """Write a state into one safetensors file."""
    tensors = {"weight": state.weight}
    for part in _STATE_PARTS:
        tensors |= {f"{part}.{name}": value for name, value in getattr(state, part).items()}
    about = {name: getattr(state, name) for name in ("epoch", "best_epoch", "best_loss", "looks")}
    save_file(path, tensors, json.dumps(about))


def read_state(path: Path) -> State:
    """Raises UserError where the file is damaged."""
    try:
        with safetensors.safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
            about = json.loads(file.metadata()["about"])
    except (safetensors.SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: not a readable training state: {error}") from None
    parts = {
        part: {name.removeprefix(f"{part}."): v for name, v in tensors.items() if name.startswith(f"{part}.")}
        for part in _STATE_PARTS
    }
    return State(weight=tensors["weight"], **parts, **about)


_STATE_PARTS = ("model", "first", "second", "best")


def save_file(path: Path, tensors: Tensors, about: str | None = None) -> None:
    """One safetensors file; at most one key of metadata, because safetensors writes several in any order."""
    plain = {name: value.detach().contiguous() for name, value in tensors.items()}
    path.write_bytes(save_tensors(plain, None if about is None else {"about": about}))


def load_file(path: Path, like: Tensors) -> Tensors:
    """The tensors of a file. Raises UserError unless names, shapes and types are those of `like`."""
    try:
        found = load_tensors(path.read_bytes())
    except (safetensors.SafetensorError, OSError) as error:
        raise UserError(f"{path}: not a readable model: {error}") from None
    shapes = [{n: (tuple(v.shape), v.dtype) for n, v in tensors.items()} for tensors in (found, like)]
    if shapes[0] != shapes[1]:
        raise UserError(f"{path}: its tensors are not those of the model in model.json")
    return found


def _sites(panel: Panel) -> dict:
    """Number and digest of the sites' names: effects belong to sites by position."""
    digest = hashlib.sha256("\n".join(panel.sites).encode()).hexdigest()
    return {"number": len(panel.sites), "sha256": digest}
