"""Stage: made problems with checkable answers, in three splits."""

from pathlib import Path

from tasks import stage
from tasks.prm.params import Problems
from tasks.stage import UserError


@stage.command("prm.problems.{dataset}", Problems)
def problems(parameters: Problems, dataset: str, *, out: Path) -> None:
    """Draw different problems of one source; those of a split do not depend on how many the later drawn ones have."""
    from itertools import count

    import pyarrow as pa

    from tasks.prm.schemas import PROBLEMS
    from tasks.tables import write_table

    where = f"params.yaml: prm.problems.{dataset}"
    rows = (_chains if parameters.source == "chain" else _of_reasoning_gym)(parameters, where)
    width = len(str(max(parameters.train, parameters.valid, parameters.test, 10_000)))
    numbers = {split: count(1) for split in ("train", "valid", "test")}
    for row in rows:
        row["problem"] = f"{row['split']}-{next(numbers[row['split']]):0{width}}"
    rows.sort(key=lambda row: (row["split"], row["problem"]))
    write_table(out, pa.Table.from_pylist(rows, schema=PROBLEMS), PROBLEMS)


def _chains(parameters: Problems, where: str) -> list[dict]:
    from tasks.prm.chain import draw, true_answer

    rows, taken = [], set()
    for split in ("test", "valid", "train"):
        generator = stage.random_generator(parameters.seed, "problems", split)
        try:
            prompts = draw(parameters.operations, getattr(parameters, split), generator, taken)
        except ValueError as error:
            raise UserError(f"{where}: {error}") from None
        taken.update(prompts)
        rows += [
            {"split": split, "prompt": prompt, "answer": true_answer(prompt), "grader": "chain"} for prompt in prompts
        ]
    return rows


def _of_reasoning_gym(parameters: Problems, where: str) -> list[dict]:
    import json

    from tasks.prm.reasoning import entries

    splits = [split for split in ("test", "valid", "train") for _ in range(getattr(parameters, split))]
    try:
        found = entries(parameters.task, len(splits), seed=parameters.seed, options=parameters.options)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None
    return [
        {
            "split": split,
            "prompt": entry["question"],
            "answer": entry["answer"],
            "grader": "reasoning_gym",
            "metadata": json.dumps(entry, ensure_ascii=False, sort_keys=True),
        }
        for split, entry in zip(splits, found, strict=True)
    ]


if __name__ == "__main__":
    problems.run()
