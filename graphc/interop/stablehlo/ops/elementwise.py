"""Rules of operations that compute each element by itself."""

from __future__ import annotations

from typing import Any

from graphc.base.dtypes import DType, bool_, named, uint8
from graphc.interop.stablehlo.call import OperationCall
from graphc.interop.stablehlo.registry import rule, same
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise.bits import bitcast
from graphc.tensors import functions, special_functions
from graphc.tensors.tensor import Tensor

_COMPARISONS = {"EQ": ew.eq, "NE": ew.ne, "LT": ew.lt, "LE": ew.le, "GT": ew.gt, "GE": ew.ge}


def _function(name: str) -> Any:
    return next(getattr(s, name) for s in (functions, special_functions) if hasattr(s, name))


same(
    """
    abs=abs atan2=atan2 ceil=ceil cosine=cos exponential=exp exponential_minus_one=expm1 floor=floor is_finite=isfinite
    log=log log_plus_one=log1p logistic=sigmoid negate=neg power=pow round_nearest_even=round rsqrt=rsqrt sign=sgn
    sine=sin sqrt=sqrt subtract=sub tan=tan tanh=tanh
    chlo.acos=acos chlo.acosh=acosh chlo.asin=asin chlo.asinh=asinh chlo.atan=atan chlo.atanh=atanh chlo.cosh=cosh
    chlo.digamma=digamma chlo.erf=erf chlo.erf_inv=erfinv chlo.erfc=erfc chlo.is_inf=isinf chlo.is_neg_inf=isneginf
    chlo.is_pos_inf=isposinf chlo.lgamma=lgamma chlo.next_after=nextafter chlo.sinh=sinh chlo.square=square chlo.tan=tan
    chlo.bessel_i1e=i1e chlo.zeta=zeta
    """,
    _function,
)


def _numeric_or_bool(names: str, numeric: Any, logical: Any) -> None:
    """Register an operation that has another function for booleans."""

    def apply(call: OperationCall, *operands: Tensor) -> Tensor:
        return (logical if operands[0].dtype is bool_ else numeric)(*operands)

    rule(names, pointwise=True)(apply)


_numeric_or_bool("add", ew.add, ew.logical_or)
_numeric_or_bool("multiply", ew.mul, ew.logical_and)
_numeric_or_bool("maximum", ew.maximum, ew.logical_or)
_numeric_or_bool("minimum", ew.minimum, ew.logical_and)
_numeric_or_bool("and", ew.bit_and, ew.logical_and)
_numeric_or_bool("or", ew.bit_or, ew.logical_or)
_numeric_or_bool("xor", ew.bit_xor, ew.logical_xor)
_numeric_or_bool("not", ew.bit_not, ew.logical_not)


@rule("compare", pointwise=True)
def compare(call: OperationCall, x: Tensor, y: Tensor) -> Tensor:
    """Compare numbers. A total order of real numbers is that of LE and the like, which differ for NaN and -0 only."""
    function = _COMPARISONS.get(call.word("comparison_direction"))
    if function is None:
        raise call.unsupported(f"the direction {call.word('comparison_direction')!r}")
    if x.dtype is bool_:
        x, y = x.to(uint8), y.to(uint8)
    return function(x, y)


