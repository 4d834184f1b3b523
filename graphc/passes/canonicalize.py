"""Canonicalization: exact local simplifications, one rule each, applied until none matches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import graphc.ops.registry  # noqa: F401  (fills REGISTRY)
from graphc.base.dtypes import DType, bool_, float32, holds_all, int64, number_of
from graphc.base.records import dataclass
from graphc.base.sizes.size import always, bounds, is_size
from graphc.base.sizes.size_relations import at_most
from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.graph.rewrite import Rule, apply_rules
from graphc.ir.op import Trait, ZeroSign
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.define import OpFunction
from graphc.ops.dispatch import GraphDispatcher, active, use
from graphc.ops.movement import shape
from graphc.ops.movement.size import size
from graphc.ops.pointwise import elementwise as e
from graphc.ops.pointwise import math as mathematics
from graphc.ops.pointwise.quantization import quantize_linear
from graphc.ops.reduction import reduce
from graphc.passes.base import PassResult

LONGEST_SEARCH = 32
"""Nodes to visit before the sign counts as observable; the readers of a norm or a softmax need fewer."""


def is_unseen(graph: Graph, value: Value) -> bool:
    """Check that no output of the graph and no write depends on the signs of zeros in a value."""
    outputs = {id(out) for out in graph.outputs}
    worklist, visited = [value], {id(value)}
    while worklist:
        present = worklist.pop()
        if id(present) in outputs or len(visited) > LONGEST_SEARCH:
            return False
        for node, number in graph.uses(present):
            effect = node.op.sign_of_zero(number)
            if effect is ZeroSign.HIDDEN or _takes_no_zero(node, number):
                continue
            if effect is ZeroSign.SEEN:
                return False
            worklist += [v for v in node.results if id(v) not in visited]
            visited.update(id(v) for v in node.results)
    return True


def _takes_no_zero(node: Node, number: int) -> bool:
    """Check for the operand of a selection chosen only where it is nonzero, as in a ReLU."""
    if node.op is not e.where.op or number == 0:
        return False
    test, chosen = node.operands[0].node, node.operands[number]
    if len(test.operands) != 2 or test.operands[0] is not chosen or not _is_zero(test.operands[1]):
        return False
    return test.op.has(Trait.ELEMENTWISE) and all(_holds(test, zero) is (number == 2) for zero in (0.0, -0.0))


def _holds(test: Node, zero: float) -> bool:
    """Evaluate a comparison of a zero with 0."""
    x, y = (np.array(v, test.operands[0].dtype.numpy) for v in (zero, 0))
    return bool(test.op.evaluate((x, y), test.attrs)[0])


def _is_zero(value: Value) -> bool:
    node = value.node.operands[0].node if value.node.op is shape.broadcast_to.op else value.node
    return node.op is CONSTANT and node.attrs["value"].size == 1 and not node.attrs["value"].any()


@dataclass(frozen=True)
class Canonicalize:
    """Bring a graph into a simpler, equal form.

    Needs: any valid graph. Does: applies RULES until none matches. Each rule keeps every value bit for bit, except for
    the bits of NaN and the order of sums. Leaves: gradients unchanged, so the pass may run before autodiff too.

        %a = neg(%x) : f32[4]
        %b = add(%y, %a) : f32[4]
        %c = mul(%b, f32(1.0)) : f32[4]          ->        %b = sub(%y, %x) : f32[4]
        return %c                                          return %b
    """

    name: str = "canonicalize"
    costs: Costs = DEFAULT

    def run(self, graph: Graph) -> PassResult:
        """Change the graph in place; count rewritten nodes."""
        rules = [r for r in RULES if r.name not in REORDERING] if self.costs.strict_order else RULES
        with use(RuleDispatcher(graph)):
            return PassResult(graph, apply_rules(graph, rules))


class RuleDispatcher(GraphDispatcher):
    """Dispatcher of all rules of a run, which takes the location of each node."""


RULES: list[Rule] = []
"""All rules, in the order in which they are tried on a node."""
REORDERING = frozenset({"sum_of_one_number"})
"""Names of the rules that change how a sum is rounded; strict order leaves them out."""

Simplification = Callable[..., "Value | None"]


def simplifies(*ops: OpFunction | Trait) -> Callable[[Simplification], Simplification]:
    """Register a rule for nodes of these ops, or of ops with these traits. ``rule(node, *operands)`` emits and returns
    an equal value, or returns None."""

    def add(rule: Simplification) -> Simplification:
        def apply(graph: Graph, node: Node) -> Value | None:
            dispatcher = active()
            assert type(dispatcher) is RuleDispatcher, "a rule of canonicalize runs in its pass"
            dispatcher.location = node.location
            simpler = rule(node, *node.operands)
            return None if simpler is None else _like(simpler, node)

        name = rule.__name__.lstrip("_")
        keys = (op if isinstance(op, Trait) else op.op.name for op in ops)
        RULES.extend(Rule(op, apply, name, rule.__doc__ or "") for op in keys)
        return rule

    return add


def _like(value: Value, node: Node) -> Value:
    """Broadcast ``value`` to the shape of the node's result where they differ."""
    target = node.result.shape
    return value if value.shape == target else shape.broadcast_to(value, shape=target)


