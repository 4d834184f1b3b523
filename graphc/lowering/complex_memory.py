"""Complex arguments and results in programs of real numbers: an additional last dimension of 2, as in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value, input_role
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.kernel.statements import Program
from graphc.ir.op import Trait
from graphc.ir.types import TensorType


def has_complex(graph: Graph) -> bool:
    """Check whether an argument or result of a graph is complex."""
    return any(v.dtype.is_complex for v in (*graph.inputs, *graph.outputs))


class _OnReal(Reemitter):
    def copy_input(self, value: Value) -> Value:
        """Return the input, with a complex one as real numbers of one more dimension."""
        if not value.dtype.is_complex:
            return super().copy_input(value)
        type = TensorType(value.dtype.real, (*value.shape, 2))
        return self.target.add_input(type, value.name, *input_role(value))

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Return the results of the node; ops that only reinterpret memory vanish.

        Complex constants remain only as results of the graph, and become real arrays.
        """
        if node.op is CONSTANT and node.results[0].dtype.is_complex:
            value = node.attrs["value"]
            attrs = {"value": np.stack([value.real, value.imag], axis=-1)}
            return emit(self.target, CONSTANT, (), attrs, node.location, node.results[0].name)
        return operands if node.op.has(Trait.REINTERPRETS) else self.copy_node(node, operands)


def on_real_memory(graph: Graph) -> Graph:
    """Return the graph with complex inputs and results as real arrays.

    Needs: a graph after SplitComplex. Leaves: an equivalent graph on real numbers only.
    """
    return _OnReal().transform(graph)


def on_complex_memory(program: Program, graph: Graph) -> Program:
    """Mark the complex arguments and results of ``graph`` in the program of ``on_real_memory(graph)``."""
    flags = [v.dtype.is_complex for v in (*graph.inputs, *graph.outputs)]
    bordering = [replace(s, complex=flag) for s, flag in zip(program.storages, flags, strict=False)]
    return replace(program, storages=(*bordering, *program.storages[len(bordering) :]))
