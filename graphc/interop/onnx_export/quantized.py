"""Quantized layers as ONNX operators on numbers between QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.dtypes import float32, uint8
from graphc.base.sizes.size import is_size
from graphc.interop.onnx_export.calls import ExportedCall
from graphc.interop.onnx_export.layers import CallResults, LayerRule
from graphc.interop.onnx_export.writer import GraphWriter
from graphc.nn.functional.quantized import quantized_conv, quantized_linear

_INT32 = np.iinfo(np.int32)


def _numbers(w: GraphWriter, call: ExportedCall) -> str:
    """Write the input, rounded to the numbers that its codes represent."""
    grid = w.constant(call["scale"], float32), w.constant(call["zero"], uint8)
    return w.add("DequantizeLinear", w.add("QuantizeLinear", w.value(call["input"]), *grid), *grid)


def _weight(w: GraphWriter, call: ExportedCall, codes: str, axis: int) -> str:
    """Write the weight from its codes, whose output channels lie along ``axis``."""
    scale = call["weight_scale"]
    inputs = [codes, w.value(scale), w.constant(np.zeros(tuple(scale.shape), np.int8))]
    return w.add("DequantizeLinear", *inputs, axis=axis if scale.shape else None)


def _bias(w: GraphWriter, call: ExportedCall) -> str:
    """Write the bias: i32 codes in units of both scales, as runtimes add to integer sums, where they fit."""
    bias = call["bias"]
    array, weight_scale = w.known(bias), w.known(call["weight_scale"])
    if array is None or weight_scale is None:
        return w.value(bias)
    step = np.broadcast_to(weight_scale * np.float32(call["scale"]), array.shape).astype(np.float32)
    codes = np.rint(array.astype(np.float64) / step)
    if codes.size and (codes.min() < _INT32.min or codes.max() > _INT32.max):
        return w.value(bias)
    name = w.value(bias)
    inputs = [w.model.array(f"{name}_codes", codes.astype(np.int32)), w.model.array(f"{name}_scale", step)]
    return w.add("DequantizeLinear", *inputs, w.constant(np.zeros(step.shape, np.int32)), axis=0)


def _fits(call: ExportedCall) -> bool:
    return call["input"].dtype is float32 and not any(map(is_size, call["codes"].shape))


def _linear(w: GraphWriter, call: ExportedCall) -> CallResults:
    rank = len(call["input"].shape)
    if not _fits(call) or rank < 2:
        return None
    if rank == 2:
        operands = [_numbers(w, call), _weight(w, call, w.value(call["codes"]), 0)]
        return [w.add("Gemm", *operands, *([] if call["bias"] is None else [_bias(w, call)]), transB=1)]
    columns = w.transpose(w.value(call["codes"]), (1, 0))
    product = w.add("MatMul", _numbers(w, call), _weight(w, call, columns, 1))
    return [product if call["bias"] is None else w.add("Add", product, w.value(call["bias"]))]


def _convolution(w: GraphWriter, call: ExportedCall) -> CallResults:
    rank = len(call["stride"])
    if not _fits(call) or len(call["input"].shape) != rank + 2:
        return None
    operands = [_numbers(w, call), _weight(w, call, w.value(call["codes"]), 0)]
    low, high = zip(*call["padding"], strict=True)
    attrs: dict[str, Any] = {
        "kernel_shape": list(call["codes"].shape[2:]),
        "strides": list(call["stride"]),
        "pads": [*low, *high],
    }
    attrs |= {"dilations": list(call["dilation"]), "group": int(call["groups"])}
    return [w.add("Conv", *operands, *([] if call["bias"] is None else [_bias(w, call)]), **attrs)]


_PLACE = "f32, with a batch; the weight as DequantizeLinear of its codes"
ENTRIES: tuple[LayerRule, ...] = (
    LayerRule(quantized_linear, "QuantizeLinear, Gemm", 18, _linear, _PLACE, "`quantization.QuantizedLinear`"),
    LayerRule(quantized_conv, "QuantizeLinear, Conv", 18, _convolution, _PLACE, "`quantization.QuantizedConv2d`"),
)