def splat(value: Value) -> bool | int | float | None:
    """Return the scalar that every element of ``value`` is known to equal, or None."""
    node = value.node
    if node.op is shape.broadcast_to.op:
        node = node.operands[0].node
    if node.op is not CONSTANT:
        return None
    array = node.attrs["value"]
    if not array.size or (array.size > 1 and (array.size > 4096 or not (array == array.flat[0]).all())):
        return None
    return number_of(array.flat[0])


def is_result_of(value: Value, function: OpFunction) -> bool:
    """Check whether ``value`` is a result of that op."""
    return value.node.op is function.op


# ---- any elementwise op


@simplifies(Trait.ELEMENTWISE)
def _implicit_broadcast(node: Node, *operands: Value) -> Value | None:
    """Rewrite f(broadcast_to(x), y) as f(x, y), broadcast afterwards where still needed."""
    broadcasts = shape.broadcast_to.op
    if not any([v.node.op is broadcasts for v in operands]):
        return None
    sources = [v.node.operands[0] if is_result_of(v, shape.broadcast_to) else v for v in operands]
    return OpFunction(node.op, (), False)(*sources, **node.attrs)


@simplifies(Trait.ELEMENTWISE | Trait.COMMUTATIVE)
def _constant_last(node: Node, x: Value, y: Value) -> Value | None:
    """Rewrite f(c, x) as f(x, c)."""
    if x.node.op is not CONSTANT or y.node.op is CONSTANT:
        return None
    return OpFunction(node.op, (), False)(y, x)


# ---- arithmetic


@simplifies(e.add)
def _add(node: Node, x: Value, y: Value) -> Value | None:
    if _is_neutral(splat(y), -0.0, x.dtype):
        return x
    if is_result_of(y, e.neg):
        return e.sub(x, y.node.operands[0])
    if is_result_of(x, e.neg):
        return e.sub(y, x.node.operands[0])
    return None


def _unseen_zero(graph: Graph, node: Node) -> Value | None:
    """Rewrite x + 0 as x, where no reader observes that -0 + 0 is 0."""
    x, y = node.operands
    zero = splat(y) == 0 and x.dtype.kind == "f"
    if not zero or not is_unseen(graph, node.result):
        return None
    return _like(x, node)


RULES.append(Rule("add", _unseen_zero, "unseen_zero", _unseen_zero.__doc__ or ""))


def _is_neutral(value: Any, zero: float, dtype: DType) -> bool:
    """Check whether a scalar is the neutral zero. For floats its sign matters, since -0 + 0 is 0."""
    if value != 0 or dtype is bool_:
        return False
    return dtype.kind != "f" or math.copysign(1.0, value) == math.copysign(1.0, zero)


@simplifies(e.sub)
def _sub(node: Node, x: Value, y: Value) -> Value | None:
    if _is_neutral(splat(y), 0.0, x.dtype):
        return x
    return e.add(x, y.node.operands[0]) if is_result_of(y, e.neg) else None


@simplifies(e.mul)
def _mul(node: Node, x: Value, y: Value) -> Value | None:
    factor = splat(y)
    if factor == 1:
        return x
    if factor == 0 and x.dtype.kind in "iub":
        return y
    if factor == -1 and x.dtype.kind in "if":
        return e.neg(x)
    if is_result_of(x, e.neg) and is_result_of(y, e.neg):
        return e.mul(x.node.operands[0], y.node.operands[0])
    return None


