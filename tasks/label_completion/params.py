"""Parameters of the label-completion pipeline: one model a stage, as sections of ``params.yaml: label_completion``."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tasks.stage import Distinct, Name, Seed
from tasks.stage import Parameters as Section

TABLES = ("iris", "wine", "breast_cancer", "digits")  # of scikit-learn


class Ingest(Section):
    """One own data set: a folder with answers, features and, where known, the truth."""

    path: str = Field(min_length=1, description="folder, relative to the repository's root")
    nominal: list[str] = Field([], description="feature columns that hold codes of categories (text columns always do)")
    classes: list[str] = Field(
        [], description="all allowed labels, in the order that breaks ties; default: those found"
    )
    on_duplicate: Literal["error", "first", "last"] = Field(
        "error", description="two answers of one worker for one task: refuse, or keep one"
    )
    on_unknown_task: Literal["error", "drop"] = Field("error", description="an answer for a task without features")


class Simulate(Section):
    """The paper's simulated workers on scikit-learn's data sets."""

    n_workers: int = Field(40, ge=1, le=10_000, description="workers per data set")
    labelling_probability: tuple[float, float] = Field(
        (0.0, 0.1),
        strict=False,
        description="each worker labels a task with a probability drawn uniformly from this range",
    )
    accuracy: Literal["uniform", "gaussian"] = Field(
        "uniform", description="worker accuracies: U(0.6, 0.9), or N(0.75, 0.15) redrawn until in [0, 1]"
    )
    repeats: int = Field(10, ge=1, le=1000, description="independent draws of all answers")
    seed: Seed = 20250713

    @model_validator(mode="after")
    def _range_in_order(self) -> "Simulate":
        low, high = self.labelling_probability
        if not 0 <= low <= high <= 1 or high == 0:
            raise ValueError("labelling_probability must satisfy 0 <= low <= high <= 1 and high > 0")
        return self


class Complete(Section):
    """WSLC, LDPLC and instance-level propagation."""

    methods: Annotated[list[Literal["wslc", "ldplc", "instance"]], Distinct] = Field(
        ["wslc", "ldplc", "instance"], min_length=1, description="completions to compute"
    )
    n_neighbors: int = Field(5, ge=1, le=50, description="neighbours of each task in the propagation graph")
    alpha: float = Field(0.5, ge=0, lt=1, description="weight of the neighbours in each round of propagation")
    n_iter: int = Field(5, ge=0, le=1000, description="rounds of propagation")
    zero_vector: Literal["neutral", "drop"] = Field(
        "neutral",
        description="similarity of a worker without any feature correlation to all others: 0.5, or 0 as published",
    )
    output: Literal["matrix", "votes"] = Field(
        "matrix", description="write every completed cell, or (large data) only the votes per task and class"
    )


class Aggregate(Section):
    """Truth inference on raw and completed answers."""

    methods: list[Literal["majority", "dawid_skene", "iwmv", "gtic", "wawa"]] = Field(
        ["majority", "dawid_skene", "iwmv", "gtic"], min_length=1, description="aggregators of this project"
    )
    crowdkit: Annotated[list[Literal["DawidSkene", "OneCoinDawidSkene", "GLAD", "MACE"]], Distinct] = Field(
        [], description="aggregators of crowd-kit, run on the raw answers to compare with (slow: seconds a data set)"
    )
    n_iter: int = Field(50, ge=1, le=10_000, description="rounds of the iterative aggregators at most")
    smoothing: float = Field(0.01, ge=0, le=100, description="pseudo-count of each confusion cell (Dawid–Skene)")
    seed: Seed = 7  # of the random choice between tied classes


class Evaluate(Section):
    """Accuracies with intervals."""

    confidence: float = Field(0.95, gt=0.5, lt=1, description="coverage of the intervals")
    n_resamples: int = Field(2000, ge=100, le=100_000, description="bootstrap resamples of the tasks")
    seed: Seed = 1


class Parameters(Section):
    """All of ``params.yaml: label_completion``."""

    datasets: Annotated[list[Name], Distinct] = Field(
        min_length=1, description="data sets to complete, evaluate and report"
    )
    simulated: Annotated[list[Literal[TABLES]], Distinct] = Field(
        description="which of the data sets are scikit-learn tables with simulated workers"
    )
    archives: list[Literal["ldplc"]] = Field(description="public archives to fetch: ldplc = the authors' data sets")
    ingest: dict[Name, Ingest] = Field(description="own data: name and folder; add the name to datasets too")
    simulate: Simulate
    complete: Complete
    aggregate: Aggregate
    evaluate: Evaluate

    @model_validator(mode="after")
    def _every_data_set_has_one_origin(self) -> "Parameters":
        for name in self.datasets:
            if (name in self.simulated) == (name in self.ingest):
                raise ValueError(f"datasets: {name} must stand under simulated or under ingest, and not under both")
        for name in self.simulated:
            if name not in self.datasets:
                raise ValueError(f"simulated: {name} must stand under datasets too, or is made for nothing")
        return self
