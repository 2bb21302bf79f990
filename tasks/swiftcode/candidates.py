"""From tables to what is executed: distinct candidates of each task, and tasks as the sandbox takes them."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from tasks.stage import UserError
from tasks.swiftcode import values
from tasks.swiftcode.schemas import SAMPLES, TASKS
from tasks.tables import read_table

KEY = ["task", "language", "candidate"]


def read_tasks(path: Path) -> pd.DataFrame:
    """The table of tasks, texts as text."""
    table = read_table(path, TASKS)
    return table.astype(dict.fromkeys(("task", "split", "kind", "compare"), "str")).sort_values(
        "task", ignore_index=True
    )


def read_samples(paths: list[Path]) -> pd.DataFrame:
    """Rows of several tables of samples, or of all tables in a folder, below each other.

    Raises:
        UserError: a folder without a table, or an answer that stands in two tables.
    """
    files: list[Path] = []
    for path in paths:
        within = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not within:
            raise UserError(f"{path}: there is no table of samples (*.parquet) in this folder")
        files += within
    tables = [read_table(file, SAMPLES) for file in files]
    texts = dict.fromkeys(("task", "language", "generator"), "str")
    table = pd.concat([one.astype(texts) for one in tables], ignore_index=True)
    twice = table.duplicated(["task", "language", "generator", "sample"])
    if twice.any():
        row = table[twice].iloc[0]
        raise UserError(
            f"{', '.join(map(str, files))}: task {row['task']}, language {row['language']}, generator {row['generator']}, "
            f"sample {row['sample']} stands in them twice"
        )
    return table


def candidates(samples: pd.DataFrame) -> pd.DataFrame:
    """Distinct programs (task, language, candidate, source), sorted; of equal programs the text of the first generator.

    "pool" goes first, so that a known solution is executed as it was written.
    """
    found = samples.dropna(subset=["candidate", "source"])
    order = found.assign(later=found["generator"] != "pool").sort_values([*KEY, "later", "generator", "sample"])
    return order.drop_duplicates(KEY)[[*KEY, "source"]].reset_index(drop=True)


def judged_task(row: Any) -> dict[str, Any]:
    """A row of TASKS as `sandbox.run` takes it."""
    return {
        "kind": row.kind,
        "entry_point": row.entry_point if isinstance(row.entry_point, str) else None,
        "tests": values.loads(row.tests),
        "compare": row.compare,
        "rtol": None if pd.isna(row.rtol) else float(row.rtol),
        "atol": None if pd.isna(row.atol) else float(row.atol),
    }


def sizes_of(row: Any) -> dict[str, int]:
    """Language → size at which measuring begins."""
    return json.loads(row.sizes) if isinstance(row.sizes, str) else {}
