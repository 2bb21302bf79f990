"""The bundled tasks of programs are whole and well-formed. Nothing of them is executed here."""

import ast
import json
import re
import sys
from pathlib import Path

import pytest

from tasks.swiftcode import values

POOL = Path(values.__file__).parent / "pool"
SPECIFICATIONS = {file.parent.name: json.loads(file.read_text("utf-8")) for file in sorted(POOL.glob("*/task.json"))}
PROGRAMS = {task: specification for task, specification in SPECIFICATIONS.items() if specification["kind"] == "stdio"}
ENDINGS = {"python": ".py", "cpp": ".cpp", "javascript": ".js"}
LEAST = {"python": 3, "cpp": 2, "javascript": 2}
HEADERS = {"algorithm", "deque", "functional", "iostream", "map", "numeric", "queue", "set", "string", "unordered_map"}
every_task = pytest.mark.parametrize("task", PROGRAMS)
every_program = pytest.mark.parametrize(
    ("task", "language", "solution"),
    [
        (task, language, solution)
        for task, specification in PROGRAMS.items()
        for language, solutions in specification["solutions"].items()
        for solution in solutions
    ],
)


def source(task: str, language: str, solution: str) -> str:
    return (POOL / task / (solution + ENDINGS[language])).read_text("utf-8")


def imported(program: str) -> set[str]:
    """The top-level packages that a Python program imports."""
    modules = set()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module.split(".")[0])
    return modules


def test_there_are_eight_tasks_to_train_on_and_three_to_test():
    splits = [specification["split"] for specification in PROGRAMS.values()]
    assert (splits.count("train"), splits.count("test")) == (8, 3)
    assert PROGRAMS["edit_distance"]["split"] == "train"  # selection by memory needs it


@every_task
def test_the_specification_says_what_is_needed_and_no_more(task):
    specification = PROGRAMS[task]
    assert set(specification) == {"kind", "split", "compare", "tests", "sizes", "solutions"}
    assert specification["split"] in ("train", "test")
    assert specification["compare"] == "tokens"
    assert list(specification["sizes"]) == list(specification["solutions"]) == list(ENDINGS)
    assert all(type(size) is int and size >= 1000 for size in specification["sizes"].values())


@every_task
def test_the_folder_holds_the_listed_solutions_and_no_other_files(task):
    programs = set()
    for language, solutions in PROGRAMS[task]["solutions"].items():
        assert LEAST[language] <= len(set(solutions)) == len(solutions), language
        assert all(re.fullmatch("[a-z]+(_[a-z]+)*", solution) for solution in solutions), language
        programs |= {solution + ENDINGS[language] for solution in solutions}
    files = {path.name for path in (POOL / task).iterdir() if path.name != "__pycache__"}
    assert files == {"task.json", "prompt.md", "generator.py", *programs}


@every_task
def test_the_prompt_says_what_comes_in_and_what_goes_out(task):
    paragraphs = (POOL / task / "prompt.md").read_text("utf-8").split("\n\n")
    assert len(paragraphs) == 3
    assert paragraphs[0].endswith(".")
    assert paragraphs[1].startswith("Input: ")
    assert paragraphs[2].startswith("Output: ")
    assert paragraphs[2].endswith(".\n")
    assert re.search(r"\d", paragraphs[1]), "the limits of the input"


@every_task
def test_the_tests_are_distinct_texts_with_an_answer(task):
    tests = PROGRAMS[task]["tests"]
    assert len(tests) >= 5
    assert len({stdin for stdin, _ in tests}) == len(tests), "a test is there twice"
    assert len({stdout for _, stdout in tests}) >= 4, "a program that knows few answers passes"
    for stdin, stdout in tests:
        assert type(stdin) is type(stdout) is str
        assert stdin.strip()
        assert stdin.endswith("\n")
        assert stdout.strip()


@every_task
def test_the_generator_takes_a_size_and_a_seed_and_needs_nothing_but_random_numbers(task):
    generator = (POOL / task / "generator.py").read_text("utf-8")
    (generate,) = [node for node in ast.parse(generator).body if isinstance(node, ast.FunctionDef)]
    assert generate.name == "generate"
    assert [argument.arg for argument in generate.args.args] == ["size", "seed"]
    assert imported(generator) <= {"random", "math"}
    assert "random.Random(seed)" in generator
    assert not re.search(r"\brandom\.(?!Random\b)", generator), "the global generator is not seeded"


@every_program
def test_a_program_reads_and_prints_with_its_language_alone(task, language, solution):
    program = source(task, language, solution)
    if language == "python":
        assert imported(program) <= sys.stdlib_module_names
        assert re.search(r"sys\.stdin|\binput\(\)", program)
        assert "print(" in program
    elif language == "cpp":
        assert set(re.findall(r"#include <(.+)>", program)) <= HEADERS | {"utility", "vector"}
        assert '#include "' not in program
        assert "int main()" in program
        assert "std::cin" in program
        assert "std::cout" in program
    else:
        assert re.findall(r"require\((.+?)\)", program) == ['"fs"']
        assert "readFileSync(0" in program
        assert "console.log(" in program
    assert not re.search(r"sleep|setTimeout|chrono|subprocess|thread", program)


@every_task
def test_no_two_solutions_of_a_language_are_the_same_program(task):
    for language, solutions in PROGRAMS[task]["solutions"].items():
        programs = {"".join(source(task, language, solution).split()) for solution in solutions}
        assert len(programs) == len(solutions), language
