"""Stage: log-probabilities of all responses under the frozen reference, once for all losses."""

from pathlib import Path

from tasks import stage
from tasks.prm.params import Scoring
from tasks.stage import UserError


@stage.command("prm.scoring", Scoring)
def reference(parameters: Scoring, generator: Path, problems: Path, rollouts: Path, *, out: Path) -> None:
    """Compute every token's log-probability under the generator, and note of which model and tokens they are."""
    from tasks.lm.device import settle
    from tasks.lm.loading import digest, load
    from tasks.lm.logprobs import token_log_probs
    from tasks.prm.dataset import read_rollouts, token_digest, write_log_probs

    frozen = load(generator, device=settle(parameters.device, parameters.threads))
    data = read_rollouts(problems, rollouts, frozen.tokenizer)
    try:
        values = token_log_probs(frozen.model, data.prompts, data.responses, batch_tokens=parameters.batch_tokens)
    except ValueError as error:
        raise UserError(f"{rollouts}: {error}") from None
    write_log_probs(out, values, model=digest(frozen.model), tokens=token_digest(data))


if __name__ == "__main__":
    reference.run()
