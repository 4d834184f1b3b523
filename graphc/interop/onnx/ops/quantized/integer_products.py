"""Rules of ONNX operators that multiply quantized codes, with exact integer sums.

Codes of 8 bits times a matrix or filters of such codes are products of bytes. Vector units multiply f32 several times
as fast as i32, so all others are multiplied as f32, in sums short enough to be exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.dtypes import float32, float64, int32
from graphc.interop.onnx.elements import FLOAT, INT32, UINT8, UINT32, Element
from graphc.interop.onnx.ops.pooling import max_pool
from graphc.interop.onnx.ops.quantized.byte_weights import point_of, point_of_all, takes_filters, takes_matrix
from graphc.interop.onnx.ops.quantized.quantization import along, codes_of, dynamic_steps, real
from graphc.interop.onnx.ops.windows import window_of
from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.interop.onnx.values import Value
from graphc.nn.functional.byte_products import ByteMatrix, centered, chunks_of, convolved, convolved_as_reals
from graphc.tensors import free_functions as free
from graphc.tensors.tensor import Tensor

_BYTES = frozenset({"INT8", "UINT8", "INT4", "UINT4", "INT2", "UINT2"})


def _largest(x: Value, zero: Any) -> int:
    """Return a bound of the distance of a code from its zero point."""
    if x.element.name not in _BYTES:
        return 1 << 31
    return 255 if x.element.name.startswith("U") or zero is not None else 128


def product(a: Value, a_zero: Tensor | None, b: Value, b_zero: Tensor | None) -> Tensor:
    """Return ``(a - a_zero) @ (b - b_zero)`` as i32. Zero points broadcast to their operands."""
    if takes_matrix(a, b):
        return ByteMatrix.of(b.tensor, b_zero).product(a.tensor, a_zero)
    chunks = chunks_of(a.shape[-1], _largest(a, a_zero) * _largest(b, b_zero))
    dtype = float64 if chunks is None else float32
    left, right = centered(a.tensor, a_zero, dtype), centered(b.tensor, b_zero, dtype)
    if chunks is None or len(chunks) == 1:
        return free.matmul(left, right).to(int32)
    rows = max(right.ndim - 2, 0)
    sums = [
        free.matmul(left.narrow(-1, start, length), right.narrow(rows, start, length)).to(int32)
        for start, length in chunks
    ]
    return sum(sums[1:], sums[0])


def _of_rows(zero: Value | None, x: Value) -> Tensor | None:
    """Return a zero point for each row."""
    if zero is None:
        return None
    points = zero.tensor
    return points.reshape(-1, 1) if points.ndim == 1 and x.tensor.ndim > 1 and points.shape[0] != 1 else points


def _of_columns(zero: Value | None) -> Tensor | None:
    """Return a zero point for each column."""
    return point_of(zero)


@op("MatMulInteger", since=10, values=True)
def matmul_integer(a: Value, b: Value, a_zero: Value | None = None, b_zero: Value | None = None) -> Value:
    return Value(INT32, product(a, _of_rows(a_zero, a), b, _of_columns(b_zero)))


def _row(x: Value, like: Value) -> Tensor:
    """Return the scales of the rows of the first factor."""
    scales = real(x)
    return scales.reshape(-1, 1) if scales.ndim == 1 and like.tensor.ndim > 1 and scales.shape[0] != 1 else scales


def requantized(total: Tensor, factor: Tensor, zero: Value | None, element: Element, at: Tensor | None) -> Value:
    """Quantize sums: multiply by the scales of both factors, divided by the scale of the result."""
    return codes_of(total.to(float32) * factor, 1.0, None, zero, None if zero is None else at, element)


@op("QLinearMatMul", since=10, values=True)
def qlinear_matmul(
    a: Value, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value, y_scale: Value, y_zero: Value
) -> Value:
    total = product(a, _of_rows(a_zero, a), b, _of_columns(b_zero))
    factor = _row(a_scale, a) * real(b_scale) / _row(y_scale, a)
    return requantized(total, factor, y_zero, y_zero.element, _of_rows(y_zero, a))


# ---- convolutions


def convolution(
    x: Value,
    x_zero: Tensor | int | None,
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
    """Convolve codes minus their zero points, as i32. The padding has the value of the zero point."""
    geometry = window_of(x.shape[2:], w.shape[2:], strides, pads, dilations, auto_pad)
    spans = geometry.padding, geometry.stride, geometry.dilation
    if group == 1 and takes_filters(x, w):
        return convolved(x.tensor, x_zero, w.tensor, w_zero, *spans)
    largest = _largest(x, x_zero) * _largest(w, w_zero)
    return convolved_as_reals(x.tensor, x_zero, w.tensor, w_zero, largest, *spans, group)


def _of_filters(zero: Value | None, w: Value) -> Tensor | None:
    """Return a zero point for each filter."""
    points = point_of(zero)
    return None if points is None else along(points, w.tensor, 0, 0)


@op("ConvInteger", since=10, values=True)
def conv_integer(
    x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None, **attributes: Any
) -> Value:
    return Value(INT32, convolution(x, point_of_all(x_zero), w, _of_filters(w_zero, w), **attributes))


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
    """Convolve codes, and quantize the sums with a bias in units of both scales."""
    total = convolution(x, point_of_all(x_zero), w, _of_filters(w_zero, w), **attributes)
    if bias is not None:
        total = total + along(bias.tensor, total, 1, 0)
    factor = along(real(x_scale).reshape(()) * real(w_scale) / real(y_scale).reshape(()), total, 1, 0)
    return requantized(total, factor, y_zero, y_zero.element, y_zero.tensor.reshape(()))


# ---- of ONNX Runtime


@op("QLinearConv", domain=MICROSOFT, values=True)
def qlinear_conv_of_runtime(x: Value, *others: Value | None, channels_last: int = 0, **attributes: Any) -> Value:
    """Compute QLinearConv, for ``channels_last`` of images with the channels last."""
    if not channels_last:
        return qlinear_conv(x, *others, **attributes)  # type: ignore[arg-type]
    result = qlinear_conv(Value(x.element, x.tensor.movedim(-1, 1)), *others, **attributes)  # type: ignore[arg-type]
    return Value(result.element, result.tensor.movedim(1, -1))


@op("NhwcMaxPool", domain=MICROSOFT)
def nhwc_max_pool(x: Tensor, *, call: Any, **attributes: Any) -> Tensor:
    """Pool images with the channels last."""
    return max_pool(x.movedim(-1, 1), call=call, **attributes).movedim(1, -1)


@op("MatMulInteger16", domain=MICROSOFT, values=True)
def matmul_integer_16(a: Value, b: Value) -> Value:
    """Multiply matrices of 16 bits. Sums are exact up to 32 bits."""
    element = UINT32 if a.element.name == b.element.name == "UINT16" else INT32
    return Value(element, free.matmul(a.tensor.to("int64"), b.tensor.to("int64")).to(element.carrier))


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
    """Return ``alpha * a @ b + c`` of quantized operands. Without ``y_scale`` the result is f32.

    The scale of c is the product of the scales of a and b.
    """
    points = point_of(b_zero)
    columns = None if points is None else along(points, b.tensor, 0 if transB else 1, 0)
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
    result = total.to(float32) * (_row(a_scale, a) * real(b_scale))
    return Value(FLOAT, result if bias is None else result + bias.tensor)


@op("DynamicQuantizeMatMul", domain=MICROSOFT, values=True)
def dynamic_quantize_matmul(
    a: Value, b: Value, b_scale: Value, b_zero: Value | None = None, bias: Value | None = None
) -> Value:
    """Quantize rows of real numbers to u8 over their range, and multiply them by a quantized matrix."""
    codes, scale, zero = dynamic_steps(a.tensor)
    total = product(Value(UINT8, codes), zero, b, _of_columns(b_zero))
    result = total.to(float32) * (scale * real(b_scale))
    return Value(FLOAT, result if bias is None else result + bias.tensor)
