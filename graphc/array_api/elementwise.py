"""Elementwise functions under the names of the array API standard."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.array_api import promotion
from graphc.array_api.array import broadcast_together, floor_divided, remainder_of, standard
from graphc.base.dtypes import DType, limits
from graphc.ops.define import as_type
from graphc.ops.effects.state import stop_gradient, straight_through
from graphc.ops.movement.shape import zeros_like
from graphc.ops.pointwise import elementary
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor
from graphc.tracing.host import opaque

OPS: dict[str, Callable[..., Any]] = {}
"""Implementation of each function for operands of one type, by name."""


def _of_one(name: str, op: Callable[[Any], Any], doc: str) -> Callable[..., Any]:
    """Return the function of one array. It raises ArgumentError for other objects."""

    def function(x: Tensor, /) -> Tensor:
        need_tensor(name, x)
        return op(x)

    return _named(function, name, op, doc)


def _of_two(name: str, op: Callable[[Any, Any], Any], doc: str, rule: Any = None) -> Callable[..., Any]:
    """Return the function of two arrays, one of which may be a number. Types are promoted, shapes broadcast.

    ``rule`` is its implementation if it differs from ``op``.
    """
    rule = rule or op

    def function(x1: Tensor | float, x2: Tensor | float, /) -> Tensor:
        return promotion.apply(name, rule, x1, x2)

    return _named(function, name, op, doc)


def _named(function: Any, name: str, op: Callable[..., Any], doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    OPS[name] = op
    return standard(function)


def _sign(x: Any) -> Any:
    return ew.where(mathematics.isnan(x), x, ew.sign(x)) if x.dtype.is_floating_point else ew.sign(x)


def _signbit(x: Any) -> Any:
    return ew.lt(elementary.copysign(1.0, x) if x.dtype.is_floating_point else x, 0)


def _copied(x: Any) -> Any:
    return x.clone()


def _real(x: Any) -> Any:
    return x.real.clone()


def _imag(x: Any) -> Any:
    return x.imag.clone() if x.dtype.is_complex else zeros_like(x)


def _conj(x: Any) -> Any:
    return x.conj() if x.dtype.is_complex else x.clone()


abs = _of_one("abs", ew.abs, "Return the absolute value.")
acos = _of_one("acos", mathematics.acos, "Return the arc cosine.")
acosh = _of_one("acosh", elementary.acosh, "Return the inverse hyperbolic cosine.")
add = _of_two("add", ew.add, "Return the sum.")
asin = _of_one("asin", mathematics.asin, "Return the arc sine.")
asinh = _of_one("asinh", elementary.asinh, "Return the inverse hyperbolic sine.")
atan = _of_one("atan", mathematics.atan, "Return the arc tangent.")
atan2 = _of_two("atan2", mathematics.atan2, "Return the angle of the point (x2, x1).")
atanh = _of_one("atanh", elementary.atanh, "Return the inverse hyperbolic tangent.")
bitwise_and = _of_two("bitwise_and", ew.bit_and, "Return the bits set in both operands.")
bitwise_invert = _of_one("bitwise_invert", ew.bit_not, "Invert all bits.")
bitwise_left_shift = _of_two("bitwise_left_shift", ew.shift_left, "Shift the bits of ``x1`` to the left.")
bitwise_or = _of_two("bitwise_or", ew.bit_or, "Return the bits set in at least one operand.")
bitwise_right_shift = _of_two("bitwise_right_shift", ew.shift_right, "Shift the bits of ``x1`` to the right.")
bitwise_xor = _of_two("bitwise_xor", ew.bit_xor, "Return the bits that differ.")
ceil = _of_one("ceil", mathematics.ceil, "Round up to an integer.")
conj = _of_one("conj", _conj, "Return the complex conjugate, or a copy of real numbers.")
copysign = _of_two("copysign", elementary.copysign, "Return the magnitude of ``x1`` with the sign of ``x2``.")
cos = _of_one("cos", mathematics.cos, "Return the cosine.")
cosh = _of_one("cosh", elementary.cosh, "Return the hyperbolic cosine.")
divide = _of_two("divide", ew.div, "Return the quotient, in floating point.")
equal = _of_two("equal", ew.eq, "Check whether elements are equal.")
exp = _of_one("exp", mathematics.exp, "Return e to the power x.")
expm1 = _of_one("expm1", mathematics.expm1, "Return exp(x) - 1, precise near 0.")
floor = _of_one("floor", mathematics.floor, "Round down to an integer.")
floor_divide = _of_two("floor_divide", ew.floor_div, "Return the quotient, rounded down.", floor_divided)
greater = _of_two("greater", ew.gt, "Check whether elements of ``x1`` are larger.")
greater_equal = _of_two("greater_equal", ew.ge, "Check whether elements of ``x1`` are not smaller.")
hypot = _of_two("hypot", elementary.hypot, "Return the square root of the sum of squares.")
imag = _of_one("imag", _imag, "Return the imaginary part, or zeros for real numbers.")
isfinite = _of_one("isfinite", mathematics.isfinite, "Check whether elements are neither infinite nor NaN.")
isinf = _of_one("isinf", Tensor.isinf, "Check whether elements are infinite.")
isnan = _of_one("isnan", mathematics.isnan, "Check whether elements are NaN.")
less = _of_two("less", ew.lt, "Check whether elements of ``x1`` are smaller.")
less_equal = _of_two("less_equal", ew.le, "Check whether elements of ``x1`` are not larger.")
log = _of_one("log", mathematics.log, "Return the natural logarithm.")
log10 = _of_one("log10", elementary.log10, "Return the logarithm to base 10.")
log1p = _of_one("log1p", mathematics.log1p, "Return log(1 + x), precise near 0.")
log2 = _of_one("log2", elementary.log2, "Return the logarithm to base 2.")
logaddexp = _of_two("logaddexp", elementary.logaddexp, "Return log(exp(x1) + exp(x2)) without overflow.")
logical_and = _of_two("logical_and", ew.logical_and, "Check whether both operands are true.")
logical_not = _of_one("logical_not", ew.logical_not, "Check whether elements are false.")
logical_or = _of_two("logical_or", ew.logical_or, "Check whether at least one operand is true.")
logical_xor = _of_two("logical_xor", ew.logical_xor, "Check whether exactly one operand is true.")
maximum = _of_two("maximum", ew.maximum, "Return the larger of two elements, or NaN if one is NaN.")
minimum = _of_two("minimum", ew.minimum, "Return the smaller of two elements, or NaN if one is NaN.")
multiply = _of_two("multiply", ew.mul, "Return the product.")
negative = _of_one("negative", ew.neg, "Return the number with the opposite sign.")
not_equal = _of_two("not_equal", ew.ne, "Check whether elements differ.")
positive = _of_one("positive", _copied, "Return a copy.")
pow = _of_two("pow", mathematics.pow, "Return ``x1`` to the power ``x2``.")
real = _of_one("real", _real, "Return the real part, or a copy of real numbers.")
reciprocal = _of_one("reciprocal", ew.reciprocal, "Return 1 / x.")
remainder = _of_two("remainder", ew.mod, "Return the remainder of the division, with the sign of ``x2``.", remainder_of)
round = _of_one("round", mathematics.round, "Round to the nearest integer, ties to even.")
sign = _of_one("sign", _sign, "Return -1, 0 or 1, or NaN for NaN.")
signbit = _of_one("signbit", _signbit, "Check whether the sign bit is set, as for -0.0.")
sin = _of_one("sin", mathematics.sin, "Return the sine.")
sinh = _of_one("sinh", elementary.sinh, "Return the hyperbolic sine.")
sqrt = _of_one("sqrt", mathematics.sqrt, "Return the square root.")
square = _of_one("square", Tensor.square, "Return the square.")
subtract = _of_two("subtract", ew.sub, "Return the difference.")
tan = _of_one("tan", elementary.tan, "Return the tangent.")
tanh = _of_one("tanh", mathematics.tanh, "Return the hyperbolic tangent.")
trunc = _of_one("trunc", mathematics.trunc, "Round towards zero to an integer.")


@standard
def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Limit elements to ``min``..``max``, in the type of ``x``. Limits are numbers, arrays that broadcast with ``x``,
    or None.

    Limits beyond the range of an integer type have no effect.
    """
    need_tensor("clip", x)
    low, high = limits(x.dtype)
    bounds = [_bound(b, x.dtype, end) for b, end in ((min, low), (max, high))]
    x, *arrays = broadcast_together(x, *(b for b in bounds if isinstance(b, Tensor)))
    remaining = iter(arrays)
    return mathematics.clamp(x, *[next(remaining) if isinstance(b, Tensor) else b for b in bounds])


def _bound(bound: Any, dtype: DType, end: Any) -> Any:
    if bound is None:
        return end
    if isinstance(bound, Tensor):
        return as_type(bound, dtype)
    if dtype.is_differentiable:
        return bound
    low, high = limits(dtype)
    return low if bound < low else high if bound > high else bound


@standard
def nextafter(x1: Any, x2: Any, /) -> Tensor:
    """Return the next number of the type after ``x1`` towards ``x2``, or ``x2`` where both are equal.

    Compiled code calls numpy for it. The gradient goes to ``x1``.
    """
    a, b = broadcast_together(*promotion.promoted("nextafter", x1, x2))
    return straight_through(a, numpy_nextafter(stop_gradient(a), stop_gradient(b)))


def _same(a: Any, b: Any) -> Any:
    return a


@functools.partial(opaque, results=_same)
def numpy_nextafter(a: Any, b: Any) -> Any:
    return np.nextafter(a.numpy(), b.numpy())


__all__ = [*OPS, "clip", "nextafter"]  # pyright: ignore[reportUnsupportedDunderAll]
