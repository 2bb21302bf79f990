"""Parameters of the implicit-PRM pipeline: one model a stage, as sections of ``params.yaml: prm``."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tasks.stage import Distinct, Name, Seed
from tasks.stage import Parameters as Section

LOSSES = ("ce", "dpo", "nca", "kto")
SEGMENTS = ("blank_line", "step_marker", "newline", "token")
PACKAGES = ("champ-dataset",)
MODELS = ("smollm2",)
GRADERS = ("chain", "number", "exact", "boxed", "math_verify", "reasoning_gym")
# reasoning_gym grades by what its generator noted beside the problem, which no file of one's own has
OWN_GRADERS = tuple(name for name in GRADERS if name != "reasoning_gym")
AGGREGATIONS = ("min", "sum", "mean", "last", "prefix_min")
Positive = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0, le=1)]
Device = Annotated[
    Literal["cpu", "cuda"], Field(description="where the model lies; another one gives other bits, float32 on both")
]
Threads = Annotated[int, Field(ge=1, le=256, description="of torch; another number gives other bits")]


class Problems(Section):
    """Made problems with checkable answers, split into training, validation and test."""

    source: Literal["chain", "reasoning_gym"] = Field(
        "chain", description="arithmetic chains, or a generator of reasoning-gym"
    )
    operations: int = Field(3, ge=1, le=9, description="of chain: operations a problem")
    task: str | None = Field(None, min_length=1, description="of reasoning_gym: its generator, e.g. chain_sum")
    options: dict[str, Any] = Field({}, description="of reasoning_gym: the generator's own options")
    train: int = Field(3000, ge=1, le=10_000_000, description="problems to train on")
    valid: int = Field(400, ge=1, le=10_000_000, description="problems for every choice")
    test: int = Field(400, ge=1, le=10_000_000, description="problems for the report")
    seed: Seed = 1

    @model_validator(mode="after")
    def _a_generator_is_named(self) -> "Problems":
        if (self.source == "reasoning_gym") != (self.task is not None):
            raise ValueError("task is needed for source reasoning_gym, and for no other")
        return self


class Ingest(Section):
    """Own problems, from JSON lines."""

    path: str = Field(min_length=1, description="JSON lines with prompt, answer and optionally id, grader, split")
    grader: Literal[OWN_GRADERS] = Field("number", description="of rows that name none")
    valid: Annotated[float, Field(gt=0, lt=1)] = Field(0.2, description="share for every choice, of rows without split")
    test: Annotated[float, Field(gt=0, lt=1)] = Field(0.3, description="share for the report, of rows without split")
    seed: Seed = 1

    @model_validator(mode="after")
    def _training_gets_a_share(self) -> "Ingest":
        if self.valid + self.test >= 1:
            raise ValueError("valid and test must leave a share for training")
        return self


class Generator(Section):
    """A tiny Llama, trained on worked solutions until it is as good as wanted and no better."""

    hidden: int = Field(96, ge=8, le=4096, description="width")
    layers: int = Field(3, ge=1, le=64)
    heads: int = Field(3, ge=1, le=64)
    intermediate: int = Field(256, ge=8, le=16384, description="width of the MLP")
    batch: int = Field(32, ge=1, le=4096, description="fresh solutions a step")
    learning_rate: Rate = 2e-3
    warmup: int = Field(30, ge=0, description="steps")
    max_steps: int = Field(3000, ge=1, le=1_000_000, description="length of the cosine schedule")
    pass_at_1: list[Annotated[float, Field(ge=0, le=1)]] = Field(
        [0.40, 0.55], min_length=2, max_length=2, description="stop inside this range of validation pass@1"
    )
    check_every: int = Field(50, ge=1, description="steps between two looks at pass@1")
    check_problems: int = Field(200, ge=1, description="validation problems of a look")
    seed: Seed = 1
    device: Device = "cpu"
    threads: Threads = 1


class Rollouts(Section):
    """Sampled responses."""

    samples: int = Field(8, ge=1, le=4096, description="a training or validation problem")
    test_samples: int = Field(16, ge=1, le=4096, description="a test problem")
    temperature: float = Field(1.0, gt=0, le=10)
    top_p: Rate = 1.0
    max_new_tokens: int = Field(52, ge=1, le=100_000)
    max_prompt_tokens: int = Field(1024, ge=1, le=1_000_000, description="longer prompts are dropped and counted")
    batch: int = Field(1024, ge=1, le=65536, description="responses that grow at the same time")
    seed: Seed = 1
    device: Device = "cpu"
    threads: Threads = 1


class Scoring(Section):
    """Token log-probabilities of all responses, under the reference and under what was trained."""

    batch_tokens: int = Field(16_384, ge=1, description="of one forward pass")
    device: Device = "cpu"
    threads: Threads = 1


class Responses(Section):
    """Responses that exist already, with their outcome labels, and wrong steps where people marked them."""

    path: str = Field(
        min_length=1, description="JSON lines or parquet, for example data/raw/prm/champ-dataset/solutions.jsonl"
    )
    valid: float = Field(0.2, gt=0, lt=1, description="share of the problems for every choice")
    test: float = Field(0.4, gt=0, lt=1, description="share of the problems for the report")
    max_characters: int | None = Field(None, ge=1, description="longer responses are left out and counted")
    seed: Seed = 1

    @model_validator(mode="after")
    def _training_gets_a_share(self) -> "Responses":
        if self.valid + self.test >= 1:
            raise ValueError("valid and test must leave a share for training")
        return self


class Lora(Section):
    """Low-rank adapters by peft; the model with adapters off is the reference."""

    r: int = Field(8, ge=1, le=1024)
    alpha: float = Field(16.0, gt=0)
    targets: str | list[str] = Field("all-linear", description="peft's target_modules")


class Train(Section):
    """Training of one loss."""

    beta: Annotated[float, Field(gt=0, le=1000)] | Literal["auto"] = Field(
        1.0, description="reward = beta × log-ratio; auto: 1 / mean NLL of correct responses, within .02 and 5"
    )
    epochs: int = Field(1, ge=1, le=1000)
    batch: int = Field(64, ge=2, le=65536, description="responses a step; pair losses take whole problems")
    learning_rate: Rate = 5e-4
    warmup: float = Field(0.03, ge=0, lt=1, description="share of the steps")
    final: float = Field(0.1, ge=0, le=1, description="last learning rate, as a share of the peak")
    max_pairs: int = Field(8, ge=1, description="pair losses: pairs a problem, drawn without replacement")
    balance: Literal["none", "dataset", "problem"] = Field(
        "none", description="ce and kto: drop responses of the larger class, over all or within each problem"
    )
    weight_correct: float = Field(1.0, gt=0, description="kto: lambda_D")
    weight_wrong: float = Field(1.0, gt=0, description="kto: lambda_U")
    max_tokens: int = Field(4096, ge=2, description="longer responses are cut, lose their end and count as wrong")
    lora: Lora | None = Field(None, description="train adapters only; missing: the whole model")
    segment: Literal[SEGMENTS] = Field("blank_line", description="what separates the steps of a response")
    seed: Seed = 1
    device: Device = "cpu"
    threads: Threads = 1


class Evaluate(Section):
    """Choice on validation problems, report on test problems."""

    n: Annotated[list[Positive], Distinct] = Field([1, 2, 4, 8, 16], min_length=1, description="candidates a problem")
    choose_at: int = Field(8, ge=2, description="candidates at which loss, aggregation and reference are chosen")
    subsets: int = Field(50, ge=1, description="random subsets of the samples a problem, for votes")
    confidence: float = Field(0.95, gt=0, lt=1)
    n_resamples: int = Field(2000, ge=10, le=1_000_000, description="bootstrap over problems")
    seed: Seed = 1


class Parameters(Section):
    """The whole section ``prm``."""

    datasets: Annotated[list[Name], Distinct] = Field(min_length=1, description="what is trained and reported")
    losses: Annotated[list[Literal[LOSSES]], Distinct] = Field(min_length=1, description="trained on every data set")
    packages: Annotated[list[Literal[PACKAGES]], Distinct] = Field([], description="data packages to fetch")
    models: dict[Name, Literal[MODELS]] = Field({}, description="data sets whose generator is a fetched model")
    problems: dict[Name, Problems] = Field({}, description="data sets of made problems, whose responses are sampled")
    ingest: dict[Name, Ingest] = Field({}, description="data sets of own problems, whose responses are sampled")
    generator: dict[Name, Generator] = Field({}, description="data sets whose generator is trained here")
    rollouts: dict[Name, Rollouts] = Field({}, description="how responses are sampled")
    responses: dict[Name, Responses] = Field({}, description="data sets whose responses exist already")
    scoring: Scoring
    train: dict[Name, dict[Literal[LOSSES], Train]]
    evaluate: Evaluate

    @model_validator(mode="after")
    def _every_data_set_is_whole(self) -> "Parameters":
        for name in self.datasets:
            if sum(name in section for section in (self.problems, self.ingest, self.responses)) != 1:
                raise ValueError(f"datasets: {name} needs a section under one of problems, ingest and responses")
            if (name in self.responses) == (name in self.rollouts):
                raise ValueError(
                    f"{name} needs a section under rollouts where its problems are made or ingested, only there"
                )
            for loss in self.losses:
                if loss not in self.train.get(name, {}):
                    raise ValueError(f"train.{name}: there is no section {loss}, which losses names")
            if name in self.generator and name in self.models:
                raise ValueError(f"{name} has a generator of its own and a fetched one; one is allowed")
        for section in ("problems", "ingest", "generator", "rollouts", "responses", "models"):
            for name in getattr(self, section):
                if name not in self.datasets:
                    raise ValueError(f"{section}: {name} must stand under datasets too, or is made for nothing")
        return self
