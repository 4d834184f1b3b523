"""Arithmetic of uint64 by its bits in i64, where it differs from signed arithmetic."""

from __future__ import annotations

from graphc.base.dtypes import DType, float64, int64
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.tensor import Tensor

_TOP = -(1 << 63)
_REST = (1 << 63) - 1


def ordered(x: Tensor) -> Tensor:
    """Map the bits of uint64 to i64 in the same order, and back."""
    return x ^ _TOP


def halved(x: Tensor) -> Tensor:
    """Return the numbers shifted right by one bit, as nonnegative i64."""
    return (x >> 1) & _REST


def shifted_right(x: Tensor, count: Tensor) -> Tensor:
    """Shift right by ``count`` bits with zeros from above. Returns 0 where ``count`` is 64 or more."""
    return ew.where(count.eq(0), x, ew.shift_right(halved(x), count - 1))


def quotient(a: Tensor, b: Tensor) -> Tensor:
    """Return the integer quotient (Warren, Hacker's Delight, section 9-3).

    Twice the quotient of the halved dividend is too small by at most 1.
    """
    short = ew.shift_left(ew.floor_div(halved(a), ew.where(b < 0, 1, b)), 1)
    rest = a - short * b
    more = (ordered(rest) >= ordered(b)).to(int64)
    return ew.where(b < 0, (ordered(a) >= ordered(b)).to(int64), short + more)


def as_real(x: Tensor, dtype: DType) -> Tensor:
    """Convert to real numbers."""
    signed = x.to(float64)
    return ew.where(x < 0, signed + 2.0**64, signed).to(dtype)


def of_real(x: Tensor) -> Tensor:
    """Truncate real numbers from 0 to 2^64 towards zero."""
    x = x.to(float64)
    large = x >= 2.0**63
    integer = ew.where(large, x - 2.0**63, x).to(int64)
    return ew.where(large, integer ^ _TOP, integer)
