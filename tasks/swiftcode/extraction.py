"""The program in a model's response, and when two programs are the same."""

import ast
import hashlib
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

TAGS = {
    "python": ("python", "py", "python3"),
    "cpp": ("cpp", "c++", "cc", "cxx"),
    "javascript": ("javascript", "js", "node"),
    "java": ("java",),
    "rust": ("rust", "rs"),
}
LONGEST = 100_000  # characters of a response that is looked at
MOST_TRIES = 100  # times that a text is parsed in the search for its complete part
FENCE = re.compile(r"( *)(`{3,}|~{3,})[ \t]*([^\s`{]*)")
BEGINNING = re.compile(r"(import|from|def|class|async def)\b|@")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
HOLDERS = (ast.Module, ast.ClassDef, *FUNCTIONS)


@dataclass(frozen=True)
class Block:
    """A fenced block of a text: the first word behind its fence, its lines, and whether it has a closing fence."""

    tag: str
    lines: list[str]
    closed: bool


def extract(response: str, language: str, *, entry_point: str | None, given: str = "") -> str | None:
    """The program in a response, ending with a line break; None where there is none.

    The first fenced block of the language, else the first block of all. Of Python that begins without a fence: from the
    definition of the entry point on, with the imports and definitions before it. What follows the closing fence is left out.
    Where the closing fence lacks, a Python program is cut after the last line up to which it is complete and has the entry
    point; nothing is cut or mended within a closed block. Python must parse, and its entry point, where it is defined, must
    have a body beside the docstring. Other languages are left to their compilers.

    Args:
        entry_point: the function asked for; None for a program.
        given: what the answer was made to begin with, and the response continues.

    >>> extract("Here:\\n```python\\ndef f():\\n    return 1\\n```\\nDone.", "python", entry_point="f")
    'def f():\\n    return 1\\n'
    >>> extract(" return 1\\n```\\nDone.", "python", entry_point="f", given="```python\\ndef f():\\n   ")
    'def f():\\n    return 1\\n'
    """
    if given and not given.lstrip().startswith("```"):
        given = f"```{language}\n{given}"
    text = (given + response).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if len(text) > LONGEST or "\0" in text or not _is_unicode(text):
        return None
    blocks = list(_blocks(text))
    block = next((b for b in blocks if b.tag in TAGS[language]), blocks[0] if blocks else None)
    if language != "python":
        return _program(block.lines) if block else None
    bare = _from_definition(text.split("\n"), entry_point)
    if bare or block is None:
        lines = _complete(bare, entry_point)
    else:
        lines = block.lines if block.closed else _complete(block.lines, entry_point)
    source = _program(lines)
    tree = _parse(source)[0] if source else None
    return source if tree is not None and not _bodiless(tree, entry_point) else None


