"""What each grader reads out of a response, what it counts as right, and what must not bring it down."""

import json
import sys
import threading
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.prm import grading, reasoning
from tasks.prm.grading import Grade, grade
from tasks.stage import UserError

PROMPT = "Q:34-3+18*2\n"
WORKED = "Step 1:34-3=31\n\nStep 2:31+18=49\n\nStep 3:49*2=98\n\nAnswer:98"
HUGE = "9" * 5000  # Python refuses to read it as a whole number
NASTY = ["", " ", "nan", "inf", "-Infinity", "1e999", "1e999999999999", HUGE, "-" + HUGE, f"{HUGE}/{HUGE}", "1/0", "\0"]
NASTY += ["\ud800", "\\boxed{", "\\boxed{}", "\\boxed", "}" * 1000, "{" * 100_000, "Answer:", f"Answer:{HUGE}", "٣"]


def label(grader, response, answer, **more):
    found = grade(grader, response, answer, **more)
    return found.answer, found.correct


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (WORKED, Grade("98", True, -1)),
        (WORKED.replace("=98", "=88"), Grade("98", True, 33)),  # right for a wrong reason
        (WORKED.replace("Answer:98", "Answer:99"), Grade("99", False, 49)),
        (WORKED.replace("Answer:98", "Answer:098"), Grade("098", False, 49)),
        (WORKED.replace("Answer:98", "Answer:98+"), Grade(None, False, 49)),
        (WORKED.replace("Answer:98", "Answer:"), Grade(None, False, 49)),
        (WORKED.replace("Answer:98", "98"), Grade(None, False, 49)),
        (WORKED + "\n\nAnswer:97", Grade("97", False, 60)),  # the last one counts
        (WORKED + "\n\nAnswer:", Grade(None, False, 60)),
        ("Step 1:Answer:98", Grade(None, False, 0)),  # not at the beginning of a line
        ("", Grade(None, False, 0)),
    ],
)
def test_chain(response, expected):
    assert grade("chain", response, "98", prompt=PROMPT) == expected


def test_a_chain_needs_its_prompt():
    with pytest.raises(ValueError, match="is not the prompt of a chain"):
        grade("chain", WORKED, "98")


def test_a_response_without_its_end_is_never_correct():
    cases = [("chain", WORKED, "98"), ("number", "98", "98"), ("exact", "98", "98"), ("boxed", "\\boxed{98}", "98")]
    for grader, response, answer in cases:
        assert label(grader, response, answer, prompt=PROMPT) == ("98", True)
        assert label(grader, response, answer, prompt=PROMPT, finished=False) == ("98", False)
    assert grade("chain", WORKED, "98", prompt=PROMPT, finished=False).first_wrong == -1


@pytest.mark.parametrize(
    ("response", "answer", "expected"),
    [
        ("So the answer is 42.", "42", ("42", True)),
        ("42 or rather 43", "42", ("43", False)),
        ("1,234,567", "1234567", ("1234567", True)),
        ("1234567", "1,234,567", ("1234567", True)),
        ("0.50", "1/2", ("1/2", True)),
        (".5", "1/2", ("1/2", True)),
        ("it is -3/4", "-0.75", ("-3/4", True)),
        ("x = -4", "-4", ("-4", True)),
        ("x = \N{MINUS SIGN}4", "-4", ("-4", True)),
        ("7-4", "4", ("4", True)),
        ("f(7)-4", "-4", ("4", False)),
        ("+5", "5", ("5", True)),
        ("-$5.00", "-5", ("-5", True)),
        ("$1,234.50", "1234.5", ("2469/2", True)),
        ("50%", "50", ("50", True)),
        ("the pair 1,2", "2", ("2", True)),
        ("12,3456", "3456", ("3456", True)),  # no thousands: two numbers
        ("6.02e23", "602000000000000000000000", ("602000000000000000000000", True)),
        ("007", "7", ("7", True)),
        ("0.1", "0.1000000000000000055511151231257827", ("1/10", False)),  # exactly, not as floats
        ("#### 18", "5 + 13 #### 18", ("18", True)),
        ("none at all", "42", (None, False)),
        ("1/0", "0", (None, False)),
        ("42 and 1e999999999", "42", (None, False)),
        (f"42 and {HUGE}", "42", (None, False)),
        ("1e999", "1e999", (None, False)),
        ("inf", "inf", (None, False)),
        ("nothing", "nothing", (None, False)),  # two that cannot be read are not the same
        ("٣", "3", (None, False)),
    ],
)
def test_number(response, answer, expected):
    assert label("number", response, answer) == expected


