"""Functions of each element, as the array API standard names them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.array_api import promotion
from graphc.array_api.array import broadcast_together, floor_divided, left_over, standard
from graphc.base.dtypes import DType, limits
from graphc.ops import elementary
from graphc.ops import elementwise as ew
from graphc.ops import math as mathematics
from graphc.ops.define import as_type
from graphc.ops.shape import zeros_like
from graphc.ops.state import stop_gradient, straight_through
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor
from graphc.tracing.host import opaque

OPS: dict[str, Callable[..., Any]] = {}
"""What each function makes of operands of one type, by name."""


def _of_one(name: str, op: Callable[[Any], Any], doc: str) -> Callable[..., Any]:
    """The function of one array; raises ArgumentError for what is none."""

    def function(x: Tensor, /) -> Tensor:
        need_tensor(name, x)
        return op(x)

    return _named(function, name, op, doc)


def _of_two(name: str, op: Callable[[Any, Any], Any], doc: str, rule: Any = None) -> Callable[..., Any]:
    """The function of two arrays, one of which may be a number; types are promoted, shapes broadcast. ``rule`` is what
    it makes of them where that is not ``op``."""
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


abs = _of_one("abs", ew.abs, "The absolute value.")
acos = _of_one("acos", mathematics.acos, "The arc cosine.")
acosh = _of_one("acosh", elementary.acosh, "The inverse of the hyperbolic cosine.")
add = _of_two("add", ew.add, "Sums.")
asin = _of_one("asin", mathematics.asin, "The arc sine.")
asinh = _of_one("asinh", elementary.asinh, "The inverse of the hyperbolic sine.")
atan = _of_one("atan", mathematics.atan, "The arc tangent.")
atan2 = _of_two("atan2", mathematics.atan2, "The angle of the point (x2, x1).")
atanh = _of_one("atanh", elementary.atanh, "The inverse of the hyperbolic tangent.")
bitwise_and = _of_two("bitwise_and", ew.bit_and, "Bits that are set in both.")
bitwise_invert = _of_one("bitwise_invert", ew.bit_not, "Bits that are not set.")
bitwise_left_shift = _of_two("bitwise_left_shift", ew.shift_left, "Bits of ``x1`` moved to the left.")
bitwise_or = _of_two("bitwise_or", ew.bit_or, "Bits that are set in one of both.")
bitwise_right_shift = _of_two("bitwise_right_shift", ew.shift_right, "Bits of ``x1`` moved to the right.")
bitwise_xor = _of_two("bitwise_xor", ew.bit_xor, "Bits that differ.")
ceil = _of_one("ceil", mathematics.ceil, "The smallest whole number that is not below.")
conj = _of_one("conj", _conj, "The complex conjugate; of real numbers a copy.")
copysign = _of_two("copysign", elementary.copysign, "The size of ``x1`` with the sign of ``x2``.")
cos = _of_one("cos", mathematics.cos, "The cosine.")
cosh = _of_one("cosh", elementary.cosh, "The hyperbolic cosine.")
divide = _of_two("divide", ew.div, "Quotients, in floating point.")
equal = _of_two("equal", ew.eq, "Whether elements are equal.")
exp = _of_one("exp", mathematics.exp, "Powers of e.")
expm1 = _of_one("expm1", mathematics.expm1, "exp(x) - 1, precise near 0.")
floor = _of_one("floor", mathematics.floor, "The largest whole number that is not above.")
floor_divide = _of_two("floor_divide", ew.floor_div, "Quotients rounded down.", floor_divided)
greater = _of_two("greater", ew.gt, "Whether elements of ``x1`` are larger.")
greater_equal = _of_two("greater_equal", ew.ge, "Whether elements of ``x1`` are not smaller.")
hypot = _of_two("hypot", elementary.hypot, "The root of the sum of squares.")
imag = _of_one("imag", _imag, "The imaginary part; of real numbers zeros.")
isfinite = _of_one("isfinite", mathematics.isfinite, "Whether elements are neither infinite nor NaN.")
isinf = _of_one("isinf", Tensor.isinf, "Whether elements are infinite.")
isnan = _of_one("isnan", mathematics.isnan, "Whether elements are NaN.")
less = _of_two("less", ew.lt, "Whether elements of ``x1`` are smaller.")
less_equal = _of_two("less_equal", ew.le, "Whether elements of ``x1`` are not larger.")
log = _of_one("log", mathematics.log, "The natural logarithm.")
log10 = _of_one("log10", elementary.log10, "The logarithm to base 10.")
log1p = _of_one("log1p", mathematics.log1p, "log(1 + x), precise near 0.")
log2 = _of_one("log2", elementary.log2, "The logarithm to base 2.")
logaddexp = _of_two("logaddexp", elementary.logaddexp, "log(exp(x1) + exp(x2)) without overflow.")
logical_and = _of_two("logical_and", ew.logical_and, "Whether both are true.")
logical_not = _of_one("logical_not", ew.logical_not, "Whether elements are false.")
logical_or = _of_two("logical_or", ew.logical_or, "Whether one of both is true.")
logical_xor = _of_two("logical_xor", ew.logical_xor, "Whether exactly one of both is true.")
maximum = _of_two("maximum", ew.maximum, "The larger of two elements; NaN where one is.")
minimum = _of_two("minimum", ew.minimum, "The smaller of two elements; NaN where one is.")
multiply = _of_two("multiply", ew.mul, "Products.")
negative = _of_one("negative", ew.neg, "The opposite number.")
not_equal = _of_two("not_equal", ew.ne, "Whether elements differ.")
positive = _of_one("positive", _copied, "A copy.")
pow = _of_two("pow", mathematics.pow, "Powers of ``x1`` with the exponents ``x2``.")
real = _of_one("real", _real, "The real part; of real numbers a copy.")
reciprocal = _of_one("reciprocal", ew.reciprocal, "1 / x.")
remainder = _of_two("remainder", ew.mod, "What a division leaves, with the sign of ``x2``.", left_over)
round = _of_one("round", mathematics.round, "The nearest whole number; halves go to the even one.")
sign = _of_one("sign", _sign, "-1, 0 or 1; NaN for NaN.")
signbit = _of_one("signbit", _signbit, "Whether the sign is negative, also that of minus zero.")
sin = _of_one("sin", mathematics.sin, "The sine.")
sinh = _of_one("sinh", elementary.sinh, "The hyperbolic sine.")
sqrt = _of_one("sqrt", mathematics.sqrt, "The square root.")
square = _of_one("square", Tensor.square, "Products with themselves.")
subtract = _of_two("subtract", ew.sub, "Differences.")
tan = _of_one("tan", elementary.tan, "The tangent.")
tanh = _of_one("tanh", mathematics.tanh, "The hyperbolic tangent.")
trunc = _of_one("trunc", mathematics.trunc, "Without the fraction.")


@standard
def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Elements limited to ``min``..``max``: numbers, arrays that broadcast with ``x``, or None; of the type of ``x``.

    Bounds beyond the range of an integer type limit nothing.
    """
    need_tensor("clip", x)
    low, high = limits(x.dtype)
    bounds = [_bound(b, x.dtype, end) for b, end in ((min, low), (max, high))]
    x, *given = broadcast_together(x, *(b for b in bounds if isinstance(b, Tensor)))
    rest = iter(given)
    return mathematics.clamp(x, *[next(rest) if isinstance(b, Tensor) else b for b in bounds])


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
    """The next number of the type after ``x1`` on the way to ``x2``, which is ``x2`` where they are equal. Compiled
    code calls numpy for it; the gradient goes to ``x1``."""
    a, b = broadcast_together(*promotion.promoted("nextafter", x1, x2))
    return straight_through(a, numpy_nextafter(stop_gradient(a), stop_gradient(b)))


def _same(a: Any, b: Any) -> Any:
    return a


@functools.partial(opaque, results=_same)
def numpy_nextafter(a: Any, b: Any) -> Any:
    return np.nextafter(a.numpy(), b.numpy())


__all__ = [*OPS, "clip", "nextafter"]  # pyright: ignore[reportUnsupportedDunderAll]
