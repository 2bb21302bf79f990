"""Stage: own problems become a table of problems in three splits."""

from pathlib import Path

from tasks import stage
from tasks.prm.params import OWN_GRADERS, Ingest
from tasks.stage import UserError


@stage.command("prm.ingest.{dataset}", Ingest)
def ingest(parameters: Ingest, dataset: str, source: Path, *, out: Path) -> None:
    """Read prompts and answers, refuse what could never be graded or would leak, and divide rows without a split."""
    import pyarrow as pa

    from tasks.prm.grading import check_problem
    from tasks.prm.rows import SPLITS, check_splits, digest, divide, read_rows
    from tasks.prm.schemas import PROBLEMS
    from tasks.tables import write_table

    if Path(parameters.path) != source:
        raise UserError(
            f"params.yaml: prm.ingest.{dataset}.path is {parameters.path}, but {source} is given; use the former"
        )
    problems, seen = [], {"prompt": {}, "id": {}}
    for row in read_rows(source):
        prompt = row.text("prompt", needed=True)
        problem = {
            "problem": row.text_or_number("id") or digest(prompt)[:12],
            "split": row.text("split"),
            "prompt": prompt,
            "answer": row.text_or_number("answer", needed=True),
            "grader": row.text("grader") or parameters.grader,
            "metadata": None,
        }
        for column, value, allowed in (
            ("grader", problem["grader"], OWN_GRADERS),
            ("split", problem["split"], (*SPLITS, None)),
        ):
            if value not in allowed:
                raise row.fault(column, value, f"one of {', '.join(filter(None, allowed))} is")
        for column, value in (("prompt", prompt), ("id", problem["problem"])):
            if value in seen[column]:
                raise row.fault(column, value, f"it stands in {seen[column][value]} already; a value of its own is")
            seen[column][value] = row.where.removeprefix(f"{source}: ")
        try:
            check_problem(problem["grader"], prompt, problem["answer"])
        except ValueError as error:
            raise UserError(f"{row.where}: {error}") from None
        problems.append(problem)
    undivided = [problem["prompt"] for problem in problems if problem["split"] is None]
    drawn = divide(undivided, valid=parameters.valid, test=parameters.test, seed=parameters.seed)
    for problem in problems:
        problem["split"] = problem["split"] or drawn[problem["prompt"]]
    check_splits((problem["split"] for problem in problems), str(source))
    problems.sort(key=lambda problem: (problem["split"], problem["problem"]))
    write_table(out, pa.Table.from_pylist(problems, schema=PROBLEMS), PROBLEMS)


if __name__ == "__main__":
    ingest.run()