@rule("select", pointwise=True)
def select(call: OperationCall, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return ew.where(condition, x, y)


@rule("clamp", pointwise=True)
def clamp(call: OperationCall, low: Tensor, x: Tensor, high: Tensor) -> Tensor:
    return ew.minimum(ew.maximum(x, low), high)


@rule("divide", pointwise=True)
def divide(call: OperationCall, x: Tensor, y: Tensor) -> Tensor:
    """Divide. The quotient of integers is truncated; that by 0 has all bits set, as in XLA."""
    if not x.dtype.is_integer:
        return ew.div(x, y)
    return ew.where(ew.eq(y, 0), _all_bits(x.dtype), _truncated(x, y))


@rule("remainder", pointwise=True)
def remainder(call: OperationCall, x: Tensor, y: Tensor) -> Tensor:
    """Return the remainder with the sign of ``x``; ``x`` itself where an integer ``y`` is 0."""
    if not x.dtype.is_integer:
        return functions.fmod(x, y)
    return ew.where(ew.eq(y, 0), x, ew.sub(x, ew.mul(_truncated(x, y), y)))


def _all_bits(dtype: DType) -> int:
    return -1 if dtype.kind == "i" else (1 << dtype.bits) - 1


def _truncated(x: Tensor, y: Tensor) -> Tensor:
    """Divide integers with rounding toward zero; any result where ``y`` is 0."""
    y = ew.where(ew.eq(y, 0), 1, y)
    quotient = ew.floor_div(x, y)
    if x.dtype.kind == "u":
        return quotient
    inexact = ew.ne(ew.mul(quotient, y), x)
    upward = ew.logical_and(inexact, ew.ne(ew.lt(x, 0).to(uint8), ew.lt(y, 0).to(uint8)))
    return ew.add(quotient, upward.to(x.dtype))


@rule("cbrt", pointwise=True)
def cube_root(call: OperationCall, x: Tensor) -> Tensor:
    """Return the real cube root: a power, and one step of Newton's method against its rounding."""
    size = ew.abs(x)
    root = functions.pow(size, 1.0 / 3.0)
    square = ew.mul(root, root)
    regular = ew.logical_and(ew.gt(size, 0), functions.isfinite(size))
    step = ew.div(ew.sub(ew.mul(square, root), size), ew.where(regular, ew.mul(square, 3), 1))
    return ew.mul(functions.sign(x), ew.where(regular, ew.sub(root, step), root))


@rule("round_nearest_afz", pointwise=True)
def round_away(call: OperationCall, x: Tensor) -> Tensor:
    """Return the nearest whole number; halves go away from zero."""
    whole = functions.trunc(x)
    far = ew.ge(ew.abs(ew.sub(x, whole)), 0.5)
    return ew.where(far, ew.add(whole, functions.sign(x)), whole)


@rule("shift_left", pointwise=True)
def shift_left(call: OperationCall, x: Tensor, count: Tensor) -> Tensor:
    return _shifted(ew.shift_left, x, count)


@rule("shift_right_arithmetic", pointwise=True)
def shift_right_arithmetic(call: OperationCall, x: Tensor, count: Tensor) -> Tensor:
    """Shift right and repeat the sign; counts beyond the width shift out all other bits."""
    if x.dtype.kind == "i":
        most = x.dtype.bits - 1
        outside = ew.logical_or(ew.lt(count, 0), ew.gt(count, most))
        return ew.shift_right(x, ew.where(outside, most, count))
    signed = named(f"i{x.dtype.bits}")
    return bitcast(shift_right_arithmetic(call, bitcast(x, dtype=signed), bitcast(count, dtype=signed)), dtype=x.dtype)


@rule("shift_right_logical", pointwise=True)
def shift_right_logical(call: OperationCall, x: Tensor, count: Tensor) -> Tensor:
    """Shift right with zeros from above."""
    if x.dtype.kind == "u":
        return _shifted(ew.shift_right, x, count)
    unsigned = named(f"u{x.dtype.bits}")
    shifted = _shifted(ew.shift_right, bitcast(x, dtype=unsigned), bitcast(count, dtype=unsigned))
    return bitcast(shifted, dtype=x.dtype)


def _shifted(function: Any, x: Tensor, count: Tensor) -> Tensor:
    """Shift bits; counts outside of the width give 0."""
    outside = ew.logical_or(ew.lt(count, 0), ew.ge(count, x.dtype.bits))
    return ew.where(outside, 0, function(x, ew.where(outside, 0, count)))


@rule("popcnt", pointwise=True)
def count_ones(call: OperationCall, x: Tensor) -> Tensor:
    """Count the bits that are set (Warren, Hacker's Delight, section 5-1)."""
    unsigned = named(f"u{x.dtype.bits}")
    return _ones(bitcast(x, dtype=unsigned), unsigned).to(x.dtype)


def _ones(x: Tensor, dtype: DType) -> Tensor:
    width = 1
    while width < dtype.bits:
        mask = sum(((1 << width) - 1) << i for i in range(0, dtype.bits, 2 * width))
        x = ew.add(ew.bit_and(x, mask), ew.bit_and(ew.shift_right(x, width), mask))
        width *= 2
    return x


@rule("count_leading_zeros", pointwise=True)
def count_leading_zeros(call: OperationCall, x: Tensor) -> Tensor:
    """Count the zeros above the highest bit that is set."""
    unsigned = named(f"u{x.dtype.bits}")
    bits = bitcast(x, dtype=unsigned)
    width = 1
    while width < x.dtype.bits:
        bits = ew.bit_or(bits, ew.shift_right(bits, width))
        width *= 2
    return _ones(ew.bit_not(bits), unsigned).to(x.dtype)


@rule("chlo.polygamma", pointwise=True)
def polygamma(call: OperationCall, order: Tensor, x: Tensor) -> Tensor:
    """Return the derivative of digamma of an order that is a constant of the program."""
    known = call.known(order)
    orders = set() if known is None else {*known.reshape(-1).tolist()}
    if len(orders) != 1:
        raise call.unsupported("orders that are not one constant")
    return special_functions.polygamma(int(orders.pop()), x)


@rule("chlo.conj", pointwise=True)
def conjugate(call: OperationCall, x: Tensor) -> Tensor:
    return x.conj() if x.dtype.is_complex else x
