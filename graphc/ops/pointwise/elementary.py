"""Elementary functions with their own kernels: other bases, tangent, hyperbolic and some binary functions, erfc."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.base.dtypes import int64
from graphc.base.errors import DTypeError
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.op import ErrorSample, Trait, ZeroSign
from graphc.ir.types import TensorType
from graphc.ops.define import EVERY, define
from graphc.ops.movement.shape import zeros_like
from graphc.ops.pointwise import complex_functions as rules
from graphc.ops.pointwise.elementwise import (
    COMMUTATIVE,
    ELEMENTWISE,
    MISMATCH,
    abs,
    add,
    div,
    eq,
    ge,
    le,
    logical_and,
    lowered,
    mul,
    neg,
    scalar_op,
    sub,
    where,
)
from graphc.ops.pointwise.math import exp, function, log, log1p, rsqrt, sigmoid
from graphc.ops.rules import elementwise
from graphc.ops.samples import binary

_LN_2, _LN_10 = math.log(2.0), math.log(10.0)
_LARGE = 1e9
"""Threshold above which x * x may overflow, and 1 is negligible next to it."""


# ---- other bases

exp2 = function(
    "exp2",
    "2 to the power x.",
    lambda x: np.exp2(x) if x.dtype.kind == "f" else np.exp(x * x.dtype.type(_LN_2)),
    lambda g, y, x: mul(g, mul(y, _LN_2)),
    -3,
    3,
    zero_sign=ZeroSign.HIDDEN,
    on_complex=rules.exp2,
)
log2 = function(
    "log2",
    "The logarithm to base 2.",
    np.log2,
    lambda g, y, x: div(g, mul(x, _LN_2)),
    0.1,
    5,
    zero_sign=ZeroSign.HIDDEN,
    on_complex=rules.log2,
)
log10 = function(
    "log10",
    "The logarithm to base 10.",
    np.log10,
    lambda g, y, x: div(g, mul(x, _LN_10)),
    0.1,
    5,
    zero_sign=ZeroSign.HIDDEN,
    on_complex=rules.log10,
)


def _logit_gradient(g: Any, y: Any, x: Any) -> Any:
    """Return g / (x (1 - x)), or NaN where x is not in 0..1."""
    inside = logical_and(ge(x, 0), le(x, 1))
    return where(inside, div(g, abs(mul(x, sub(1, x)))), math.nan)  # -0 is 0 here.


logit = function(
    "logit",
    "log(x / (1 - x)), the inverse of the sigmoid; NaN where x is not in 0..1.",
    lambda x: np.log(x) - np.log1p(-x),
    _logit_gradient,
    0.1,
    0.9,
    lowered(lambda nest, x: nest.op("log", x) - nest.op("log1p", -x)),
)


# ---- the tangent and hyperbolic functions

tan = function(
    "tan",
    "The tangent of x radians.",
    np.tan,
    lambda g, y, x: mul(g, add(mul(y, y), 1)),
    -1.3,
    1.3,
    on_complex=rules.tan,
)
sinh = function("sinh", "The hyperbolic sine.", np.sinh, lambda g, y, x: mul(g, cosh(x)), -3, 3, on_complex=rules.sinh)
cosh = function(
    "cosh",
    "The hyperbolic cosine.",
    np.cosh,
    lambda g, y, x: mul(g, sinh(x)),
    -3,
    3,
    zero_sign=ZeroSign.HIDDEN,
    on_complex=rules.cosh,
)


def _lower_asinh(nest: NestBuilder, x: Scalar) -> Scalar:
    a = nest.op("abs", x)
    large = a > _LARGE
    near = nest.select(large, 1.0, a)
    square = near * near
    grown = nest.op("log1p", near + square / (nest.op("sqrt", square + 1) + 1))
    return nest.op("copysign", nest.select(large, nest.op("log", a) + _LN_2, grown), x)


def _lower_acosh(nest: NestBuilder, x: Scalar) -> Scalar:
    """Emit ``log1p(t + sqrt(2 t + t^2))`` with ``t = x - 1``, which is exact for small t."""
    large = x > _LARGE
    t = nest.select(large, 1.0, x - 1)
    near = nest.op("log1p", t + nest.op("sqrt", t * (t + 2)))
    return nest.select(x < 1, math.nan, nest.select(large, nest.op("log", x) + _LN_2, near))


def _lower_atanh(nest: NestBuilder, x: Scalar) -> Scalar:
    return (nest.op("log1p", x) - nest.op("log1p", -x)) * 0.5


def _acosh_gradient(g: Any, y: Any, x: Any) -> Any:
    """Return g / sqrt(x x - 1); the product of two roots is on the same branch as the function."""
    if x.dtype.is_complex:
        return mul(g, mul(rsqrt(sub(x, 1)), rsqrt(add(x, 1))))
    return mul(g, rsqrt(sub(mul(x, x), 1)))


asinh = function(
    "asinh",
    "The inverse of the hyperbolic sine.",
    np.arcsinh,
    lambda g, y, x: mul(g, rsqrt(add(mul(x, x), 1))),
    -3,
    3,
    lowered(_lower_asinh),
    on_complex=rules.asinh,
)
acosh = function(
    "acosh",
    "The inverse of the hyperbolic cosine; NaN below 1.",
    np.arccosh,
    _acosh_gradient,
    1.2,
    5,
    lowered(_lower_acosh),
    on_complex=rules.acosh,
)
atanh = function(
    "atanh",
    "The inverse of the hyperbolic tangent; NaN where x is not in -1..1.",
    np.arctanh,
    lambda g, y, x: div(g, sub(1, mul(x, x))),
    -0.9,
    0.9,
    lowered(_lower_atanh),
    on_complex=rules.atanh,
)
erfc = function(
    "erfc",
    "1 minus the error function, accurate where it is small, too.",
    SCALAR_OPS["erfc"].reference,
    lambda g, y, x: mul(g, mul(exp(neg(mul(x, x))), -2 / math.sqrt(math.pi))),
    -2,
    4,
)


# ---- functions of two numbers

_SCALES = {"f32": (2.0**60, 2.0**-70, 2.0**-45, 2.0**90), "f64": (2.0**500, 2.0**-600, 2.0**-400, 2.0**600)}
"""Magnitude above which squares may overflow, and the scale down; magnitude below which they may lose digits, and the
scale up."""


def _lower_hypot(nest: NestBuilder, x: Scalar, y: Scalar) -> Scalar:
    a, b = nest.op("abs", x), nest.op("abs", y)
    size = nest.select(a > b, a, b)
    large, shrink, small, grow = _SCALES[x.dtype.name]
    is_large, is_small = size > large, size < small
    scale = nest.select(is_large, shrink, nest.select(is_small, grow, nest.const(1.0, x.dtype)))
    back = nest.select(is_large, 1 / shrink, nest.select(is_small, 1 / grow, nest.const(1.0, x.dtype)))
    u, v = a * scale, b * scale
    root = nest.op("sqrt", u * u + v * v) * back
    return nest.select(a.eq(math.inf) | b.eq(math.inf), math.inf, root)


def _lower_logaddexp(nest: NestBuilder, x: Scalar, y: Scalar) -> Scalar:
    top, low = nest.op("max", x, y), nest.op("min", x, y)
    gap = nest.select(top.eq(low), 0.0, low - top)  # also of equal infinities
    return top + nest.op("log1p", nest.op("exp", gap))


def _of_two(name: str, doc: str, reference: Any, vjp: tuple[Any, Any], rule: Any, traits: Trait = COMMUTATIVE) -> Any:
    return define(
        name,
        doc,
        "x y",
        elementwise(name, "f"),
        reference=reference,
        vjp=vjp,
        lower=rule,
        traits=traits,
        samples=binary(0.5, 3, kinds="f"),
        error_samples=(
            *MISMATCH,
            ErrorSample((TensorType(int64, (2,)),) * 2, "operand 0 is signed integer", {}, DTypeError),
        ),
        promotes=EVERY,
        to_float=True,
    )


hypot = _of_two(
    "hypot",
    "The root of the sum of squares, which overflows only where the result does.",
    np.hypot,
    (lambda g, result, x, y: mul(g, div(x, result)), lambda g, result, x, y: mul(g, div(y, result))),
    lowered(_lower_hypot),
)
logaddexp = _of_two(
    "logaddexp",
    "log(exp(x) + exp(y)) without overflow.",
    np.logaddexp,
    (lambda g, result, x, y: mul(g, sigmoid(sub(x, y))), lambda g, result, x, y: mul(g, sigmoid(sub(y, x)))),
    lowered(_lower_logaddexp),
)
copysign = _of_two(
    "copysign",
    "The size of x with the sign of y; a zero has no gradient.",
    np.copysign,
    (
        lambda g, result, x, y: where(eq(x, 0), 0, mul(g, div(result, x))),
        lambda g, result, x, y: zeros_like(result),
    ),
    scalar_op("copysign"),
    ELEMENTWISE,
)
xlogy = _of_two(
    "xlogy",
    "x log(y), 0 where x is 0 (NaN where y is).",
    lambda x, y: np.where((x == 0) & (y == y), x.dtype.type(0), x * np.log(y)),
    (
        lambda g, result, x, y: mul(g, where(logical_and(eq(x, 0), le(y, 0)), 0, log(y))),
        lambda g, result, x, y: mul(g, div(x, y)),
    ),
    lowered(lambda nest, x, y: nest.select(x.eq(0) & y.eq(y), 0.0, x * nest.op("log", y))),
    ELEMENTWISE,
)
xlog1py = _of_two(
    "xlog1py",
    "x log(1 + y), 0 where x is 0 (NaN where y is).",
    lambda x, y: np.where((x == 0) & (y == y), x.dtype.type(0), x * np.log1p(y)),
    (
        lambda g, result, x, y: mul(g, where(logical_and(eq(x, 0), le(y, -1)), 0, log1p(y))),
        lambda g, result, x, y: mul(g, div(x, add(y, 1))),
    ),
    lowered(lambda nest, x, y: nest.select(x.eq(0) & y.eq(y), 0.0, x * nest.op("log1p", y))),
    ELEMENTWISE,
)
entr = function(
    "entr",
    "-x log(x): 0 where x is 0, minus infinity below.",
    lambda x: np.where(x < 0, x.dtype.type(-np.inf), np.where(x == 0, x.dtype.type(0), -x * np.log(x))),
    lambda g, y, x: neg(mul(g, add(log(x), 1))),
    0.1,
    5,
    lowered(
        lambda nest, x: nest.select(x < 0, -math.inf, nest.select(x.eq(0), 0.0, -x * nest.op("log", x))),
    ),
    zero_sign=ZeroSign.HIDDEN,
)
