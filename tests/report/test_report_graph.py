"""The drawing of a stage graph: every stage once, every edge downwards, nothing on top of another."""

import xml.etree.ElementTree as ElementTree
from itertools import combinations, pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.report.graph import BOX_HEIGHT, collapse_variants, draw, labels, layout

SVG = "{http://www.w3.org/2000/svg}"


@st.composite
def graphs(draw_value):
    """Acyclic graphs of up to twelve stages."""
    size = draw_value(st.integers(1, 12))
    names = [f"stage-{i}" for i in draw_value(st.permutations(range(size)))]
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from(pair for pair in combinations(names, 2) if draw_value(st.booleans()))
    return graph


@given(graphs())
@settings(max_examples=40, deadline=None)
def test_layout(graph):
    plan = layout(graph, labels(graph))
    assert set(plan.centre) == set(graph)
    for source, target in graph.edges:
        assert plan.centre[target][1] > plan.centre[source][1]
    assert set(plan.route) == set(nx.transitive_reduction(graph).edges)
    for points in plan.route.values():
        assert all(after[1] > before[1] for before, after in pairwise(points))
    for one, other in combinations(graph, 2):
        (x0, y0), (x1, y1) = plan.centre[one], plan.centre[other]
        assert y0 != y1 or abs(x0 - x1) >= (plan.width[one] + plan.width[other]) / 2
    for node, (x, y) in plan.centre.items():
        assert plan.width[node] / 2 <= x <= plan.size[0] - plan.width[node] / 2
        assert BOX_HEIGHT / 2 <= y <= plan.size[1] - BOX_HEIGHT / 2


@given(graphs())
@settings(max_examples=20, deadline=None)
def test_edges_pass_between_the_boxes_of_other_layers(graph):
    plan = layout(graph, labels(graph))
    for (source, target), points in plan.route.items():
        for node in set(graph) - {source, target}:
            x, y = plan.centre[node]
            for px, py in points:
                inside = abs(px - x) < plan.width[node] / 2 and abs(py - y) <= BOX_HEIGHT / 2
                assert not inside


@given(graphs())
@settings(max_examples=20, deadline=None)
def test_drawing_does_not_depend_on_the_order_of_insertion(graph):
    other = nx.DiGraph()
    other.add_nodes_from(reversed(list(graph)))
    other.add_edges_from(reversed(list(graph.edges)))
    assert draw(other, name="m") == draw(graph, name="m")


def test_variants_are_one_node():
    graph = nx.DiGraph([(f"m-{a}@{v}", f"m-{b}@{v}") for v in ("iris", "wine") for a, b in [("a", "b"), ("b", "c")]])
    graph.add_edges_from([("m-c@iris", "m"), ("m-c@wine", "m")])
    joined = collapse_variants(graph)
    assert sorted(joined.edges) == [("m-a", "m-b"), ("m-b", "m-c"), ("m-c", "m")]
    assert labels(joined, "m-")["m-a"] == "a\u00a0×2"
    assert labels(joined, "m-")["m"] == "m"


def test_variants_that_feed_each_other_stay_apart():
    graph = nx.DiGraph([("a@1", "b@1"), ("b@1", "a@2")])
    assert set(collapse_variants(graph)) == {"a@1", "b@1", "a@2"}
    assert set(collapse_variants(nx.DiGraph([("a@1", "a@2")]))) == {"a"}


def test_every_stage_is_drawn_with_its_shape_and_tooltip():
    graph = nx.DiGraph([("m-ingest", "m-check-x"), ("m-check-x", "m"), ("m-ingest", "m")])
    graph.nodes["m-ingest"]["description"] = 'Read "<x>" & co.'
    graph.nodes["m-check-x"]["kind"] = "gate"
    svg = ElementTree.fromstring(draw(graph, name="m", prefix="m-"))
    groups = {group.find(f"{SVG}title").text: group for group in svg.iter(f"{SVG}g")}
    assert set(groups) == {'m-ingest: Read "<x>" & co.', "m-check-x", "m"}
    assert groups["m-check-x"].find(f"{SVG}polygon") is not None
    assert groups["m"].find(f"{SVG}rect") is not None
    assert [text.text for text in svg.iter(f"{SVG}text")] == ["m", "check-x", "ingest"]
    assert sum(path.get("class") == "edge" for path in svg.iter(f"{SVG}path")) == 2  # the direct one is implied


def test_cycle_is_refused():
    with pytest.raises(ValueError, match="cycle"):
        draw(nx.DiGraph([("a", "b"), ("b", "a")]), name="m")


def test_empty_graph():
    assert ElementTree.fromstring(draw(nx.DiGraph(), name="m")).find(f"{SVG}g") is None
