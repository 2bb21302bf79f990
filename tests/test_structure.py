"""The rules of the house, checked on the import graph and on dvc.yaml."""

import ast
import re

import grimp
import pytest
import yaml

from tests.structure import ROOT, module_files, stages

STAGES = stages()


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("tasks", "flows", include_external_packages=True, cache_dir=None)


def verbs() -> dict[str, str | None]:
    """Modules that are stages, with the section of params.yaml that their `stage.command` names."""
    found = {}
    for file in sorted((ROOT / "tasks").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            for decorator in getattr(node, "decorator_list", []):
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "stage.command":
                    module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
                    found[module] = ast.literal_eval(decorator.args[0]) if decorator.args else None
    return found


@pytest.mark.parametrize("name", STAGES)
def test_deps_list_every_module_that_the_code_imports_and_no_other(name):
    listed = {dep for dep in STAGES[name]["deps"] if dep.startswith("tasks/") and dep.endswith(".py")}
    needed = module_files(" ".join(STAGES[name]["cmd"].split()))
    assert listed == needed, (
        f"dvc.yaml: {name}: deps lack {sorted(needed - listed)}, and need not list {sorted(listed - needed)}"
    )


@pytest.mark.parametrize("name", STAGES)
def test_stage_reads_exactly_the_parameters_that_it_declares(name):
    command = " ".join(STAGES[name]["cmd"].split())
    module = re.match(r"python -m (\S+)", command).group(1)
    section = verbs()[module]
    declared = [re.sub(r"\$\{.*?\}", "{}", entry) for entry in STAGES[name].get("params", [])]
    if module == "tasks.report.method":  # shows the whole section of the method that is its first argument
        section = command.split()[3]
    expected = [] if section is None else [re.sub(r"\{.*?\}", "{}", section)]
    assert declared == expected


def test_only_the_stage_contract_reads_params_yaml():
    reading = [
        str(file.relative_to(ROOT))
        for file in (ROOT / "tasks").rglob("*.py")
        if "PARAMETERS_FILE" in file.read_text(encoding="utf-8")
        or "load_parameters" in file.read_text(encoding="utf-8")
    ]
    # the report of a method shows the parameters: it declares the method's whole section
    assert set(reading) <= {"tasks/stage.py", "tasks/report/method.py"}


@pytest.mark.parametrize("name", STAGES)
def test_inputs_and_outputs_of_the_command_are_deps_and_outs(name):
    stage = STAGES[name]
    command = stage["cmd"].replace("'", "")  # the shell's quotes
    paths = [word for word in command.split() if "/" in word or word == "${item.path}"]
    outs = []
    for kind in ("outs", "metrics"):
        outs += [next(iter(entry)) if isinstance(entry, dict) else entry for entry in stage.get(kind, [])]
    after = re.findall(r"--\S+ (\S+)", command)
    assert sorted(outs) == sorted(after)
    assert set(paths) - set(after) <= set(stage["deps"])


def test_verdicts_cannot_be_skipped():
    gates = {name for name in STAGES if "-check-" in name}
    assert gates
    for gate in gates:
        verdict = STAGES[gate]["outs"][0]
        assert verdict.endswith(".json")
        assert "/checks/" in verdict
        using = [name for name, stage in STAGES.items() if verdict in stage["deps"]]
        assert using, f"no stage depends on the verdict of {gate}"


def test_every_stage_has_a_description_and_a_name_of_its_method():
    for name, stage in STAGES.items():
        assert stage.get("desc"), name
        method = name.split("-")[0]
        assert (ROOT / "tasks" / method / "params.py").exists(), name


def test_every_method_ends_with_a_stage_of_its_name_has_a_flow_and_a_deployment():
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    for params in (ROOT / "tasks").glob("*/params.py"):
        method = params.parent.name
        assert method in STAGES
        assert (ROOT / "flows" / f"{method}.py").exists()
        assert [d for d in deployments if d["entrypoint"].startswith(f"flows/{method}.py:")], method


def test_nouns_import_no_verbs(graph):
    stage_modules = set(verbs())
    for module in graph.modules:
        if module.startswith("tasks.") and module not in stage_modules:
            wrong = graph.find_modules_directly_imported_by(module) & stage_modules
            # a gate's expectations are run by tasks.gate and use its Check
            assert wrong <= ({"tasks.gate"} if module.endswith(".expectations") else set()), f"{module} imports {wrong}"


def test_methods_do_not_import_each_other(graph):
    methods = [f"tasks.{params.parent.name}" for params in (ROOT / "tasks").glob("*/params.py")]
    for method in methods:
        for module in [m for m in graph.modules if m == method or m.startswith(f"{method}.")]:
            for imported in graph.find_modules_directly_imported_by(module):
                others = [m for m in methods if m != method and (imported == m or imported.startswith(f"{m}."))]
                assert not others, f"{module} imports {imported}"


def test_tasks_know_neither_flows_nor_prefect(graph):
    for module in graph.modules:
        if module.startswith("tasks"):
            imported = graph.find_modules_directly_imported_by(module)
            assert not [m for m in imported if m.split(".")[0] in ("flows", "prefect")], module


def test_flows_import_only_parameters_and_the_contract_from_tasks(graph):
    for module in graph.modules:
        if module.startswith("flows"):
            imported = {m for m in graph.find_modules_directly_imported_by(module) if m.startswith("tasks")}
            assert not [m for m in imported if m != "tasks.stage" and not m.endswith(".params")], (module, imported)


def test_stage_modules_import_the_heavy_libraries_only_inside_their_functions():
    """`--help`, an unknown argument and a wrong parameter must answer at once."""
    heavy = {"torch", "transformers", "great_expectations", "sklearn", "matplotlib", "numba", "pandas", "pyarrow"}
    for module in verbs():
        tree = ast.parse((ROOT / (module.replace(".", "/") + ".py")).read_text(encoding="utf-8"))
        names = set()
        for node in tree.body:
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add((node.module or "").split(".")[0])
        assert not names & heavy, f"{module} imports {names & heavy} at its top"


EXECUTABLE = (
    r"import pickle\b",
    r"\bpickle\.",
    r"joblib\.dump",
    r"torch\.load\(",
    "trust_remote_code=True",
    "allow_pickle=True",
)


@pytest.mark.parametrize("pattern", EXECUTABLE)
def test_nothing_loads_or_stores_executable_data(pattern):
    for folder in ("tasks", "flows"):
        for file in (ROOT / folder).rglob("*.py"):
            assert not re.search(pattern, file.read_text(encoding="utf-8")), file