def identity(source: str, language: str) -> str:
    """16 hex digits of the SHA-256 of a program without what changes nothing about it.

    Python: of its syntax tree without docstrings and positions, so also without comments and layout; the same for all
    versions of Python that read it as the same tree. Other languages: of the stream of tokens, without comments and white
    space (a preprocessor line is one token). Line ends that end a statement in JavaScript are white space too.

    Raises:
        SyntaxError: Python source that does not parse.

    >>> identity("def f(x):\\n  'Twice.'\\n  return 2*x  # so", "python") == identity("def f(x): return 2 * x", "python")
    True
    >>> identity("a = 1; // one", "cpp") == identity("a=1 ;", "cpp") != identity("a=11;", "cpp")
    True
    """
    if language == "python":
        tree, _ = _parse(source)
        if tree is None:
            raise SyntaxError("not a Python program")
        parts = _of_tree(tree)
    else:
        parts = _tokens(source, language)
    return hashlib.sha256("\0".join([language, *parts]).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _program(lines: list[str]) -> str | None:
    text = "\n".join(lines).strip("\n")
    return f"{text.rstrip()}\n" if text.strip() else None


def _blocks(text: str) -> Iterator[Block]:
    """Fenced blocks as CommonMark reads them: closed by a fence alone on its line, of the same sign, at least as long and at
    most three blanks deeper than the opening one; the opening one's indentation is taken from the lines."""
    opening, lines = None, []
    for line in text.split("\n"):
        fence = FENCE.match(line)
        if opening is None:
            if fence:
                opening, lines = fence, []
        elif fence and _closes(fence, opening, line):
            yield Block(opening[3].lower(), lines, True)
            opening = None
        else:
            depth = len(opening[1])
            lines.append(line[depth:] if line[:depth].isspace() else line)
    if opening is not None:
        yield Block(opening[3].lower(), lines, False)


def _closes(fence: re.Match, opening: re.Match, line: str) -> bool:
    same = fence[2][0] == opening[2][0] and len(fence[2]) >= len(opening[2])
    return same and len(fence[1]) <= len(opening[1]) + 3 and not line[fence.end(2) :].strip()


def _from_definition(lines: list[str], entry_point: str | None) -> list[str]:
    """From the entry point's definition before any fence on, with the definitions and imports before it that parse; or []."""
    definition = re.compile(rf"(async )?def {re.escape(entry_point or '')}\b")
    n_bare = next((i for i, line in enumerate(lines) if FENCE.match(line)), len(lines))
    at = next((i for i, line in enumerate(lines[:n_bare]) if entry_point and definition.match(line)), None)
    if at is None:
        return []
    starts = [i for i, line in enumerate(lines[:at]) if BEGINNING.match(line)][-MOST_TRIES:]
    # a decorator belongs to the definition: it parses with something to decorate only
    begin = next((i for i in starts if _parse("\n".join([*lines[i:at], "def _(): pass"]))[0]), at)
    return lines[begin:]


def _complete(lines: list[str], entry_point: str | None) -> list[str]:
    """The longest beginning that parses and has the entry point with a body; [] where there is none.

    A syntax error is told with the line where it begins, and lines behind it cannot mend it: the search goes on before it.
    """
    n = len(lines)
    for _ in range(MOST_TRIES):
        if n <= 0:
            break
        tree, error_line = _parse("\n".join(lines[:n]))
        if tree is not None:
            whole = entry_point is None or any(_defines(node, entry_point) for node in tree.body)
            return lines[:n] if whole and not _bodiless(tree, entry_point) else []
        n = min(n, error_line) - 1
    return []


def _parse(source: str) -> tuple[ast.Module | None, int]:
    """(syntax tree, 0), or (None, the line that a syntax error names, 0 where Python names none)."""
    try:
        with warnings.catch_warnings():  # of escapes and comparisons in the program
            warnings.simplefilter("ignore")
            return ast.parse(source), 0
    except SyntaxError as error:
        return None, error.lineno or 0
    except (ValueError, RecursionError, MemoryError):
        return None, 0


def _defines(node: ast.stmt, name: str) -> bool:
    return isinstance(node, FUNCTIONS) and node.name == name


def _bodiless(tree: ast.Module, entry_point: str | None) -> bool:
    """Whether the entry point, as it is defined last, is nothing but a docstring."""
    found = [node for node in tree.body if entry_point is not None and _defines(node, entry_point)]
    return bool(found) and not _without_docstring(found[-1])


def _without_docstring(node: ast.AST) -> list[ast.stmt]:
    first = node.body[0] if node.body else None
    documented = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return node.body[1:] if documented else node.body


def _of_tree(tree: ast.Module) -> list[str]:
    """The tree in pre-order, without a stack of calls (programs may be deep), and without what is empty: fields that later
    versions of Python have added are."""
    parts: list[str] = []
    todo: list = [tree]
    while todo:
        item = todo.pop()
        if isinstance(item, list):
            parts.append(f"[{len(item)}")
            todo += reversed(item)
        elif isinstance(item, ast.AST):
            fields = [
                (name, getattr(item, name, None)) for name in item._fields if name not in ("kind", "type_comment")
            ]
            if isinstance(item, HOLDERS):
                fields = [(name, _without_docstring(item) if name == "body" else value) for name, value in fields]
            if not isinstance(item, ast.Constant):
                fields = [(name, value) for name, value in fields if value is not None and value != []]
            parts.append(f"{type(item).__name__}({','.join(name for name, _ in fields)}")
            todo += [value for _, value in reversed(fields)]
        else:
            # hexadecimal, because Python limits the digits of a decimal number
            parts.append(f"{type(item).__name__}:{hex(item) if isinstance(item, int) else repr(item)}")
    return parts


COMMON = r"""
    (?P<comment> //[^\n]* | /\*.*?\*/ )
  | (?P<space> \s+ )
  | (?P<text> "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])' | '\\[^'\n]*' )
  | (?P<word> [\w$]+ )
  | (?P<sign> >>>= | <=> | \.\.[.=] | >>> | [=!]== | (?:<<|>>|\*\*|&&|\|\||\?\?)=? | \+\+ | -- | [-=]> | :: | \?\. | \.\.
            | [-+*/%&|^<>=!]= | . )
"""
FIRST = {  # what the language has beside, tried first
    "cpp": r'(?P<raw> R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)" ) | (?P<line> ^[ \t]*\#(?:\\\n|[^\n])* ) | ',
    "javascript": r"(?P<raw> `(?:\\.|[^`\\])*` | '(?:\\.|[^'\\\n])*' ) | ",
    "java": r'(?P<raw> """.*?""" ) | ',
    "rust": r'(?P<raw> r(?P<mark>\#*)".*?"(?P=mark) ) | ',
}
TOKENS = {
    language: re.compile(first + COMMON, re.VERBOSE | re.DOTALL | re.MULTILINE) for language, first in FIRST.items()
}
# of JavaScript, where a slash follows what cannot be divided
PATTERN = re.compile(r"/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/\w*")
BEFORE_PATTERN = set("(,=:[!&|?{};") | {"return", "typeof", "case", "=>", "&&", "||", ""}


def _tokens(source: str, language: str) -> Iterator[str]:
    at, last = 0, ""
    while at < len(source):
        found = PATTERN.match(source, at) if language == "javascript" and last in BEFORE_PATTERN else None
        kind = "pattern" if found else None
        if found is None:
            found = TOKENS[language].match(source, at)
            kind = found.lastgroup
        at = found.end()
        if kind not in ("comment", "space"):
            last = " ".join(found[0].split()) if kind == "line" else found[0]
            yield last
