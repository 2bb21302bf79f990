"""Stage: train one implicit PRM on the outcome labels of the training split."""

import sys
from pathlib import Path

from tasks import stage
from tasks.prm.params import Train
from tasks.stage import UserError


@stage.command("prm.train.{dataset}.{loss}", Train)
def train(
    parameters: Train,
    dataset: str,
    loss: str,
    generator: Path,
    problems: Path,
    rollouts: Path,
    reference: Path,
    *,
    out: Path,
) -> None:
    """Train the generator's weights, or an adapter on them, by one loss; write the model, what it needs, and the curve."""
    from functools import partial

    import pandas as pd

    from tasks.lm.device import settle
    from tasks.lm.loading import LanguageModel, digest, load, save
    from tasks.lm.logprobs import token_log_probs
    from tasks.prm.card import about, card
    from tasks.prm.dataset import read_log_probs, read_rollouts, token_digest
    from tasks.prm.schemas import CURVE
    from tasks.prm.training import choose_beta, counts, fit, labelled, plan
    from tasks.tables import write_json, write_table

    device = settle(parameters.device, parameters.threads)
    start = load(generator, device=device)
    whole = read_rollouts(problems, rollouts, start.tokenizer)
    weights = digest(start.model)
    known = read_log_probs(reference, tokens=token_digest(whole), model=weights)
    data, cut = labelled(whole, known, "train").cut(parameters.max_tokens)
    if cut:
        print(
            f"note: {cut} responses of more than {parameters.max_tokens} tokens are cut and count as wrong",
            file=sys.stderr,
        )
    beta = choose_beta(parameters.beta, data)
    model = start.model
    if parameters.lora:
        from tasks.lm.adapters import add_lora, require_adapter_only  # peft takes a second to import

        model = add_lora(model, seed=parameters.seed, **parameters.lora.model_dump())
        require_adapter_only(model)
    frozen = load(generator, device=device).model if loss == "kto" else None  # scores what the cache does not hold
    generator_of_batches = stage.random_generator(parameters.seed, "train", loss)
    try:
        batches = plan(loss, data, parameters, generator_of_batches)
        steps = fit(model, loss, data, batches, beta, parameters, partial(token_log_probs, frozen))
        curve = pd.DataFrame(list(stage.progress(steps, f"train {loss}", total=len(batches))))
    except (ValueError, FloatingPointError) as error:
        raise UserError(f"{rollouts}: {error}") from None
    save(LanguageModel(model.eval(), start.tokenizer, ""), out)
    counted = {**counts(whole, "train", data, batches), "cut": cut}
    described = about(loss, beta, parameters, data, counted, generator=generator.as_posix(), weights=weights)
    write_json(out / "prm.json", described)
    (out / "README.md").write_text(card(dataset, described), encoding="utf-8")
    write_table(out / "curve.parquet", curve, CURVE)


if __name__ == "__main__":
    train.run()
