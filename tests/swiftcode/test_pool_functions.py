"""The bundled function tasks are whole and well-formed. Nothing of them is executed here."""

import ast
import json
import sys
from pathlib import Path

import pytest

from tasks.swiftcode import values

POOL = Path(values.__file__).parent / "pool"
SPECIFICATIONS = {file.parent.name: json.loads(file.read_text("utf-8")) for file in sorted(POOL.glob("*/task.json"))}
FUNCTIONS = {
    task: specification for task, specification in SPECIFICATIONS.items() if specification["kind"] == "function"
}
KEYS = {"kind", "entry_point", "split", "compare", "tests", "sizes", "solutions"}
every_task = pytest.mark.parametrize("task", FUNCTIONS)


def function(source: str, name: str) -> ast.FunctionDef:
    """The only function of that name at the top of a program."""
    (found,) = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == name]
    return found


def prompt(task: str) -> str:
    return (POOL / task / "prompt.md").read_text("utf-8")


def given(task: str) -> ast.FunctionDef:
    """The function that the prompt begins, with a body."""
    return function(prompt(task) + "    pass\n", task)


def signature(node: ast.FunctionDef) -> tuple[str, str]:
    return ast.unparse(node.args), ast.unparse(node.returns)


def test_there_are_tasks_of_both_splits_and_most_have_a_choice():
    splits = [specification["split"] for specification in FUNCTIONS.values()]
    assert (splits.count("train"), splits.count("test")) == (28, 16)
    assert sum(len(specification["solutions"]["python"]) >= 2 for specification in FUNCTIONS.values()) >= 24


def test_prompts_are_unique():
    prompts = [prompt(task) for task in FUNCTIONS]
    assert len({ast.get_docstring(given(task)).splitlines()[0] for task in FUNCTIONS}) == len(set(prompts)) == 44


@every_task
def test_the_specification_says_what_is_needed_and_no_more(task):
    specification = FUNCTIONS[task]
    tolerances = {"rtol", "atol"} if specification["compare"] == "float" else set()
    assert set(specification) == KEYS | tolerances
    assert specification["entry_point"] == task
    assert specification["split"] in ("train", "test")
    assert specification["compare"] in ("exact", "float", "unordered")
    assert set(specification["sizes"]) == set(specification["solutions"]) == {"python"}
    assert type(specification["sizes"]["python"]) is int
    assert specification["sizes"]["python"] >= 1


@every_task
def test_the_folder_holds_the_listed_solutions_and_no_other_files(task):
    solutions = FUNCTIONS[task]["solutions"]["python"]
    assert 1 <= len(set(solutions)) == len(solutions) <= 4
    files = {path.name for path in (POOL / task).iterdir() if path.name != "__pycache__"}
    assert files == {"task.json", "prompt.md", "generator.py", *(f"{solution}.py" for solution in solutions)}


@every_task
def test_the_prompt_is_a_typed_function_that_lacks_only_its_body(task):
    node = given(task)
    assert prompt(task).endswith('"""\n')
    assert ast.get_docstring(node)
    assert len(node.body) == 2  # docstring and the added body
    assert all(argument.annotation is not None for argument in node.args.args)
    assert node.returns is not None
    assert f">>> {task}(" in ast.get_docstring(node)


@every_task
def test_the_example_of_the_prompt_is_one_of_the_tests(task):
    lines = ast.get_docstring(given(task)).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(">>> "))
    arguments = [ast.literal_eval(node) for node in ast.parse(lines[at][4:], mode="eval").body.args]
    assert [arguments, ast.literal_eval(lines[at + 1])] in FUNCTIONS[task]["tests"]


@every_task
def test_every_solution_has_the_signature_of_the_prompt(task):
    sources = set()
    for solution in FUNCTIONS[task]["solutions"]["python"]:
        source = (POOL / task / f"{solution}.py").read_text("utf-8")
        assert signature(function(source, task)) == signature(given(task)), solution
        assert imported(source) <= sys.stdlib_module_names, solution
        sources.add(ast.dump(ast.parse(source)))
    assert len(sources) == len(FUNCTIONS[task]["solutions"]["python"]), "two solutions are the same program"


@every_task
def test_the_generator_takes_a_size_and_a_seed(task):
    source = (POOL / task / "generator.py").read_text("utf-8")
    assert [argument.arg for argument in function(source, "generate").args.args] == ["size", "seed"]
    assert imported(source) <= {"random", "string"}


def imported(source: str) -> set[str]:
    """The top-level packages that a program imports."""
    modules = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module.split(".")[0])
    return modules


@every_task
def test_the_tests_are_values_of_the_types_that_the_signature_names(task):
    node = given(task)
    parameters = [ast.unparse(argument.annotation) for argument in node.args.args]
    tests = values.loads(json.dumps(FUNCTIONS[task]["tests"]))
    assert values.loads(values.dumps(tests)) == tests
    assert len(tests) >= 5
    assert len({values.dumps(arguments) for arguments, _ in tests}) == len(tests), "a test is there twice"
    for arguments, expected in tests:
        assert len(arguments) == len(parameters)
        assert all(is_a(value, annotation) for value, annotation in zip(arguments, parameters, strict=True)), arguments
        assert is_a(expected, ast.unparse(node.returns)), expected


def is_a(value, annotation: str) -> bool:
    """Whether the value is of a type such as ``list[int]``, where a whole number does for a float."""
    outer, _, inner = annotation.partition("[")
    kinds = {"int": (int,), "float": (float, int), "bool": (bool,), "str": (str,), "list": (list,), "dict": (dict,)}
    if type(value) not in kinds[outer]:
        return False
    if outer == "list":
        return all(is_a(item, inner.removesuffix("]")) for item in value)
    if outer == "dict":
        return all(
            type(key) is str and is_a(item, inner.removesuffix("]").split(", ")[1]) for key, item in value.items()
        )
    return True
