"""Pictures of traced graphs: one box per node, parameters near their readers, groups by module."""

from __future__ import annotations

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from graphc.pages.from_graph import graph_diagram


def make() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


def test_boxes_and_groups():
    graph = gc.trace(make().eval(), gc.zeros(5, 3))
    diagram = graph_diagram(graph)
    titles = [b.title for b in diagram.boxes]
    assert titles.count("matmul") == 2
    assert {"input", "0.weight", "1.running_mean", "output"} <= set(titles)
    by_title = {b.title: (b, diagram.homes[i]) for i, b in enumerate(diagram.boxes)}
    assert by_title["3.weight"][1].path == ("3",)
    assert by_title["1.running_mean"][1].path == ("1",)
    assert by_title["input"][1] is diagram.root
    assert by_title["3.weight"][0].kind == "param"
    assert by_title["1.running_mean"][0].kind == "state"
    assert by_title["matmul"][0].kind == "product"
    assert by_title["matmul"][0].detail == "f32[5,2]"
    assert "transpose_b = " in by_title["matmul"][0].tip


def test_scalars_are_written_into_their_readers():
    diagram = graph_diagram(gc.trace(lambda x: x * 2.5 + 1, gc.zeros(3)))
    assert [b.title for b in diagram.boxes] == ["x", "mul 2.5", "add 1.0", "output"]
    assert diagram.lines == [(0, 1), (1, 2), (2, 3)]


def test_constants_and_several_outputs():
    table = gc.tensor([1.0, 2.0, 3.0])
    diagram = graph_diagram(gc.trace(lambda x: (x + table, x), gc.zeros(3)))
    kinds = [b.kind for b in diagram.boxes]
    assert kinds.count("constant") == 1
    assert [b.title for b in diagram.boxes if b.kind == "output"] == ["output 0", "output 1"]


def test_writes_of_state_stand_with_their_module():
    diagram = graph_diagram(gc.trace(make().train(), gc.zeros(5, 3)))
    writes = [i for i, b in enumerate(diagram.boxes) if b.title == "state_write"]
    assert len(writes) == 3
    assert {diagram.homes[i].path for i in writes} == {("1",)}


def test_depth():
    graph = gc.trace(make(), gc.zeros(5, 3))
    assert [b.title for b in graph_diagram(graph, depth=1).boxes if b.kind == "module"] == ["0", "1", "2", "3"]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 8)
        self.act = nn.GELU()

    def forward(self, x):
        h = self.act(self.fc(x))
        h = F.silu(h)
        return F.log_softmax(h, dim=1)


def test_layers_and_functions_are_groups_with_classes_and_shapes():
    model = nn.Sequential(Block(), nn.Linear(8, 3))
    graph = gc.trace(model, gc.randn(2, 6))
    opened = graph_diagram(graph, module=model)
    assert [g.title for g in opened.groups()] == [
        *("", "0: Block → f32[2,8]", "1: Linear → f32[2,3]", "fc: Linear → f32[2,8]", "act: GELU → f32[2,8]"),
        *("F.silu → f32[2,8]", "F.log_softmax → f32[2,8]"),
    ]
    assert [(b.title, b.detail) for b in graph_diagram(graph, 1, model).boxes if b.kind == "module"] == [
        *(("0: Block", "f32[2,8]"), ("1: Linear", "f32[2,3]")),
    ]
    assert [g.label for g in graph_diagram(graph).groups()][1:3] == ["0", "1"]


def test_bodies_of_loops_are_groups():
    def loop(x):
        return gc.scan(lambda c, v: (c * v, c + v), x[0], x)[0]

    found = graph_diagram(gc.trace(loop, gc.randn(5, 3)))
    (scan,) = [g for g in found.groups() if g.label.startswith("scan")]
    inside = [g for g in found.groups() if g.parent is scan]
    assert inside and {"mul", "add", "results"} <= {found.boxes[m].title for m in inside[0].members if type(m) is int}
    closed = graph_diagram(gc.trace(loop, gc.randn(5, 3)), 1)
    assert any(b.kind == "module" and b.title.startswith("scan") for b in closed.boxes)
