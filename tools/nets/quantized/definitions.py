"""Definitions of com.microsoft's operators on codes for ONNX's evaluator: exact sums, real numbers in f64.

ONNX Runtime rounds to the nearest code, ties to even, before it adds the zero point; so do these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

Array = np.ndarray


def _real(x: Array, scale: Array, zero: Array | None) -> Array:
    """Dequantize in f64."""
    return (x.astype(np.float64) - (0.0 if zero is None else zero.astype(np.float64))) * np.float64(scale)


_seen: list[Array] = []
"""Numbers before they were rounded, the newest last."""


def _rounded(x: Array, scale: Array, zero: Any, dtype: Any) -> Array:
    """Quantize numbers of f64."""
    _seen[:] = [x]
    limits = np.iinfo(dtype)
    codes = np.rint(x / np.float64(scale)) + (0.0 if zero is None else zero.astype(np.float64))
    return np.clip(codes, limits.min, limits.max).astype(dtype)


class _Microsoft(OpRun):
    op_domain = "com.microsoft"

    def option(self, name: str, default: Any) -> Any:
        """Return an attribute of the node."""
        return getattr(self, name, default)


def _of_two(name: str, function: Callable[[Array, Array], Array]) -> type[OpRun]:
    def _run(self: Any, a, a_scale, a_zero, b, b_scale, b_zero, scale, zero=None):
        return (_rounded(function(_real(a, a_scale, a_zero), _real(b, b_scale, b_zero)), scale, zero, a.dtype),)

    return type(name, (_Microsoft,), {"_run": _run})


def _of_one(name: str, function: Callable[[Any, Array], Array]) -> type[OpRun]:
    def _run(self: Any, x, x_scale, x_zero, scale, zero=None, **attributes: Any):
        return (_rounded(function(self, _real(x, x_scale, x_zero)), scale, zero, x.dtype),)

    return type(name, (_Microsoft,), {"_run": _run})


def _softmax(self: Any, x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _in_channels_first(self: Any, x: Array, function: Callable[[Array], Array]) -> Array:
    """Apply a function of images with the channels first."""
    if not self.option("channels_last", 0):
        return function(x)
    return np.moveaxis(function(np.moveaxis(x, -1, 1)), 1, -1)


def _global_average(self: Any, x: Array) -> Array:
    return _in_channels_first(self, x, lambda y: y.mean(tuple(range(2, y.ndim)), keepdims=True))


def _window_means(self: Any, x: Array) -> Array:
    """Average windows of images [batch, channels, height, width]."""
    pads, kernel, strides = self.option("pads", [0] * 4), self.kernel_shape, self.option("strides", [1, 1])
    edges = [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])]
    counted = np.ones_like(x) if not self.option("count_include_pad", 0) else None
    image = np.pad(x, edges)
    weight = np.ones_like(image) if counted is None else np.pad(counted, edges)

    def sums(array: Array) -> Array:
        windows = np.lib.stride_tricks.sliding_window_view(array, kernel, axis=(2, 3))
        return windows[:, :, :: strides[0], :: strides[1]].sum((-1, -2))

    return sums(image) / sums(weight)


def _average(self: Any, x: Array) -> Array:
    return _in_channels_first(self, x, lambda y: _window_means(self, y))


def _mean(self: Any, x: Array) -> Array:
    return x.mean(tuple(self.axes), keepdims=bool(self.option("keepdims", 1)))


def _leaky(self: Any, x: Array) -> Array:
    return np.where(x < 0, x * np.float64(np.float32(self.option("alpha", 0.01))), x)


class QLinearConcat(_Microsoft):
    def _run(self, scale, zero, *inputs, **attributes: Any):
        numbers = [_real(*inputs[i : i + 3]) for i in range(0, len(inputs), 3)]
        return (_rounded(np.concatenate(numbers, self.option("axis", 0)), scale, zero, zero.dtype),)


class QLinearWhere(_Microsoft):
    def _run(self, condition, x, x_scale, x_zero, y, y_scale, y_zero, scale, zero):
        return (
            _rounded(np.where(condition, _real(x, x_scale, x_zero), _real(y, y_scale, y_zero)), scale, zero, x.dtype),
        )


def _difference(codes: Array, zero: Array | None) -> Array:
    return codes.astype(np.int64) - (0 if zero is None else zero.astype(np.int64))


class QGemm(_Microsoft):
    def _run(self, a, a_scale, a_zero, b, b_scale, b_zero, c=None, scale=None, zero=None, **attributes: Any):
        left = _difference(a, a_zero)
        turned = self.option("transB", 0)
        right = _difference(b.T if turned else b, b_zero)
        total = (left.T if self.option("transA", 0) else left) @ right
        if c is not None:
            total = total + c
        factor = np.float64(a_scale) * np.float64(b_scale) * self.option("alpha", 1.0)
        if scale is None:
            return ((total * factor).astype(a_scale.dtype),)
        return (_rounded(total * factor, scale, zero, np.uint8 if zero is None else zero.dtype),)


class MatMulIntegerToFloat(_Microsoft):
    def _run(self, a, b, a_scale, b_scale, a_zero=None, b_zero=None, bias=None):
        total = _difference(a, a_zero) @ _difference(b, b_zero) * (np.float64(a_scale) * np.float64(b_scale))
        return ((total if bias is None else total + bias).astype(a_scale.dtype),)


class DynamicQuantizeMatMul(_Microsoft):
    def _run(self, a, b, b_scale, b_zero=None, bias=None):
        codes, scale, zero = _dynamic(a.astype(np.float32))
        total = _difference(codes, zero) @ _difference(b, b_zero) * (np.float64(scale) * np.float64(b_scale))
        return ((total if bias is None else total + bias).astype(b_scale.dtype),)


_DYNAMIC = helper.make_model(
    helper.make_graph(
        [helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "scale", "zero"])],
        "dynamic",
        [helper.make_tensor_value_info("x", 1, None)],
        [helper.make_tensor_value_info(n, e, None) for n, e in (("y", 2), ("scale", 1), ("zero", 2))],
    ),
    opset_imports=[helper.make_opsetid("", 21)],
)


def _dynamic(x: Array) -> Sequence[Any]:
    """Quantize by ONNX's DynamicQuantizeLinear."""
    return ReferenceEvaluator(_DYNAMIC).run(None, {"x": x})  # type: ignore[return-value]