@simplifies(e.div)
def _div(node: Node, x: Value, y: Value) -> Value | None:
    divisor = splat(y)
    if divisor == 1:
        return x
    if divisor is not None and _has_exact_inverse(divisor, y.dtype):
        return e.mul(x, 1 / divisor)
    if is_result_of(x, e.neg) and is_result_of(y, e.neg):
        return e.div(x.node.operands[0], y.node.operands[0])
    return None


def _has_exact_inverse(value: float, dtype: DType) -> bool:
    """Check for a power of two whose reciprocal is a normal number of the type."""
    if not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5:
        return False
    info = np.finfo(dtype.numpy)
    return float(info.tiny) <= abs(1 / value) <= float(info.max)


@simplifies(e.neg)
def _neg(node: Node, x: Value) -> Value | None:
    return x.node.operands[0] if is_result_of(x, e.neg) else None


@simplifies(e.abs)
def _abs(node: Node, x: Value) -> Value | None:
    if is_result_of(x, e.abs):
        return x
    return e.abs(x.node.operands[0]) if is_result_of(x, e.neg) and x.dtype.kind != "u" else None


@simplifies(mathematics.pow)
def _pow(node: Node, x: Value, y: Value) -> Value | None:
    exponent = splat(y)
    if exponent == 1:
        return x
    if exponent == 2:
        return e.mul(x, x)
    if exponent == 0:
        return shape.filled(1, x.dtype, x.shape)
    return None


@simplifies(e.maximum, e.minimum)
def _same_extreme(node: Node, x: Value, y: Value) -> Value | None:
    return x if x is y else None


# ---- conversion and choice


def _saturates(source: DType, middle: DType, last: DType) -> bool:
    """Check whether integers become floats and then a narrower integer type; that saturates, where integers wrap
    around."""
    narrower = last is not source and not holds_all(last, source)
    return source.is_integer and middle.is_floating_point and last.is_integer and narrower


@simplifies(e.cast)
def _cast(node: Node, x: Value, /) -> Value | None:
    dtype = node.attrs["dtype"]
    if x.dtype is dtype:
        return x
    if is_result_of(x, e.cast):
        source = x.node.operands[0]
        if holds_all(x.dtype, source.dtype) and not _saturates(source.dtype, x.dtype, dtype):
            return e.cast(source, dtype=dtype) if source.dtype is not dtype else source
    return None


@simplifies(quantize_linear)
def _limited_codes(node: Node, x: Value) -> Value | None:
    """Drop limits beyond which all numbers have the first or the last code."""
    source, least, most = _limits_of(x)
    if source is None:
        return None
    low, high, scale = node.attrs["low"], node.attrs["high"], np.float32(node.attrs["scale"])
    with np.errstate(over="ignore"):
        first, last = np.rint(np.array([least, most], np.float32) / scale)
    return quantize_linear(source, **node.attrs) if first <= low and high <= last else None


def _unseen_sign(graph: Graph, node: Node) -> Value | None:
    """Let zeros of f32 integers have a sign, where no reader observes it: rounding gives them one."""
    attrs = node.attrs
    if attrs["dtype"] is not float32 or attrs["signed_zero"] or not is_unseen(graph, node.result):
        return None
    dispatcher = active()
    assert type(dispatcher) is RuleDispatcher
    dispatcher.location = node.location
    return quantize_linear(node.operands[0], **{**attrs, "signed_zero": True})


RULES.append(Rule(quantize_linear.op.name, _unseen_sign, "unseen_sign", _unseen_sign.__doc__ or ""))


def _limits_of(x: Value) -> tuple[Value | None, float, float]:
    """Return what ``x`` limits, and the limits; None for other values. NaN may pass."""
    if is_result_of(x, e.where):
        test, zero, value = x.node.operands
        is_relu = is_result_of(test, e.le) and test.node.operands[0] is value and splat(test.node.operands[1]) == 0
        return value if is_relu and splat(zero) == 0 else None, 0.0, math.inf
    if is_result_of(x, mathematics.clamp):
        least, most = map(splat, x.node.operands[1:])
        if least is not None and most is not None and least <= most:
            return x.node.operands[0], least, most
    return None, 0.0, 0.0