@given(st.fractions(), st.sampled_from(["", "The answer is ", "3 + 4 = 8, so: ", "("]))
def test_every_fraction_is_read_back(value, before):
    assert grading.read_number(f"{before}{value}.") == value


@given(st.integers(-(10**15), 10**15))
def test_thousands_are_read_back(value):
    assert label("number", f"{value:,}", str(value)) == (str(value), True)


@pytest.mark.parametrize(
    ("response", "answer", "expected"),
    [
        (" Paris\n", "Paris", ("Paris", True)),
        ("paris", "Paris", ("paris", False)),
        ("Paris", " Paris ", ("Paris", True)),
        (" \n", "Paris", (None, False)),
    ],
)
def test_exact(response, answer, expected):
    assert label("exact", response, answer) == expected


@pytest.mark.parametrize(
    ("response", "answer", "expected"),
    [
        ("\\boxed{42}", "42", ("42", True)),
        ("\\boxed{41} no, \\boxed{42}.", "42", ("42", True)),
        ("$\\boxed{\\dfrac{1}{2}}$", "\\frac{1}{2}", ("\\frac{1}{2}", True)),
        ("\\boxed{\\tfrac12}", "\\frac12", ("\\frac12", True)),
        ("\\boxed{\\left( 3, \\frac{\\pi}{2} \\right)}", "(3,\\frac{\\pi}{2})", ("(3,\\frac{\\pi}{2})", True)),
        ("\\boxed{x \\leftarrow 1}", "x\\leftarrow1", ("x\\leftarrow1", True)),  # no \left of a bracket
        ("\\boxed{$5\\,000.$}", "5000", ("5000", True)),
        ("\\boxed{\\{1, 2\\}}", "\\{1,2\\}", ("\\{1,2\\}", True)),
        ("\\boxed{\\left\\{ x \\right.}", "\\{x", ("\\{x", True)),  # an escaped brace opens nothing
        ("\\boxed{42}", "so \\boxed{ 42 }", ("42", True)),  # a reference solution
        ("\\boxed{ }", "42", (None, False)),
        ("\\boxed{4{2}", "42", (None, False)),
        ("\\boxed{42} \\boxed{", "42", (None, False)),
        ("42", "42", (None, False)),
    ],
)
def test_boxed(response, answer, expected):
    assert label("boxed", response, answer) == expected


@given(
    st.recursive(
        st.sampled_from(["", "x", "1,2", "\\frac12", "\\}", "\\\\"]),
        lambda s: st.lists(s.map("{{{}}}".format), max_size=3).map("".join),
    )
)
def test_a_balanced_box_is_read_whole(content):
    assert grading.last_boxed(f"{{ }} \\boxed{{{content}}} }}") == content


@pytest.mark.parametrize("grader", ["chain", "number", "exact", "boxed"])
@pytest.mark.parametrize("response", NASTY, ids=range(len(NASTY)))
def test_nothing_that_a_model_writes_brings_a_grader_down(grader, response):
    found = grade(grader, response, "42", prompt=PROMPT)
    assert not found.correct
    assert found.answer is None or found.answer in response


def test_an_unknown_grader_is_refused():
    with pytest.raises(ValueError, match="grader 'number ' is not known"):
        grade("number ", "1", "1")


@pytest.mark.parametrize(
    ("grader", "prompt", "answer", "message"),
    [
        ("number", "?", "many", "answer 'many' holds no number"),
        ("chain", PROMPT, "97", "answer '97' is not the chain's, which is 98"),
        ("chain", "34-3", "31", "'34-3' is not the prompt of a chain"),
        ("exact", "?", " ", "answer ' ' is empty for grader exact"),
        ("boxed", "?", "\\boxed{ }", "is empty for grader boxed"),
        ("boxed", "?", "$ $", "is empty for grader boxed"),
        ("math_verify", "?", "", "is empty for grader math_verify"),
    ],
)
def test_problems_that_nobody_could_solve_are_told(grader, prompt, answer, message):
    with pytest.raises(ValueError, match=message):
        grading.check_problem(grader, prompt, answer)


def test_problems_that_can_be_solved_pass():
    for grader, answer in [("chain", "98"), ("number", "1/2"), ("exact", "x"), ("boxed", "x"), ("math_verify", "x")]:
        grading.check_problem(grader, PROMPT, answer)


