"""Stage: responses that exist already, with their outcome labels."""

import sys
from pathlib import Path

from tasks import stage
from tasks.prm.params import Responses
from tasks.stage import UserError


@stage.command("prm.responses.{dataset}", Responses)
def responses(parameters: Responses, dataset: str, path: Path, *, problems: Path, rollouts: Path) -> None:
    """Read responses, refuse what could not be trained on, and divide them by problem: one's responses stay together."""
    import pyarrow as pa

    from tasks.prm.rows import check_splits, divide, read_rows
    from tasks.prm.schemas import PROBLEMS, ROLLOUTS
    from tasks.tables import write_table

    if Path(parameters.path) != path:
        raise UserError(
            f"params.yaml: prm.responses.{dataset}.path is {parameters.path}, but {path} is given; use the former"
        )
    read = [_response(row) for row in read_rows(path)]
    asked = _problems(read)
    longest = parameters.max_characters
    kept = [r for r in read if longest is None or len(r["response"]) <= longest]
    if len(kept) < len(read):
        print(
            f"note: {path}: {len(read) - len(kept)} of {len(read)} responses are longer than {longest} characters and "
            "left out",
            file=sys.stderr,
        )
    named = {r["problem"] for r in kept}
    asked = {name: asked[name] for name in sorted(named)}
    splits = divide(
        (p["prompt"] for p in asked.values()), valid=parameters.valid, test=parameters.test, seed=parameters.seed
    )
    for row in (*asked.values(), *kept):
        row["split"] = splits[row["prompt"]]
    check_splits(splits.values(), str(path))
    _number(kept, parameters.seed)
    write_table(problems, pa.Table.from_pylist(_sorted(asked.values(), "problem"), schema=PROBLEMS), PROBLEMS)
    write_table(rollouts, pa.Table.from_pylist(_sorted(kept, "problem", "sample"), schema=ROLLOUTS), ROLLOUTS)


def _response(row) -> dict:
    """A row of ROLLOUTS, together with its prompt, the reference answer and where it stands in the file."""
    from tasks.prm.rows import digest

    prompt = row.text("prompt", needed=True)
    response = row.text("response", needed=True, may_be_empty=True)
    correct, finished = row.flag("correct", needed=True), row.flag("finished")
    finished = True if finished is None else finished
    if correct and not finished:
        raise UserError(
            f"{row.where}: correct is true but finished is false; a response without its end is not correct"
        )
    return {
        "problem": row.text_or_number("problem") or digest(prompt)[:12],
        "sample": row.whole("sample", 0, 2**31 - 1),
        "response": response,
        "finished": finished,
        "answer": row.text_or_number("answer"),
        "correct": correct,
        "first_wrong": row.whole("first_wrong", -1, max(0, len(response) - 1)),
        "prompt": prompt,
        "where": row.where,
    }


def _problems(read: list[dict]) -> dict[str, dict]:
    """Rows of PROBLEMS by name. Raises UserError where a problem has two prompts, or a prompt two names."""
    prompts, names = {}, {}
    for r in read:
        for known, key, value, what in (
            (prompts, r["problem"], r["prompt"], "prompt"),
            (names, r["prompt"], r["problem"], "problem"),
        ):
            before, where = known.setdefault(key, (value, r["where"]))
            if before != value:
                other = "problem" if what == "prompt" else "prompt"
                raise UserError(f"{r['where']}: {what} is another than in {where}, though the {other} is the same")
    return {name: {"problem": name, "prompt": prompt} for name, (prompt, _) in prompts.items()}


def _number(kept: list[dict], seed: int) -> None:
    """Numbers within the problem where the file gives none, in the order of a hash, so that rows may stand in any.

    Raises UserError where some rows have a number and others none, or two have the same.
    """
    from tasks.prm.rows import digest

    given = [r for r in kept if r["sample"] is not None]
    if given and len(given) < len(kept):
        bare = next(r for r in kept if r["sample"] is None)
        raise UserError(f"{bare['where']}: sample is missing, though other rows have one; all or none may")
    seen: dict[tuple, str] = {}
    for r in given:
        where = seen.setdefault((r["problem"], r["sample"]), r["where"])
        if where != r["where"]:
            raise UserError(f"{r['where']}: sample {r['sample']} of problem {r['problem']!r} stands in {where} already")
    if not given:
        others = ("response", "correct", "finished", "answer", "first_wrong")
        order = sorted(kept, key=lambda r: (digest(f"{seed}:{r['response']}"), *(str(r[name]) for name in others)))
        taken: dict[str, int] = {}
        for r in order:
            r["sample"] = taken[r["problem"]] = taken.get(r["problem"], -1) + 1


def _sorted(rows, *keys: str) -> list[dict]:
    return sorted(rows, key=lambda row: tuple(row[key] for key in ("split", *keys)))


if __name__ == "__main__":
    responses.run()
