"""A stage graph as an SVG drawing: layers from top to bottom, matrix variants as one node, gates in their own shape.

Graphs are ``networkx.DiGraph`` with an edge from each stage to those that need it; node attributes ``description``
(text), ``kind`` (``"stage"``, ``"gate"`` or ``"last"``) and ``copies`` (number of matrix variants) may be missing.
"""

import math
from dataclasses import dataclass
from html import escape
from itertools import combinations, pairwise
from statistics import fmean

import networkx as nx

BOX_HEIGHT = 34.0
LAYER_DISTANCE = 70.0
GAP = 22.0  # between neighbours in a layer
MARGIN = 6.0
CHARACTER = 7.6  # a generous mean width of 13 px text in the usual system fonts
LANE = 4.0  # width kept free for an edge that passes a layer
SWEEPS = 12
STRAIGHTEN = 6.0


@dataclass(frozen=True)
class Layout:
    """Where things stand: centres and widths of boxes, and for each drawn edge its points (in px, y downwards)."""

    centre: dict[str, tuple[float, float]]
    width: dict[str, float]
    route: dict[tuple[str, str], list[tuple[float, float]]]
    size: tuple[float, float]


def collapse_variants(graph: nx.DiGraph) -> nx.DiGraph:
    """Join the nodes ``name@variant`` of a matrix to one node ``name`` with ``copies`` = number of variants.

    Where that would make a cycle (variants that feed each other crosswise) the graph is returned as it is.

    >>> graph = nx.DiGraph([("simulate@iris", "evaluate"), ("simulate@wine", "evaluate")])
    >>> sorted(collapse_variants(graph).nodes(data="copies"))
    [('evaluate', 1), ('simulate', 2)]
    """
    collapsed = nx.DiGraph()
    for name in sorted(graph):
        base = name.partition("@")[0]
        if base in collapsed:
            collapsed.nodes[base]["copies"] += 1
        else:
            collapsed.add_node(base, **{**graph.nodes[name], "copies": 1})
    ends = {(source.partition("@")[0], target.partition("@")[0]) for source, target in graph.edges}
    collapsed.add_edges_from(sorted((source, target) for source, target in ends if source != target))
    return collapsed if nx.is_directed_acyclic_graph(collapsed) else graph


def labels(graph: nx.DiGraph, prefix: str = "") -> dict[str, str]:
    """The text in each box: the name without the method's prefix, and ``×n`` for a matrix of n variants."""
    return {
        name: name.removeprefix(prefix) + (f"\u00a0×{copies}" if copies > 1 else "")
        for name, copies in graph.nodes(data="copies", default=1)
    }


def layout(graph: nx.DiGraph, label: dict[str, str]) -> Layout:
    """Place the nodes in layers so that every edge points down (Sugiyama's scheme; small graphs).

    A node's layer is the longest path that leads to it. Edges that longer paths imply are not routed. Edges over
    several layers get an invisible node in each, so that they pass between the boxes. Order within layers: sweeps
    by the mean position of neighbours, the order with the fewest crossings wins. Positions: least squares to the
    neighbours' mean under the minimal distances, which is an isotonic regression for each layer.

    Raises:
        ValueError: the graph has a cycle.
    """
    if not nx.is_directed_acyclic_graph(graph):
        raise ValueError("the stage graph has a cycle")
    rank = {node: level for level, nodes in enumerate(nx.topological_generations(graph)) for node in nodes}
    chains = {
        (source, target): [
            source,
            *((source, target, level) for level in range(rank[source] + 1, rank[target])),
            target,
        ]
        for source, target in sorted(nx.transitive_reduction(graph).edges)
    }
    wired = nx.DiGraph()
    wired.add_nodes_from(sorted(graph))
    for chain in chains.values():
        nx.add_path(wired, chain)
    width = {node: LANE if isinstance(node, tuple) else max(84.0, len(label[node]) * CHARACTER + 34) for node in wired}
    layers = _order(wired, [list(nodes) for nodes in _by_level(wired, rank)])
    across = _positions(wired, layers, width)
    left = min((across[node] - width[node] / 2 for node in wired), default=0.0) - MARGIN
    right = max((across[node] + width[node] / 2 for node in wired), default=0.0) + MARGIN
    point = {
        node: (round(across[node] - left, 1), MARGIN + BOX_HEIGHT / 2 + level * LAYER_DISTANCE)
        for level, nodes in enumerate(layers)
        for node in nodes
    }
    return Layout(
        centre={node: point[node] for node in sorted(graph)},
        width={node: width[node] for node in sorted(graph)},
        route={edge: _route([point[node] for node in chain]) for edge, chain in chains.items()},
        size=(round(right - left, 1), 2 * MARGIN + BOX_HEIGHT + max(len(layers) - 1, 0) * LAYER_DISTANCE),
    )


def _by_level(wired: nx.DiGraph, rank: dict) -> list[list]:
    levels = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    for node in wired:
        levels[node[2] if isinstance(node, tuple) else rank[node]].append(node)
    return levels


