"""Programs are found in answers as models write them, and equal programs are known as equal."""

import time
import warnings

import pytest
from hypothesis import given as with_values
from hypothesis import settings
from hypothesis import strategies as st

from tasks.swiftcode.extraction import extract, identity

GIVEN = '```python\ndef f(x):\n    """Twice x.\n\n    ```\n    f(1)\n    ```\n    """\n   '
ONE = "def f(x):\n    return 1\n"
RUN = "cargo run\n"


def fenced(source: str, tag: str = "python") -> str:
    return f"```{tag}\n{source}```"


def python(response: str, given: str = "") -> str | None:
    return extract(response, "python", entry_point="f", given=given)


@pytest.mark.parametrize(
    "response",
    [
        f"Sure:\n\n{fenced(ONE)}\nIt returns 1.\n\n{fenced('def f(x): return 2')}",
        f"{fenced(RUN, 'bash')}\n{fenced(ONE)}",
        f"{fenced(RUN, 'bash')}\n{fenced(ONE, 'PY')}",
        fenced(ONE, "python3"),
        fenced(ONE, " python title=f"),
        fenced(ONE, ""),
        f"~~~python\n{ONE}~~~",
        f"````python\n{ONE}````\n```\n2\n```",
        f"```python\r\n{ONE}```\r\n".replace("\n", "\r\n").replace("\r\r", "\r"),
        f"\ufeff{fenced(ONE)}",
        "1. So:\n   ```python\n   def f(x):\n       return 1\n   ```\n   and so on",
        ONE,
        f"The answer.\n\n{ONE}\nThis function returns 1, as you can see.",
        f"{ONE}```\n\nThat was it.",
        f"{ONE}```\n\nOr:\n{fenced('def f(x): return 2')}",
        f"```python\n{ONE}",
        f"```python\n{ONE}\n\nprint(f(",
        f"```python\n{ONE}\nif True:\n    g = '''never\nended",
    ],
)
def test_the_program_is_found(response):
    assert python(response) == ONE


@pytest.mark.parametrize(
    "source",
    [
        "import math\nfrom os import path\n\n\n@cached\ndef g(x):\n    return x\n\n\n@cached\ndef f(x):\n    return g(x)\n",
        "class Solution:\n    def f(self, x):\n        return 1\n",
        "def f(x):\n    print('assert')\n    assert x\n    return 1\n\n\nprint(f(1))\n",
        "def f(x):\n    return '×\u2028\x0b日本' # ß\n",
        "def f(x):\n\tif x:\n\t\treturn 1\n",
        'def f(x):\n    """\n    ```python\n    f(1)\n    ```\n    """\n    return 1\n',
        "f = lambda x: 1\n",
    ],
)
def test_a_closed_block_is_taken_as_it_stands(source):
    assert python(f"See\n{fenced(source)}\nwell") == source
    assert extract(fenced(source), "python", entry_point=None) == source


def test_helpers_and_imports_before_a_bare_definition_stay_and_words_go():
    helpers = "import math\n\n\ndef helper(x):\n    return x\n\n\n@cached\n"
    assert python(f"from what you say, I think of\n\n{helpers}{ONE}\nwhich is so fast") == helpers + ONE
    assert python(f"import numpy, then say:\n{ONE}") == ONE


@pytest.mark.parametrize(
    "response",
    [
        "",
        "I cannot.",
        "```python\n```",
        fenced("def f(x:\n    return 1\n"),
        fenced("def f(x):\n\treturn 1\n        return 2\n"),
        fenced('def f(x):\n    """Only said."""\n'),
        'def f(x):\n    """Only said."""\n',
        "```python\ndef g(x):\n    return 1\n\ndef f(x):\n    return (",
        "def g(x):\n    return 1\n",
        fenced("def f(x):\n    return '\0'\n"),
        fenced("def f(x):\n    return '\ud800'\n"),
        fenced(f"def f(x):\n    return {'(' * 500}1{')' * 500}\n"),
        fenced(f"def f(x):\n    return '{'1' * 100_000}'\n"),
    ],
)
def test_where_there_is_no_program_none_is_made_up(response):
    assert python(response) is None


@pytest.mark.parametrize(
    ("response", "body"),
    [
        (" return 1\n```\nDone.\n```python\ndef f(x): return 2\n```", " return 1\n"),
        (" return 1\n", " return 1\n"),
        (" return 1\n\nThis function is fast.", " return 1\n"),
        (" y = 1\n    return y +", " y = 1\n"),
        (" return g(x)\n\n\ndef g(x):\n    return 1\n```", " return g(x)\n\n\ndef g(x):\n    return 1\n"),
    ],
)
@pytest.mark.parametrize("with_fence", [True, False])
def test_what_was_given_is_continued(response, body, with_fence):
    code = GIVEN.removeprefix("```python\n")
    assert python(response, GIVEN if with_fence else code) == code + body


@pytest.mark.parametrize("response", ["", "\n```", "```\nreturn 1\n```", " return (", "\n\nThe function"])
def test_given_code_alone_is_no_program(response):
    assert python(response, GIVEN) is None


