"""Weights of 8-bit codes, prepared once for exact products with rows and images of codes.

Products take unsigned rows and signed weights. Codes of the other kind get their highest bit flipped, and their zero
point moves by 128. With rows ``a`` of zero point ``p`` and weights ``b`` of zero point ``q``,
``sum((a - p) * (b - q))`` is ``sum(a * b) - p * sum(b - q) - q * sum(a)``. The second sum depends on the weights alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from graphc.base.dtypes import int8, int32, uint8
from graphc.base.records import dataclass
from graphc.base.sizes.size import is_size
from graphc.interop.onnx.ops.windows import padded
from graphc.interop.onnx.values import Value
from graphc.nn.functional.spatial import Pairs
from graphc.ops.contraction.byte_product import byte_conv, byte_matmul
from graphc.ops.pointwise import bits
from graphc.ops.reduction import reduce
from graphc.tensors.tensor import Tensor

_BYTES = frozenset({"INT8", "UINT8"})
_HALF = 128


def are_bytes(*values: Value) -> bool:
    """Check for codes of 8 bits."""
    return all(x.element.name in _BYTES for x in values)


def point_of(zero: Value | None) -> Tensor | None:
    """Return the tensor of a zero point, or None where it is known to be 0."""
    return None if zero is None or (zero.is_known and not zero.array.any()) else zero.tensor


def _flipped(codes: Tensor, zero: Tensor | None, kind: Any, half: int) -> tuple[Tensor, Any]:
    """Return codes of a kind, and their zero point in i32, or a number, or None for 0."""
    if codes.dtype is kind:
        return codes, None if zero is None else zero.to(int32)
    return bits.bitcast(codes ^ -_HALF if kind is uint8 else codes ^ _HALF, dtype=kind), (
        half if zero is None else zero.to(int32) + half
    )


def unsigned(codes: Tensor, zero: Tensor | None) -> tuple[Tensor, Any]:
    """Return u8 codes and their zero point."""
    return _flipped(codes, zero, uint8, _HALF)


def signed(codes: Tensor, zero: Tensor | None) -> tuple[Tensor, Any]:
    """Return i8 codes and their zero point."""
    return _flipped(codes, zero, int8, -_HALF)


@dataclass(frozen=True)
class ByteMatrix:
    """Matrix [inputs, outputs] of codes for products with rows of codes."""

    codes: Tensor
    """i8."""
    zero: Any
    """Zero point of all elements, or of each column. None where it is 0."""
    sums: Tensor
    """Sum of each column without the zero point, in i32."""

    @staticmethod
    def of(codes: Tensor, zero: Tensor | None) -> ByteMatrix:
        """Prepare codes i8 or u8 [inputs, outputs]."""
        codes, point = signed(codes, zero)
        sums = reduce.sum(codes, axes=(0,)).to(int32)
        return ByteMatrix(codes, point, sums if point is None else sums - point * codes.shape[0])

    def product(self, a: Tensor, a_zero: Tensor | None) -> Tensor:
        """Return ``(a - a_zero) @ (codes - zero)`` in i32 of rows of codes u8 or i8 [..., inputs]."""
        rows, point = unsigned(a, a_zero)
        total = byte_matmul(rows, self.codes)
        if point is not None:
            total = total - point * self.sums
        if self.zero is None:
            return total
        return total - byte_matmul(rows, self.codes.new_ones((self.codes.shape[0], 1))) * self.zero


def takes_matrix(a: Value, b: Value) -> bool:
    """Check whether a product of rows with a matrix of codes can be computed from bytes."""
    return are_bytes(a, b) and len(b.shape) == 2 <= len(a.shape) and not is_size(b.shape[0])


def takes_filters(x: Value, w: Value, group: int) -> bool:
    """Check whether a convolution of codes can be computed from bytes."""
    return are_bytes(x, w) and group == 1 and not any(map(is_size, w.shape))


def convolved(
    x: Tensor,
    x_zero: Tensor | None,
    w: Tensor,
    w_zero: Tensor | None,
    padding: Pairs,
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """Convolve codes minus their zero points, in i32. The padding has the value of the zero point of ``x``.

    ``w_zero`` is one number, or has a number for each filter and the rank of ``w``.
    """
    pixels, point = unsigned(x, x_zero)
    if point is None:
        pixels = padded(pixels, padding)
    else:
        centered = pixels.to(int32) - point
        edged = padded(centered, padding)
        pixels = pixels if edged is centered else (edged + point).to(uint8)
    filters, offset = signed(w, w_zero)
    geometry = {"stride": tuple(stride), "dilation": tuple(dilation)}
    total = byte_conv(pixels, filters, **geometry)
    if point is not None:
        sums = reduce.sum(filters, axes=tuple(range(1, w.ndim))).to(int32)
        if offset is not None:
            sums = sums - (offset if isinstance(offset, int) else offset.flatten()) * prod(w.shape[1:])
        total = total - point * sums.reshape(-1, *(1,) * (w.ndim - 2))
    if offset is None:
        return total
    windows = byte_conv(pixels, filters.new_ones((1, *w.shape[1:])), **geometry)
    return total - windows * (offset if isinstance(offset, int) or offset.ndim == 0 else offset.squeeze(1))
