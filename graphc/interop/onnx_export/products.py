"""Rules for matrix products, convolutions, pooling, reductions, and ops that depend on order along an axis."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, bool_, float32, float64, int32, int64, uint8
from graphc.base.sizes.size import is_size
from graphc.interop.onnx_export.shaping import expanded, reshaped
from graphc.interop.onnx_export.writer import GraphWriter, Rule, is_small, unsupported
from graphc.ir.graph.graph import Node
from graphc.ops.movement.parts import parts_of
from graphc.ops.reduction.window import lowest


def transposed(w: GraphWriter, x: str, rank: int) -> str:
    """Swap the last two dimensions."""
    return w.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def _matmul(w: GraphWriter, node: Node, a: str, b: str) -> str:
    dtype = node.operands[0].dtype
    if is_small(dtype):
        a, b = w.cast(a, int32), w.cast(b, int32)
    if node.attrs["transpose_a"]:
        a = transposed(w, a, node.operands[0].type.rank)
    if node.attrs["transpose_b"]:
        b = transposed(w, b, node.operands[1].type.rank)
    product = w.add("MatMul", a, b)
    return w.cast(product, dtype) if is_small(dtype) else product


def _window_attrs(attrs: Any) -> dict[str, Any]:
    """Return stride, padding and dilation of a window under ONNX's names."""
    low, high = zip(*attrs["padding"], strict=True)
    attributes = {"strides": list(attrs["stride"]), "pads": [*low, *high]}
    return attributes | ({"dilations": list(attrs["dilation"])} if "dilation" in attrs else {})


def _conv(w: GraphWriter, node: Node, x: str, weight: str) -> str:
    """Write a convolution. Integers are convolved in f64."""
    attrs = _window_attrs(node.attrs) | {
        "group": node.attrs["groups"],
        "kernel_shape": list(node.operands[1].shape[2:]),
    }
    dtype = node.operands[0].dtype
    if dtype.kind == "f":
        return w.add("Conv", x, weight, **attrs)
    return w.cast(w.add("Conv", w.cast(x, float64), w.cast(weight, float64), **attrs), dtype)


def _byte_matmul(w: GraphWriter, node: Node, a: str, b: str) -> str:
    return w.add("MatMulInteger", a, b)


def _byte_conv(w: GraphWriter, node: Node, x: str, weight: str) -> str:
    attrs = _window_attrs(node.attrs | {"padding": ((0, 0),) * len(node.attrs["stride"])})
    return w.add("ConvInteger", x, weight, kernel_shape=list(node.operands[1].shape[2:]), **attrs)


def _real_byte_conv(w: GraphWriter, node: Node, x: str, weight: str) -> str:
    attrs = _window_attrs(node.attrs | {"padding": ((0, 0),) * len(node.attrs["stride"])})
    zero = w.constant(int(node.attrs["zero"]), uint8)
    kernel = list(node.operands[1].shape[2:])
    return w.cast(w.add("ConvInteger", x, weight, zero, kernel_shape=kernel, **attrs), float32)


def _conv_transpose(w: GraphWriter, node: Node, g: str, weight: str) -> str:
    """Write the gradient of a convolution with respect to its input as ONNX's ConvTranspose."""
    attrs, kernel = node.attrs, node.operands[1].shape[2:]
    sizes, counts = w.at(attrs["size"]), w.at(node.operands[0].shape[2:])
    low, high, extra = [], [], []
    zipped = zip(sizes, counts, kernel, attrs["stride"], attrs["dilation"], attrs["padding"], strict=True)
    for size, count, taps, stride, dilation, (before, after) in zipped:
        more = size - ((count - 1) * stride + dilation * (taps - 1) + 1 - before - after)
        if is_size(more) or not -after <= more < max(stride, dilation):
            raise unsupported(node, "ConvTranspose cannot produce the size of this transposed convolution")
        low.append(before)
        high.append(after - min(more, 0))
        extra.append(max(more, 0))
    window = {"strides": list(attrs["stride"]), "dilations": list(attrs["dilation"]), "group": attrs["groups"]}
    window |= {"pads": [*low, *high], "kernel_shape": list(kernel)}
    return w.add("ConvTranspose", g, weight, **window, output_padding=extra if any(extra) else None)


def _padded_for_windows(w: GraphWriter, node: Node, x: str) -> str:
    """Pad the operand with the lowest number. Runtimes only pad less than the size of a window."""
    low, high = zip((0, 0), (0, 0), *node.attrs["padding"], strict=True)
    dtype = node.operands[0].dtype
    return w.add("Pad", x, w.vector(w.at((*low, *high))), w.constant(lowest(dtype), dtype), mode="constant")


def _pooled(op: str) -> Rule:
    """Return a rule for pooling of the last dimensions. The dimensions before them become a batch and channels."""

    def write(w: GraphWriter, node: Node, x: str) -> str:
        kernel, shape, after = node.attrs["kernel"], node.operands[0].shape, node.results[0].shape
        lead = len(shape) - len(kernel)
        attrs: dict[str, Any] = {"kernel_shape": list(kernel), **_window_attrs(node.attrs)}
        if "count_include_pad" in node.attrs:
            attrs["count_include_pad"] = int(node.attrs["count_include_pad"])
        flat = (1, prod(shape[:lead]))
        operand = x if lead == 2 else reshaped(w, x, shape, (*flat, *shape[lead:]))
        if op == "MaxPool" and any(p >= k for pair, k in zip(node.attrs["padding"], kernel, strict=True) for p in pair):
            operand, attrs["pads"] = _padded_for_windows(w, node, operand), None
        narrow = node.operands[0].dtype in (int32, int64)
        pooled = w.add(op, w.cast(operand, float64) if narrow else operand, **attrs)
        pooled = w.cast(pooled, node.operands[0].dtype) if narrow else pooled
        return pooled if lead == 2 else reshaped(w, pooled, (*flat, *after[lead:]), after)

    return write