def test_other_languages_are_left_to_their_compilers():
    source = "int main() { return 0\n"
    for tag in ("cpp", "c++", "C++", ""):
        assert extract(f"So:\n{fenced(source, tag)}", "cpp", entry_point=None) == source
    assert extract(f"{fenced(RUN, 'text')}\n{fenced(source, 'cpp')}", "cpp", entry_point=None) == source
    assert extract(source, "cpp", entry_point=None, given="```cpp\n") == source
    assert extract("words only", "cpp", entry_point=None) is None


@pytest.mark.parametrize(
    "response",
    [
        "```\n" * 25_000,
        "def f(x):\n" * 9_000,
        "import a\n" * 5_000 + "def f(x):\n    return (\n" + "x +\n" * 10_000,
        "```python\n" + ONE + "'''\n" * 20_000,
        "`" * 99_999,
        " " * 99_999,
        "```python\n" + "-" * 90_000 + "1\n",
        "```python\ndef f(x):\n    return " + "x." * 40_000 + "y\n```",
        "```python\ndef f(x):\n    return " + "1+" * 40_000 + "1\n```",
    ],
)
def test_nasty_answers_take_seconds_at_most(response):
    begin = time.process_time()
    source = python(response)
    if source is not None:
        identity(source, "python")
    assert time.process_time() - begin < 10


@settings(deadline=None, max_examples=150)
@with_values(
    st.lists(
        st.sampled_from(["```", "```python", "~~~", "def f(x):", "    return 1", '    """', "(", "\t", " ", "\r", "é"])
    )
)
def test_what_is_found_parses_and_is_found_again_in_its_own_fence(lines):
    source = python("\n".join(lines))
    if source is not None:
        compile(source, "found", "exec", dont_inherit=True, flags=0x400)  # the syntax tree only
        assert source.endswith("\n")
        assert python(f"~~~~~python\n{source}~~~~~") == source


def test_nothing_is_said_about_the_programs_style():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert identity(python(fenced("def f(x):\n    return x is 1 or '\\d'\n")), "python")


EQUAL = [
    ("python", ONE, "def f( x ) :   return 1   # one\n"),
    ("python", ONE, '"""Module."""\ndef f(x):\n    """Says."""\n\n    return 1'),
    ("python", "class A:\n    'Doc.'\n    x = u'1'", "class A:\n    x = '1'"),
    ("python", "x = 0x10", "x = 16"),
    ("cpp", "#include <a>\nint x; // one\n/* two\n */ int y;", "#include   <a>\nint x;int y ;"),
    ("javascript", "const a = 1 // one\nb(/\\/\\/x/g)", "const a=1 b( /\\/\\/x/g )"),
    ("java", "int x = 1; /* one */", "int x=1;"),
    ("cpp", "x = -1; a = b+++c", "x=-1;a = b++ + c"),
    ("rust", "fn f<'a>(x: &'a str) { } // a", "fn f<'a>(x:&'a str){}"),
]
DIFFERENT = [
    ("python", ONE, "def f(x):\n    return 1.0\n"),
    ("python", ONE, "def f(x):\n    return True\n"),
    ("python", ONE, "def f(x: int):\n    return 1\n"),
    ("python", "x = 'a'", "x = b'a'"),
    ("python", "x = y = 1", "x = 1\ny = 1"),
    ("python", "f(*a)", "f(**a)"),
    ("python", "def f():\n    return 1\n    'x'", "def f():\n    return 1"),
    ("python", "if a:\n    b\nc", "if a:\n    b\n    c"),
    ("python", "x[1:]", "x[:1]"),
    ("cpp", "a++ + b", "a + ++b"),
    ("cpp", 's = "//a";', 's = "//b";'),
    ("cpp", "#define A\nB", "#define A B"),
    ("cpp", "intx;", "int x;"),
    ("cpp", "c = '\"'; // \"a", "c = '\"'; // \"a\nx;"),
    ("cpp", 'R"(a " // 1)"', 'R"(a " // 2)"'),
    ("javascript", "a.split(/\\/\\/x/); b", "a.split(/\\/\\/x/); c"),
    ("javascript", "s = `//a ${b}`", "s = `//c ${b}`"),
    ("javascript", "s = '/* a'; t = '*/'", "s = '/* b'; t = '*/'"),
    ("javascript", "x = a / b; // c / d", "x = a / e; // c / d"),
    ("java", 's = """// a""";', 's = """// b""";'),
    ("rust", 'let s = r#"// a"#;', 'let s = r#"// b"#;'),
]


@pytest.mark.parametrize(("language", "first", "second"), EQUAL)
def test_layout_and_comments_change_no_identity(language, first, second):
    assert identity(first, language) == identity(second, language)


@pytest.mark.parametrize(("language", "first", "second"), DIFFERENT)
def test_other_programs_have_another_identity(language, first, second):
    assert identity(first, language) != identity(second, language)


def test_an_identity_is_sixteen_digits_that_stay_and_belong_to_the_language():
    assert identity(ONE, "python") == "95883cbbbc3265ec"
    assert len({identity("x", language) for language in ("python", "cpp", "javascript", "java", "rust")}) == 5
    with pytest.raises(SyntaxError):
        identity("def f(:", "python")
