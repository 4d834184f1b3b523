"""Weights of 8-bit codes, prepared once for exact products with rows and images of codes.

Products take unsigned rows and signed weights. Codes of the other kind get their highest bit flipped, and their zero
point moves by 128. With rows ``a`` of zero point ``p`` and weights ``b`` of zero point ``q``,
``sum((a - p) * (b - q))`` is ``sum(a * b) - p * sum(b - q) - q * sum(a)``. The second sum depends on the weights alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from graphc.base.dtypes import DType, float32, float64, int8, int32, uint8
from graphc.base.records import dataclass
from graphc.base.sizes.size import is_size
from graphc.nn.functional.convolution import conv1d, conv2d
from graphc.nn.functional.spatial import Pairs, padded
from graphc.nn.functional.volume import conv3d
from graphc.ops.contraction.byte_product import byte_conv, byte_matmul, real_byte_conv
from graphc.ops.pointwise import bits
from graphc.ops.reduction import reduce
from graphc.tensors import functions
from graphc.tensors.tensor import Tensor

_HALF = 128
BYTE, SIGNED = 255, 128
"""Largest distances of a code of 8 bits from its zero point, and of a signed one from 0."""
EXACT = 1 << 24
"""Integers up to this one are exact in f32."""
MOST_CHUNKS = 16
"""Chunks of a sum in f32. Longer sums are computed in f64, which takes about as long as four chunks of f32."""
CONVOLUTIONS: dict[int, Callable[..., Tensor]] = {1: conv1d, 2: conv2d, 3: conv3d}


def holds_sums(count: int, largest: int) -> bool:
    """Check whether i32 holds all sums of ``count`` products whose magnitude is at most ``largest``."""
    return count * largest < 1 << 31


def _flipped(codes: Tensor, zero: Tensor | int | None, kind: Any, half: int) -> tuple[Tensor, Any]:
    """Return codes of a kind, and their zero point in i32, or a number, or None for 0."""
    point = zero.to(int32) if isinstance(zero, Tensor) else zero or None
    if codes.dtype is kind:
        return codes, point
    flipped = bits.bitcast(codes ^ -_HALF if kind is uint8 else codes ^ _HALF, dtype=kind)
    return flipped, half if point is None else point + half


def unsigned(codes: Tensor, zero: Tensor | int | None) -> tuple[Tensor, Any]:
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

    def product(self, a: Tensor, a_zero: Tensor | int | None) -> Tensor:
        """Return ``(a - a_zero) @ (codes - zero)`` in i32 of rows of codes u8 or i8 [..., inputs]."""
        rows, point = unsigned(a, a_zero)
        total = byte_matmul(rows, self.codes)
        if point is not None:
            total = total + point * -self.sums
        if self.zero is None:
            return total
        return total - byte_matmul(rows, self.codes.new_ones((self.codes.shape[0], 1))) * self.zero


def _padded_codes(pixels: Tensor, point: Any, padding: Pairs) -> Tensor:
    """Pad with the code of 0: a number or a tensor, or None for 0."""
    if not isinstance(point, Tensor):
        return padded(pixels, padding, point or 0)
    centered = pixels.to(int32) - point
    edged = padded(centered, padding)
    return pixels if edged is centered else (edged + point).to(uint8)


def convolved(
    x: Tensor,
    x_zero: Tensor | int | None,
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
    pixels = _padded_codes(pixels, point, padding)
    filters, offset = signed(w, w_zero)
    geometry = {"stride": tuple(stride), "dilation": tuple(dilation)}
    total = byte_conv(pixels, filters, **geometry)
    if point is not None:
        sums = reduce.sum(filters, axes=tuple(range(1, w.ndim))).to(int32)
        if offset is not None:
            sums = sums - (offset if isinstance(offset, int) else offset.flatten()) * prod(w.shape[1:])
        total = total + point * -sums.reshape(-1, *(1,) * (w.ndim - 2))
    if offset is None:
        return total
    windows = byte_conv(pixels, filters.new_ones((1, *w.shape[1:])), **geometry)
    return total - windows * (offset if isinstance(offset, int) or offset.ndim == 0 else offset.squeeze(1))


def real_convolved(
    x: Tensor,
    x_zero: Tensor | int | None,
    w: Tensor,
    w_zero: Tensor | None,
    padding: Pairs,
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """Convolve codes minus their zero points, in f32: compiled code may add f32 products where these are faster."""
    if isinstance(x_zero, Tensor) or w_zero is not None or w.dtype is not int8:
        return convolved(x, x_zero, w, w_zero, padding, stride, dilation).to(float32)
    pixels, point = unsigned(x, x_zero)
    geometry = {"stride": tuple(stride), "dilation": tuple(dilation)}
    return real_byte_conv(_padded_codes(pixels, point, padding), w, zero=float(point or 0), **geometry)


# ---- codes as real numbers


def chunks_of(count: Any, largest: int) -> list[tuple[int, int]] | None:
    """Return start and length of chunks of ``count`` products whose sums are exact in f32. None where f64 is faster."""
    length = EXACT // largest
    if is_size(count) or length == 0 or count > length * MOST_CHUNKS:
        return None
    return [(start, min(length, count - start)) for start in range(0, count, length)] or [(0, 0)]


def centered(codes: Tensor, zero: Tensor | int | None, dtype: DType) -> Tensor:
    """Convert the codes and subtract their zero point."""
    codes = codes.to(dtype)
    return codes if zero is None else codes - (zero.to(dtype) if isinstance(zero, Tensor) else zero)


def are_exact_reals(count: int, largest: int) -> bool:
    """Check whether sums of ``count`` products whose magnitude is at most ``largest`` are exact in f32."""
    return count * largest <= EXACT


def grouped_convolved(
    image: Tensor, filters: Tensor, padding: Pairs, stride: Sequence[int], dilation: Sequence[int], groups: int
) -> Tensor:
    """Convolve integers in f32, in ``groups`` > 1, without codes in memory: a depthwise convolution takes as long as
    reading its input. Sums are exact where ``are_exact_reals``."""
    sides: Any = tuple([low for low, high in padding if low == high])
    if len(sides) < len(padding):
        image, sides = padded(image, padding), 0
    return CONVOLUTIONS[len(padding)](image, filters, None, stride, sides, dilation, groups)


def convolved_as_reals(
    x: Tensor,
    x_zero: Tensor | int | None,
    w: Tensor,
    w_zero: Tensor | None,
    largest: int,
    padding: Pairs,
    stride: Sequence[int],
    dilation: Sequence[int],
    group: int,
) -> Tensor:
    """Convolve codes minus their zero points as f32 or f64, in sums short enough to be exact, and return i32.

    ``largest`` bounds the product of two codes. The other arguments are those of ``convolved``.
    """
    kernel, channels = w.shape[2:], w.shape[1]
    rank = len(kernel)
    chunks = chunks_of(channels, largest * prod(kernel))
    transformed = rank == 2 and tuple(kernel) == (3, 3) and set(stride) == {1} and group == 1
    if transformed or (chunks is not None and len(chunks) > 1 and group > 1):
        chunks = None  # NOTE: f32 is not exact where compiled code transforms a convolution (passes.winograd)
    dtype = float64 if chunks is None else float32
    image, weight = padded(centered(x, x_zero, dtype), padding), centered(w, w_zero, dtype)
    convolve = CONVOLUTIONS[rank]
    if chunks is None or len(chunks) == 1:
        result = convolve(image, weight, None, stride, 0, dilation, group)
        return (functions.round(result) if chunks is None else result).to(int32)
    sums = [
        convolve(image.narrow(1, a, n), weight.narrow(1, a, n), None, stride, 0, dilation).to(int32) for a, n in chunks
    ]
    return sum(sums[1:], sums[0])
