"""A check in a graph that stops a call which has made a number that is not finite, before it writes to states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from graphc.base.dtypes import bool_, float32, float64
from graphc.base.interruptions import kept_outside
from graphc.base.sizes.size import hint
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.interpret import live_nodes
from graphc.ir.op import Trait
from graphc.ops import elementwise as ew
from graphc.ops import math as mathematics
from graphc.ops.check import NOT_FINITE, check_true
from graphc.ops.checkpoint import later
from graphc.ops.dispatch import use
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor
from graphc.tracing.tracer import Tracer

MARGIN = 2.0**20
"""What a bound of a product is multiplied by: sums are rounded, and some products go through other numbers."""
LARGER_OPERANDS = 4
"""A product is judged by its operands where they are together not more than so many times as large: then it need not
lie in memory before anything is written, and the update of a weight stays part of the kernel of its gradient."""


class Guarded(NamedTuple):
    """What a check of finite numbers looks at."""

    seen: tuple[Value, ...]
    check: Node
    """The node that stops a call."""
    writes: Mapping[Value, Value]
    """By argument: what is written to it."""


def append_check(graph: Graph, finite: Iterable[Value], numbers: Iterable[Value] = ()) -> Guarded:
    """Appends a check which stops a call before it writes anything, unless all of ``finite`` are finite and none of
    ``numbers`` holds a NaN.

    It may stop a call without a reason where products come near the largest number."""
    tracer = Tracer(graph)
    tracer.differentiable = False
    first = [v for v in dict.fromkeys(finite) if v.dtype.is_floating_point]
    second = [v for v in dict.fromkeys(numbers) if v.dtype.is_floating_point and v not in first]
    writes = {n.operands[0]: n.operands[1] for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}
    with kept_outside(), use(tracer), no_grad():
        found = [_is_finite(v) for v in first]
        found += [ew.eq(t, t).all() for t in [_tensor(v) for v in second]]
        while len(found) > 1:
            # NOTE: a tree, not a chain: passes walk along operands.
            pairs = [ew.logical_and(a, b) for a, b in zip(found[::2], found[1::2], strict=False)]
            found = [*pairs, *found[2 * len(pairs) :]]
        flag = found[0] if found else _tensor(graph.scalar(True, bool_))
        checked: Any = check_true(flag, message=NOT_FINITE)
        _hold_back(graph, writes, flag)
    return Guarded((*first, *second), checked._data.node, writes)


def _hold_back(graph: Graph, writes: Mapping[Value, Value], flag: Any) -> None:
    """Lets what is written be computed behind the flag where it reads what was there before: it would be computed
    beside its gradients otherwise, which the flag needs, and be copied later."""
    early = live_nodes(graph, [flag._data])
    held: dict[Value, Any] = {}
    late = live_nodes(graph, writes.values()) - early
    for node in [n for n in graph.nodes() if n in late]:
        for i, operand in enumerate(node.operands):
            if operand in writes and operand.type.size != 1:
                if operand not in held:
                    held[operand] = later(_tensor(operand), flag)._data
                graph.set_operand(node, i, held[operand])


def _tensor(value: Value) -> Any:
    return Tensor._wrap(value)


def _is_finite(value: Value) -> Any:
    """Whether all elements are; of a large product, whether the norms of its operands say so (Cauchy-Schwarz)."""
    product = _product(value)
    if product is None:
        return mathematics.isfinite(_tensor(value)).all()
    norms = [mathematics.sqrt(ew.mul(t, t).sum()) for t in map(_tensor, product.operands)]
    return mathematics.isfinite(ew.mul(ew.mul(norms[0], norms[1]), MARGIN))


def _product(value: Value) -> Node | None:
    """The large product of two values whose elements, in any order, a value has; None where it is none."""
    made, size = value, hint(value.type.size)
    while made.node.op.has(Trait.VIEW) and len(made.node.operands) == 1:
        made = made.node.operands[0]
    operands = made.node.operands
    if not made.node.op.has(Trait.CONTRACTION) or len(operands) != 2 or value.dtype not in (float32, float64):
        return None
    is_large = sum(hint(v.type.size) for v in operands) <= LARGER_OPERANDS * size
    same = hint(made.type.size) == size and all(v.dtype is value.dtype for v in operands)
    return made.node if is_large and same else None
