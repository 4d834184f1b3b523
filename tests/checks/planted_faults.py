"""Faults of the compiler that tests plant, and a graph that meets them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphc.base.pass_runner import PassRun
from graphc.compiler import stages
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
from graphc.ir.op import REGISTRY

CHAIN = """
dim rows = 1..64 hint 4
graph @chain(%x: f32[rows,5], %w: f32[5,5] param "w") -> (f32[rows,5], f32[5,5]) {
  %a = matmul(%x, %w) : f32[rows,5]  // first model.py:3
  %b = exp(%a) : f32[rows,5]  // model.py:4
  %c = sin(%b) : f32[rows,5]  // model.py:5
  %d = maximum(%c, f32(0.0)) : f32[rows,5]  // model.py:6
  %e = add(%d, %b) : f32[rows,5]  // model.py:7
  %v = exp(%w) : f32[5,5]  // model.py:8
  return %e, %v
}
"""


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that takes the smaller where the larger is meant."""

    def passes(graph: Graph, *rest: Any) -> tuple[Graph, list[PassRun]]:
        graph, runs = run_passes(graph, *rest)
        for node in graph.nodes():
            if node.op.name == "maximum":
                node.op = REGISTRY["minimum"]
        return graph, runs

    run_passes = stages.run_passes
    monkeypatch.setattr(stages, "run_passes", passes)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lowering that fails for sines."""

    def lower(graph: Graph, *args: Any, **named: Any) -> Any:
        if any(node.op.name == "sin" for node in graph.nodes()):
            raise RuntimeError('no "sine" in \\ this """ machine')
        return lower_graph(graph, *args, **named)

    lower_graph = stages.lower_graph
    monkeypatch.setattr(stages, "lower_graph", lower)
    monkeypatch.setattr(stages, "possible_layouts", lambda *_: ("plain",))


def chain() -> tuple[Graph, list[np.ndarray]]:
    random = np.random.default_rng(0)
    return parse_graph(CHAIN), [random.standard_normal(s).astype(np.float32) for s in [(3, 5), (5, 5)]]


def names(graph: Graph) -> list[str]:
    return [n.op.name for n in graph.nodes() if not (n.results and n.results[0].is_scalar_constant)]