class QLinearConv(_Microsoft):
    """QLinearConv of images with the channels first or last."""

    def _run(self, x, x_scale, x_zero, w, w_scale, w_zero, scale, zero, bias=None, **attributes: Any):
        image = np.moveaxis(x, -1, 1) if self.option("channels_last", 0) else x
        names = ("pads", "strides", "dilations", "group", "kernel_shape")
        options = {name: getattr(self, name) for name in names if hasattr(self, name)}
        total = _integer_convolution(image, w, x_zero, w_zero.reshape(-1)[:1].reshape(()), options).astype(np.int64)
        if bias is not None:
            total = total + bias.reshape(-1, 1, 1)
        factor = np.float64(x_scale) * np.float64(w_scale).reshape((-1, 1, 1) if w_scale.ndim else ())
        codes = _rounded(total * factor, scale, zero, zero.dtype)
        return (np.moveaxis(codes, 1, -1) if self.option("channels_last", 0) else codes,)


def _integer_convolution(x: Array, w: Array, x_zero: Array, w_zero: Array, options: dict[str, Any]) -> Array:
    """Convolve by ONNX's ConvInteger."""
    names = ["x", "w", "xz", "wz"]
    arrays = dict(zip(names, (x, w, x_zero, w_zero), strict=True))
    ports = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in arrays.items()
    ]
    node = helper.make_node("ConvInteger", names, ["y"], **options)
    graph = helper.make_graph([node], "convolution", ports, [helper.make_tensor_value_info("y", 6, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    return ReferenceEvaluator(model).run(None, arrays)[0]  # type: ignore[return-value]


OPERATORS: tuple[type[OpRun], ...] = (
    _of_two("QLinearAdd", np.add),
    _of_two("QLinearMul", np.multiply),
    _of_one("QLinearSigmoid", lambda self, x: 1 / (1 + np.exp(-x))),
    _of_one("QLinearLeakyRelu", _leaky),
    _of_one("QLinearSoftmax", _softmax),
    _of_one("QLinearAveragePool", _average),
    _of_one("QLinearGlobalAveragePool", _global_average),
    _of_one("QLinearReduceMean", _mean),
    *(QLinearConcat, QLinearWhere, QLinearConv, QGemm, MatMulIntegerToFloat, DynamicQuantizeMatMul),
)
"""Operators of com.microsoft that the evaluator lacks."""


class QuantizeLinear(OpRun):
    """QuantizeLinear with one scale."""

    op_domain = ""

    def _run(self, x, scale, zero=None, **attributes: Any):
        shape = (-1, *(1,) * (x.ndim - 2)) if scale.ndim else ()
        points = np.zeros(scale.shape, np.uint8) if zero is None else zero
        return (_rounded(x.astype(np.float64), scale.reshape(shape), points.reshape(shape), points.dtype),)


class QLinearMatMul(OpRun):
    op_domain = ""

    def _run(self, a, a_scale, a_zero, b, b_scale, b_zero, scale, zero):
        total = _difference(a, a_zero) @ _difference(b, b_zero) * (np.float64(a_scale) * np.float64(b_scale))
        return (_rounded(total, scale, zero, zero.dtype),)


def observed(model: Any, arrays: Mapping[str, Array]) -> tuple[dict[str, Array], Array]:
    """Return the results of a model by name, and the last numbers that were rounded to codes."""
    _seen.clear()
    own = [*OPERATORS, QuantizeLinear, QLinearMatMul, type("QLinearConv", (QLinearConv,), {"op_domain": ""})]
    feeds = {port.name: arrays[port.name] for port in model.graph.input}
    results = ReferenceEvaluator(model, new_ops=own).run(None, feeds)
    named = {port.name: np.asarray(array) for port, array in zip(model.graph.output, results, strict=True)}
    return named, _seen[-1] if _seen else np.zeros(1)
