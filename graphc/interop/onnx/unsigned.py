"""Arithmetic of uint64, which tensors hold by its bits in i64: what differs from that of signed numbers."""

from __future__ import annotations

from graphc.base.dtypes import DType, float64, int64
from graphc.ops import elementwise as ew
from graphc.tensors.tensor import Tensor

_TOP = -(1 << 63)
_REST = (1 << 63) - 1


def ordered(x: Tensor) -> Tensor:
    """i64 in the order of the unsigned numbers, and back."""
    return x ^ _TOP


def halved(x: Tensor) -> Tensor:
    """The numbers without their lowest bit, as i64 that are never negative."""
    return (x >> 1) & _REST


def shifted_right(x: Tensor, count: Tensor) -> Tensor:
    """Shifted by ``count`` bits, with zeros from above; 0 where it is 64 or more."""
    return ew.where(count.eq(0), x, ew.shift_right(halved(x), count - 1))


def quotient(a: Tensor, b: Tensor) -> Tensor:
    """Quotients without rest (Warren, Hacker's Delight, section 9-3): that of the halves is too small by at most 1."""
    short = ew.shift_left(ew.floor_div(halved(a), ew.where(b < 0, 1, b)), 1)
    rest = a - short * b
    more = (ordered(rest) >= ordered(b)).to(int64)
    return ew.where(b < 0, (ordered(a) >= ordered(b)).to(int64), short + more)


def as_real(x: Tensor, dtype: DType) -> Tensor:
    """As real numbers."""
    found = x.to(float64)
    return ew.where(x < 0, found + 2.0**64, found).to(dtype)


def of_real(x: Tensor) -> Tensor:
    """Real numbers from 0 to 2^64 without what lies behind the point."""
    x = x.to(float64)
    large = x >= 2.0**63
    found = ew.where(large, x - 2.0**63, x).to(int64)
    return ew.where(large, found ^ _TOP, found)
