"""Stage: train the model whose responses are sampled, on worked solutions, until some of its answers are right."""

import sys
from pathlib import Path

from tasks import stage
from tasks.prm.params import Generator
from tasks.stage import UserError


@stage.command("prm.generator.{dataset}", Generator)
def generator(parameters: Generator, dataset: str, problems: Path, *, out: Path) -> None:
    """Train a tiny Llama on arithmetic chains that are none of the problems, to the wanted validation pass@1."""
    from tasks.lm.device import settle
    from tasks.lm.loading import LanguageModel, save
    from tasks.lm.tiny import build_model, build_tokenizer
    from tasks.lm.tokens import encode_prompt, encode_response
    from tasks.prm import chain
    from tasks.prm.sampled import accuracy
    from tasks.prm.schemas import PROBLEMS
    from tasks.prm.supervision import grouped, train_until
    from tasks.tables import read_table

    device = settle(parameters.device, parameters.threads)
    asked = read_table(problems, PROBLEMS)
    if set(asked["grader"].astype("str")) != {"chain"}:
        raise UserError(
            f"{problems}: worked solutions are known of arithmetic chains only; for other problems put a model's folder at "
            f"{out.parent / 'generator'}, or name a fetched one under prm.models"
        )
    tokenizer = build_tokenizer(chain.SYMBOLS)
    architecture = parameters.model_dump(include={"hidden", "layers", "heads", "intermediate", "seed"})
    try:
        model = build_model(tokenizer, **architecture).to(device)
    except ValueError as error:
        raise UserError(f"params.yaml: prm.generator.{dataset}: {error}") from None
    looked_at = asked[asked["split"] == "valid"].head(parameters.check_problems)
    operations = {prompt.count("+") + prompt.count("-") + prompt.count("*") for prompt in asked["prompt"]}
    stream = chain.worked(
        max(operations), stage.random_generator(parameters.seed, "solutions"), frozenset(asked["prompt"])
    )
    solutions = ((encode_prompt(tokenizer, p), encode_response(tokenizer, s)) for p, s in stream)

    def look() -> float:
        found = accuracy(model, tokenizer, looked_at, parameters.seed)
        model.train()
        return found

    try:
        looks = train_until(model, grouped(solutions, parameters.batch), look, parameters)
    except (ValueError, FloatingPointError) as error:  # so many problems that too few are left, or too large a step
        raise UserError(f"params.yaml: prm.generator.{dataset}: {error}") from None
    print(f"{looks[-1].step} steps, validation pass@1 {looks[-1].pass_at_1:.3f}", file=sys.stderr)
    save(LanguageModel(model.eval(), tokenizer, ""), out)


if __name__ == "__main__":
    generator.run()