def _order(wired: nx.DiGraph, layers: list[list]) -> list[list]:
    """Reorder each layer by the mean position of its neighbours above, then below, and so on; keep the best."""
    best, fewest = layers, _crossings(wired, layers)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        layers = [list(nodes) for nodes in layers]
        neighbours = wired.pred if down else wired.succ
        for nodes in layers if down else reversed(layers):
            position = {node: i for level in layers for i, node in enumerate(level)}
            mean = {node: fmean([position[n] for n in neighbours[node]] or [position[node]]) for node in nodes}
            nodes.sort(key=mean.__getitem__)
        crossings = _crossings(wired, layers)
        if crossings < fewest:
            best, fewest = layers, crossings
    return best


def _crossings(wired: nx.DiGraph, layers: list[list]) -> int:
    count = 0
    for upper, lower in pairwise(layers):
        place = {node: i for i, node in enumerate(lower)}
        ends = [(i, place[target]) for i, node in enumerate(upper) for target in wired.succ[node]]
        count += sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in combinations(ends, 2))
    return count


def _positions(wired: nx.DiGraph, layers: list[list], width: dict) -> dict:
    """Centres across the layers: each node near the mean of its neighbours, none nearer than GAP to the next.

    Edges between a node's only follower and that one's only input weigh more, so that chains are drawn straight.
    """
    from scipy.optimize import isotonic_regression

    pull = {node: {} for node in wired}
    for source, target in wired.edges:
        chained = wired.out_degree(source) == wired.in_degree(target) == 1
        pull[source][target] = pull[target][source] = STRAIGHTEN if chained else 1.0
    weight = {node: sum(pulls.values()) or 1.0 for node, pulls in pull.items()}
    across = dict.fromkeys(wired, 0.0)
    for _ in range(4 * SWEEPS):
        for nodes in [*layers, *reversed(layers)]:
            offset = [0.0]
            for one, other in pairwise(nodes):
                offset.append(offset[-1] + (width[one] + width[other]) / 2 + GAP)
            wish = [sum(f * across[n] for n, f in pull[node].items()) / weight[node] for node in nodes]
            free = [place - o for place, o in zip(wish, offset, strict=True)]
            fitted = isotonic_regression(free, weights=[weight[node] for node in nodes]).x
            across.update({node: float(f) + o for node, f, o in zip(nodes, fitted, offset, strict=True)})
    return across


def _route(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """From the lower side of the first box to the upper side of the last, straight down through passed layers."""
    half = BOX_HEIGHT / 2
    between = [(x, y + side) for x, y in points[1:-1] for side in (-half, half)]
    return [(points[0][0], points[0][1] + half), *between, (points[-1][0], points[-1][1] - half)]


def draw(graph: nx.DiGraph, *, name: str, prefix: str = "") -> str:
    """The drawing as one ``<svg>`` element with its classes styled by the page; every text is escaped.

    Args:
        graph: the stages, see the module's docstring.
        name: what the drawing shows, for readers who do not see it; also makes its ids unique on a page.
        prefix: what to leave out at the beginning of each label; the tooltips have the full names.
    """
    label = labels(graph, prefix)
    plan = layout(graph, label)
    arrow = f"arrow-{escape(name)}"
    width, height = (math.ceil(side) for side in plan.size)
    parts = [
        f'<svg class="stage-graph" role="img" aria-label="Stage graph of {escape(name)}: {len(graph)} stages" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">',
        f'<defs><marker id="{arrow}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path class="arrow-head" d="M0 0.5 8 4 0 7.5z"/></marker></defs>',
    ]
    for points in plan.route.values():
        parts.append(f'<path class="edge" marker-end="url(#{arrow})" d="{_path(points)}"/>')
    for node, (x, y) in plan.centre.items():
        attributes = graph.nodes[node]
        kind = attributes.get("kind", "stage")
        description = attributes.get("description") or ""
        tooltip = f"{node}: {description}" if description else node
        parts.append(
            f'<g class="node {escape(kind)}"><title>{escape(tooltip)}</title>{_box(x, y, plan.width[node], kind)}'
            f'<text x="{x:g}" y="{y + 4.5:g}" text-anchor="middle">{escape(label[node])}</text></g>'
        )
    return "\n".join([*parts, "</svg>"])


def _path(points: list[tuple[float, float]]) -> str:
    steps = [f"M{points[0][0]:g} {points[0][1]:g}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        steps.append(f"L{x1:g} {y1:g}" if x0 == x1 else f"C{x0:g} {middle:g} {x1:g} {middle:g} {x1:g} {y1:g}")
    return "".join(steps)


def _box(x: float, y: float, width: float, kind: str) -> str:
    left, right, top, bottom = x - width / 2, x + width / 2, y - BOX_HEIGHT / 2, y + BOX_HEIGHT / 2
    if kind == "gate":  # a hexagon: pointed to the left and the right
        corners = [
            (left, y),
            (left + 12, top),
            (right - 12, top),
            (right, y),
            (right - 12, bottom),
            (left + 12, bottom),
        ]
        return '<polygon points="' + " ".join(f"{a:g},{b:g}" for a, b in corners) + '"/>'
    return f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{BOX_HEIGHT:g}" rx="6"/>'
