"""What the tests of the report pages share: made-up verdicts, and ways to read a page."""

import re
from html.parser import HTMLParser
from itertools import pairwise


def rule(name: str = "unique", success: bool = True, **more) -> dict:
    return {"rule": name, "column": "task", "kwargs": {}, "success": success, "unexpected": 0, "examples": []} | more


def verdict(*rules: dict, suite: str = "answers") -> dict:
    success = all(entry["success"] for entry in rules)
    return {"suite": suite, "success": success, "tables": [{"table": "answers", "rows": 12, "rules": list(rules)}]}


class Elements(HTMLParser):
    """All start tags with their attributes, in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def plain(html: str) -> str:
    """The text a reader sees, one space between words."""
    return " ".join(re.sub(r"<[^>]+>", " ", html.partition("<body>")[2]).split())


def check_headings(html: str) -> None:
    """One h1, at the beginning, and no level skipped on the way down."""
    levels = [int(tag[1]) for tag, _ in Elements(html).found if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def check_anchors(html: str) -> None:
    """No id twice, and every link within the page leads somewhere."""
    found = Elements(html).found
    ids = [attrs["id"] for _, attrs in found if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {attrs["href"][1:] for tag, attrs in found if tag == "a" and attrs["href"].startswith("#")} <= set(ids)
