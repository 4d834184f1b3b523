"""Rules of ONNX Runtime's operators on quantized tensors: dequantize, compute in f32, quantize."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.interop.onnx.elements import Element
from graphc.interop.onnx.ops.pooling import average_pool
from graphc.interop.onnx.ops.quantized.quantization import codes_of, numbers_of, real
from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.interop.onnx.values import Value
from graphc.nn import functional as F
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors import free_functions as free
from graphc.tensors import functions
from graphc.tensors.tensor import Tensor


def numbers(x: Value, scale: Value, zero: Value | None) -> Tensor:
    """Dequantize the codes of ``x``."""
    return numbers_of(x, real(scale).reshape(()), zero, None if zero is None else zero.tensor.reshape(()))


def steps(x: Tensor, scale: Value, zero: Value | None, element: Element) -> Value:
    """Quantize to codes of the element type."""
    at = None if zero is None else zero.tensor.reshape(())
    return codes_of(x, scale, real(scale).reshape(()), zero, at, element)


def _of_two(name: str, function: Callable[[Any, Any], Any]) -> None:
    def rule(
        a: Value,
        a_scale: Value,
        a_zero: Value | None,
        b: Value,
        b_scale: Value,
        b_zero: Value | None,
        c_scale: Value,
        c_zero: Value | None = None,
    ) -> Value:
        result = function(numbers(a, a_scale, a_zero), numbers(b, b_scale, b_zero))
        return steps(result, c_scale, c_zero, a.element)

    op(name, domain=MICROSOFT, values=True)(rule)


_of_two("QLinearAdd", ew.add)
_of_two("QLinearMul", ew.mul)


def _of_one(name: str, function: Callable[..., Tensor]) -> None:
    def rule(
        x: Value, x_scale: Value, x_zero: Value | None, y_scale: Value, y_zero: Value | None = None, **attributes: Any
    ) -> Value:
        return steps(function(numbers(x, x_scale, x_zero), **attributes), y_scale, y_zero, x.element)

    op(name, domain=MICROSOFT, values=True)(rule)


def _softmax(x: Tensor, axis: int = -1, opset: int = 13) -> Tensor:
    """Apply softmax over one axis, or before version 13 over all dimensions from the axis on."""
    at = axis % x.ndim
    if opset >= 13:
        return F.softmax(x, at)
    return F.softmax(x.flatten(at), -1).reshape(x.shape)


def _channels_last(x: Tensor, function: Callable[[Tensor], Tensor], channels_last: int) -> Tensor:
    return function(x.movedim(-1, 1)).movedim(1, -1) if channels_last else function(x)


def _global_average(x: Tensor, channels_last: int = 0) -> Tensor:
    return _channels_last(x, lambda y: functions.mean(y, tuple(range(2, y.ndim)), True), channels_last)


def _average(x: Tensor, channels_last: int = 0, **attributes: Any) -> Tensor:
    return _channels_last(x, lambda y: average_pool(y, **attributes), channels_last)


_of_one("QLinearSigmoid", functions.sigmoid)
_of_one("QLinearLeakyRelu", lambda x, alpha=0.01: F.leaky_relu(x, alpha))
_of_one("QLinearSoftmax", _softmax)
_of_one("QLinearGlobalAveragePool", _global_average)
_of_one("QLinearAveragePool", _average)
_of_one("QLinearReduceMean", lambda x, axes=(), keepdims=1: functions.mean(x, tuple(axes) or None, bool(keepdims)))


@op("QLinearConcat", domain=MICROSOFT, values=True)
def qlinear_concat(y_scale: Value, y_zero: Value, *inputs: Value, axis: int) -> Value:
    """Concatenate quantized tensors with different scales and zero points to one of the result's scale."""
    tensors = [numbers(*inputs[i : i + 3]) for i in range(0, len(inputs), 3)]
    return steps(free.cat(tensors, axis), y_scale, y_zero, y_zero.element)


@op("QLinearWhere", domain=MICROSOFT, values=True)
def qlinear_where(
    condition: Value,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    y: Value,
    y_scale: Value,
    y_zero: Value,
    z_scale: Value,
    z_zero: Value,
) -> Value:
    selected = ew.where(condition.tensor, numbers(x, x_scale, x_zero), numbers(y, y_scale, y_zero))
    return steps(selected, z_scale, z_zero, x.element)
