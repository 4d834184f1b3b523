"""ONNX operators that are products of steps: sums of whole numbers, exact, and what is made of them.

Vectors of a processor multiply f32 several times as fast as i32, so steps of 8 bits are multiplied as f32, in sums that
are so short that they are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from graphc.base.dtypes import DType, float32, float64, int32
from graphc.base.sizes.size import is_size
from graphc.interop.onnx.elements import FLOAT, INT32, UINT8, Element
from graphc.interop.onnx.ops.quantization import along, dynamic_steps, real, stepped
from graphc.interop.onnx.ops.windows import padded, window_of
from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.interop.onnx.values import Value
from graphc.nn import functional as F
from graphc.tensors import free_functions as free
from graphc.tensors import functions
from graphc.tensors.tensor import Tensor

_EXACT = 1 << 24
"""Whole numbers up to this one are exact in f32."""
MOST_PARTS = 16
"""Of a sum in f32; longer ones are computed in f64, which takes about as long as four of f32."""
_BYTES = frozenset({"INT8", "UINT8", "INT4", "UINT4", "INT2", "UINT2"})


def centered(x: Value, zero: Tensor | None, dtype: DType) -> Tensor:
    """Steps counted from the zero point."""
    steps = x.tensor.to(dtype)
    return steps if zero is None else steps - zero.to(dtype)


def _largest(x: Value, zero: Any) -> int:
    """No step of 8 bits is farther from its zero point."""
    if x.element.name not in _BYTES:
        return 1 << 31
    return 255 if x.element.name.startswith("U") or zero is not None else 128


def _parts(count: Any, largest: int) -> list[tuple[int, int]] | None:
    """Start and length of sums of so many products that are exact in f32; None where f64 is the better way."""
    length = _EXACT // largest
    if is_size(count) or length == 0 or count > length * MOST_PARTS:
        return None
    return [(start, min(length, count - start)) for start in range(0, count, length)] or [(0, 0)]


def product(a: Value, a_zero: Tensor | None, b: Value, b_zero: Tensor | None) -> Tensor:
    """``(a - a_zero) @ (b - b_zero)`` as i32. Zero points broadcast to their operands."""
    parts = _parts(a.shape[-1], _largest(a, a_zero) * _largest(b, b_zero))
    dtype = float64 if parts is None else float32
    left, right = centered(a, a_zero, dtype), centered(b, b_zero, dtype)
    if parts is None or len(parts) == 1:
        return free.matmul(left, right).to(int32)
    rows = max(right.ndim - 2, 0)
    sums = [
        free.matmul(left.narrow(-1, start, length), right.narrow(rows, start, length)).to(int32)
        for start, length in parts
    ]
    return sum(sums[1:], sums[0])


def _of_rows(zero: Value | None, x: Value) -> Tensor | None:
    """A zero point for each row."""
    if zero is None:
        return None
    found = zero.tensor
    return found.reshape(-1, 1) if found.ndim == 1 and x.tensor.ndim > 1 and found.shape[0] != 1 else found


def _of_columns(zero: Value | None) -> Tensor | None:
    return None if zero is None else zero.tensor


@op("MatMulInteger", since=10, values=True)
def matmul_integer(a: Value, b: Value, a_zero: Value | None = None, b_zero: Value | None = None) -> Value:
    return Value(INT32, product(a, _of_rows(a_zero, a), b, _of_columns(b_zero)))


def _row(x: Value, like: Value) -> Tensor:
    """Scales of rows of the first factor."""
    found = real(x)
    return found.reshape(-1, 1) if found.ndim == 1 and like.tensor.ndim > 1 and found.shape[0] != 1 else found


def requantized(total: Tensor, factor: Tensor, zero: Value | None, element: Element, at: Tensor | None) -> Value:
    """Sums as steps: times the scales of both factors over that of the result."""
    return Value(element, stepped(total.to(float32) * factor, None if zero is None else at, element))


@op("QLinearMatMul", since=10, values=True)
def qlinear_matmul(
    a: Value, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value, y_scale: Value, y_zero: Value
) -> Value:
    total = product(a, _of_rows(a_zero, a), b, _of_columns(b_zero))
    factor = _row(a_scale, a) * real(b_scale) / _row(y_scale, a)
    return requantized(total, factor, y_zero, y_zero.element, _of_rows(y_zero, a))


# ---- convolutions

_CONVOLUTIONS: dict[int, Callable[..., Tensor]] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def convolution(
    x: Value,
    x_zero: Tensor | None,
    w: Value,
    w_zero: Tensor | None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] = (),
    group: int = 1,
    kernel_shape: Sequence[int] = (),
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Tensor:
    """The convolution of steps counted from their zero points, as i32; what is around an image counts as its zero."""
    way = window_of(x.shape[2:], w.shape[2:], strides, pads, dilations, auto_pad)
    rank, kernel, channels = len(way.kernel), way.kernel, w.shape[1]
    parts = _parts(channels, _largest(x, x_zero) * _largest(w, w_zero) * prod(kernel))
    transformed = rank == 2 and kernel == (3, 3) and set(way.stride) == {1} and group == 1
    if transformed or (parts is not None and len(parts) > 1 and group > 1):
        parts = None  # NOTE: f32 is not exact where compiled code transforms a convolution (passes.winograd)
    dtype = float64 if parts is None else float32
    image, weight = padded(centered(x, x_zero, dtype), way.padding), centered(w, w_zero, dtype)
    convolve = _CONVOLUTIONS[rank]
    if parts is None or len(parts) == 1:
        found = convolve(image, weight, None, way.stride, 0, way.dilation, group)
        return (functions.round(found) if parts is None else found).to(int32)
    sums = [
        convolve(image.narrow(1, a, n), weight.narrow(1, a, n), None, way.stride, 0, way.dilation).to(int32)
        for a, n in parts
    ]
    return sum(sums[1:], sums[0])


def _of_filters(zero: Value | None, w: Value) -> Tensor | None:
    """A zero point for each filter."""
    return None if zero is None else along(zero.tensor, w.tensor, 0, 0)


@op("ConvInteger", since=10, values=True)
def conv_integer(
    x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None, **attributes: Any
) -> Value:
    zero = None if x_zero is None else x_zero.tensor.reshape(())
    return Value(INT32, convolution(x, zero, w, _of_filters(w_zero, w), **attributes))


@op("QLinearConv", since=10, values=True)
def qlinear_conv(
    x: Value,
    x_scale: Value,
    x_zero: Value,
    w: Value,
    w_scale: Value,
    w_zero: Value,
    y_scale: Value,
    y_zero: Value,
    bias: Value | None = None,
    **attributes: Any,
) -> Value:
    total = convolution(x, x_zero.tensor.reshape(()), w, _of_filters(w_zero, w), **attributes)
    if bias is not None:
        total = total + along(bias.tensor, total, 1, 0)
    factor = along(real(x_scale).reshape(()) * real(w_scale) / real(y_scale).reshape(()), total, 1, 0)
    return requantized(total, factor, y_zero, y_zero.element, y_zero.tensor.reshape(()))


# ---- of ONNX Runtime


@op("QGemm", domain=MICROSOFT, values=True)
def qgemm(
    a: Value,
    a_scale: Value,
    a_zero: Value | None,
    b: Value,
    b_scale: Value,
    b_zero: Value | None,
    c: Value | None = None,
    y_scale: Value | None = None,
    y_zero: Value | None = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Value:
    """``alpha * a @ b + c`` of steps, where c counts steps of both scales; without a scale of the result in f32."""
    columns = None if b_zero is None else along(b_zero.tensor, b.tensor, 0 if transB else 1, 0)
    left = Value(a.element, a.tensor.t() if transA else a.tensor)
    if transB and columns is not None and columns.ndim == 2:
        columns = columns.t()
    right = Value(b.element, b.tensor.t() if transB else b.tensor)
    total = product(left, None if a_zero is None else a_zero.tensor.reshape(()), right, columns)
    if c is not None:
        total = total + c.tensor
    factor = real(a_scale).reshape(()) * real(b_scale) * alpha
    if y_scale is None:
        return Value(FLOAT, total.to(float32) * factor)
    element = UINT8 if y_zero is None else y_zero.element
    at = None if y_zero is None else y_zero.tensor.reshape(())
    return requantized(total, factor / real(y_scale), y_zero, element, at)


@op("MatMulIntegerToFloat", domain=MICROSOFT, values=True)
def matmul_integer_to_float(
    a: Value,
    b: Value,
    a_scale: Value,
    b_scale: Value,
    a_zero: Value | None = None,
    b_zero: Value | None = None,
    bias: Value | None = None,
) -> Value:
    total = product(a, _of_rows(a_zero, a), b, _of_columns(b_zero))
    found = total.to(float32) * (_row(a_scale, a) * real(b_scale))
    return Value(FLOAT, found if bias is None else found + bias.tensor)


@op("DynamicQuantizeMatMul", domain=MICROSOFT, values=True)
def dynamic_quantize_matmul(
    a: Value, b: Value, b_scale: Value, b_zero: Value | None = None, bias: Value | None = None
) -> Value:
    """Rows of real numbers as u8 steps over their range, times steps."""
    steps, scale, zero = dynamic_steps(a.tensor)
    total = product(Value(UINT8, steps), zero, b, _of_columns(b_zero))
    found = total.to(float32) * (scale * real(b_scale))
    return Value(FLOAT, found if bias is None else found + bias.tensor)


def unpacked(packed: Tensor, bits: int) -> Tensor:
    """Steps of ``bits`` bits in bytes u8[..., n], the lowest first, as u8[..., n * 8 / bits]."""
    if bits == 8:
        return packed
    parts = [(packed >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return free.stack(parts, -1).reshape(*packed.shape[:-1], packed.shape[-1] * (8 // bits))


@op("MatMulNBits", domain=MICROSOFT, values=True)
def matmul_nbits(
    a: Value,
    b: Value,
    scales: Value,
    zero_points: Value | None = None,
    g_idx: Value | None = None,
    bias: Value | None = None,
    *,
    K: int,
    N: int,
    bits: int = 4,
    block_size: int,
    accuracy_level: int = 0,
    weight_prepacked: int = 0,
) -> Value:
    """Rows times the transpose of a matrix [N, K] of steps in blocks along K, each with a scale and a zero point, which
    is the middle of the steps unless it is given."""
    blocks = -(-K // block_size)
    steps = unpacked(b.tensor.reshape(N, blocks, -1), bits).to(float32).reshape(N, blocks, block_size)
    scale = real(scales).reshape(N, blocks, 1)
    if zero_points is None:
        zero: Any = float(1 << (bits - 1))
    elif zero_points.element.is_floating_point:
        zero = zero_points.tensor.reshape(N, blocks, 1)
    else:
        zero = unpacked(zero_points.tensor.reshape(N, -1), bits).narrow(1, 0, blocks).to(float32).unsqueeze(-1)
    if g_idx is None:
        weight = ((steps - zero) * scale).reshape(N, blocks * block_size).narrow(1, 0, K)
    else:
        group = g_idx.tensor.narrow(0, 0, K)
        offset = zero if isinstance(zero, float) else zero[:, group, 0]
        weight = (steps.reshape(N, blocks * block_size).narrow(1, 0, K) - offset) * scale[:, group, 0]
    return Value(a.element, F.linear(a.tensor, weight, None if bias is None else bias.tensor))
