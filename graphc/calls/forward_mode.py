"""Forward-mode differentiation through compiled functions: a program computes the tangents of a call's results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.base.errors import GradientError
from graphc.calls.backward import CompiledNode
from graphc.calls.derivative import Derivative, DerivativeOperand, push_through
from graphc.ir.graph.graph import INPUT, Node
from graphc.ir.graph.interpret import live_nodes
from graphc.ir.op import Trait
from graphc.ops.autodiff import stops_gradient
from graphc.ops.flow.control import has_all_tangents
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tape.tangents import has_tangents
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import edge_of
from graphc.tracing.trace import Traced


def pushes(traced: Traced) -> bool:
    """Check whether the derivative of a graph propagates tangents as the traced Python code does."""
    plain = not traced.host and traced.training is None and not traced.written
    return plain and has_all_tangents(traced.graph) and _keeps_states_apart(traced)


def _keeps_states_apart(traced: Traced) -> bool:
    """Check that written floats, such as running statistics, need no tangents.

    That is so where they get no gradient and no result depends on them. Then it does not matter that programs write
    them without tangents.
    """
    writes = [n for n in traced.graph.nodes() if n.op.has(Trait.STATE_WRITE) and n.operands[0].dtype.is_differentiable]
    live = live_nodes(traced.graph, traced.graph.outputs) if writes else set()
    return all(n.operands[0].node not in live and not _moves(n) for n in writes)


def _moves(write: Node) -> bool:
    """Return whether a write depends on more than the old content and values without gradients."""
    visited, stack = {write.operands[0].node}, [write.operands[1].node]
    while stack:
        node = stack.pop()
        if node not in visited and not stops_gradient(node):
            visited.add(node)
            if node.op is INPUT and node.results[0].dtype.is_differentiable:
                return True
            stack.extend(v.node for v in node.operands)
    return False


class TangentCall:
    """A call of a compiled function that propagates tangents."""

    def __init__(
        self, derivative: Derivative, tensors: Sequence[Any], written: Sequence[bool], sizes: Mapping[str, int] | None
    ):
        """``tensors`` are the inputs of the graph. ``written`` has a flag for each: whether the call writes to it."""
        self.derivative, self.tensors, self.sizes = derivative, tensors, sizes
        self._written = written
        self._operands: list[DerivativeOperand] = []

    @property
    def moves(self) -> bool:
        """Whether a tensor has a tangent."""
        return has_tangents(self.tensors)

    def prepare(self) -> bool:
        """Make the pushforward, and save tensors before the call overwrites them. Return False without one."""
        moving = tuple(i for i, tensor in enumerate(self.tensors) if has_tangents([tensor]))
        try:
            self.derivative.pushed(moving).made  # noqa: B018
        except GradientError:
            return False
        for tensor, written in zip(self.tensors, self._written, strict=True):
            if written:
                self._operands.append(DerivativeOperand(tensor._data.copy()))
            else:
                edge = edge_of(tensor) if tensor._requires_grad else None
                self._operands.append(
                    DerivativeOperand.of(tensor, edge, f"an argument of the compiled {self.derivative.name}")
                )
        return True

    def give(self, result: Any) -> Any:
        """Return the call's result with tangents; without a history where none is recorded."""
        results, structure = flatten(result)
        if not is_grad_enabled():
            results = [Tensor._wrap(r._data) for r in results]
        tangents = [operand.tangents for operand in self._operands]
        for result in results:
            node = result._node
            if isinstance(node, CompiledNode) and node.call is not None and node.backward.higher is not None:
                node.call.tangents = dict(zip(node.backward.higher.order, tangents, strict=True))
        push_through(self.derivative, self._operands, results, self.sizes)
        return unflatten(structure, results)
