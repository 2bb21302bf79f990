"""Write the report page of one method: summary, figures, metrics, gate verdicts and parameters in one HTML file."""

import base64
import json
import struct
from collections.abc import Container
from pathlib import Path
from typing import Any

from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, RootModel, TypeAdapter, ValidationError

from tasks import stage
from tasks.report import page, prose, tables

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
SECTIONS = ("figures", "metrics", "gates", "parameters", "stages")  # ids that the templates use


class Contract(BaseModel):
    """Base of the files' models: no silent conversions ("false" is not false); new keys do no harm."""

    model_config = ConfigDict(strict=True, extra="ignore")


class Rule(Contract):
    """One rule of a gate, as it came out on the data."""

    rule: str
    column: str | None = None
    kwargs: dict[str, Any] = {}
    success: bool
    unexpected: int | None = None
    examples: list[Any] = []


class Table(Contract):
    """One table that a gate has looked at."""

    table: str
    rows: int
    rules: list[Rule]


class Verdict(Contract):
    """What a gate has written about one suite."""

    suite: str
    success: bool
    tables: list[Table]

    @property
    def rules(self) -> list[Rule]:
        """The rules of all tables."""
        return [rule for table in self.tables for rule in table.rules]


class Caption(Contract):
    """Title and caption of a figure; the caption is also its text for readers who do not see it."""

    title: str
    caption: str


class Section(RootModel[dict]):
    """A method's section of the parameters file, whatever it holds: its stages have checked it."""


@stage.command(None)
def write_method_page(method: str, metrics: Path, checks: Path, figures: Path, summary: Path, *, out: Path) -> None:
    """Write the self-contained report page of one method."""
    if not method.isidentifier():
        raise stage.UserError(f"METHOD {method!r}: expected the name of a folder of tasks/, such as label_completion")
    try:
        text = prose.render(summary.read_text(encoding="utf-8"), method, SECTIONS)
    except ValueError as error:  # also of the decoding
        raise stage.UserError(f"{summary}: {error}") from None
    metric_files = read_metrics(metrics)
    gates = read_verdicts(checks, metric_files)
    html = page.render(
        "method.html",
        method=method,
        title=text.title,
        headline=text.headline,
        lead=Markup(text.lead),
        body=Markup(text.body),
        sections=text.sections,
        figures=read_figures(figures),
        variants=list(metric_files),
        metrics=tables.metric_groups(metric_files),
        gates=gates,
        passed=sum(verdict.success for _, verdict in gates),
        parameters=tables.parameter_groups(stage.load_parameters(method, Section).root),
        short=tables.short_json,
    )
    out.write_text(html, encoding="utf-8", newline="\n")


def read_metrics(folder: Path) -> dict[str, dict[str, Any]]:
    """The flat metrics of each variant, ``<variant>.json``, by variant in the order of their names."""
    metrics = {file.stem: _read_json(file) for file in _files(folder, "*.json", "<variant>.json")}
    for variant, values in metrics.items():
        file = folder / f"{variant}.json"
        if not isinstance(values, dict):
            raise stage.UserError(f"{file}: expected one flat JSON object of metrics, found {_kind(values)}")
        for key, value in values.items():
            if isinstance(value, dict | list):
                raise stage.UserError(f"{file}: {key}: expected a number or a text, found {_kind(value)}")
    return metrics


def read_verdicts(folder: Path, variants: Container[str]) -> list[tuple[str, Verdict]]:
    """The verdicts ``<variant>/<suite>.json`` of the given variants, in the order of variants and files.

    Others are of variants that are no longer in the parameters, and still lie there.
    """
    verdicts = []
    for file in _files(folder, "*/*.json", "<variant>/<suite>.json"):
        if file.parent.name not in variants:
            continue
        verdict = _validate(TypeAdapter(Verdict), file, "verdict")
        if verdict.success != all(rule.success for rule in verdict.rules):
            failed = sum(not rule.success for rule in verdict.rules)
            raise stage.UserError(
                f"{file}: success is {str(verdict.success).lower()}, but {failed} of its rules failed; "
                "a suite succeeds when all of its rules do"
            )
        verdicts.append((file.parent.name, verdict))
    return verdicts


def read_figures(folder: Path) -> list[dict[str, Any]]:
    """The figures in the order of ``captions.json``: title, caption, size in px and the image as a data URI."""
    file = folder / "captions.json"
    if not file.is_file():
        raise stage.UserError(f"{file}: there is no such file; expected titles and captions of the figures")
    captions = _validate(TypeAdapter(dict[str, Caption]), file, "captions")
    for image in sorted({path.name for path in folder.glob("*.png")} - captions.keys()):
        raise stage.UserError(f"{folder / image}: no caption; expected the key {image!r} in {file}")
    figures = []
    for name, caption in captions.items():
        image = folder / name
        if Path(name).name != name or not image.is_file():
            raise stage.UserError(f"{file}: {name}: expected the name of a PNG file in {folder}")
        data = image.read_bytes()
        if not data.startswith(PNG_SIGNATURE) or len(data) < 24:
            raise stage.UserError(f"{image}: expected a PNG image")
        width, height = struct.unpack(">II", data[16:24])
        source = "data:image/png;base64," + base64.b64encode(data).decode()
        figures.append({"width": width, "height": height, "source": source, **caption.model_dump()})
    return figures


def _files(folder: Path, pattern: str, expected: str) -> list[Path]:
    files = sorted(path for path in folder.glob(pattern) if not path.name.startswith("."))
    if not files:
        raise stage.UserError(f"{folder}: expected files {expected}, found none")
    return files


def _read_json(file: Path) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON; expected a number, a text or null")

    try:
        return json.loads(file.read_text(encoding="utf-8"), parse_constant=refuse)
    except ValueError as error:  # also of the decoding
        raise stage.UserError(f"{file}: expected JSON: {error}") from None


def _validate(model: TypeAdapter, file: Path, name: str) -> Any:
    try:
        return model.validate_python(_read_json(file))
    except ValidationError as error:
        raise stage.UserError("; ".join(stage.describe_validation(error, f"{file}: {name}"))) from None


def _kind(value: Any) -> str:
    return {dict: "an object", list: "a list", str: "a text", type(None): "null"}.get(type(value), f"{value!r}")


if __name__ == "__main__":
    write_method_page.run()
