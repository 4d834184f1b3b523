"""Faults of single passes made small and named."""

from __future__ import annotations

from typing import Any

import pytest

from graphc.checks.pass_faults import count_nodes, described, last_node, made_small, named_pass, place_of, wrong_at
from graphc.checks.pass_points import GRAPH, NATIVE, PROGRAM, Point
from graphc.ir.graph.graph import Graph
from graphc.ir.op import REGISTRY
from graphc.passes.canonicalize import Canonicalize
from graphc.passes.pipeline import PIPELINE
from tests.compiler.graphs import arguments, mlp

POINT = Point(GRAPH, 1, "canonicalize")


def plant(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Canonicalize.run

    def wrong(self: Canonicalize, graph: Graph) -> Any:
        result = run(self, graph)
        for node in result.graph.nodes():
            if node.op.name == "maximum":
                node.op = REGISTRY["minimum"]
        return result

    monkeypatch.setattr(Canonicalize, "run", wrong)


def test_what_is_right_is_not_wrong():
    graph = mlp()
    given = arguments(graph)
    points = (POINT, Point(PROGRAM, 0, "lowering"), Point(PROGRAM, 9, "nests/lanes"), Point(NATIVE, 0, "native"))
    assert [wrong_at(point)(graph, given) for point in points] == ["", "", "", ""]


def test_a_wrong_pass_is_made_small(monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch)
    graph = mlp()
    wrong = wrong_at(POINT)
    fault = made_small("forward", POINT, graph, arguments(graph), wrong)
    assert fault.graph is not None and fault.nodes == count_nodes(fault.graph) == 1
    assert fault.what.startswith("output 0 differs") and all(a.size == 1 for a in fault.arguments)
    assert place_of(fault) == "where  %y = minimum(%h1, f32(0.0)) : f32[1,1]\nfrom   act, model.py:13"


def test_passes_are_found_by_place_and_name():
    names = [p.name for p in PIPELINE]
    last = len(names) - 1 - names[::-1].index("canonicalize")
    assert named_pass(Point(GRAPH, last, "canonicalize"), PIPELINE) is PIPELINE[last]
    assert named_pass(Point(GRAPH, 0, "canonicalize"), PIPELINE) is PIPELINE[names.index("canonicalize")]


def test_nodes_are_described_with_their_lines():
    assert described(None) == "" and "model.py:13" in described(last_node(mlp()))
