"""Tensor methods on the structure of numbers: exponents and mantissas, neighbours, common divisors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.base.dtypes import float32, int32, int64
from graphc.base.errors import DTypeError
from graphc.base.lazy import deferred
from graphc.base.records import NamedTuple
from graphc.base.sizes.dims import common_shape
from graphc.ops.define import as_type, common_type
from graphc.ops.effects.state import stop_gradient, straight_through
from graphc.ops.movement.shape import broadcast_to
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.pointwise.bits import bitcast
from graphc.ops.reduction import reduce
from graphc.tensors import composite
from graphc.tensors.tensor_base import TensorBase

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor

_while_loop = deferred("graphc.control.while_loop:while_loop")


class Parts(NamedTuple):
    """Result of ``frexp``: ``mantissa * 2**exponent`` is the number."""

    mantissa: Any
    exponent: Any


class _Format(NamedTuple):
    """Layout of a floating-point type (IEEE 754, section 3.4)."""

    integer: Any
    """The integer type of the same width."""
    fraction: int
    """Number of fraction bits."""
    bias: int
    """Offset of stored exponents."""


_FORMATS = {float32: _Format(int32, 23, 127)}
_F64 = _Format(int64, 52, 1023)


def _format(x: Any, name: str) -> _Format:
    if x.dtype.kind != "f":
        raise DTypeError(f"{name} takes a floating-point tensor, got {x.dtype.name}", remedy="call tensor.float()")
    return _FORMATS.get(x.dtype, _F64)


class Numbers(TensorBase):
    """Structure of numbers."""

    def frexp(self) -> Parts:
        """Return (mantissa, exponent): absolute values in [0.5, 1), and i32; 0, NaN and infinities are their own
        mantissa."""
        form = _format(self, "frexp")
        lifted = ew.mul(self, 2.0**form.fraction)  # exact, and leaves no subnormal numbers
        small = ew.lt(ew.abs(self), 2.0 ** (2 - form.bias))
        bits = bitcast(stop_gradient(ew.where(small, lifted, self)), dtype=form.integer)
        stored = ew.bit_and(ew.shift_right(bits, form.fraction), 2 * form.bias + 1)
        exponent = ew.sub(ew.sub(stored, form.bias - 1), ew.mul(ew.cast(small, dtype=form.integer), form.fraction))
        plain = ew.logical_and(mathematics.isfinite(self), ew.ne(self, 0))
        exponent = ew.where(plain, exponent, 0)
        half = ew.shift_right(exponent, 1)
        first, second = (_power_of_two(ew.neg(p), form, self.dtype) for p in (half, ew.sub(exponent, half)))
        return Parts(ew.mul(ew.mul(self, first), second), ew.cast(exponent, dtype=int32))

    def ldexp(self, other: Any) -> Tensor:
        """Compute ``self * 2**other``."""
        return ew.mul(self, mathematics.pow(2.0, composite.to_float(other) if isinstance(other, TensorBase) else other))

    def nextafter(self, other: Any) -> Tensor:
        """Return the next number of the type towards ``other``. Its gradient passes to this tensor, or nowhere for
        equal elements."""
        dtype = common_type([self, other], "nextafter")
        x, y = as_type(self, dtype), as_type(other, dtype)
        form = _format(x, "nextafter")
        shape = common_shape(x.shape, y.shape)
        source, y = broadcast_to(x, shape=shape), stop_gradient(broadcast_to(y, shape=shape))
        x = stop_gradient(source)
        bits = bitcast(x, dtype=form.integer)
        away = ew.cast(ew.eq(ew.gt(x, 0), ew.gt(y, x)), dtype=form.integer)
        stepped = bitcast(ew.add(bits, ew.sub(ew.mul(away, 2), 1)), dtype=dtype)
        one = bitcast(ew.add(ew.mul(bits, 0), 1), dtype=dtype)
        stepped = ew.where(ew.eq(x, 0), ew.where(ew.gt(y, 0), one, ew.neg(one)), stepped)
        missing = ew.logical_or(mathematics.isnan(x), mathematics.isnan(y))
        equal = ew.eq(x, y)
        neighbours = ew.where(missing, ew.add(x, y), ew.where(equal, y, stepped))
        return straight_through(ew.where(equal, y, source), neighbours)

    def gcd(self, other: Any) -> Tensor:
        """Compute the greatest common divisor of integers by Euclid's algorithm; 0 for two zeros."""
        a, b = _integers("gcd", self, other)
        divisors, _ = _while_loop(
            lambda s: reduce.any(ew.ne(s[1], 0), axes=tuple(range(len(a.shape)))),
            lambda s: _euclid(*s),
            (ew.abs(a), ew.abs(b)),
        )
        return divisors

    def lcm(self, other: Any) -> Tensor:
        """Compute the least common multiple of integers; 0 if one is 0."""
        a, b = _integers("lcm", self, other)
        divisor = Numbers.gcd(a, b)
        return ew.abs(ew.mul(ew.floor_div(a, ew.where(ew.eq(divisor, 0), 1, divisor)), b))


def _power_of_two(exponent: Any, form: _Format, dtype: Any) -> Any:
    """Compute 2 to an integer power in the range of normal numbers, exactly."""
    return bitcast(ew.shift_left(ew.add(exponent, form.bias), form.fraction), dtype=dtype)


def _integers(name: str, x: Any, y: Any) -> list[Any]:
    """Return two operands as tensors of one shape and one integer type."""
    dtype = common_type([x, y], name)
    if dtype.kind not in "iu":
        raise DTypeError(f"{name} takes integers, got {dtype.name}", remedy="call tensor.long()")
    operands = [as_type(v, dtype) for v in (x, y)]
    extents = common_shape(*(v.shape for v in operands))
    return [broadcast_to(v, shape=extents) for v in operands]


def _euclid(a: Any, b: Any) -> tuple[Any, Any]:
    """Run a step of Euclid's algorithm on the unfinished pairs."""
    ended = ew.eq(b, 0)
    return ew.where(ended, a, b), ew.where(ended, 0, ew.mod(a, ew.where(ended, 1, b)))
