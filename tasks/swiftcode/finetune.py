"""Stage: fine-tune a model on the programs that were selected for one arm."""

import sys
from pathlib import Path

from tasks import stage
from tasks.stage import UserError
from tasks.swiftcode.params import ARMS, Finetune


@stage.command("swiftcode.finetune.{dataset}", Finetune)
def finetune(
    parameters: Finetune, dataset: str, arm: str, model: Path, tasks: Path, selection: Path, *, out: Path
) -> None:
    """Train a model's weights, or an adapter on them, on one arm's programs; write the model, what it is, and the curve."""
    import pandas as pd

    from tasks.lm.device import settle
    from tasks.lm.loading import LanguageModel, digest, load, save
    from tasks.swiftcode.card import about, card
    from tasks.swiftcode.examples import examples
    from tasks.swiftcode.schemas import CURVE, SELECTION, TASKS
    from tasks.swiftcode.tuning import fit, plan
    from tasks.tables import read_table, write_json, write_table

    if arm not in ARMS:
        raise UserError(f"arm {arm!r} is not one of {', '.join(ARMS)}")
    asked, chosen = read_table(tasks, TASKS), read_table(selection, SELECTION)
    start = load(model, device=settle(parameters.device, parameters.threads))
    try:
        found = examples(asked, chosen, start.tokenizer, parameters, positions(start.model))
    except ValueError as error:
        raise UserError(f"{selection}: {error}") from None
    counts = found.counts
    if not counts["used"]:
        raise UserError(f"{selection}: nothing to train on: {_said(counts)}")
    if counts["without_every_arm"] or counts["too_long"]:
        print(f"note: left out of every arm: {_said(counts)}", file=sys.stderr)
    weights = digest(start.model)
    trained = start.model
    if hasattr(trained, "peft_config"):
        raise UserError(f"{model}: is an adapter; arms start from a whole model")
    if parameters.lora:
        from tasks.lm.adapters import add_lora, require_adapter_only  # peft takes a second to import

        trained = add_lora(trained, seed=parameters.seed, **parameters.lora.model_dump())
        require_adapter_only(trained)
    batches = plan(found.lengths(), parameters, stage.random_generator(parameters.seed, "finetune"))
    try:
        steps = fit(trained, found.arms[arm], batches, parameters)
        curve = pd.DataFrame(list(stage.progress(steps, f"finetune {arm}", total=len(batches))))
    except FloatingPointError as error:
        raise UserError(f"{selection}: {error}") from None
    save(LanguageModel(trained.eval(), start.tokenizer, ""), out)
    described = about(arm, found, len(batches), parameters, base=start.name, weights=weights)
    write_json(out / "arm.json", described)
    (out / "README.md").write_text(card(dataset, described), encoding="utf-8")
    write_table(out / "curve.parquet", curve, CURVE)


if __name__ == "__main__":
    finetune.run()
