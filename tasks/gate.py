"""Gates: Great Expectations suites between stages, as DVC stages of their own.

    python -m tasks.gate <method> <suite> <inputs…> --out data/<method>/checks/<variant>/<suite>.json

runs ``tasks.<method>.expectations.<suite>(*inputs)``, which reads the inputs and returns one `Check` per table. A passed
gate writes its verdict; downstream stages depend on that file and so cannot run without it. A failed gate writes
nothing, prints table, column, rule, number and examples of offending rows, and exits with 1.
"""

import gc
import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks import stage
from tasks.stage import UserError
from tasks.tables import write_json

if TYPE_CHECKING:
    import pandas as pd
    from great_expectations.expectations.expectation import Expectation

EXAMPLES = 5


@dataclass(frozen=True)
class Check:
    """One table and what is expected of it.

    Most expectations hold on a table without rows. A gate therefore always expects rows, unless `may_be_empty`.
    """

    table: str
    rows: "pd.DataFrame"
    expectations: list["Expectation"]
    may_be_empty: bool = False


@stage.command(None)
def gate(method: str, suite: str, inputs: list[Path], *, out: Path) -> None:
    """Check tables between two stages and write the verdict."""
    gc.disable()  # importing Great Expectations makes very many objects: a third of its time; the process ends soon
    function = suite_of(method, suite)
    names = list(inspect.signature(function).parameters)
    if len(inputs) != len(names):
        raise UserError(
            f"suite {suite} of {method} takes {len(names)} inputs ({', '.join(names)}); {len(inputs)} are given"
        )
    checks = function(*inputs)
    verdict = validate(suite, checks)
    faults = [
        describe(table["table"], rule) for table in verdict["tables"] for rule in table["rules"] if not rule["success"]
    ]
    if faults:
        for fault in faults:
            print(fault, file=sys.stderr)
        raise UserError(
            f"gate {suite} of {method}: {len(faults)} expectation{'s' * (len(faults) > 1)} failed, see above"
        )
    write_json(out, verdict)


def suite_of(method: str, suite: str) -> Callable[..., list[Check]]:
    """The function that builds a suite. Raises UserError where method or suite does not exist."""
    try:
        module = importlib.import_module(f"tasks.{method}.expectations")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("tasks."):
            raise
        raise UserError(f"there is no module tasks.{method}.expectations") from None
    if suite.startswith("_") or getattr(getattr(module, suite, None), "__module__", None) != module.__name__:
        raise UserError(f"tasks.{method}.expectations has no suite {suite!r}")
    return getattr(module, suite)


def validate(suite: str, checks: list[Check]) -> dict[str, Any]:
    """Run the expectations; a JSON-ready verdict, the same for the same tables.

    ``{"suite", "success", "tables": [{"table", "rows", "rules": [{"rule", "column", "kwargs", "success", "unexpected",
    "examples"}]}]}``; `unexpected` is the number of offending rows (null where the rule is about the whole table, with
    `observed` in its place).
    """
    import logging

    import great_expectations as gx
    import great_expectations.expectations as gxe

    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    batch = (
        context.data_sources.add_pandas("tables")
        .add_dataframe_asset("table")
        .add_batch_definition_whole_dataframe("all")
    )
    tables = []
    for check in checks:
        expected = [] if check.may_be_empty else [gxe.ExpectTableRowCountToBeBetween(min_value=1)]
        expectations = gx.ExpectationSuite(name=check.table, expectations=[*expected, *check.expectations])
        frame = batch.get_batch({"dataframe": check.rows.reset_index(drop=True)})
        result = frame.validate(expectations, result_format="SUMMARY")
        if not result.success:  # once more, for the numbers of the offending rows
            result = frame.validate(expectations, result_format="COMPLETE")
        rules = [_rule(r, check.rows) for r in result.results]
        rules.sort(key=lambda rule: (rule["column"] or "", rule["rule"], str(rule["kwargs"])))
        tables.append({"table": check.table, "rows": len(check.rows), "rules": rules})
    success = all(rule["success"] for table in tables for rule in table["rules"])
    return {"suite": suite, "success": success, "tables": tables}


def _rule(result, rows: "pd.DataFrame") -> dict[str, Any]:
    config, found = result.expectation_config, result.result
    info = result.exception_info or {}
    for fault in (info, *(v for v in info.values() if isinstance(v, dict))):  # of the rule, or of each of its metrics
        if fault.get("raised_exception"):
            message = str(fault.get("exception_message")).splitlines()[0]
            raise UserError(f"{config.type} on column {config.kwargs.get('column')}: {message}")
    kwargs = {
        k: _plain(v) for k, v in sorted(config.kwargs.items()) if k not in ("batch_id", "column") and v is not None
    }
    columns = kwargs.get("column_list") or [kwargs.get("column_A"), kwargs.get("column_B")]
    rule = {
        "rule": config.type.removeprefix("expect_"),
        "column": config.kwargs.get("column") or (", ".join(c for c in columns if c) or None),
        "kwargs": kwargs,
        "success": bool(result.success),
        "unexpected": _plain(found.get("unexpected_count")),
        "examples": [],
    }
    if rule["unexpected"] is None:
        rule["observed"] = _plain(found.get("observed_value"))
    elif not result.success:
        for row in (found.get("unexpected_index_list") or [])[:EXAMPLES]:
            rule["examples"].append({"row": int(row), **{str(k): _plain(v) for k, v in rows.iloc[row].items()}})
    return rule


def _plain(value: Any) -> Any:
    """Numbers, texts, lists; long value sets are cut, so that a verdict stays readable."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set):
        items = [_plain(v) for v in (sorted(value, key=str) if isinstance(value, set) else value)]
        return items if len(items) <= 20 else [*items[:20], f"… {len(items)} in all"]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        if value != value:
            return None
        return float(f"{value:.6g}") if abs(value) != float("inf") else str(value)
    return value if isinstance(value, str | int | bool | type(None)) else str(value)


def describe(table: str, rule: dict[str, Any]) -> str:
    """One line for a failed rule: table, column, rule, number, examples."""
    limits = {k: v for k, v in rule["kwargs"].items() if k not in ("column_list", "column_A", "column_B")}
    column = f"column {rule['column']}" if rule["column"] else "table"
    text = f"{table}: {column}: {rule['rule']}"
    text += f" ({', '.join(f'{k}={v}' for k, v in limits.items())})" if limits else ""
    if rule["unexpected"] is None:
        return f"{text}: observed {rule['observed']}"
    text += f": {rule['unexpected']} rows"
    if rule["examples"]:
        text += ", for example " + "; ".join(
            ", ".join(f"{k} {v!r}" for k, v in list(example.items())[:8]) for example in rule["examples"][:3]
        )
    return text


if __name__ == "__main__":
    gate.run()
