"""Blocks of random quantized graphs that multiply: matrices and convolutions, in every form that files have."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto

from tools.nets.quantized.builder import MICROSOFT, Codes, QuantizedBuilder, Unfit

_LONG = (512, 1024, 3000)
"""Lengths of long sums."""


class Weight(NamedTuple):
    """Weight of codes: names of its constants, and what results need to know of them."""

    name: str
    scale: str
    zero: str
    scales: np.ndarray


def weight(b: QuantizedBuilder, shape: Sequence[int], channels: int, rows: type, varied_zero: bool = False) -> Weight:
    """Add a weight for products with codes of the dtype ``rows``, with one scale or ``channels`` scales."""
    dtype = np.int8 if rows is np.int8 else b.pick([np.int8, np.int8, np.uint8])
    per_channel = b.chance(0.5)
    count = (channels,) if per_channel else ()
    scales = np.array([b.scale(0.01) for _ in range(prod(count))], np.float32).reshape(count)
    middle = 0 if dtype is np.int8 else 128
    zero = b.zero(dtype) if b.chance(0.4) else middle
    zeros = np.full(count, zero)
    if per_channel and varied_zero and b.chance(0.4):
        zeros = np.array([b.zero(dtype) for _ in range(channels)])
    codes = b.codes(dtype, shape)
    names = b.constant(codes, dtype), b.constant(scales), b.constant(zeros, dtype)
    return Weight(*names, scales)


def _bias(b: QuantizedBuilder, w: Weight, x: Codes, channels: int) -> tuple[str, np.ndarray]:
    """Return a bias of i32, and its scales."""
    bias = b.random.integers(-(1 << 12), 1 << 12, channels)
    return b.constant(bias, np.int32), np.float32(x.scale) * w.scales


# ---- convolutions


class Geometry(NamedTuple):
    """Shape of filters, attributes and shape of the result of a convolution."""

    filters: tuple[int, ...]
    attributes: dict[str, Any]
    result: tuple[int, ...]


def _geometry(b: QuantizedBuilder, x: Codes, channels_axis: int = 1) -> Geometry:
    batch, channels, *image = (
        x.shape[0],
        x.shape[channels_axis],
        *(n for i, n in enumerate(x.shape[1:], 1) if i != channels_axis),
    )
    group = b.pick([1, 1, 1, channels, *(g for g in (2, 4) if channels % g == 0)])
    filters = group * int(b.pick([1, 2, 3, 5])) if group > 1 else int(b.pick([1, 3, 8, 17]))
    kernel = [int(b.pick([1, 2, 3, 3])) for _ in image]
    strides = [int(b.pick([1, 1, 2])) for _ in image]
    dilations = [int(b.pick([1, 1, 1, 2])) for _ in image]
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = [int(b.random.integers(0, 3)) if b.chance(0.5) else 0 for _ in range(2 * len(image))]
    rank = len(image)
    sizes = [
        (n + pads[i] + pads[i + rank] - spans[i]) // strides[i] + 1 if n + pads[i] + pads[i + rank] >= spans[i] else 0
        for i, n in enumerate(image)
    ]
    if 0 in sizes:
        raise Unfit("the window is larger than the image")
    attributes = {"pads": pads, "strides": strides, "dilations": dilations, "group": group, "kernel_shape": kernel}
    return Geometry((filters, channels // group, *kernel), attributes, (batch, filters, *sizes))


def _image(b: QuantizedBuilder) -> Codes:
    return b.value(lambda v: len(v.shape) == 4)


def linear_convolution(b: QuantizedBuilder) -> None:
    """Convolve by QLinearConv."""
    x = _image(b)
    if x.point:
        raise Unfit("the zero point is computed")
    geometry = _geometry(b, x)
    w = weight(b, geometry.filters, geometry.filters[0], x.dtype)
    y = b.result(x.dtype)
    bias = [_bias(b, w, x, geometry.filters[0])[0]] if b.chance(0.5) else []
    inputs = [*b.triple(x), w.name, w.scale, w.zero, *b.parameters(y), *bias]
    b.block("QLinearConv", [x], b.node("QLinearConv", *inputs, **geometry.attributes), y, geometry.result)


def runtime_convolution(b: QuantizedBuilder) -> None:
    """Convolve images with the channels last by com.microsoft.QLinearConv."""
    x = _image(b)
    if x.point:
        raise Unfit("the zero point is computed")
    geometry = _geometry(b, x, 3)
    w = weight(b, geometry.filters, geometry.filters[0], x.dtype)
    y = b.result(x.dtype)
    inputs = [*b.triple(x), w.name, w.scale, w.zero, *b.parameters(y)]
    name = b.node("QLinearConv", *inputs, domain=MICROSOFT, channels_last=1, **geometry.attributes)
    batch, channels, *image = geometry.result
    b.block("com.microsoft.QLinearConv", [x], name, y, (batch, *image, channels))


def integer_convolution(b: QuantizedBuilder) -> None:
    """Convolve by ConvInteger, scale and quantize."""
    x = _image(b)
    geometry = _geometry(b, x)
    w = weight(b, geometry.filters, geometry.filters[0], x.dtype)
    zeros = [x.point or b.constant(x.zero, x.dtype)]
    if w.scales.ndim == 0:
        zeros += [w.zero]
    total = b.node("ConvInteger", x.name, w.name, *zeros, **geometry.attributes)
    b.further(total, TensorProto.INT32, geometry.result)
    _from_total(b, "ConvInteger", x, total, geometry.result)


def _from_total(
    b: QuantizedBuilder, kind: str, x: Codes, total: str, shape: Sequence[int], dtype: type = np.uint8
) -> None:
    """End a block with a sum in i32, which is scaled and quantized."""
    factor = b.scale(x.scale * 0.01)
    real = b.node("Mul", b.node("Cast", total, to=TensorProto.FLOAT), b.constant(factor))
    y = b.result(dtype)
    b.block(kind, [x], b.quantized(real, y), y, shape)


def _activated(b: QuantizedBuilder, real: str, size: float) -> str:
    """Add Relu, Clip or nothing."""
    form = b.pick(["", "", "Relu", "Clip"])
    if form == "Relu":
        return b.node("Relu", real)
    if form == "Clip":
        return b.node("Clip", real, b.constant(0.0), b.constant(b.scale(size)))
    return real


def dequantized_convolution(b: QuantizedBuilder) -> None:
    """Convolve dequantized codes, as QDQ files do."""
    x = _image(b)
    geometry = _geometry(b, x)
    channels = geometry.filters[0]
    w = weight(b, geometry.filters, channels, x.dtype, varied_zero=True)
    inputs = [b.dequantized(x), b.node("DequantizeLinear", w.name, w.scale, w.zero, axis=0)]
    if b.chance(0.6):
        bias, scales = _bias(b, w, x, channels)
        inputs.append(b.node("DequantizeLinear", bias, b.constant(scales), axis=0))
    size = 3000 * x.scale * float(w.scales.max())
    real = _activated(b, b.node("Conv", *inputs, **geometry.attributes), size)
    y = b.result(b.pick([np.uint8, np.int8]))
    b.block("QDQ Conv", [x], b.quantized(real, y), y, geometry.result)


# ---- matrices


def _rows(b: QuantizedBuilder, rank: int = 0) -> tuple[Codes, int, int]:
    """Return rows, and the inputs and outputs of a matrix that multiplies them."""
    x = b.value(lambda v: 2 <= len(v.shape) <= 4 and (not rank or len(v.shape) == rank))
    return x, x.shape[-1], int(b.pick([1, 2, 5, 16, 19, 33]))


def lengthened(b: QuantizedBuilder) -> None:
    """Repeat the elements of rows, so that sums over them are long."""
    x = b.value(lambda v: len(v.shape) == 2 and v.shape[1] < 300)
    times = max(2, int(b.pick(_LONG)) // x.shape[1])
    name = b.node("Tile", x.name, b.constant([1, times], np.int64))
    b.block("Tile", [x], name, x, (x.shape[0], x.shape[1] * times))


def linear_matmul(b: QuantizedBuilder) -> None:
    """Multiply by QLinearMatMul."""
    x, inputs, outputs = _rows(b)
    w = weight(b, (inputs, outputs), outputs, x.dtype, varied_zero=True)
    y = b.result(x.dtype)
    name = b.node("QLinearMatMul", *b.triple(x), w.name, w.scale, w.zero, *b.parameters(y))
    b.block("QLinearMatMul", [x], name, y, (*x.shape[:-1], outputs))


def integer_matmul(b: QuantizedBuilder) -> None:
    """Multiply by MatMulInteger, scale and quantize."""
    x, inputs, outputs = _rows(b)
    w = weight(b, (inputs, outputs), outputs, x.dtype, varied_zero=True)
    total = b.node("MatMulInteger", x.name, w.name, x.point or b.constant(x.zero, x.dtype), w.zero)
    shape = (*x.shape[:-1], outputs)
    b.further(total, TensorProto.INT32, shape)
    _from_total(b, "MatMulInteger", x, total, shape, b.pick([np.uint8, np.int8]))


def matmul_of_codes(b: QuantizedBuilder) -> None:
    """Multiply two computed values by MatMulInteger, as attention does."""
    x = b.value(lambda v: len(v.shape) >= 2)
    order = [*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2]
    turned = b.node("Transpose", x.name, perm=order)
    zero = x.point or b.constant(x.zero, x.dtype)
    shape = (*x.shape[:-1], x.shape[-2])
    total = b.further(b.node("MatMulInteger", x.name, turned, zero, zero), TensorProto.INT32, shape)
    real = b.node("Mul", b.node("Cast", total, to=TensorProto.FLOAT), b.constant(b.scale(x.scale**2)))
    y = b.result(np.uint8)
    b.block("MatMulInteger of two values", [x], b.quantized(real, y), y, shape)


def dequantized_matmul(b: QuantizedBuilder) -> None:
    """Multiply dequantized codes by MatMul, or Gemm with a bias."""
    x, inputs, outputs = _rows(b)
    gemm, turned = len(x.shape) == 2 and b.chance(0.5), b.chance(0.5)
    axis, shape = (0, (outputs, inputs)) if gemm and turned else (1, (inputs, outputs))
    w = weight(b, shape, outputs, x.dtype, varied_zero=True)
    factors = [b.dequantized(x), b.node("DequantizeLinear", w.name, w.scale, w.zero, axis=axis)]
    bias, scales = _bias(b, w, x, outputs)
    offset = b.node("DequantizeLinear", bias, b.constant(scales), axis=0)
    if gemm:
        real = b.node("Gemm", *factors, offset, transB=int(turned))
    else:
        real = b.node("MatMul", *factors)
        real = b.node("Add", real, offset) if b.chance(0.5) else real
    size = 3000 * x.scale * float(w.scales.max())
    y = b.result(b.pick([np.uint8, np.int8]))
    name = b.quantized(_activated(b, real, size), y)
    b.block("QDQ Gemm" if gemm else "QDQ MatMul", [x], name, y, (*x.shape[:-1], outputs))


def runtime_gemm(b: QuantizedBuilder) -> None:
    """Multiply by com.microsoft.QGemm."""
    x, inputs, outputs = _rows(b, 2)
    turned_x, turned = b.chance(0.3), b.chance(0.5)
    inputs, rows = (x.shape[0], x.shape[1]) if turned_x else (inputs, x.shape[0])
    w = weight(b, (outputs, inputs) if turned else (inputs, outputs), outputs, x.dtype)
    bias = _bias(b, w, x, outputs)[0] if b.chance(0.6) else ""
    shape = (rows, outputs)
    options = {"transA": int(turned_x), "transB": int(turned), "alpha": b.pick([1.0, 1.0, 0.5])}
    names = [*b.triple(x), w.name, w.scale, w.zero, bias]
    y = b.result(x.dtype)
    if b.chance(0.3):
        real = b.node("QGemm", *names, domain=MICROSOFT, **options)
        b.block("QGemm to f32", [x], b.quantized(real, y), y, shape)
    else:
        name = b.node("QGemm", *names, *b.parameters(y), domain=MICROSOFT, **options)
        b.block("QGemm", [x], name, y, shape)


def matmul_to_float(b: QuantizedBuilder) -> None:
    """Multiply by com.microsoft.MatMulIntegerToFloat."""
    x, inputs, outputs = _rows(b)
    w = weight(b, (inputs, outputs), outputs, x.dtype)
    bias = [b.constant(b.random.standard_normal(outputs))] if b.chance(0.5) else []
    zero = x.point or b.constant(x.zero, x.dtype)
    names = [x.name, w.name, b.constant(x.scale), w.scale, zero, w.zero, *bias]
    y = b.result(np.uint8)
    real = b.node("MatMulIntegerToFloat", *names, domain=MICROSOFT)
    b.block("MatMulIntegerToFloat", [x], b.quantized(real, y), y, (*x.shape[:-1], outputs))


def dynamic_matmul(b: QuantizedBuilder) -> None:
    """Multiply by com.microsoft.DynamicQuantizeMatMul."""
    x, inputs, outputs = _rows(b)
    w = weight(b, (inputs, outputs), outputs, np.uint8)
    y = b.result(np.uint8)
    real = b.node("DynamicQuantizeMatMul", b.dequantized(x), w.name, w.scale, w.zero, domain=MICROSOFT)
    b.block("DynamicQuantizeMatMul", [x], b.quantized(real, y), y, (*x.shape[:-1], outputs))


STEPS = (
    *(linear_convolution, linear_convolution, runtime_convolution, integer_convolution),
    *(dequantized_convolution, dequantized_convolution, lengthened, linear_matmul, linear_matmul),
    *(integer_matmul, matmul_of_codes, dequantized_matmul, dequantized_matmul, runtime_gemm, matmul_to_float),
    dynamic_matmul,
)
"""Blocks by how often they are drawn."""
