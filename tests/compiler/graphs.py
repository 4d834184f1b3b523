"""Small graphs, as text, for the tests of the compiler and of model files."""

from __future__ import annotations

import numpy as np

from graphc.ir.graph.graph import Graph, input_class, input_path
from graphc.ir.graph.parse import parse_graph
from graphc.ops import registry

assert registry.FAMILIES

MLP = """
graph @mlp(%x: f32[4,17], %w: f32[32,17] param "fc.weight", %b: f32[32] param "fc.bias") -> (f32[4,32], f32[4]) {
  %h = matmul(%x, %w) {transpose_b=true} : f32[4,32]  // fc model.py:12
  %h1 = add(%h, %b) : f32[4,32]  // fc model.py:12
  %y = maximum(%h1, f32(0.0)) : f32[4,32]  // act model.py:13
  %s = sum(%y) {axes=[1]} : f32[4]  // model.py:14
  return %y, %s
}
"""
COUNTER = """
graph @counter(%x: f32[3], %n: f32[3] state "total") -> (f32[3]) {
  %k = constant() {value=f32[3](1.0, 2.0, 3.0)} : f32[3]
  %a = add(%n, %x) : f32[3]
  %u = state_write(%n, %a) : f32[3]
  %y = mul(%a, %k) : f32[3]
  return %y
}
"""


def mlp() -> Graph:
    """A linear layer with ReLU and row sums: two params, two outputs."""
    return parse_graph(MLP)


def counter() -> Graph:
    """Adds its input to a state and returns the new state times a constant."""
    return parse_graph(COUNTER)


def lookup() -> Graph:
    """Return a graph that adds a constant of 40 elements, stored outside of the text."""
    table = np.arange(40, dtype=np.float32)
    text = """
graph @lookup(%x: f32[40]) -> (f32[40]) {
  %t = constant() {value=DATA} : f32[40]
  %y = add(%x, %t) : f32[40]
  return %y
}
"""
    return parse_graph(text.replace("DATA", f"f32[40]({', '.join(map(str, table.tolist()))})"))


def arguments(graph: Graph, seed: int = 0) -> list[np.ndarray]:
    """Random arrays for the inputs, params and states of a graph."""
    random = np.random.default_rng(seed)
    return [random.standard_normal(v.shape).astype(v.dtype.numpy) for v in graph.inputs]


def weights(graph: Graph, arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of params and states, by path."""
    pairs = zip(graph.inputs, arrays, strict=True)
    return {input_path(v): a for v, a in pairs if input_class(v) != "input"}