# ---- optional libraries


@pytest.fixture
def absent(monkeypatch):
    for name in ("math_verify", "reasoning_gym"):
        monkeypatch.setitem(sys.modules, name, None)
    reasoning._scorer.cache_clear()
    yield
    reasoning._scorer.cache_clear()


ENTRY = json.dumps({"question": "?", "answer": "4", "metadata": {"source_dataset": "sums"}})


def test_a_missing_library_is_named_with_its_extra(absent):
    for grader, package in (("math_verify", "math-verify"), ("reasoning_gym", "reasoning-gym")):
        with pytest.raises(UserError, match=f"{grader} needs the package {package}; .*'.\\[{package}\\]'") as said:
            grade(grader, "4", "4", metadata=ENTRY)
        assert "\n" not in str(said.value)


@pytest.fixture
def gym(monkeypatch):
    """A stand-in for reasoning-gym: one generator, whose score is the share of the answer that is right."""

    def scorer(task):
        assert task == "sums"

        def score(answer, entry):
            if answer == "crash":
                raise RuntimeError("no expression")
            return {entry["answer"]: 1.0}.get(answer, 0.5 if entry["answer"] in answer else float("nan"))

        return score

    module = types.ModuleType("reasoning_gym")
    module.get_score_answer_fn = scorer
    monkeypatch.setitem(sys.modules, "reasoning_gym", module)
    reasoning._scorer.cache_clear()
    yield module
    reasoning._scorer.cache_clear()


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("4", ("4", True)),
        ("2 + 2 is\nAnswer: 4 ", ("4", True)),
        ("<answer>3</answer> no <answer> 4\n</answer>\nAnswer: 5", ("4", True)),
        ("the sum is 4", ("the sum is 4", False)),  # half a point is none
        ("5", ("5", False)),
        ("crash", ("crash", False)),
        ("", (None, False)),
    ],
)
def test_reasoning_gym_gives_its_whole_score_only(gym, response, expected):
    assert label("reasoning_gym", response, "4", metadata=ENTRY) == expected


def test_the_real_reasoning_gym():
    pytest.importorskip("reasoning_gym", reason="the optional package reasoning-gym is not installed")
    reasoning._scorer.cache_clear()
    for entry in reasoning.entries("gsm_symbolic", 3, seed=1, options={}):
        metadata = json.dumps(entry)
        assert label("reasoning_gym", entry["answer"], "", metadata=metadata) == (entry["answer"], True)
        assert label("reasoning_gym", entry["answer"] + "1", "", metadata=metadata)[1] is False


@pytest.fixture
def verify(monkeypatch):
    """A stand-in for math-verify that notes what it is asked."""
    module, asked = types.ModuleType("math_verify"), []

    def parse(text):
        asked.append(text)
        if text == "crash":
            raise RecursionError
        return [text.strip("\\boxed{}"), text.strip("\\boxed{} ")] if text != "none" else []

    module.parse, module.verify = parse, lambda gold, target: bool(target) and gold[0] == target[0]
    monkeypatch.setitem(sys.modules, "math_verify", module)
    return asked


def test_math_verify_is_asked_for_a_boxed_reference(verify):
    assert label("math_verify", "\\boxed{1}", "1") == ("1", True)
    assert verify == ["\\boxed{1}", "\\boxed{1}"]
    assert label("math_verify", "\\boxed{1}", "$1$")[1] is False
    assert verify[-1] == "$1$"
    assert label("math_verify", "none", "1") == (None, False)
    assert label("math_verify", "crash", "1") == (None, False)
    assert label("math_verify", "\\boxed{1}", "1", finished=False) == ("1", False)


def test_math_verify_outside_the_main_thread_is_an_error_and_not_a_wrong_answer(verify):
    said = []

    def ask():
        with pytest.raises(RuntimeError, match="in the main thread only") as error:
            grade("math_verify", "\\boxed{1}", "1")
        said.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert len(said) == 1


def test_the_real_math_verify():
    pytest.importorskip("math_verify", reason="the optional package math-verify is not installed")
    for response, answer, correct in [
        ("The answer is \\boxed{42}.", "42", True),
        ("0.5", "\\frac12", True),
        ("$1+x$", "x+1", True),
        ("\\boxed{41}", "42", False),
        ("no idea", "42", False),
        ("", "42", False),
    ]:
        assert grade("math_verify", response, answer).correct is correct
    assert grade("math_verify", "no idea", "42").answer is None
