"""Stage: step sums of log-probabilities of validation and test responses; and the public ``score_steps``."""

from pathlib import Path

from tasks import stage
from tasks.prm.params import Scoring
from tasks.stage import UserError


def __getattr__(name: str):
    """``from tasks.prm.score import score_steps``, without loading torch for the command line's sake."""
    if name == "score_steps":
        from tasks.prm.rewards import score_steps

        return score_steps
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@stage.command("prm.scoring", Scoring)
def score(parameters: Scoring, model: Path, problems: Path, rollouts: Path, reference: Path, *, out: Path) -> None:
    """Cut every response into steps, and sum what the trained model and the reference say of each."""
    import numpy as np

    from tasks.lm.device import settle
    from tasks.lm.loading import load
    from tasks.lm.logprobs import token_log_probs
    from tasks.prm.dataset import read_log_probs, read_rollouts, token_digest
    from tasks.prm.schemas import STEPS
    from tasks.prm.stepping import step_table
    from tasks.tables import read_json, write_table

    about = read_json(model / "prm.json")
    base = Path(about["reference"]) if about["adapter"] else None
    trained = load(model, base=base, device=settle(parameters.device, parameters.threads))
    whole = read_rollouts(problems, rollouts, trained.tokenizer)
    known = read_log_probs(reference, tokens=token_digest(whole), model=about["reference_sha256"])
    rows = np.flatnonzero(whole.table["split"].isin(["valid", "test"]))
    data = whole.part(rows)
    try:
        values = token_log_probs(trained.model, data.prompts, data.responses, batch_tokens=parameters.batch_tokens)
    except ValueError as error:
        raise UserError(f"{rollouts}: {error}") from None
    steps = step_table(data, values, [known[i] for i in rows], about["segment"], trained.tokenizer)
    write_table(out, steps, STEPS)


if __name__ == "__main__":
    score.run()
