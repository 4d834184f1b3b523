"""Graphs of entries, restricted by answers to questions about sizes."""

from __future__ import annotations

import pytest

import graphc as gc
from graphc.base.errors import CompileError
from graphc.base.sizes.assumptions import Assumption
from graphc.base.sizes.size import UndecidedSize
from graphc.ir.graph.graph import Graph
from graphc.models.sized_graph import made_for_all, restricted

ROWS = gc.Dim("rows", 1, 64, hint=8)


def doubled() -> Graph:
    return gc.trace(lambda x: x * 2, gc.ones(8, 2), dims=[(ROWS, None)])


def test_further_assumptions_restrict_a_copy():
    graph = doubled()
    (rows,) = graph.dims.values()
    half = restricted(graph, [Assumption("<=", graph.inputs[0].shape[0], 32, True)])
    assert [(d.low, d.high) for d in half.dims.values()] == [(1, 32)]
    assert graph.dims == {"rows": rows} and rows.high == 64


def test_questions_are_answered_for_the_expected_sizes():
    seen: list[Graph] = []

    def make(graph: Graph) -> Graph:
        seen.append(graph)
        if graph.dims["rows"].high > 8:
            raise CompileError("it depends") from UndecidedSize.of("<=", graph.inputs[0].shape[0], 8)
        return graph

    result, added = made_for_all(doubled(), make)
    assert len(seen) == 2 and result.dims["rows"].high == 8
    assert [str(a).partition(" (")[0] for a in added] == ["rows <= 8"]


def test_other_errors_are_raised():
    def make(graph: Graph) -> Graph:
        raise CompileError("no")

    with pytest.raises(CompileError, match="no"):
        made_for_all(doubled(), make)
