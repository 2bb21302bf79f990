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
    if hasattr(start.model, "peft_config"):
        raise UserError(f"{model}: is an adapter; every arm starts from a whole model")
    positions = getattr(start.model.config, "max_position_embeddings", None) or parameters.max_tokens
    try:
        found = examples(asked, chosen, start.tokenizer, parameters, min(parameters.max_tokens, positions))
    except ValueError as error:
        raise UserError(f"{selection}: {error}") from None
    left_out = "{without_every_arm} (task, language)s lack a program of some arm, {too_long} are too long".format_map(
        found.counts
    )
    if not found.counts["used"]:
        raise UserError(f"{selection}: no task to train on in {', '.join(parameters.languages)}: {left_out}")
    if found.counts["without_every_arm"] or found.counts["too_long"]:
        print(f"note: left out of every arm: {left_out}", file=sys.stderr)
    weights, trained = digest(start.model), start.model
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
