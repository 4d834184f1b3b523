"""Tensor methods for composed functions of elements: hyperbolic, logarithmic, rounding."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from graphc.base.dtypes import largest_finite
from graphc.base.errors import ArgumentError
from graphc.ops.define import as_type, common_type
from graphc.ops.pointwise import elementary, special
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.tensors import composite, special_functions
from graphc.tensors.tensor_base import TensorBase

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor


def _float(x: Any) -> Any:
    return composite.to_float(x) if isinstance(x, TensorBase) else x


def _element(function: Any) -> Any:
    def method(self: Any) -> Any:
        return function(self)

    method.__doc__ = function.__doc__
    return method


class Elementary(TensorBase):
    """Functions of each element, composed of ops."""

    exp2, log2, log10 = (_element(f) for f in (elementary.exp2, elementary.log2, elementary.log10))
    tan, sinh, cosh = (_element(f) for f in (elementary.tan, elementary.sinh, elementary.cosh))
    asinh, acosh, atanh = (_element(f) for f in (elementary.asinh, elementary.acosh, elementary.atanh))
    erfc = _element(elementary.erfc)
    arcsinh, arccosh, arctanh = asinh, acosh, atanh

    def erfinv(self) -> Tensor:
        """Compute the inverse error function: infinite at -1 and 1, NaN beyond."""
        return special.erfinv(self)

    def lgamma(self) -> Tensor:
        """Compute the logarithm of the absolute value of the gamma function."""
        return special.lgamma(self)

    def digamma(self) -> Tensor:
        """Compute the derivative of ``lgamma``."""
        return special.polygamma(self, n=0)

    def polygamma(self, n: int) -> Tensor:
        """Compute the derivative of order ``n`` of ``digamma``."""
        return special.polygamma(self, n=n)

    def i0(self) -> Tensor:
        """Compute the modified Bessel function of the first kind of order 0, like ``special.i0``."""
        return special_functions.i0(self)

    def igamma(self, other: Any) -> Tensor:
        """Compute the regularised lower incomplete gamma function of these numbers and ``other``, like
        ``special.gammainc``."""
        return special_functions.gammainc(self, other)

    def igammac(self, other: Any) -> Tensor:
        """Compute 1 minus ``igamma``, like ``special.gammaincc``."""
        return special_functions.gammaincc(self, other)

    def mvlgamma(self, p: int) -> Tensor:
        """Compute the logarithm of the multivariate gamma function of dimension ``p``."""
        if p < 1:
            raise ArgumentError(f"mvlgamma: p must be positive, got {p}")
        x: Any = _float(self)
        terms = [special.lgamma(ew.sub(x, 0.5 * k)) for k in range(p)]
        return ew.add(functools.reduce(ew.add, terms), 0.25 * p * (p - 1) * math.log(math.pi))

    def logit(self, eps: float | None = None) -> Tensor:
        """Compute log(x / (1 - x)), with elements first limited to eps..1-eps."""
        x = _float(self)
        return elementary.logit(x if eps is None else composite.clamp(x, eps, 1.0 - eps))

    def frac(self) -> Tensor:
        """Return the fractional part, with the sign of the element."""
        return ew.sub(self, mathematics.trunc(self))

    def fmod(self, other: Any) -> Tensor:
        """Compute the remainder with the sign of the dividend."""
        dtype = common_type([self, other], "fmod")
        x, y = as_type(self, dtype), as_type(other, dtype)
        if not dtype.is_floating_point:  # no abs(): the smallest integer has no positive counterpart
            rest = ew.mod(x, y)
            return ew.where(ew.logical_and(ew.ne(rest, 0), ew.ne(ew.lt(x, 0), ew.lt(y, 0))), ew.sub(rest, y), rest)
        y = ew.abs(y)
        return ew.where(ew.lt(x, 0), ew.neg(ew.mod(ew.neg(x), y)), ew.mod(x, y))

    def deg2rad(self) -> Tensor:
        """Convert degrees to radians."""
        return ew.mul(_float(self), math.pi / 180.0)

    def rad2deg(self) -> Tensor:
        """Convert radians to degrees."""
        return ew.mul(_float(self), 180.0 / math.pi)

    def sinc(self) -> Tensor:
        """Compute sin(pi x) / (pi x), 1 at 0; the gradient is 0 close to 0."""
        angle = ew.mul(_float(self), math.pi)
        zero = ew.eq(ew.mul(angle, angle), 0)
        safe = ew.where(zero, 1.0, angle)
        return ew.where(zero, 1.0, ew.div(mathematics.sin(safe), safe))

    def signbit(self) -> Tensor:
        """Return whether elements are negative (also minus zero)."""
        if not self.dtype.is_floating_point:
            return ew.lt(self, 0)
        return ew.logical_or(ew.lt(self, 0), ew.eq(ew.reciprocal(self), -math.inf))

    def copysign(self, other: Any) -> Tensor:
        """Combine the absolute value of each element with the sign of ``other``."""
        return elementary.copysign(self, other)

    def hypot(self, other: Any) -> Tensor:
        """Compute the root of the sum of squares; it overflows only if the result does."""
        return elementary.hypot(self, other)

    def xlogy(self, other: Any) -> Tensor:
        """Compute ``x * log(other)``: 0 for x = 0 (NaN if other is NaN)."""
        return elementary.xlogy(self, other)

    def logaddexp(self, other: Any) -> Tensor:
        """Compute log(exp(x) + exp(other)) without overflow."""
        return elementary.logaddexp(self, other)

    def logaddexp2(self, other: Any) -> Tensor:
        """Compute the logarithm to base 2 of 2**x + 2**other."""
        scale, dtype = math.log(2.0), common_type([self, other, 1.0], "logaddexp2")
        natural = elementary.logaddexp(*(ew.mul(as_type(x, dtype), scale) for x in (self, other)))
        return ew.mul(natural, 1.0 / scale)

    def heaviside(self, values: Any) -> Tensor:
        """Compute the step function: 0 below zero, ``values`` at zero, 1 above."""
        return ew.where(ew.eq(self, 0), values, ew.cast(ew.gt(self, 0), dtype=self.dtype))

    def fmax(self, other: Any) -> Tensor:
        """Return the larger of two elements; NaN only if both are."""
        return _without_nan(self, other, ew.ge)

    def fmin(self, other: Any) -> Tensor:
        """Return the smaller of two elements; NaN only if both are."""
        return _without_nan(self, other, ew.le)

    def nan_to_num(self, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
        """Replace NaN by ``nan``, and infinities by numbers (the largest of the type when None)."""
        if not self.dtype.is_floating_point:
            return ew.mul(self, True)
        largest = largest_finite(self.dtype)
        high = largest if posinf is None else posinf
        low = -largest if neginf is None else neginf
        finite = ew.where(ew.eq(self, math.inf), high, ew.where(ew.eq(self, -math.inf), low, self))
        return ew.where(mathematics.isnan(self), nan, finite)

    def isposinf(self) -> Tensor:
        """Return whether elements are plus infinity."""
        return ew.eq(self, math.inf)

    def isneginf(self) -> Tensor:
        """Return whether elements are minus infinity."""
        return ew.eq(self, -math.inf)

    def float_power(self, exponent: Any) -> Tensor:
        """Compute the power in f64."""
        other = exponent.double() if isinstance(exponent, TensorBase) else float(exponent)  # type: ignore[attr-defined]
        return composite.power(self.double(), other)  # type: ignore[attr-defined]

    def clamp_min(self, min: Any) -> Tensor:
        """Limit elements to at least ``min``."""
        return composite.clamp(self, min, None)

    def clamp_max(self, max: Any) -> Tensor:
        """Limit elements to at most ``max``."""
        return composite.clamp(self, None, max)

    def positive(self) -> Tensor:
        """Return this tensor; raise ArgumentError for booleans."""
        if self.dtype.kind == "b":
            raise ArgumentError("positive is not defined for booleans", remedy="call tensor.long()")
        return self  # type: ignore[return-value]

    def bitwise_left_shift(self, other: Any) -> Tensor:
        """Shift bits to the left."""
        return ew.shift_left(self, other)

    def bitwise_right_shift(self, other: Any) -> Tensor:
        """Shift bits to the right."""
        return ew.shift_right(self, other)


def _without_nan(x: Any, other: Any, wins: Any) -> Any:
    """Select ``x`` if it wins against ``other`` or that is NaN, else ``other``; at ties x gets the whole gradient."""
    if isinstance(other, float) and math.isnan(other):
        return ew.mul(x, True)
    x_wins = wins(x, other)
    if isinstance(other, TensorBase) and other.dtype.is_floating_point:
        x_wins = ew.logical_or(x_wins, mathematics.isnan(other))
    return ew.where(x_wins, x, other)
