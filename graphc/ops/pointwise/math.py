"""Mathematical functions: powers, exponentials, roots, trigonometry, rounding, and tests for NaN and infinity."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, float32, int32, int64, limits
from graphc.base.errors import DTypeError, ShapeError
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import Const
from graphc.ir.op import Attr, ErrorSample, Sample, Trait, ZeroSign
from graphc.ir.types import TensorType
from graphc.ops import bounds
from graphc.ops.define import EVERY, define
from graphc.ops.movement.shape import zeros_like
from graphc.ops.pointwise import complex_functions as rules
from graphc.ops.pointwise.elementwise import (
    ELEMENTWISE,
    MISMATCH,
    add,
    div,
    eq,
    ge,
    gt,
    le,
    logical_and,
    logical_or,
    lowered,
    lt,
    mul,
    neg,
    scalar_op,
    sub,
    where,
)
from graphc.ops.pointwise.parts_of_complex import apply_named, holomorphic, named
from graphc.ops.rules import elementwise
from graphc.ops.samples import (
    FLOATS,
    INTEGERS,
    SPECIAL,
    array,
    binary,
    complexes,
    extremes,
    floats,
    integers,
    pairs,
    plain,
    unary,
)

_INTEGER = (ErrorSample((TensorType(int64, (2,)),), "operand 0 is signed integer (i64)", {}, DTypeError),)
_F, _WIDE, _I, _B = (TensorType(*t) for t in ((float32, (3,)), (float32, (4,)), (int32, (3,)), (bool_, (3,))))
_BOOLEAN = (ErrorSample((TensorType(bool_, (2,)),), "operand 0 is boolean (bool)", {}, DTypeError),)


# ---- powers


def _pow_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "f":
        return SCALAR_OPS["pow"].reference(x, y)
    if x.dtype.kind in "uc":
        return np.power(x, y)
    powers = np.power(x, np.where(y < 0, 0, y).astype(x.dtype))
    inverse = np.where(x == 1, 1, np.where(x == -1, np.where(y & 1, -1, 1), 0))
    return np.where(y < 0, inverse, powers).astype(x.dtype)


def _lower_pow(nest: NestBuilder, x: Scalar, y: Scalar) -> Scalar:
    if isinstance(y.ref, Const) and y.ref.value in (1, 2, 3):
        return x if y.ref.value == 1 else x * x if y.ref.value == 2 else x * x * x
    return nest.op("pow", x, y) if x.dtype.kind == "f" else _integer_pow(nest, x, y)


def _integer_pow(nest: NestBuilder, x: Scalar, y: Scalar) -> Scalar:
    """Emit repeated squaring over the bits of the exponent, unrolled; stop at the highest bit of a literal exponent."""
    signed = x.dtype.kind == "i"
    literal = int(y.ref.value) if isinstance(y.ref, Const) else None
    bits = x.dtype.bits - signed if literal is None or literal < 0 else literal.bit_length()
    result, square = nest.const(1, x.dtype), x
    for bit in range(bits):
        bit_set = y & nest.const(1 << bit, x.dtype)
        if isinstance(bit_set.ref, Const):
            result = result * square if bit_set.ref.value else result
        else:
            result = nest.select(bit_set.ne(0), result * square, result)
        square = square * square
    if not signed:
        return result
    alternating = nest.select((y & 1).ne(0), nest.const(-1, x.dtype), 1)
    inverse = nest.select(x.eq(1), nest.const(1, x.dtype), nest.select(x.eq(-1), alternating, 0))
    return nest.select(y < 0, inverse, result)


def _base_gradient(g: Any, result: Any, x: Any, y: Any) -> Any:
    """Return y * x**(y - 1), and 0 where y is 0, whatever x and g are."""
    flat = eq(y, 0)
    return where(flat, 0, mul(g, mul(y, pow(where(flat, 1, x), sub(y, 1)))))


def _exponent_gradient(g: Any, result: Any, x: Any, y: Any) -> Any:
    """Return x**y * log(x), and 0 where x is 0 and the exponent is not negative, whatever g is."""
    exponent = y if y.dtype.kind != "c" else named.real(y)
    flat = logical_and(eq(x, 0), ge(exponent, 0))
    return where(flat, 0, mul(g, mul(result, log(where(flat, 1, x)))))


def _pow_samples() -> list[Sample]:
    samples = [
        Sample((floats((2, 3), "float64", 0.2, 3), floats((2, 3), seed=1))),
        Sample((complexes((2, 3)), complexes((3,), seed=1))),
        Sample((floats((4, 1), "float32", 0.2, 3), floats((5,), "float32", seed=1))),
        Sample((floats((2, 3), "float64", -3, -0.5), array(3.0, "float64")), differentiable=False),
        Sample((floats((), "float32", 0.2, 3), floats((), "float32", seed=1))),
        Sample((floats((0, 3), "float64", 0.2, 3), floats((1, 3)))),
    ]
    samples += [plain(floats((5,), "float32", -3, 3), array(e, "float32")) for e in (0, 1, 2, 3, -1, 0.5)]
    samples += [plain(*pairs(array(SPECIAL, dtype))) for dtype in FLOATS]
    samples += [plain(extremes(dtype), array(e, dtype)) for dtype in INTEGERS for e in (0, 1, 2, 3, 5)]
    samples += [plain(*pairs(extremes(dtype))) for dtype in INTEGERS]
    return [*samples, plain(integers((3, 4), "int32"), integers((4,), "int32", -3, 9, 1))]


pow = define(
    "pow",
    "x to the power y. Integers wrap around; a negative exponent of integers gives the truncated quotient 1 / x**-y "
    "(0 for x = 0).",
    "x y",
    elementwise("pow", "fiuc"),
    reference=_pow_reference,
    vjp=(holomorphic(_base_gradient), holomorphic(_exponent_gradient)),
    complex=rules.power,
    lower=lowered(_lower_pow),
    traits=ELEMENTWISE,
    cost=80,
    samples=_pow_samples,
    error_samples=(
        *MISMATCH,
        ErrorSample((TensorType(bool_, (2,)),) * 2, "operand 0 is boolean (bool)", {}, DTypeError),
    ),
    promotes=EVERY,
)


# ---- functions of one number


def function(
    name: str,
    doc: str,
    reference: Callable[[np.ndarray], np.ndarray],
    gradient: Callable[..., Any],
    low: float,
    high: float,
    lower: Callable[..., Scalar] | None = None,
    traits: Trait = ELEMENTWISE,
    zero_sign: ZeroSign = ZeroSign.SEEN,
    on_complex: Callable[..., Any] | None = None,
) -> Any:
    """Define a floating-point function with gradient ``gradient(g, result, x)``, sampled in ``low..high``.
    ``on_complex`` is the rule for complex numbers, where the function has a derivative."""
    return define(
        name,
        doc,
        "x",
        elementwise(name, "fc" if on_complex else "f"),
        reference=reference,
        vjp=(holomorphic(gradient) if on_complex else gradient,),
        complex=on_complex,
        lower=lower or scalar_op(name),
        traits=traits,
        zero_sign=zero_sign,
        samples=unary(low, high, "fc" if on_complex else "f"),
        error_samples=_INTEGER,
        promotes=EVERY,
        to_float=True,
    )


exp = function(
    "exp",
    "e to the power x.",
    np.exp,
    lambda g, y, x: mul(g, y),
    -3,
    3,
    zero_sign=ZeroSign.HIDDEN,
    on_complex=rules.exp,
)
expm1 = function(
    "expm1",
    "exp(x) - 1, accurate for small x.",
    np.expm1,
    lambda g, y, x: mul(g, add(y, 1)),
    -2,
    2,
    on_complex=rules.expm1,
)
log = function(
    "log",
    "The natural logarithm.",
    np.log,
    lambda g, y, x: div(g, x),
    0.1,
    5,
    zero_sign=ZeroSign.HIDDEN,
    on_complex=rules.log,
)
log1p = function(
    "log1p",
    "log(1 + x), accurate for small x.",
    np.log1p,
    lambda g, y, x: div(g, add(x, 1)),
    -0.8,
    3,
    on_complex=rules.log1p,
)
_ROOT = ELEMENTWISE | Trait.RECOMPUTED
"""Recomputed, because PyTorch may save the base of a power of one half."""

sqrt = function(
    "sqrt",
    "The square root.",
    np.sqrt,
    lambda g, y, x: div(mul(g, 0.5), y),
    0.1,
    5,
    scalar_op("sqrt"),
    _ROOT,
    on_complex=rules.sqrt,
)
rsqrt = function(
    "rsqrt",
    "1 / sqrt(x).",
    lambda x: np.divide(x.dtype.type(1), np.sqrt(x)),
    lambda g, y, x: mul(mul(g, -0.5), mul(y, mul(y, y))),
    0.2,
    5,
    lowered(lambda nest, x: 1 / nest.op("sqrt", x)),
    _ROOT,
    on_complex=lambda x: div(1, sqrt(x)),
)
sin = function("sin", "The sine of x radians.", np.sin, lambda g, y, x: mul(g, cos(x)), -4, 4, on_complex=rules.sin)
cos = function(
    "cos",
    "The cosine of x radians.",
    np.cos,
    lambda g, y, x: neg(mul(g, sin(x))),
    -4,
    4,
    zero_sign=ZeroSign.HIDDEN,
    on_complex=rules.cos,
)
tanh = function(
    "tanh", "The hyperbolic tangent.", np.tanh, lambda g, y, x: mul(g, sub(1, mul(y, y))), -3, 3, on_complex=rules.tanh
)
sigmoid = function(
    "sigmoid",
    "The logistic function 1 / (1 + exp(-x)), accurate where it is small, too.",
    lambda x: np.divide(x.dtype.type(1), 1 + np.exp(-x)),
    lambda g, y, x: mul(g, mul(y, sub(1, y))),
    -6,
    6,
    lowered(lambda nest, x: 1 / (nest.op("exp", -x) + 1)),
    zero_sign=ZeroSign.HIDDEN,
    on_complex=lambda x: div(1, add(exp(neg(x)), 1)),
)
erf = function(
    "erf",
    "The error function, 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x.",
    SCALAR_OPS["erf"].reference,
    lambda g, y, x: mul(g, mul(exp(neg(mul(x, x))), 2 / math.sqrt(math.pi))),
    -3,
    3,
)


def _lower_asin(nest: NestBuilder, x: Scalar) -> Scalar:
    return nest.op("atan2", x, nest.op("sqrt", (1 - x) * (1 + x)))


def _lower_acos(nest: NestBuilder, x: Scalar) -> Scalar:
    return nest.op("atan2", nest.op("sqrt", (1 - x) * (1 + x)), x)


def _circle(x: Any) -> Any:
    """Return 1 / sqrt(1 - x * x)."""
    return rsqrt(sub(1, mul(x, x)))


atan = function(
    "atan",
    "The angle in radians, from -pi/2 to pi/2, whose tangent is x.",
    np.arctan,
    lambda g, y, x: div(g, add(mul(x, x), 1)),
    -4,
    4,
    lowered(lambda nest, x: nest.op("atan2", x, nest.const(1, x.dtype))),
    on_complex=rules.atan,
)
asin = function(
    "asin",
    "The angle in radians, from -pi/2 to pi/2, whose sine is x; NaN where x is not in -1..1.",
    np.arcsin,
    lambda g, y, x: mul(g, _circle(x)),
    -0.9,
    0.9,
    lowered(_lower_asin),
    on_complex=rules.asin,
)
acos = function(
    "acos",
    "The angle in radians, from 0 to pi, whose cosine is x; NaN where x is not in -1..1.",
    np.arccos,
    lambda g, y, x: neg(mul(g, _circle(x))),
    -0.9,
    0.9,
    lowered(_lower_acos),
    on_complex=rules.acos,
)


def _per_square(g: Any, y: Any, x: Any) -> Any:
    """Return g / (x * x + y * y), and g at the origin, where it is then multiplied by 0."""
    square = add(mul(x, x), mul(y, y))
    return div(g, where(eq(square, 0), 1, square))


atan2 = define(
    "atan2",
    "The angle in radians, from -pi to pi, of the point with coordinates (x, y).",
    "y x",
    elementwise("atan2", "f"),
    reference=np.arctan2,
    vjp=(
        lambda g, result, y, x: mul(x, _per_square(g, y, x)),
        lambda g, result, y, x: neg(mul(y, _per_square(g, y, x))),
    ),
    lower=scalar_op("atan2"),
    traits=ELEMENTWISE,
    samples=binary(kinds="f"),
    error_samples=(
        *MISMATCH,
        ErrorSample((TensorType(int64, (2,)),) * 2, "operand 0 is signed integer", {}, DTypeError),
    ),
    promotes=EVERY,
    to_float=True,
)


# ---- rounding


def _rounding(name: str, doc: str, reference: Callable[[np.ndarray], np.ndarray], operation: str) -> Any:
    """Define a rounding op; integers pass through unchanged, and the gradient is 0."""
    return define(
        name,
        doc,
        "x",
        elementwise(name, "fiu"),
        reference=lambda x: reference(x) if x.dtype.kind == "f" else x.copy(),
        vjp=(lambda g, result, x: zeros_like(result),),
        lower=lowered(lambda nest, x: nest.op(operation, x) if x.dtype.kind == "f" else x),
        traits=ELEMENTWISE,
        samples=lambda: [*unary(-5, 5, "fiu")(), plain(np.arange(-4.5, 5, 0.5))],
        error_samples=_BOOLEAN,
    )


floor = _rounding("floor", "The largest whole number not above x.", np.floor, "floor")
ceil = _rounding("ceil", "The smallest whole number not below x.", np.ceil, "ceil")
round = _rounding("round", "The nearest whole number; halves go to the even one.", np.rint, "roundeven")
trunc = _rounding("trunc", "x without its fraction: rounded toward zero.", np.trunc, "trunc")


# ---- limits


def _clamp_reference(x: np.ndarray, low: np.ndarray, high: np.ndarray, strict: bool) -> np.ndarray:
    x = np.where((x < low) | (low != low), low, x)
    return np.where((x > high) | (high != high), high, x)


def _lower_clamp(c: LowerContext, index: tuple[Index, ...], *operands: OperandRef, strict: bool) -> Scalar:
    x, low, high = (c.broadcast(v, index) for v in operands)
    return _limited(c.nest, _limited(c.nest, x, low, "lt", 0), high, "gt", 1)


def _limited(nest: NestBuilder, x: Scalar, bound: Scalar, beyond: str, end: int) -> Scalar:
    """Return ``x``, or the bound where x exceeds it or the bound is NaN; literals that limit nothing cost nothing."""
    literal = bound.ref.value if isinstance(bound.ref, Const) else None
    if literal is not None and literal == limits(x.dtype)[end]:
        return x
    outside = nest.op(beyond, x, bound)
    never_nan = x.dtype.kind != "f" or (literal is not None and literal == literal)
    return nest.select(outside if never_nan else outside | bound.ne(bound), bound, x)


def _clamp_gradients() -> tuple[Any, Any, Any]:
    """Return the gradients: to x between the limits (strictly, for ``strict``), else to the limit that was taken; to
    none where x is NaN."""

    def of_x(g: Any, result: Any, x: Any, low: Any, high: Any, strict: bool) -> Any:
        inside = logical_and(gt(x, low), lt(x, high)) if strict else logical_and(ge(x, low), le(x, high))
        return where(inside, g, 0)

    def of_low(g: Any, result: Any, x: Any, low: Any, high: Any, strict: bool) -> Any:
        # NOTE: an infinite upper limit is none, so that an infinite lower one is what limits.
        return where(logical_and(lt(x, low), logical_or(lt(low, high), eq(high, math.inf))), g, 0)

    def of_high(g: Any, result: Any, x: Any, low: Any, high: Any, strict: bool) -> Any:
        return where(logical_or(gt(x, high), lt(high, low)), g, 0)

    return of_x, of_low, of_high


def _clamp_samples() -> list[Sample]:
    samples = [
        Sample((floats((3, 4)), array(-0.75, "float64"), array(1.1, "float64"))),
        Sample((floats((2, 3), "float32"), floats((3,), "float32", -1, 0, 1), floats((2, 1), "float32", 0, 1, 2))),
        Sample((floats((5,), "float32"), array(-0.75, "float32"), array(1.1, "float32")), {"strict": True}),
        Sample((floats((0, 4)), array(0, "float64"), array(1, "float64"))),
    ]
    for dtype in FLOATS:
        column, row = pairs(array(SPECIAL, dtype))
        samples += [plain(column, row, array(high, dtype)) for high in (np.inf, np.nan, 1)]
        samples += [plain(column, array(low, dtype), row) for low in (-np.inf, np.nan, 1)]
    for dtype in INTEGERS:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        column, row = pairs(extremes(dtype))
        samples += [plain(column, row, array(high, dtype)), plain(column, array(low, dtype), row)]
    return samples


clamp = define(
    "clamp",
    "x limited to low..high: high where low is above it; NaN where one of them is NaN. ``strict`` affects the gradient "
    "only: it is 0 at the limits, too.",
    "x low high",
    lambda x, low, high, strict: elementwise("clamp", "fiu")(x, low, high),
    attrs=[Attr("strict", "bool", "no gradient at the limits", False, False)],
    reference=_clamp_reference,
    vjp=_clamp_gradients(),
    lower=_lower_clamp,
    traits=ELEMENTWISE,
    zero_sign=ZeroSign.KEPT,
    bounds=bounds.clamped,
    samples=_clamp_samples,
    error_samples=(
        ErrorSample((_B, _B, _B), "operand 0 is boolean (bool)", {}, DTypeError),
        ErrorSample((_F, _F, _I), "f32 (operand 0) and i32 (operand 2)", {}, DTypeError),
        ErrorSample((_F, _F, _WIDE), "do not broadcast: 3 and 4", {}, ShapeError),
    ),
    promotes=EVERY,
)


# ---- tests


def _test(name: str, doc: str, reference: Any, rule: Callable[..., Scalar], either: Any) -> Any:
    return define(
        name,
        doc,
        "x",
        elementwise(name, "fc", bool_),
        reference=reference,
        lower=lowered(rule),
        complex=lambda x: either(apply_named(name, x.real), apply_named(name, x.imag)),
        traits=ELEMENTWISE,
        zero_sign=ZeroSign.HIDDEN,
        samples=lambda: [plain(*s.operands) for s in unary(kinds="fc")()],
        error_samples=_INTEGER,
        promotes=EVERY,
        to_float=True,
    )


isnan = _test("isnan", "Whether x is NaN.", np.isnan, lambda nest, x: x.ne(x), logical_or)
isfinite = _test(
    "isfinite",
    "Whether x is neither infinite nor NaN.",
    np.isfinite,
    lambda nest, x: nest.op("abs", x) < math.inf,
    logical_and,
)
