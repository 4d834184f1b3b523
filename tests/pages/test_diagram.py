"""Diagrams: boxes find their groups, groups open level by level, and circles of groups are cut into pieces."""

from __future__ import annotations

from graphc.pages.diagram import ROOM, BoxGroup, Diagram, build, first_open, page_nodes
from graphc.pages.graph_data import GraphCollector, Record
from tests.pages.nets import traced


def record(key: str, path: str = "", reads: str = "", **more: object) -> Record:
    """A node with one result of its name; ``reads`` are names, separated by spaces."""
    own: Record = {"key": key, "op": key, "kind": "op", "path": path.split("/") if path else []}
    return own | {"results": [[key, "f32[2]"]], "operands": reads.split(), **more}


def chain(*steps: tuple[str, str]) -> list[Record]:
    """Nodes of (key, path) that read each other in turn."""
    return [record(key, path, steps[i - 1][0] if i else "") for i, (key, path) in enumerate(steps)]


def titles(diagram: Diagram, group: BoxGroup | None = None) -> list[object]:
    """Nested lists of titles, each group's after its label."""
    group = diagram.root if group is None else group
    return [
        [m.label, *titles(diagram, m)] if isinstance(m, BoxGroup) else diagram.boxes[m].title for m in group.members
    ]


def test_groups_are_open_or_one_box():
    nodes = page_nodes(chain(("a", "m/0"), ("b", "m/0"), ("c", "m/1"), ("d", ""), ("e", "n")))
    assert titles(build(nodes, [])) == ["m", "d", "n"]
    assert titles(build(nodes, ["m", "m/0"])) == [["m", ["m.0", "a", "b"], "m.1"], "d", "n"]
    closed = build(nodes, ["m"], {"m": "Sequential", "m.0": "Pair"})
    assert closed.groups[1].title == "m: Sequential" and closed.boxes[2].title == "m.0: Pair"
    assert [(closed.boxes[a].title, closed.boxes[b].title) for a, b in closed.lines] == [
        *(("m.0: Pair", "m.1"), ("m.1", "d"), ("d", "n")),
    ]


def test_a_module_called_twice_is_cut_where_it_would_make_a_circle():
    diagram = build(page_nodes(chain(("a", "relu"), ("b", "conv"), ("c", "relu"))), ["relu", "conv"])
    assert titles(diagram) == [["relu", "a"], ["conv", "b"], ["relu", "c"]]
    assert [g.piece for g in diagram.groups[1:]] == [1, 1, 2]


def test_weights_belong_to_their_readers():
    weight = record("w", kind="param", weights=True) | {"op": "fc.weight", "results": [["w", "f32[3,4]"]]}
    nodes = page_nodes([weight, record("x", kind="input"), record("y", "fc", "x w f32(2.0)")])
    node = build(nodes, ["fc"]).boxes[-1]
    assert (node.title, node.lines) == ("y 2.0", ["weight  3×4"])
    closed = build(nodes, []).boxes[-1]
    assert (closed.title, closed.lines, closed.kind) == ("fc", ["weight  3×4"], "module")


def test_types_of_values_that_are_read_stand_below():
    boxes = build(page_nodes(chain(("a", ""), ("b", ""))), []).boxes
    assert [box.label for box in boxes] == ["2", ""]


def test_layers_are_closed_at_first_and_what_holds_them_is_open():
    graphs = traced()
    opened = {name: openness(name, graphs) for name in graphs}
    assert opened["Convolutions"] == ["head"]
    assert opened["Residual"] == ["blocks", "blocks/0", "blocks/1", "blocks/2"]
    assert opened["Loop"] == []
    assert opened["Many"] == ["blocks"]  # twenty open blocks would be more than there is room for


def openness(name: str, graphs: dict[str, tuple], **options: int | bool) -> list[str]:
    return first_open(nodes_of(graphs[name][1]), **options)


def nodes_of(graph) -> list:
    collector = GraphCollector()
    collector.add(graph)
    return page_nodes(collector.records)


def test_depth_and_detail():
    graphs = traced()
    assert openness("Residual", graphs, depth=1) == []
    assert openness("Residual", graphs, depth=2) == ["embed", "blocks", "mean"]
    every = openness("Loop", graphs, detail=True)
    assert any("scan" in key for key in every)
    nodes = nodes_of(graphs["Loop"][1])
    assert len(build(nodes, every).boxes) == len(nodes)
    many = nodes_of(graphs["Many"][1])
    assert len(build(many, first_open(many)).boxes) <= ROOM < len(build(many, first_open(many, depth=3)).boxes)
