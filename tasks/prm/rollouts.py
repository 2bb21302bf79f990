"""Stage: sample responses to all problems and grade them."""

import sys
from pathlib import Path

from tasks import stage
from tasks.prm.params import Rollouts
from tasks.stage import UserError


@stage.command("prm.rollouts.{dataset}", Rollouts)
def rollouts(parameters: Rollouts, dataset: str, problems: Path, generator: Path, *, out: Path) -> None:
    """Sample several responses a problem from the generator, and label each right or wrong by its answer."""
    from tasks.lm.device import settle
    from tasks.lm.loading import load
    from tasks.prm.sampled import draw
    from tasks.prm.schemas import PROBLEMS, ROLLOUTS
    from tasks.tables import read_table, write_table

    sampler = load(generator, device=settle(parameters.device, parameters.threads))
    asked = read_table(problems, PROBLEMS)
    n_samples = {"test": parameters.test_samples, "train": parameters.samples, "valid": parameters.samples}
    try:
        drawn = draw(sampler.model, sampler.tokenizer, asked, n_samples, parameters)
    except ValueError as error:
        raise UserError(f"params.yaml: prm.rollouts.{dataset}: {error}") from None
    if drawn.dropped:
        note = f"{len(drawn.dropped)} of {len(asked)} prompts have more than {parameters.max_prompt_tokens} tokens"
        if len(drawn.dropped) == len(asked):
            raise UserError(f"{problems}: {note}; a larger max_prompt_tokens is needed")
        print(f"note: {problems}: {note} and are left out, {drawn.dropped[0]} first", file=sys.stderr)
    write_table(out, drawn.table, ROLLOUTS)


if __name__ == "__main__":
    rollouts.run()
