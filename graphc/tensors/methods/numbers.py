"""Tensor methods for how numbers are made up: exponents and mantissas, neighbours, common divisors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from graphc.base.dtypes import float32, int32, int64
from graphc.base.errors import DTypeError
from graphc.base.lazy import deferred
from graphc.base.sizes.dims import common_shape
from graphc.ops import elementwise as ew
from graphc.ops import math as mathematics
from graphc.ops import reduce
from graphc.ops.bits import bitcast
from graphc.ops.define import as_type, common_type
from graphc.ops.shape import broadcast_to
from graphc.ops.state import stop_gradient, straight_through
from graphc.tensors import composite
from graphc.tensors.tensor_base import TensorBase

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor

_while_loop = deferred("graphc.control.while_loop:while_loop")


class Parts(NamedTuple):
    """What ``frexp`` returns: ``mantissa * 2**exponent`` is the number."""

    mantissa: Any
    exponent: Any


class _Format(NamedTuple):
    """How a floating-point type holds numbers (IEEE 754, section 3.4)."""

    integer: Any
    """The integer type of the same width."""
    fraction: int
    """Bits of the fraction."""
    bias: int
    """What is added to an exponent."""


_FORMATS = {float32: _Format(int32, 23, 127)}
_F64 = _Format(int64, 52, 1023)


def _format(x: Any, name: str) -> _Format:
    if x.dtype.kind != "f":
        raise DTypeError(f"{name} takes a floating-point tensor, got {x.dtype.name}", remedy="tensor.float()")
    return _FORMATS.get(x.dtype, _F64)


class Numbers(TensorBase):
    """How numbers are made up."""

    def frexp(self) -> Parts:
        """(mantissa, exponent): 0.5 to below 1 in size, and i32; 0, NaN and infinities are their own mantissa."""
        form = _format(self, "frexp")
        lifted = ew.mul(self, 2.0**form.fraction)  # exact, and no subnormal number is left
        small = ew.lt(ew.abs(self), 2.0 ** (2 - form.bias))
        bits = bitcast(stop_gradient(ew.where(small, lifted, self)), dtype=form.integer)
        stored = ew.bit_and(ew.shift_right(bits, form.fraction), 2 * form.bias + 1)
        exponent = ew.sub(ew.sub(stored, form.bias - 1), ew.mul(ew.cast(small, dtype=form.integer), form.fraction))
        plain = ew.logical_and(mathematics.isfinite(self), ew.ne(self, 0))
        exponent = ew.where(plain, exponent, 0)
        half = ew.shift_right(exponent, 1)
        first, second = (_power_of_two(ew.neg(part), form, self.dtype) for part in (half, ew.sub(exponent, half)))
        return Parts(ew.mul(ew.mul(self, first), second), ew.cast(exponent, dtype=int32))

    def ldexp(self, other: Any) -> Tensor:
        """``self * 2**other``."""
        return ew.mul(self, mathematics.pow(2.0, composite.to_float(other) if isinstance(other, TensorBase) else other))

    def nextafter(self, other: Any) -> Tensor:
        """The next number that the type has, towards ``other``; its gradient is that of this tensor, and
        where both are equal none."""
        dtype = common_type([self, other], "nextafter")
        x, y = as_type(self, dtype), as_type(other, dtype)
        form = _format(x, "nextafter")
        shape = common_shape(x.shape, y.shape)
        given, y = broadcast_to(x, shape=shape), stop_gradient(broadcast_to(y, shape=shape))
        x = stop_gradient(given)
        bits = bitcast(x, dtype=form.integer)
        away = ew.cast(ew.eq(ew.gt(x, 0), ew.gt(y, x)), dtype=form.integer)
        stepped = bitcast(ew.add(bits, ew.sub(ew.mul(away, 2), 1)), dtype=dtype)
        one = bitcast(ew.add(ew.mul(bits, 0), 1), dtype=dtype)
        stepped = ew.where(ew.eq(x, 0), ew.where(ew.gt(y, 0), one, ew.neg(one)), stepped)
        missing = ew.logical_or(mathematics.isnan(x), mathematics.isnan(y))
        equal = ew.eq(x, y)
        found = ew.where(missing, ew.add(x, y), ew.where(equal, y, stepped))
        return straight_through(ew.where(equal, y, given), found)

    def gcd(self, other: Any) -> Tensor:
        """The greatest common divisor of whole numbers, by Euclid's algorithm; 0 for two zeros."""
        a, b = _whole("gcd", self, other)
        found, _ = _while_loop(
            lambda s: reduce.any(ew.ne(s[1], 0), axes=tuple(range(len(a.shape)))),
            lambda s: _euclid(*s),
            (ew.abs(a), ew.abs(b)),
        )
        return found

    def lcm(self, other: Any) -> Tensor:
        """The least common multiple of whole numbers; 0 where one is 0."""
        a, b = _whole("lcm", self, other)
        divisor = Numbers.gcd(a, b)
        return ew.abs(ew.mul(ew.floor_div(a, ew.where(ew.eq(divisor, 0), 1, divisor)), b))


def _power_of_two(exponent: Any, form: _Format, dtype: Any) -> Any:
    """2 to the power of a whole number in the range of normal numbers, exactly."""
    return bitcast(ew.shift_left(ew.add(exponent, form.bias), form.fraction), dtype=dtype)


def _whole(name: str, x: Any, y: Any) -> list[Any]:
    """Two operands as tensors of one shape and one type of whole numbers."""
    dtype = common_type([x, y], name)
    if dtype.kind not in "iu":
        raise DTypeError(f"{name} takes whole numbers, got {dtype.name}", remedy="tensor.long()")
    given = [as_type(v, dtype) for v in (x, y)]
    extents = common_shape(*(v.shape for v in given))
    return [broadcast_to(v, shape=extents) for v in given]


def _euclid(a: Any, b: Any) -> tuple[Any, Any]:
    """One step of Euclid's algorithm where it has not ended."""
    ended = ew.eq(b, 0)
    return ew.where(ended, a, b), ew.where(ended, 0, ew.mod(a, ew.where(ended, 1, b)))
