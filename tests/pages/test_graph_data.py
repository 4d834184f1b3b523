"""Graphs as plain data: what a record says, and that equal nodes are written once."""

from __future__ import annotations

import graphc as gc
from graphc import nn
from graphc.ir.graph.parse import parse_graph
from graphc.pages.graph_data import GraphCollector, groups_of, inside_of, node_key

TEXT = """
graph @f(%x: f32[2,3], %w: f32[4,3] param "fc.weight") -> (f32[2,4]) {
  %y = matmul(%x, %w) {transpose_b=true} : f32[2,4]  // fc net.py:3
  %z = maximum(%y, f32(0.0)) : f32[2,4]  // net.py:4
  return %z
}
"""


def records(recorder: GraphCollector, graph: int) -> dict[str, dict]:
    return {recorder.records[i]["key"]: recorder.records[i] for i in recorder.graphs[graph]}


def test_records_of_nodes_inputs_and_outputs():
    recorder = GraphCollector()
    found = records(recorder, recorder.add(parse_graph(TEXT)))
    assert list(found) == ["x", "w", "y", "z", "output:0"]
    assert found["w"] == {
        "key": "w",
        "op": "fc.weight",
        "kind": "param",
        "path": [],
        "results": [["w", "f32[4,3]"]],
        "operands": [],
        "weights": True,
    }
    product = found["y"]
    assert product["path"] == ["fc"] and product["kind"] == "product" and product["operands"] == ["x", "w"]
    assert product["attrs"] == [["transpose_b", "true"]] and product["line"] == "net.py:3"
    assert found["z"]["operands"] == ["y", "f32(0.0)"] and found["z"]["path"] == []
    assert found["output:0"]["operands"] == ["z"] and found["output:0"]["results"] == []


def test_equal_graphs_and_nodes_are_written_once():
    recorder = GraphCollector()
    graph = parse_graph(TEXT)
    assert recorder.add(graph) == recorder.add(parse_graph(TEXT)) == 0
    count = len(recorder.records)
    graph.set_outputs([graph.nodes()[0].result])
    assert recorder.add(graph) == 1 and len(recorder.graphs) == 2
    assert len(recorder.records) == count + 1


def test_what_a_node_holds_stands_between_what_it_gives_and_its_results():
    net = nn.LSTM(3, 4)
    recorder = GraphCollector()
    graph = gc.trace(net, gc.zeros(5, 1, 3))
    found = records(recorder, recorder.add(graph))
    (scan,) = (n for n in graph.nodes() if n.op.name == "scan")
    key = node_key(scan)
    inside = [r for k, r in found.items() if k.startswith(inside_of(scan, "body"))]
    assert found[key]["results"] == [[f"{key}.given", ""]]
    assert [name for name, _ in found[f"{key}.results"]["results"]] == [v.name for v in scan.results]
    assert len(inside) > 5 and all(r["path"][-1] == "body" for r in inside)
    known = {name for r in found.values() for name, _ in r["results"]}
    assert {o for r in found.values() for o in r["operands"]} <= known


def test_groups_are_the_parts_of_module_paths_and_of_names_with_slashes():
    assert groups_of("blocks.0.conv") == ["blocks", "0", "conv"]
    assert groups_of("/layers.0/attention/MatMul") == ["layers.0", "attention"]
    assert groups_of("") == []
