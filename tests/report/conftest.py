"""A made-up method's files, written under a temporary folder that is also the working directory."""

import base64
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from report_helpers import rule, verdict

from tasks.report.method import write_method_page

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAADElEQVR4nGNgoBAAAABCAAFqG9lBAAAAAElFTkSuQmCC")
SUMMARY = "# Label completion\n\nFills *missing* answers.\n\n## Data\n\n| set | tasks |\n|:--|--:|\n| iris | 150 |\n"
PARAMETERS = "label_completion:\n  seed: 7\n  complete: {alpha: 0.5, limits: {low: 1, high: 2}}\nother:\n  secret: 1\n"


def write(path: Path, content: str | bytes | dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


@dataclass
class Workspace:
    """Inputs of the page; ``page()`` writes it and returns its text."""

    root: Path

    def write(self, path: str, content: str | bytes | dict) -> None:
        write(self.root / path, content)

    def page(self, method: str = "label_completion", out: str | None = None) -> str:
        file = self.root / (out or f"reports/{method}/index.html")
        file.parent.mkdir(parents=True, exist_ok=True)
        folders = (self.root / name for name in ("metrics", "checks", "figures", "summary.md"))
        write_method_page(method, *folders, out=file)
        return file.read_text(encoding="utf-8")


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = Workspace(tmp_path)
    made.write("params.yaml", PARAMETERS)
    made.write("summary.md", SUMMARY)
    for variant in ("iris", "wine"):
        accuracy = {"mv.accuracy": 0.8123, "mv.accuracy.low": 0.7901, "mv.accuracy.high": 0.8349}
        made.write(f"metrics/{variant}.json", {"tasks": 150, **accuracy})
        made.write(f"checks/{variant}/answers.json", verdict(rule()))
    made.write("figures/b.png", PNG)
    made.write("figures/a.png", PNG)
    captions = {name: {"title": f"Title {name}", "caption": f"Caption {name}"} for name in ("b.png", "a.png")}
    made.write("figures/captions.json", captions)
    return made
