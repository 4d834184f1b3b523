"""Blocks of random quantized graphs that do not multiply: elementwise operators, pooling, movement, dynamic scales."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from onnx import TensorProto

from tools.nets.quantized.builder import MICROSOFT, Codes, QuantizedBuilder, Unfit


def _plain(b: QuantizedBuilder, *ranks: int) -> Codes:
    """Return a value with a constant zero point."""
    return b.value(lambda v: not v.point and (not ranks or len(v.shape) in ranks))


def _ends(b: QuantizedBuilder, x: Codes) -> tuple[Codes, list[str]]:
    """Return a result of the dtype of ``x``, and the names of its scale and zero point."""
    y = b.result(x.dtype)
    return y, b.parameters(y)


def dynamic(b: QuantizedBuilder) -> None:
    """Quantize dequantized codes with a scale that follows from them."""
    x = b.value()
    codes, scale, zero = b.nodes(3, "DynamicQuantizeLinear", b.dequantized(x))
    b.further(scale, TensorProto.FLOAT, ())
    b.further(zero, TensorProto.UINT8, ())
    b.block("DynamicQuantizeLinear", [x], codes, Codes("", (), np.uint8, x.scale, 0, zero), x.shape)


def requantized(b: QuantizedBuilder) -> None:
    """Dequantize, and quantize to another scale and element type."""
    x = b.value()
    y = b.result(b.pick([np.uint8, np.int8]))
    b.block("QDQ", [x], b.quantized(b.dequantized(x), y), y, x.shape)


def per_axis(b: QuantizedBuilder) -> None:
    """Quantize with a scale and a zero point for each index of an axis."""
    x = b.value(lambda v: len(v.shape) > 1)
    count = x.shape[1]
    y = Codes("", (), b.pick([np.uint8, np.int8]), x.scale, 0)
    scales = b.constant([b.scale(x.scale) for _ in range(count)])
    zeros = b.constant([b.zero(y.dtype) for _ in range(count)], y.dtype)
    name = b.node("QuantizeLinear", b.dequantized(x), scales, zeros, axis=1)
    b.block("QuantizeLinear per axis", [x], name, y, x.shape)


# ---- elementwise


def _pair(b: QuantizedBuilder) -> tuple[Codes, Codes]:
    """Return two values of one shape and dtype, perhaps the same."""
    x = _plain(b)
    return x, b.value(lambda v: not v.point and v.shape == x.shape and v.dtype is x.dtype)


def binary(b: QuantizedBuilder) -> None:
    """Add or multiply by QLinearAdd or QLinearMul: two values, or a value and a vector."""
    x = _plain(b)
    if b.chance(0.3):
        shape = x.shape[-1:]
        other = Codes(b.constant(b.codes(x.dtype, shape), x.dtype), shape, x.dtype, b.scale(0.02), b.zero(x.dtype))
        inputs = [x]
    else:
        x, other = _pair(b)
        inputs = [x, other]
    op = b.pick(["QLinearAdd", "QLinearMul"])
    y, ends = _ends(b, x)
    b.block(op, inputs, b.node(op, *b.triple(x), *b.triple(other), *ends, domain=MICROSOFT), y, x.shape)


def residual(b: QuantizedBuilder) -> None:
    """Add or multiply dequantized values."""
    x = b.value()
    other = b.value(lambda v: v.shape == x.shape)
    op = b.pick(["Add", "Add", "Mul", "Sub" if other != x else "Add"])
    real = b.node(op, b.dequantized(x), b.dequantized(other))
    real = b.node("Relu", real) if b.chance(0.4) else real
    y = b.result(b.pick([np.uint8, np.int8]))
    b.block(f"QDQ {op}", [x, other], b.quantized(real, y), y, x.shape)


def unary(b: QuantizedBuilder) -> None:
    """Apply QLinearSigmoid or QLinearLeakyRelu."""
    x = _plain(b)
    op = b.pick(["QLinearSigmoid", "QLinearLeakyRelu"])
    y, ends = _ends(b, x)
    options: dict[str, Any] = {"alpha": b.pick([0.25, 0.1])} if op == "QLinearLeakyRelu" else {}
    b.block(op, [x], b.node(op, *b.triple(x), *ends, domain=MICROSOFT, **options), y, x.shape)


def softmax(b: QuantizedBuilder) -> None:
    """Apply QLinearSoftmax over the last axis."""
    x = _plain(b)
    y, ends = _ends(b, x)
    name = b.node("QLinearSoftmax", *b.triple(x), *ends, domain=MICROSOFT, axis=-1, opset=13)
    b.block("QLinearSoftmax", [x], name, y, x.shape)


def activation(b: QuantizedBuilder) -> None:
    """Apply a function to dequantized codes."""
    x = b.value()
    op = b.pick(["Sigmoid", "Tanh", "Softmax", "HardSigmoid", "LeakyRelu"])
    y = b.result(b.pick([np.uint8, np.int8]))
    b.block(f"QDQ {op}", [x], b.quantized(b.node(op, b.dequantized(x)), y), y, x.shape)


def where(b: QuantizedBuilder) -> None:
    """Choose by QLinearWhere."""
    x, other = _pair(b)
    condition = b.constant(b.random.random(x.shape) < 0.5, np.bool_)
    y, ends = _ends(b, x)
    name = b.node("QLinearWhere", condition, *b.triple(x), *b.triple(other), *ends, domain=MICROSOFT)
    b.block("QLinearWhere", [x, other], name, y, x.shape)


# ---- means


def average(b: QuantizedBuilder) -> None:
    """Average windows by QLinearAveragePool."""
    x = _plain(b, 4)
    last = b.chance(0.4)
    kernel, strides, pads = [int(b.pick([1, 2, 3])) for _ in "yx"], [int(b.pick([1, 2])) for _ in "yx"], [0] * 4
    if min(kernel) > 1 and b.chance(0.4):
        pads = [int(b.random.integers(0, 2)) for _ in range(4)]
    image = x.shape[1:3] if last else x.shape[2:]
    sizes = [(n + pads[i] + pads[i + 2] - kernel[i]) // strides[i] + 1 for i, n in enumerate(image)]
    if min(sizes) < 1:
        raise Unfit("the window is larger than the image")
    shape = (x.shape[0], *sizes, x.shape[3]) if last else (*x.shape[:2], *sizes)
    y, ends = _ends(b, x)
    options = {"kernel_shape": kernel, "strides": strides, "pads": pads, "count_include_pad": int(b.chance(0.5))}
    name = b.node("QLinearAveragePool", *b.triple(x), *ends, domain=MICROSOFT, channels_last=int(last), **options)
    b.block("QLinearAveragePool", [x], name, y, shape)


def global_average(b: QuantizedBuilder) -> None:
    """Average images by QLinearGlobalAveragePool."""
    x = _plain(b, 4)
    last = b.chance(0.4)
    shape = (x.shape[0], 1, 1, x.shape[3]) if last else (*x.shape[:2], 1, 1)
    y, ends = _ends(b, x)
    name = b.node("QLinearGlobalAveragePool", *b.triple(x), *ends, domain=MICROSOFT, channels_last=int(last))
    b.block("QLinearGlobalAveragePool", [x], name, y, shape)


def mean(b: QuantizedBuilder) -> None:
    """Average an axis by QLinearReduceMean."""
    x = _plain(b)
    axis, keep = int(b.random.integers(len(x.shape))), b.chance(0.5)
    if len(x.shape) == 1:
        raise Unfit("a vector has no other axis")
    shape = [*x.shape[:axis], *([1] if keep else []), *x.shape[axis + 1 :]]
    y, ends = _ends(b, x)
    name = b.node("QLinearReduceMean", *b.triple(x), *ends, domain=MICROSOFT, axes=[axis], keepdims=int(keep))
    b.block("QLinearReduceMean", [x], name, y, shape)


def dequantized_mean(b: QuantizedBuilder) -> None:
    """Average windows or images of dequantized codes."""
    x = b.value(lambda v: len(v.shape) == 4 and min(v.shape[2:]) > 1)
    y = b.result(x.dtype)
    if b.chance(0.5):
        real, image = b.node("GlobalAveragePool", b.dequantized(x)), (1, 1)
    else:
        real = b.node("AveragePool", b.dequantized(x), kernel_shape=[2, 2])
        image = (x.shape[2] - 1, x.shape[3] - 1)
    b.block("QDQ mean", [x], b.quantized(real, y), y, (*x.shape[:2], *image))


# ---- movement


def concatenation(b: QuantizedBuilder) -> None:
    """Concatenate by QLinearConcat, or dequantized values by Concat."""
    x = _plain(b)
    axis = len(x.shape) - 1
    other = b.value(lambda v: not v.point and v.dtype is x.dtype and v.shape[:-1] == x.shape[:-1])
    shape = (*x.shape[:-1], x.shape[-1] + other.shape[-1])
    y, ends = _ends(b, x)
    if b.chance(0.6):
        name = b.node("QLinearConcat", *ends, *b.triple(x), *b.triple(other), domain=MICROSOFT, axis=axis)
        b.block("QLinearConcat", [x, other], name, y, shape)
    else:
        real = b.node("Concat", b.dequantized(x), b.dequantized(other), axis=axis)
        b.block("QDQ Concat", [x, other], b.quantized(real, y), y, shape)


def maximum(b: QuantizedBuilder) -> None:
    """Take the largest codes of windows."""
    x = b.value(lambda v: len(v.shape) == 4 and min(v.shape[2:]) > 2)
    shape = (*x.shape[:2], *((n - 2) // 2 + 1 for n in x.shape[2:]))
    b.block("MaxPool", [x], b.node("MaxPool", x.name, kernel_shape=[2, 2], strides=[2, 2]), x, shape)


def bounded(b: QuantizedBuilder) -> None:
    """Clip codes, which is Relu of the numbers."""
    x = _plain(b)
    low, high = (0, 255) if x.dtype is np.uint8 else (-128, 127)
    bounds = b.constant(x.zero, x.dtype), b.constant(min(high, x.zero + int(b.random.integers(1, high - low))), x.dtype)
    b.block("Clip", [x], b.node("Clip", x.name, *bounds), x, x.shape)


def moved(b: QuantizedBuilder) -> None:
    """Permute the axes, or join the last ones."""
    x = b.value(lambda v: len(v.shape) > 1)
    if b.chance(0.5):
        order = [int(i) for i in b.random.permutation(len(x.shape))]
        b.block("Transpose", [x], b.node("Transpose", x.name, perm=order), x, [x.shape[i] for i in order])
    else:
        name = b.node("Reshape", x.name, b.constant([x.shape[0], -1], np.int64))
        b.block("Reshape", [x], name, x, (x.shape[0], prod(x.shape[1:])))


STEPS = (
    *(dynamic, requantized, per_axis, binary, binary, residual, residual, unary, softmax, activation, where, average),
    *(global_average, mean, dequantized_mean, concatenation, maximum, bounded, moved, moved),
)
"""Blocks by how often they are drawn."""
