"""Tests of the record that passes return and of what makes something a pass."""

from __future__ import annotations

import dataclasses

import pytest

from graphc.ir.graph.graph import Graph
from graphc.passes.base import PassResult
from graphc.passes.dce import DeadCodeElimination


def test_result_and_pass_are_frozen():
    graph = Graph()
    result = PassResult(graph, 0)
    assert result.graph is graph
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.changed = 1  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        DeadCodeElimination().name = "other"  # type: ignore[misc]
    assert DeadCodeElimination() == DeadCodeElimination()
