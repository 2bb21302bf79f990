"""Join the report pages of all methods to one page, with the stage graph of each as DVC knows it."""

from pathlib import Path
from typing import Any

import networkx as nx
from markupsafe import Markup

from tasks import stage
from tasks.report import graph, page


@stage.command(None)
def write_index(reports: Path, *, out: Path) -> None:
    """Write the self-contained page of all methods."""
    stages = read_stage_graph(Path("."))
    methods = [describe(method, stages, reports) for method in find_methods(Path("tasks"), stages)]
    out.write_text(page.render("index.html", methods=methods), encoding="utf-8", newline="\n")


def read_stage_graph(root: Path) -> nx.DiGraph:
    """The stages of the DVC repository at ``root`` as names with descriptions, edges from a stage to its users."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        with Repo(str(root)) as repo:
            found = repo.index.graph
            stages = nx.DiGraph()
            for node in sorted(found, key=lambda node: node.addressing):
                stages.add_node(node.addressing, description=" ".join((node.desc or "").split()))
            ends = [(dependency.addressing, node.addressing) for node, dependency in found.edges]
    except DvcException as error:
        raise stage.UserError(f"dvc.yaml: DVC cannot read the stages: {' '.join(str(error).split())}") from None
    stages.add_edges_from(sorted(ends))
    return stages


def find_methods(tasks: Path, stages: nx.DiGraph) -> list[str]:
    """The folders of ``tasks`` that hold a ``params.py`` and have stages, in the order of their names."""
    names = sorted(file.parent.name for file in tasks.glob("*/params.py"))
    return [name for name in names if any(belongs(node, name) for node in stages)]


def belongs(node: str, method: str) -> bool:
    """Whether a stage is one of the method's: ``<method>`` or ``<method>-<verb>``, with or without ``@variant``.

    >>> belongs("bpr-train@small", "bpr"), belongs("bpr", "bpr"), belongs("bpr_long-train", "bpr")
    (True, True, False)
    """
    name = node.partition("@")[0]
    return name == method or name.startswith(f"{method}-")


def method_graph(stages: nx.DiGraph, method: str) -> nx.DiGraph:
    """The method's own stages and all that they need, variants joined, each with its kind for the drawing."""
    own = {node for node in stages if belongs(node, method)}
    needed = own.union(*(nx.ancestors(stages, node) for node in own))
    joined = graph.collapse_variants(stages.subgraph(needed).copy())
    for name, attributes in joined.nodes.items():
        is_gate = "check" in name.partition("@")[0].removeprefix(f"{method}-").split("-")
        attributes["kind"] = "last" if name == method else "gate" if is_gate else "stage"
    return joined


def describe(method: str, stages: nx.DiGraph, reports: Path) -> dict[str, Any]:
    """What the joined page shows of one method: the facts and the section of its page, if any, and its graph."""
    joined = method_graph(stages, method)
    order = [name for layer in nx.topological_generations(joined) for name in sorted(layer)]
    label = graph.labels(joined, f"{method}-")

    def short(name: str) -> str:
        return name.removeprefix(f"{method}-")

    shown = page.render(
        "stages.html",
        method=method,
        svg=Markup(graph.draw(joined, name=method, prefix=f"{method}-")),
        steps=[
            {**joined.nodes[name], "label": label[name], "needs": [short(n) for n in order if n in joined.pred[name]]}
            for name in order
        ],
    )
    file = reports / method / "index.html"
    if not file.is_file():
        return {"name": method, "facts": None, "section": Markup(shown)}
    try:
        section, facts = page.cut_section(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise stage.UserError(f"{file}: {error}; run make repro METHOD={method}") from None
    if facts["method"] != method:
        raise stage.UserError(f"{file}: expected the page of {method}, found that of {facts['method']}")
    section = page.demote_headings(section).replace(page.GRAPH, shown)
    return {"name": method, "facts": facts, "section": Markup(section)}


if __name__ == "__main__":
    write_index.run()
