"""A check in a graph that stops a call before it writes to states if a value is not finite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from graphc.base.dtypes import bool_, float32, float64
from graphc.base.interruptions import kept_outside
from graphc.base.sizes.size import hint
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.interpret import live_nodes
from graphc.ir.op import Trait
from graphc.ops.dispatch import use
from graphc.ops.effects.check import NOT_FINITE, check_true
from graphc.ops.flow.checkpoint import later
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor
from graphc.tracing.tracer import Tracer

MARGIN = 2.0**20
"""Safety factor on the bound of a product: sums are rounded, and some products have larger intermediate values."""
LARGER_OPERANDS = 4
"""Limit on the size of a product's operands, relative to the product, for a bound by their norms.

Such a product need not be stored before the writes, so the update of a weight stays in the kernel of its gradient.
"""


class Guarded(NamedTuple):
    """The values of a check for finite numbers."""

    checked: tuple[Value, ...]
    check: Node
    """The node that stops a call."""
    writes: Mapping[Value, Value]
    """For each written argument: its new content."""


def append_check(graph: Graph, finite: Iterable[Value], numbers: Iterable[Value] = ()) -> Guarded:
    """Append a check that stops a call before its writes unless ``finite`` are finite and ``numbers`` have no NaN.

    It may stop a good call where products come near the largest number.
    """
    tracer = Tracer(graph)
    tracer.differentiable = False
    first = [v for v in dict.fromkeys(finite) if v.dtype.is_floating_point]
    second = [v for v in dict.fromkeys(numbers) if v.dtype.is_floating_point and v not in first]
    writes = {n.operands[0]: n.operands[1] for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}
    with kept_outside(), use(tracer), no_grad():
        flags = [_is_finite(v) for v in first]
        flags += [ew.eq(t, t).all() for t in [_tensor(v) for v in second]]
        while len(flags) > 1:
            # NOTE: a tree, not a chain: passes walk along operands.
            pairs = [ew.logical_and(a, b) for a, b in zip(flags[::2], flags[1::2], strict=False)]
            flags = [*pairs, *flags[2 * len(pairs) :]]
        flag = flags[0] if flags else _tensor(graph.scalar(True, bool_))
        checked: Any = check_true(flag, message=NOT_FINITE)
        _hold_back(graph, writes, flag)
    return Guarded((*first, *second), checked._data.node, writes)


def _hold_back(graph: Graph, writes: Mapping[Value, Value], flag: Any) -> None:
    """Compute writes after the flag where they read the old content.

    Otherwise the scheduler computes them together with their gradients, which the flag needs, and has to copy the old
    content.
    """
    early = live_nodes(graph, [flag._data])
    delayed: dict[Value, Any] = {}
    late = live_nodes(graph, writes.values()) - early
    for node in [n for n in graph.nodes() if n in late]:
        for i, operand in enumerate(node.operands):
            if operand in writes and operand.type.size != 1:
                if operand not in delayed:
                    delayed[operand] = later(_tensor(operand), flag)._data
                graph.set_operand(node, i, delayed[operand])


def _tensor(value: Value) -> Any:
    return Tensor._wrap(value)


def _is_finite(value: Value) -> Any:
    """Return whether all elements are finite; for a large product, whether a bound by its operands' norms is
    (Cauchy-Schwarz).
    """
    product = _product(value)
    if product is None:
        return mathematics.isfinite(_tensor(value)).all()
    norms = [mathematics.sqrt(ew.mul(t, t).sum()) for t in map(_tensor, product.operands)]
    return mathematics.isfinite(ew.mul(ew.mul(norms[0], norms[1]), MARGIN))


def _product(value: Value) -> Node | None:
    """Return the large product of two values whose elements, in any order, a value has; None for other values."""
    source, size = value, hint(value.type.size)
    while source.node.op.has(Trait.VIEW) and len(source.node.operands) == 1:
        source = source.node.operands[0]
    operands = source.node.operands
    if not source.node.op.has(Trait.CONTRACTION) or len(operands) != 2 or value.dtype not in (float32, float64):
        return None
    is_large = sum(hint(v.type.size) for v in operands) <= LARGER_OPERANDS * size
    same = hint(source.type.size) == size and all(v.dtype is value.dtype for v in operands)
    return source.node if is_large and same else None
