"""What a run shows in Prefect: stages, metrics, figures and gate verdicts of each method as artifacts.

Nothing here knows a method: metrics are DVC metrics files, figures are PNG outputs, verdicts are JSON outputs in a
folder ``checks/``.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.states import State

LARGEST_FIGURE = 1_000_000  # bytes; Prefect refuses events above 1.5 MB, and a figure goes in as base64


def publish(root: Path, method: str | None, stages: list, states: dict[str, State], seconds: dict[str, float]) -> None:
    """Publish one table of stages, and for each method the metrics, figures and verdicts of its completed stages.

    A failed gate writes no verdict: what it has printed is the message of its failed task.
    """
    rows = [
        {"stage": s.name, "state": states[s.name].name, "seconds": round(seconds.get(s.name, 0.0), 1)} for s in stages
    ]
    create_table_artifact(rows, key=_key(method or "all", "stages"), description="DVC stages of this run")

    for owner, group in groupby(sorted(stages, key=_owner), key=_owner):
        complete = [s for s in group if states[s.name].is_completed()]
        files = [(s, path) for s in complete for path in _files(root, s.outs)]
        metrics = [(s.name, path) for s in complete for path in _files(root, s.metrics)]
        table = [{"stage": stage, "file": path.name, **row} for stage, path in metrics for row in _metrics(path)]
        if table:
            create_table_artifact(table, key=_key(owner, "metrics"), description=f"metrics of {owner}")
        for stage, path in files:
            if path.suffix == ".png":
                key = _key(owner, "figure", path.stem)
                create_markdown_artifact(
                    _figure(stage.name, path), key=key, description=f"figure of {owner}: {path.stem}"
                )
        verdicts = [(s.name, p) for s, p in files if p.suffix == ".json" and "checks" in p.relative_to(root).parts]
        if verdicts:
            text = "\n\n".join(_verdict(stage, path) for stage, path in verdicts)
            create_markdown_artifact(text, key=_key(owner, "checks"), description=f"gates of {owner}")


def _owner(stage: Any) -> str:
    return re.split(r"[-@:]", stage.name)[0]


def _key(*parts: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")


def _files(root: Path, outs: Iterable[str]) -> Iterator[Path]:
    for out in outs:
        path = root / out
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.is_file())
        elif path.is_file():
            yield path


def _metrics(path: Path) -> list[dict[str, Any]]:
    """Rows of a JSON metrics file; nested keys are joined with dots."""

    def walk(node: Any, keys: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        if isinstance(node, dict):
            for key, value in node.items():
                yield from walk(value, (*keys, key))
        else:
            yield {"metric": ".".join(keys), "value": node}

    return list(walk(json.loads(path.read_text(encoding="utf-8")), ())) if path.suffix == ".json" else []


def _figure(stage: str, path: Path) -> str:
    if path.stat().st_size > LARGEST_FIGURE:
        return f"### {stage}: {path.name}\n\n(larger than {LARGEST_FIGURE:,} bytes: see {path.name} in the workspace)"
    data = base64.b64encode(path.read_bytes()).decode()
    return f"### {stage}: {path.name}\n\n![{path.name}](data:image/png;base64,{data})"


def _verdict(stage: str, path: Path) -> str:
    verdict = json.loads(path.read_text(encoding="utf-8"))
    lines = [
        f"### {stage}: passed",
        "",
        "| table | rows | rule | column | result |",
        "|---|---|---|---|---|",
    ]
    for table in verdict["tables"]:
        for rule in table["rules"]:
            cells = [table["table"], f"{table['rows']:,}", rule["rule"], rule.get("column") or "", "passed"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