@simplifies(e.where)
def _where(node: Node, condition: Value, x: Value, y: Value) -> Value | None:
    constant = splat(condition)
    if constant is not None:
        return x if constant else y
    if x is y:
        return x
    if is_result_of(condition, e.logical_not) and condition.node.operands[0].dtype is bool_:
        return e.where(condition.node.operands[0], y, x)
    return None


_OPPOSITE = {e.eq.op: e.ne, e.ne.op: e.eq}
_OPPOSITE_ORDER = {e.lt.op: e.ge, e.ge.op: e.lt, e.gt.op: e.le, e.le.op: e.gt}


@simplifies(e.logical_not)
def _not(node: Node, x: Value) -> Value | None:
    inner = x.node
    if is_result_of(x, e.logical_not):
        return e.cast(inner.operands[0], dtype=bool_) if inner.operands[0].dtype is not bool_ else inner.operands[0]
    opposite = _OPPOSITE.get(inner.op)
    if opposite is None and inner.operands and inner.operands[0].dtype.kind != "f":  # NaN has no opposite order
        opposite = _OPPOSITE_ORDER.get(inner.op)
    return None if opposite is None else opposite(*inner.operands)


@simplifies(e.logical_and, e.logical_or)
def _logic(node: Node, x: Value, y: Value) -> Value | None:
    constant = splat(y)
    if constant is None or x.dtype is not bool_:
        return None
    neutral = node.op is e.logical_and.op
    return x if bool(constant) is neutral else y


# ---- views


@simplifies(shape.reshape, shape.broadcast_to)
def _same_shape(node: Node, x: Value) -> Value | None:
    if x.shape == node.result.shape:
        return x
    if x.node.op is node.op:
        return OpFunction(node.op, (), False)(x.node.operands[0], **node.attrs)
    return None


@simplifies(shape.broadcast_to)
def _leading_ones(node: Node, x: Value) -> Value | None:
    """Rewrite broadcast_to(reshape(x, [1, ..., *x.shape])) as broadcast_to(x)."""
    if not is_result_of(x, shape.reshape):
        return None
    source = x.node.operands[0]
    lead = len(x.shape) - len(source.shape)
    if lead <= 0 or x.shape != (1,) * lead + source.shape:
        return None
    return shape.broadcast_to(source, **node.attrs)


@simplifies(shape.transpose)
def _transpose(node: Node, x: Value) -> Value | None:
    order = node.attrs["permutation"]
    if order == tuple(range(len(order))):
        return x
    if is_result_of(x, shape.transpose):
        inner = x.node.attrs["permutation"]
        return shape.transpose(x.node.operands[0], permutation=tuple(inner[d] for d in order))
    return None


@simplifies(shape.slice)
def _slice(node: Node, x: Value) -> Value | None:
    if node.result.shape == x.shape:
        return x
    if not is_result_of(x, shape.slice):
        return None
    inner, outer = x.node.attrs, node.attrs
    if any(is_size(count) and bounds(count)[0] < 1 for count in node.result.shape):
        return None
    firsts = [a + s * b for a, s, b in zip(inner["starts"], inner["steps"], outer["starts"], strict=True)]
    # NOTE: an empty slice may start after the last element of its operand; that offset may not exist in the source.
    starts = [first if count else 0 for first, count in zip(firsts, node.result.shape, strict=True)]
    steps = [a * b for a, b in zip(inner["steps"], outer["steps"], strict=True)]
    stops = [
        first + (count - 1) * step + 1 if count else 0
        for first, step, count in zip(starts, steps, node.result.shape, strict=True)
    ]
    source = x.node.operands[0]
    if not all(_is_inside(*limits) for limits in zip(starts, stops, source.shape, strict=True)):
        return None  # The slice is empty for some sizes.
    return shape.slice(source, starts=starts, stops=stops, steps=steps)


def _is_inside(start: int, stop: int, extent: int) -> bool:
    return at_most(0, start) and at_most(start, stop) and at_most(stop, extent)


