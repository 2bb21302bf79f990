"""A method's summary from Markdown to HTML: raw HTML shown as text, nothing fetched, tables that can scroll."""

import re
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token


@dataclass(frozen=True)
class Summary:
    """A rendered summary: plain title and headline, HTML of the first paragraph and of the rest, its h2 sections."""

    title: str
    headline: str
    lead: str
    body: str
    sections: list[tuple[str, str]]


def render(markdown: str, identifier: str, taken: tuple[str, ...] = ()) -> Summary:
    """Render a summary that begins with ``# Title`` and one paragraph, the headline.

    Args:
        markdown: CommonMark with tables; links are kept, raw HTML is escaped.
        identifier: prefix of the sections' ids.
        taken: ids (without the prefix) that the page uses itself.

    Raises:
        ValueError: no title or headline, a second title, or an image (figures have their own place on the page).
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    tokens = parser.parse(markdown)
    shape = [token.type for token in tokens[:6]]
    if shape != ["heading_open", "inline", "heading_close", "paragraph_open", "inline", "paragraph_close"]:
        raise ValueError("expected '# Title', an empty line and one paragraph at the beginning")
    if [token.tag for token in tokens if token.type == "heading_open"].count("h1") != 1 or tokens[0].tag != "h1":
        raise ValueError("expected exactly one '# Title', at the beginning; use '##' for sections")
    used, sections = set(taken), []
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "inline" and any(child.type == "image" for child in token.children):
            raise ValueError(f"expected no image, found {token.content!r}; figures go to the figures folder")
        if token.type == "th_open":
            token.attrSet("scope", "col")
        if token.type == "heading_open" and token.tag == "h2":
            anchor = _anchor(_plain(following), used)
            token.attrSet("id", f"{identifier}-{anchor}")
            sections.append((f"{identifier}-{anchor}", _plain(following)))
    return Summary(
        title=_plain(tokens[1]),
        headline=_plain(tokens[4]),
        lead=parser.renderer.render([tokens[4]], parser.options, {}),
        body=parser.renderer.render(tokens[6:], parser.options, {}),
        sections=sections,
    )


def _table_open(*_: object) -> str:
    return '<div class="scroll" role="region" aria-label="Table" tabindex="0"><table>\n'


def _plain(inline: Token) -> str:
    return "".join(" " if "break" in child.type else child.content for child in inline.children)


def _anchor(text: str, used: set[str]) -> str:
    base = anchor = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "section"
    count = 1
    while anchor in used:
        count += 1
        anchor = f"{base}-{count}"
    used.add(anchor)
    return anchor
