"""Evaluation of a graph with f64 in place of f32: the reference for rounding errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import GraphcError
from graphc.ir.graph.graph import Graph, Node, Value, input_path
from graphc.ir.graph.interpret import Evaluator, bound_attrs, bound_sizes
from graphc.ir.op import Trait


class WideEvaluator(Evaluator):
    """Evaluates a graph with f64 in place of f32. Where an op cannot, it gets its operands in the types of the graph.

    Given the values of a run in the graph's own types, it copies all values other than floats from there. So both runs
    take the same side of every comparison.
    """

    def __init__(self, followed: Mapping[Value, Any] | None = None):
        super().__init__()
        self._followed = followed

    def run(self, graph: Graph, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs for NumPy arrays, in f64 where the graph has f32. Arguments may be wide already."""
        return super().run(graph, [_widened(np.asarray(a)) for a in arguments])

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Evaluate one node."""
        followed = self._followed
        if followed is not None and not any(v.dtype.kind == "f" for v in node.results):
            results: Sequence[Any] = [followed[v] for v in node.results]
        elif _keeps(node):
            results = [operands[0]]
        else:
            results = self._evaluated(node, operands)
        if node.op.has(Trait.STATE_WRITE):
            self.state[input_path(node.operands[0])] = results[0]
        return results

    def _evaluated(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        attrs = bound_attrs(node, self.sizes) if self.sizes else node.attrs
        try:
            with np.errstate(all="ignore"):
                results = [_widened(a) for a in node.op.evaluate(operands, attrs)]
        except (GraphcError, TypeError, ValueError):
            results = []
        if results and all(self._fits(v, a) for v, a in zip(node.results, results, strict=True)):
            return results
        pairs = zip(node.operands, operands, strict=True)
        with np.errstate(all="ignore"):
            narrow = [np.asarray(a, v.dtype.numpy) if v.dtype.kind == "f" else a for v, a in pairs]
            return [_widened(a) for a in node.op.evaluate(narrow, attrs)]

    def _fits(self, value: Value, array: np.ndarray) -> bool:
        shape = bound_sizes(value.shape, self.sizes) if self.sizes else value.shape
        dtype = np.dtype(np.float64) if value.dtype.kind == "f" else value.dtype.numpy
        return array.shape == shape and array.dtype == dtype


def _keeps(node: Node) -> bool:
    """Return whether the node only converts a float to another precision."""
    if len(node.operands) != 1 or len(node.results) != 1:
        return False
    old, new = node.operands[0].type, node.results[0].type
    both = old.dtype.kind == "f" and new.dtype.kind == "f"
    return both and old.dtype is not new.dtype and old.shape == new.shape


def _widened(array: Any) -> Any:
    array = np.asarray(array)
    return array.astype(np.float64) if array.dtype == np.float32 else array