@simplifies(shape.pad)
def _pad(node: Node, x: Value) -> Value | None:
    return x if not any(map(any, (node.attrs["low"], node.attrs["high"], node.attrs["interior"]))) else None


@simplifies(shape.concat)
def _concat(node: Node, *operands: Value) -> Value | None:
    axis = node.attrs["axis"]
    if len(operands) == 1:
        return operands[0]
    if not any(is_result_of(p, shape.concat) and p.node.attrs["axis"] == axis for p in operands):
        return None
    flat = [q for p in operands for q in (p.node.operands if p.node.op is node.op and _axis(p) == axis else (p,))]
    return shape.concat(*flat, axis=axis)


def _axis(value: Value) -> int:
    return value.node.attrs["axis"]


@simplifies(shape.flip)
def _flip(node: Node, x: Value) -> Value | None:
    axes = {a for a in node.attrs["axes"] if not always("<=", x.shape[a], 1)}
    if is_result_of(x, shape.flip):
        axes ^= set(x.node.attrs["axes"])
        return shape.flip(x.node.operands[0], axes=sorted(axes)) if axes else x.node.operands[0]
    return x if not axes else None


@simplifies(shape.reshape, shape.transpose, shape.slice, shape.flip)
def _view_of_one_number(node: Node, x: Value) -> Value | None:
    """Rewrite a view of a broadcast scalar as the broadcast scalar."""
    if not is_result_of(x, shape.broadcast_to) or x.node.operands[0].shape:
        return None
    return x.node.operands[0]


@simplifies(size)
def _known_size(node: Node) -> Value | None:
    """Replace a size by a constant where it is equal in all calls."""
    value = node.attrs["value"]
    return None if is_size(value) else shape.filled(value, int64, ())


# ---- reductions and products


@simplifies(reduce.sum, reduce.prod, reduce.max, reduce.min)
def _reduce_nothing(node: Node, x: Value) -> Value | None:
    """Drop a reduction over no axes, or over axes of one element."""
    if any(x.shape[a] != 1 for a in node.attrs["axes"]):
        return None
    value = x if x.dtype is node.result.dtype else e.cast(x, dtype=node.result.dtype)
    if node.op is reduce.sum.op and x.dtype.kind == "f":
        value = e.add(value, 0.0)  # A sum starts at 0, which turns -0 into 0.
    return value if value.shape == node.result.shape else shape.reshape(value, shape=node.result.shape)


@simplifies(reduce.sum)
def _sum_of_one_number(node: Node, x: Value) -> Value | None:
    """Rewrite sum(broadcast_to(c)) as c times the number of elements."""
    value = splat(x) if x.dtype.kind == "f" else None
    if value is None:
        return None
    count = math.prod(x.shape[a] for a in node.attrs["axes"])
    if is_size(count) and (not math.isfinite(value) or math.copysign(1, value) < 0):
        return None  # For zero elements the product would be NaN or -0 instead of 0.
    return shape.filled(value * count if count else 0, x.dtype, ())


@simplifies(matmul)
def _matmul_of_transposed(node: Node, a: Value, b: Value) -> Value | None:
    """Turn a transposition of the last two dimensions into an attribute."""
    flags = dict(node.attrs)
    operands = [a, b]
    for i, flag in enumerate(("transpose_a", "transpose_b")):
        if is_result_of(operands[i], shape.transpose) and _swaps_last_two(operands[i].node.attrs["permutation"]):
            operands[i] = operands[i].node.operands[0]
            flags[flag] = not flags[flag]
    return matmul(*operands, **flags) if flags != node.attrs else None


def _swaps_last_two(permutation: Sequence[int]) -> bool:
    n = len(permutation)
    return n >= 2 and tuple(permutation) == (*range(n - 2), n - 1, n - 2)


@simplifies(matmul)
def _matmul_of_rows(node: Node, a: Value, b: Value) -> Value | None:
    """Merge the batch dimensions of rows, multiplied by one matrix, into a single product."""
    if len(a.shape) == 2 or len(b.shape) != 2 or node.attrs["transpose_a"]:
        return None
    rows = shape.reshape(a, shape=(math.prod(a.shape[:-1]), a.shape[-1]))
    return shape.reshape(matmul(rows, b, **node.attrs), shape=node.result.shape)
