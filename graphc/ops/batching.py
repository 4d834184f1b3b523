"""Vectorizing map: apply ops and graphs to every entry of a batch at once, by the batching rules of the ops.

The first dimension of a batched operand, and of every result, is the batch. ``run_batched`` applies a graph that way;
an op without a rule is applied to one entry after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import dtype_of, number_of
from graphc.ir.graph.graph import CONSTANT, Graph, Node
from graphc.ir.graph.interpret import Interpreter, live_nodes
from graphc.ir.op import Attrs, OpDef, Trait
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.batch import BatchedOperand, spread
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.movement.shape import concat, reshape, slice
from graphc.ops.pointwise.elementwise import mul
from graphc.ops.reduction.reduce import sum as add_up


def apply_batched(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> tuple[Any, ...]:
    """Return the batched results of an op."""
    if op.has(Trait.ELEMENTWISE):
        results = _elementwise(op, operands, attrs)
    else:
        results = op.batch(op, size, operands, attrs) if op.batch is not None else None
        results = _one_by_one(op, size, operands, attrs) if results is None else results
    return results if isinstance(results, tuple) else (results,)


def _one_by_one(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> tuple[Any, ...]:
    rows = []
    for i in range(size):
        values = [_row(e.value, i) if e.batched else e.value for e in operands]
        results = dispatch.apply(op, values, attrs)
        rows.append(results if isinstance(results, tuple) else (results,))
    stacked = [[reshape(v, shape=(1, *v.shape)) for v in column] for column in zip(*rows, strict=True)]
    return tuple(concat(*column, axis=0) for column in stacked)


def _row(value: Any, i: int) -> Any:
    rest = tuple(value.shape[1:])
    entry = slice(value, starts=(i, *(0 for _ in rest)), stops=(i + 1, *rest), steps=(1, *(1 for _ in rest)))
    return reshape(entry, shape=rest)


def _elementwise(op: OpDef, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    """Insert dimensions of size 1 after the batch, so that entries of different ranks broadcast as without it."""
    rank = max(len(e.shape) for e in operands)
    values = [
        reshape(e.value, shape=(e.value.shape[0], *(1,) * (rank - len(e.shape)), *e.shape))
        if e.batched and len(e.shape) < rank
        else e.value
        for e in operands
    ]
    return dispatch.apply(op, values, attrs)


class _Batched(Interpreter):
    def __init__(self, size: int, draws: bool):
        self.size = size
        self.draws = draws

    def apply(self, node: Node, operands: list[Any]) -> Sequence[BatchedOperand]:
        """Apply one node's op, batched if an operand is."""
        if node not in self.live:
            return [BatchedOperand(None, False)] * len(node.results)
        if node.op is CONSTANT:
            return [BatchedOperand(constant(node.attrs["value"]), False)]
        if any(e.batched for e in operands) or (self.draws and node.op.has(Trait.RANDOM)):
            return [BatchedOperand(v, True) for v in apply_batched(node.op, self.size, operands, node.attrs)]
        results = dispatch.apply(node.op, [e.value for e in operands], node.attrs)
        return [BatchedOperand(v, False) for v in (results if isinstance(results, tuple) else (results,))]

    def run(self, graph: Graph, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs as entries; skip nodes that neither outputs nor checks need."""
        checks = [node.results[0] for node in graph.nodes() if node.op.has(Trait.CHECK)]
        self.live = live_nodes(graph, [*graph.outputs, *checks])
        return super().run(graph, arguments)


def constant(array: np.ndarray) -> Any:
    """Return an array as an operand of the active dispatcher."""
    if not array.shape:
        return dispatch.current().scalar(number_of(array), dtype_of(array.dtype))
    return dispatch.apply(CONSTANT, (), {"value": array})


def run_batched(
    graph: Graph, size: int, arguments: Sequence[BatchedOperand], draws: bool = False
) -> tuple[BatchedOperand, ...]:
    """Return the outputs of a graph for a batch of arguments, applied under the active dispatcher.

    With ``draws``, random numbers differ between the entries of the batch.
    """
    return _Batched(size, draws).run(graph, arguments)


def batched_graph(graph: Graph, size: int, batched: Sequence[bool], wanted: Sequence[bool] | None = None) -> Graph:
    """Return a graph that maps batches to batches. ``batched`` selects the batched arguments; ``wanted`` selects the
    batched outputs (None: all).

    An output outside of ``wanted`` that depends on a batched argument is summed over the batch.
    """
    target = Graph(f"{graph.name}.batched")
    entries = []
    for value, more in zip(graph.inputs, batched, strict=True):
        shape = (size, *value.shape) if more else value.shape
        entries.append(BatchedOperand(target.add_input(TensorType(value.dtype, shape), value.name), more))
    with dispatch.use(GraphDispatcher(target)):
        entries_out = run_batched(graph, size, entries)
        outputs = []
        for entry, is_batched in zip(entries_out, wanted or (True,) * len(entries_out), strict=True):
            if is_batched:
                outputs.append(spread(entry, size))
            else:
                outputs.append(add_up(entry.value, axes=(0,)) if entry.batched else mul(entry.value, size))
    target.set_outputs(outputs)
    return target
