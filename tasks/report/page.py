"""The pages' frame: templates, and the section of a method's page that the joined page takes over."""

import re
from html.parser import HTMLParser
from pathlib import Path

import jinja2

BEGIN, END = "<!-- method section: begin -->", "<!-- method section: end -->"
GRAPH = "<!-- stage graph -->"  # where the joined page puts the drawing

_templates = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def render(template: str, **values: object) -> str:
    """One page from its template; every value is escaped unless it is ``markupsafe.Markup``."""
    return _templates.get_template(template).render(**values, begin=BEGIN, end=END, graph_place=GRAPH)


def cut_section(html: str) -> tuple[str, dict[str, str]]:
    """The section between the markers and the facts in its ``data-`` attributes (without the ``data-``).

    Raises:
        ValueError: the page has no such section.
    """
    section = html.partition(BEGIN)[2].partition(END)[0]
    facts = _Facts()
    facts.feed(section)
    missing = {"method", "title", "headline", "gates-passed", "gates-total"} - facts.found.keys()
    if missing or END not in html:
        raise ValueError("expected a page written by python -m tasks.report.method")
    return section, facts.found


def demote_headings(html: str) -> str:
    """Every heading one level down, to stand under another page's title.

    >>> demote_headings('<h1 id="a">A</h1><h2>B</h2>')
    '<h2 id="a">A</h2><h3>B</h3>'
    """
    return re.sub(r"(</?h)([1-5])(?=[ >])", lambda match: f"{match[1]}{int(match[2]) + 1}", html)


class _Facts(HTMLParser):
    """Collects the ``data-`` attributes of the first ``<article>``."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "article" and not self.found:
            self.found = {k.removeprefix("data-"): v or "" for k, v in attrs if k.startswith("data-")}