def _part_sum(w: GraphWriter, node: Node, x: str) -> str:
    """Multiply by a matrix that assigns elements to segments."""
    axis, count = node.attrs["axis"], node.attrs["count"]
    rank, extent = node.operands[0].type.rank, w.at(node.operands[0].shape[axis])
    if is_size(extent):
        raise unsupported(
            node, "segments of a dimension whose size differs from call to call", "give that dimension a fixed size"
        )
    segments = np.zeros((count, extent), node.operands[0].dtype.numpy)
    for i, (start, stop) in enumerate(parts_of(extent, count)):
        segments[i, start:stop] = 1
    letters = "abcdefghijklmnopqrstuvw"[:rank]
    equation = f"{letters},z{letters[axis]}->{letters[:axis]}z{letters[axis + 1 :]}"
    return w.add("Einsum", x, w.constant(segments), equation=equation)


# ---- reductions


def _folded(op: str, wide: DType | None = None) -> Rule:
    """Return a rule for a reduction along axes.

    ``wide`` is the type for bools and narrow integers; their result then has the node's type.
    """

    def write(w: GraphWriter, node: Node, x: str) -> str:
        before, after = node.operands[0].dtype, node.results[0].dtype
        inner = int32 if is_small(before) else before
        inner = after if wide is not None and before.kind != "f" else inner
        operand = x if inner is before else w.cast(x, inner)
        if node.attrs["axes"]:
            operand = w.add(op, operand, w.ints(*node.attrs["axes"]), keepdims=int(node.attrs["keepdims"]))
        return operand if inner is after else w.cast(operand, after)

    return write


def _position(op: str) -> Rule:
    def write(w: GraphWriter, node: Node, x: str) -> str:
        operand = w.cast(x, int32) if node.operands[0].dtype is bool_ else x
        return w.add(op, operand, axis=node.attrs["axis"], keepdims=int(node.attrs["keepdims"]))

    return write


# ---- order


def top(w: GraphWriter, x: str, count: str, axis: int, largest: bool) -> list[str]:
    """Write TopK: values and indices of the first elements in order."""
    return w.add("TopK", x, count, outputs=2, axis=axis, largest=int(largest), sorted=1)


def _argsort(w: GraphWriter, node: Node, x: str) -> str:
    """Return the indices of the first elements in order."""
    operand, axis = node.operands[0], node.attrs["axis"]
    operand_name = w.cast(x, float32) if is_small(operand.dtype) else x
    count = w.vector(w.at((node.results[0].shape[axis],)))
    return top(w, operand_name, count, axis, node.attrs["descending"])[1]


def _rank(w: GraphWriter, node: Node, x: str) -> str:
    """Return the positions that elements take in order: the inverse of argsort."""
    shape, axis = node.operands[0].shape, node.attrs["axis"]
    dtype = node.operands[0].dtype
    operand = w.cast(x, float32) if is_small(dtype) else x
    order = top(w, operand, w.vector(w.at((shape[axis],))), axis, node.attrs["descending"])[1]
    extent = w.at(shape[axis])
    line = tuple(extent if d == axis else 1 for d in range(len(shape)))
    if is_size(extent):
        end = w.add("Squeeze", w.vector([extent]), w.ints(0))
        counts = w.add("Range", w.constant(0, int64), end, w.constant(1, int64))
        counts = reshaped(w, counts, (extent,), line)
    else:
        counts = w.constant(np.arange(extent).reshape(line))
    return w.add("ScatterElements", order, order, expanded(w, counts, line, shape), axis=axis)


def _cumsum(w: GraphWriter, node: Node, x: str) -> str:
    dtype = node.operands[0].dtype
    operand = w.cast(x, int32) if is_small(dtype) else x
    axis = w.constant(node.attrs["axis"], int64)
    sums = w.add("CumSum", operand, axis, reverse=1 if node.attrs["reverse"] else None)
    return w.cast(sums, dtype) if is_small(dtype) else sums


RULES: dict[str, Rule] = {
    "matmul": _matmul,
    "conv": _conv,
    "byte_matmul": _byte_matmul,
    "byte_conv": _byte_conv,
    "real_byte_conv": _real_byte_conv,
    "conv_grad_input": _conv_transpose,
    "max_pool": _pooled("MaxPool"),
    "avg_pool": _pooled("AveragePool"),
    "part_sum": _part_sum,
    "sum": _folded("ReduceSum", int64),
    "prod": _folded("ReduceProd", int64),
    "max": _folded("ReduceMax"),
    "min": _folded("ReduceMin"),
    "any": _folded("ReduceSum"),
    "all": _folded("ReduceMin"),
    "argmax": _position("ArgMax"),
    "argmin": _position("ArgMin"),
    "argsort": _argsort,
    "rank": _rank,
    "cumsum": _cumsum,
}
"""Rules by op."""
