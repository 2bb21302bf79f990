"""Stage, off by default (`make study METHOD=prm`): all losses on three seeds, adapters against the whole model, and beta.

A seed is everything anew: problems, generator, samples, order of training. Nothing is fetched and no file is read.
"""

import shutil
from pathlib import Path

from tasks import stage
from tasks.prm.params import LOSSES, Evaluate, Generator, Lora, Problems, Rollouts, Scoring, Train

SEEDS = (1, 2, 3)
PROBLEMS = Problems()
GENERATOR = Generator()
ROLLOUTS = Rollouts()
TRAIN = {  # the project's defaults
    "ce": Train(epochs=2, learning_rate=5e-4),
    "dpo": Train(learning_rate=3e-4),
    "nca": Train(learning_rate=3e-4),
    "kto": Train(learning_rate=5e-4),
}
LORA = Lora(r=8, alpha=16.0)  # adapters need larger rates than the whole model; 5e-3 is too much for DPO
# of the first seed only: (loss, what differs from TRAIN)
VARIANTS = [
    ("dpo", {"lora": LORA, "learning_rate": 1e-3}),
    ("ce", {"lora": LORA, "learning_rate": 5e-3}),
    *(("ce", {"beta": beta}) for beta in (0.05, 0.3, 3.0)),
]
EVALUATE = Evaluate()


@stage.command(None)
def study(*, out: Path) -> None:
    """Run the whole pipeline on every seed and the variants on the first, and write runs, text and picture."""
    from tempfile import TemporaryDirectory

    from tasks.compute import map_blocks
    from tasks.prm.study_report import figure, text
    from tasks.tables import write_json

    with TemporaryDirectory() as folder:
        list(map_blocks(prepare, SEEDS, folder, description="samples of each seed"))
        blocks = [(SEEDS[0], loss, change) for loss, change in VARIANTS]
        blocks += [(seed, loss, {}) for loss in LOSSES for seed in SEEDS]
        runs = list(map_blocks(train_one, blocks, folder, description="trainings"))
    out.mkdir()
    write_json(out / "study.json", runs)
    (out / "study.md").write_text(text(runs), encoding="utf-8")
    figure(runs, out / "study.png")


def prepare(folder: str, seed: int) -> None:
    """Problems, generator, samples and their log-probabilities under the reference, of one seed."""
    from tasks.prm.generator import generator
    from tasks.prm.problems import problems
    from tasks.prm.reference import reference
    from tasks.prm.rollouts import rollouts

    here = Path(folder) / str(seed)
    here.mkdir()
    table, model, drawn = here / "problems.parquet", here / "generator", here / "rollouts.parquet"
    problems(PROBLEMS.model_copy(update={"seed": seed}), "chain", out=table)
    generator(GENERATOR.model_copy(update={"seed": seed}), "chain", table, out=model)
    rollouts(ROLLOUTS.model_copy(update={"seed": seed}), "chain", table, model, out=drawn)
    reference(Scoring(), model, table, drawn, out=here / "reference.safetensors")


def train_one(folder: str, block: tuple) -> dict:
    """Train, score and evaluate one loss with some settings changed; a run as `study_report` takes it."""
    from tempfile import TemporaryDirectory

    from tasks.prm.evaluate import evaluate_dataset, read_beta
    from tasks.prm.score import score
    from tasks.prm.train import train

    seed, loss, change = block
    samples = Path(folder) / str(seed)
    inputs = [samples / name for name in ("problems.parquet", "rollouts.parquet", "reference.safetensors")]
    with TemporaryDirectory() as scratch:
        here = Path(scratch)
        for file in inputs[:2]:
            shutil.copy(file, here)
        (here / "models").mkdir()
        (here / "scores").mkdir()
        model = here / "models" / loss
        parameters = TRAIN[loss].model_copy(update={"seed": seed, **change})
        train(parameters, "chain", loss, samples / "generator", *inputs, out=model)
        score(Scoring(), model, *inputs, out=here / f"scores/{loss}.parquet")
        metrics = evaluate_dataset(EVALUATE, "chain", here, [loss])
        beta = read_beta(model / "prm.json")
    return {"seed": seed, "loss": loss, "beta": beta, "lora": parameters.lora is not None, "metrics": metrics}


if __name__ == "__main__":
    study.run()
