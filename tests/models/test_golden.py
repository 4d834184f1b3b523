"""Sample calls: the first one is that of the examples, the others are like it, and all are the same each time."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphc as gc
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
from graphc.models.golden import sample_calls
from graphc.models.model_trace import entry_spec

TEXT = """
graph @picked(%x: f32[4,3], %rows: i64[2], %w: f32[3] param "w") -> (f32[4,3]) {
  %scaled = mul(%x, %w) : f32[4,3]
  return %scaled
}
"""


def _samples(graph: Graph, weights: dict[str, np.ndarray], examples: list[np.ndarray], count: int) -> Any:
    return sample_calls(entry_spec("forward", graph), [graph], weights, examples, count)


def test_samples_are_like_the_examples_and_outputs_those_of_the_references():
    x, rows = np.full((4, 3), 5, np.float32), np.array([3, 7])
    x[0] += 2
    weights = {"w": np.array([1, 2, 3], np.float32)}
    first, *others = _samples(parse_graph(TEXT, {}), weights, [x, rows], 4)
    assert (first.inputs[0] == x).all() and (first.outputs[0] == x * weights["w"]).all()
    for sample in others:
        assert set(sample.inputs[1]) <= {3, 7} and abs(sample.inputs[0].mean() - 5.5) < 1.5
        assert (sample.outputs[0] == sample.inputs[0] * weights["w"]).all()
    assert len({sample.inputs[0].tobytes() for sample in others}) == 3
    again = _samples(parse_graph(TEXT, {}), weights, [x, rows], 4)
    assert all((a.inputs[0] == b.inputs[0]).all() for a, b in zip(again, [first, *others], strict=True))


def test_a_graph_without_examples_is_called_with_zeros_of_the_expected_sizes():
    graph = gc.trace(lambda x: x + 1.0, gc.zeros(5, 2), dims=[(gc.Dim("batch", max=9, hint=5),)])
    (sample,) = _samples(graph, {}, [], 1)
    assert sample.inputs[0].shape == (5, 2) and (sample.outputs[0] == 1).all()
