"""Rules for elementwise ops: arithmetic, comparisons, unary functions, conversion."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, float32, int32, int64, limits, uint64
from graphc.interop.onnx_export.writer import GraphWriter, Rule, is_small
from graphc.ir.graph.graph import Node


def direct(op: str, **attrs: Any) -> Rule:
    """Return a rule that writes this operator with the operands unchanged."""
    return lambda w, node, *x: w.add(op, *x, **attrs)


def by_kind(other: Rule, **rules: Rule) -> Rule:
    """Choose a rule by the kind (``f``, ``i``, ``u``, ``b``) of the last operand's element type. ``other`` is the
    default."""
    return lambda w, node, *x: rules.get(node.operands[-1].dtype.kind, other)(w, node, *x)


def wide(rule: Rule) -> Rule:
    """Compute narrow integers in 32 bits. The result wraps around as theirs does."""

    def write(w: GraphWriter, node: Node, *x: str) -> str:
        if not is_small(node.operands[0].dtype):
            return rule(w, node, *x)
        result = rule(w, node, *(w.cast(v, int32) for v in x))
        dtype = node.results[0].dtype
        return result if dtype is bool_ and node.operands[0].dtype is not bool_ else w.cast(result, dtype)

    return write


def compared(op: str, negated: bool = False) -> Rule:
    """Return a rule for a comparison. Bools and narrow integers are compared in 32 bits."""

    def write(w: GraphWriter, node: Node, *x: str) -> str:
        small = is_small(node.operands[0].dtype)
        result = w.add(op, *(w.cast(v, int32) if small else v for v in x))
        return w.add("Not", result) if negated else result

    return write


def logical(op: str) -> Rule:
    """Return a rule for an operator on bools, for operands of any type."""
    return lambda w, node, *x: w.add(
        op, *(v if o.dtype is bool_ else w.cast(v, bool_) for v, o in zip(x, node.operands, strict=True))
    )


Step = Callable[..., str]


def composed(function: Callable[..., str]) -> Rule:
    """Return a rule for a composition of operators.

    It calls ``function(o, *operands)``, where ``o("Add", x, 1)`` appends an operator. Numbers take the element type of
    the first operand.
    """

    def write(w: GraphWriter, node: Node, *x: str) -> str:
        dtype = node.operands[0].dtype
        if dtype.kind in "iu" and is_small(dtype):
            dtype = int32  # as ``wide`` computes

        def step(op: str, *inputs: Any, **attrs: Any) -> str:
            return w.add(op, *(v if isinstance(v, str) else w.constant(v, dtype) for v in inputs), **attrs)

        return function(step, *x)

    return write


# ---- integer quotients, shifts


def _integer_division(function: Callable[..., str], at_minus_one: Callable[..., Any]) -> Rule:
    """Return a rule for a function of integers and their divisor.

    The result is 0 for divisor 0, and ``at_minus_one`` for divisor -1. Both trap on processors, so the rule guards
    against them unless the divisor is known to be neither.
    """

    def write(w: GraphWriter, node: Node, x: str, y: str) -> str:
        divisors, dtype = w.known(node.operands[1]), node.operands[0].dtype
        if divisors is not None and not np.isin(divisors, (0, -1)).any():
            return wide(composed(function))(w, node, x, y)

        def guarded(o: Step, x: str, y: str) -> str:
            zero = o("Equal", y, 0)
            if dtype.kind == "u":
                return o("Where", zero, 0, function(o, x, o("Where", zero, 1, y)))
            opposite = o("Equal", y, -1)
            result = function(o, x, o("Where", o("Or", zero, opposite), 1, y))
            return o("Where", zero, 0, o("Where", opposite, at_minus_one(o, x), result))

        return wide(composed(guarded))(w, node, x, y)

    return write


def _remainder(o: Step, x: str, y: str) -> str:
    """Return the remainder with the sign of y."""
    remainder = o("Mod", x, y, fmod=1)
    other = o("Xor", o("Less", y, 0), o("Less", remainder, 0))
    return o("Where", o("And", o("Not", o("Equal", remainder, 0)), other), o("Add", remainder, y), remainder)


def _shifted(left: bool) -> Rule:
    """Multiply by 2 to the power y, or divide by it and round down.

    Shifts beyond the width give 0, or the sign for a right shift of negative numbers.
    """

    def write(w: GraphWriter, node: Node, x: str, y: str) -> str:
        def o(op: str, *inputs: Any, **attrs: Any) -> str:
            return w.add(op, *(v if isinstance(v, str) else w.constant(v, int64) for v in inputs), **attrs)

        dtype, signed = node.operands[0].dtype, node.operands[0].dtype.kind == "i"
        if dtype is uint64:
            most = w.constant(63, uint64)
            result = w.add("BitShift", x, w.add("Min", y, most), direction="LEFT" if left else "RIGHT")
            return w.add("Where", w.add("LessOrEqual", y, most), result, w.constant(0, uint64))
        x, y = w.cast(x, int64), w.cast(y, int64)
        most = min(dtype.bits, 63) - 1
        inside = o("And", o("GreaterOrEqual", y, 0), o("Less", y, dtype.bits))
        factor = o("Cast", o("Pow", 2, o("Min", o("Max", y, 0), most)), to=int64)
        if left:
            x = o("Mul", x, o("Where", o("Greater", y, most), 2, 1)) if dtype is int64 else x  # 2**63 is no i64
            result = o("Where", inside, o("Mul", x, factor), 0)
        else:
            signs = o("Where", o("Less", x, 0), -1, 0) if signed else 0
            result = o("Where", inside, o("Div", o("Sub", x, o("Mod", x, factor)), factor), signs)
        return result if dtype is int64 else w.cast(result, dtype)

    return write


# ---- functions of floats


def _circle(o: Step, y: str, x: str) -> str:
    """Compute atan2 from the arc tangent of the quotient, by quadrant."""
    is_zero = o("Equal", x, 0)
    angle = o("Atan", o("Div", y, o("Where", is_zero, 1, x)))
    below = o("Less", y, 0)
    flipped = o("Add", angle, o("Where", below, -math.pi, math.pi))
    half = o("Where", below, -math.pi / 2, o("Where", o("Greater", y, 0), math.pi / 2, 0))
    return o("Where", is_zero, half, o("Where", o("Less", x, 0), flipped, angle))


def _clamp(w: GraphWriter, node: Node, x: str, low: str, high: str) -> str:
    """Write Clip with two numbers, without those that limit nothing."""
    least, most = limits(node.operands[0].dtype)
    bounds = [w.known(v) for v in node.operands[1:]]
    if any(b is None or b.shape or np.isnan(b) for b in bounds):
        return wide(lambda w, node, x, low, high: w.add("Min", w.add("Max", x, low), high))(w, node, x, low, high)
    ends = ["" if b == end else name for b, end, name in zip(bounds, (least, most), (low, high), strict=True)]
    while ends and not ends[-1]:
        ends.pop()
    return w.add("Clip", x, *ends) if ends else x


def _quantized(w: GraphWriter, node: Node, x: str) -> str:
    """Write QuantizeLinear for all codes of a type; otherwise the quotient, rounded and limited."""
    attrs = node.attrs
    dtype, zero = attrs["dtype"], attrs["zero"]
    scale = w.constant(attrs["scale"], float32)
    if dtype is not float32 and (attrs["low"] + zero, attrs["high"] + zero) == limits(dtype):
        return w.add("QuantizeLinear", x, scale, w.constant(int(zero), dtype))
    rounded = w.add("Round", w.add("Div", x, scale))
    inside = w.add("Clip", rounded, w.constant(attrs["low"], float32), w.constant(attrs["high"], float32))
    return inside if dtype is float32 else w.cast(w.add("Add", inside, w.constant(zero, float32)), dtype)


def _power(w: GraphWriter, node: Node, x: str, y: str) -> str:
    """Write Pow. Runtimes compute integer powers in floats, so small integer exponents become products."""
    exponent, is_whole = w.known(node.operands[1]), node.operands[0].dtype.kind != "f"
    if is_whole and exponent is not None and not exponent.shape and exponent in (2, 3):
        return wide(composed(lambda o, x, y: functools.reduce(lambda a, b: o("Mul", a, b), [x] * int(exponent))))(
            w, node, x, y
        )
    return wide(direct("Pow"))(w, node, x, y)


def _copied_sign(o: Step, x: str, y: str) -> str:
    size = o("Abs", x)
    negative = o("Or", o("Less", y, 0), o("Less", o("Div", 1, y), 0))
    return o("Where", negative, o("Neg", size), size)


def _root_of_squares(o: Step, x: str, y: str) -> str:
    """Multiply the larger number by the root of 1 plus the squared ratio, which does not overflow."""
    a, b = o("Abs", x), o("Abs", y)
    most = o("Max", a, b)
    ratio = o("Div", o("Min", a, b), o("Where", o("Equal", most, 0), 1, most))
    return o("Mul", most, o("Sqrt", o("Add", o("Mul", ratio, ratio), 1)))


def _log_of_sum(o: Step, x: str, y: str) -> str:
    top, low = o("Max", x, y), o("Min", x, y)
    gap = o("Where", o("Equal", top, low), 0, o("Sub", low, top))
    return o("Add", top, o("Log", o("Add", o("Exp", gap), 1)))


def _weighted_log(o: Step, x: str, y: str) -> str:
    none = o("And", o("Equal", x, 0), o("Not", o("IsNaN", y)))
    return o("Where", none, 0, o("Mul", x, o("Log", o("Where", none, 1, y))))


def _rounded(op: str) -> Rule:
    """Return a rule that rounds floats. Integers stay as they are."""
    return lambda w, node, x: w.add(op, x) if node.operands[0].dtype.kind == "f" else x


def _truncated(w: GraphWriter, node: Node, x: str) -> str:
    if node.operands[0].dtype.kind != "f":
        return x
    return w.add("Mul", w.add("Sign", x), w.add("Floor", w.add("Abs", x)))


RULES: dict[str, Rule] = {
    "add": by_kind(wide(direct("Add")), b=direct("Or")),
    "sub": wide(direct("Sub")),
    "mul": by_kind(wide(direct("Mul")), b=direct("And")),
    "div": direct("Div"),
    "floor_div": by_kind(
        _integer_division(lambda o, x, y: o("Div", o("Sub", x, o("Mod", x, y)), y), lambda o, x: o("Neg", x)),
        f=composed(lambda o, x, y: o("Floor", o("Div", x, y))),
    ),
    "mod": by_kind(_integer_division(lambda o, x, y: o("Mod", x, y), lambda o, x: 0), f=composed(_remainder)),
    "neg": by_kind(wide(direct("Neg")), u=wide(composed(lambda o, x: o("Sub", 0, x)))),
    "abs": wide(direct("Abs")),
    "sign": wide(direct("Sign")),
    "reciprocal": direct("Reciprocal"),
    "maximum": by_kind(wide(direct("Max")), b=direct("Or")),
    "minimum": by_kind(wide(direct("Min")), b=direct("And")),
    "eq": compared("Equal"),
    "ne": compared("Equal", negated=True),
    "lt": compared("Less"),
    "le": compared("LessOrEqual"),
    "gt": compared("Greater"),
    "ge": compared("GreaterOrEqual"),
    "logical_and": logical("And"),
    "logical_or": logical("Or"),
    "logical_xor": logical("Xor"),
    "logical_not": lambda w, node, x: logical("Not")(w, node, x),
    "bit_and": by_kind(direct("BitwiseAnd"), b=direct("And")),
    "bit_or": by_kind(direct("BitwiseOr"), b=direct("Or")),
    "bit_xor": by_kind(direct("BitwiseXor"), b=direct("Xor")),
    "bit_not": by_kind(direct("BitwiseNot"), b=direct("Not")),
    "shift_left": _shifted(left=True),
    "shift_right": _shifted(left=False),
    "where": lambda w, node, c, x, y: (
        w.cast(w.add("Where", c, w.cast(x, int32), w.cast(y, int32)), node.results[0].dtype)
        if is_small(node.results[0].dtype)
        else w.add("Where", c, x, y)
    ),
    "cast": lambda w, node, x: w.cast(x, node.attrs["dtype"]),
    "pow": _power,
    "exp": direct("Exp"),
    "expm1": composed(lambda o, x: o("Sub", o("Exp", x), 1)),
    "log": direct("Log"),
    "log1p": composed(lambda o, x: o("Log", o("Add", x, 1))),
    "sqrt": direct("Sqrt"),
    "rsqrt": composed(lambda o, x: o("Reciprocal", o("Sqrt", x))),
    "sin": direct("Sin"),
    "cos": direct("Cos"),
    "tanh": direct("Tanh"),
    "sigmoid": direct("Sigmoid"),
    "erf": direct("Erf"),
    "atan": direct("Atan"),
    "asin": direct("Asin"),
    "acos": direct("Acos"),
    "atan2": composed(_circle),
    "floor": _rounded("Floor"),
    "ceil": _rounded("Ceil"),
    "round": _rounded("Round"),
    "trunc": _truncated,
    "clamp": _clamp,
    "quantize_linear": _quantized,
    "isnan": direct("IsNaN"),
    "isfinite": composed(lambda o, x: o("Not", o("Or", o("IsNaN", x), o("IsInf", x)))),
    "exp2": composed(lambda o, x: o("Pow", 2, x)),
    "log2": composed(lambda o, x: o("Mul", o("Log", x), 1 / math.log(2))),
    "log10": composed(lambda o, x: o("Mul", o("Log", x), 1 / math.log(10))),
    "logit": composed(lambda o, x: o("Log", o("Div", x, o("Sub", 1, x)))),
    "tan": direct("Tan"),
    "sinh": direct("Sinh"),
    "cosh": direct("Cosh"),
    "asinh": direct("Asinh"),
    "acosh": direct("Acosh"),
    "atanh": direct("Atanh"),
    "erfc": composed(lambda o, x: o("Sub", 1, o("Erf", x))),
    "hypot": composed(_root_of_squares),
    "logaddexp": composed(_log_of_sum),
    "copysign": composed(_copied_sign),
    "xlogy": composed(_weighted_log),
    "xlog1py": composed(lambda o, x, y: _weighted_log(o, x, o("Add", y, 1))),
    "entr": composed(lambda o, x: o("Where", o("Less", x, 0), -math.inf, o("Neg", _weighted_log(o, x, x)))),
}
"""Rules by op."""
