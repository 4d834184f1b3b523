"""Rules for sums of products, pooling, reductions, and what depends on order along an axis."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, bool_, float32, float64, int32, int64
from graphc.base.sizes.size import is_size
from graphc.interop.onnx_export.shaping import expanded, reshaped
from graphc.interop.onnx_export.writer import Rule, Writer, is_small, unsupported
from graphc.ir.graph.graph import Node
from graphc.ops.parts import parts_of
from graphc.ops.window import lowest


def transposed(w: Writer, x: str, rank: int) -> str:
    """The last two dimensions exchanged."""
    return w.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def _matmul(w: Writer, node: Node, a: str, b: str) -> str:
    dtype = node.operands[0].dtype
    if is_small(dtype):
        a, b = w.cast(a, int32), w.cast(b, int32)
    if node.attrs["transpose_a"]:
        a = transposed(w, a, node.operands[0].type.rank)
    if node.attrs["transpose_b"]:
        b = transposed(w, b, node.operands[1].type.rank)
    found = w.add("MatMul", a, b)
    return w.cast(found, dtype) if is_small(dtype) else found


def _window_attrs(attrs: Any) -> dict[str, Any]:
    """Stride, padding and dilation of a window as ONNX names them."""
    low, high = zip(*attrs["padding"], strict=True)
    found = {"strides": list(attrs["stride"]), "pads": [*low, *high]}
    return found | ({"dilations": list(attrs["dilation"])} if "dilation" in attrs else {})


def _conv(w: Writer, node: Node, x: str, weight: str) -> str:
    """A convolution, of whole numbers in f64."""
    attrs = _window_attrs(node.attrs) | {
        "group": node.attrs["groups"],
        "kernel_shape": list(node.operands[1].shape[2:]),
    }
    dtype = node.operands[0].dtype
    if dtype.kind == "f":
        return w.add("Conv", x, weight, **attrs)
    return w.cast(w.add("Conv", w.cast(x, float64), w.cast(weight, float64), **attrs), dtype)


def _conv_transpose(w: Writer, node: Node, g: str, weight: str) -> str:
    """The gradient of a convolution with respect to its input, which is ONNX's ConvTranspose."""
    attrs, kernel = node.attrs, node.operands[1].shape[2:]
    sizes, counts = w.at(attrs["size"]), w.at(node.operands[0].shape[2:])
    low, high, extra = [], [], []
    zipped = zip(sizes, counts, kernel, attrs["stride"], attrs["dilation"], attrs["padding"], strict=True)
    for size, count, taps, stride, dilation, (before, behind) in zipped:
        more = size - ((count - 1) * stride + dilation * (taps - 1) + 1 - before - behind)
        if is_size(more) or not -behind <= more < max(stride, dilation):
            raise unsupported(node, "a transposed convolution to a size that ConvTranspose does not reach")
        low.append(before)
        high.append(behind - min(more, 0))
        extra.append(max(more, 0))
    given = {"strides": list(attrs["stride"]), "dilations": list(attrs["dilation"]), "group": attrs["groups"]}
    given |= {"pads": [*low, *high], "kernel_shape": list(kernel)}
    return w.add("ConvTranspose", g, weight, **given, output_padding=extra if any(extra) else None)


def _padded_for_windows(w: Writer, node: Node, x: str) -> str:
    """The operand with the padding of its windows, of which runtimes take less than a window has elements: what is no
    larger than any other."""
    low, high = zip((0, 0), (0, 0), *node.attrs["padding"], strict=True)
    dtype = node.operands[0].dtype
    return w.add("Pad", x, w.vector(w.at((*low, *high))), w.constant(lowest(dtype), dtype), mode="constant")


def _pooled(op: str) -> Rule:
    """Pooling of the last dimensions; those before them become a batch and channels."""

    def write(w: Writer, node: Node, x: str) -> str:
        kernel, shape, after = node.attrs["kernel"], node.operands[0].shape, node.results[0].shape
        lead = len(shape) - len(kernel)
        attrs: dict[str, Any] = {"kernel_shape": list(kernel), **_window_attrs(node.attrs)}
        if "count_include_pad" in node.attrs:
            attrs["count_include_pad"] = int(node.attrs["count_include_pad"])
        flat = (1, prod(shape[:lead]))
        given = x if lead == 2 else reshaped(w, x, shape, (*flat, *shape[lead:]))
        if op == "MaxPool" and any(p >= k for pair, k in zip(node.attrs["padding"], kernel, strict=True) for p in pair):
            given, attrs["pads"] = _padded_for_windows(w, node, given), None
        narrow = node.operands[0].dtype in (int32, int64)
        found = w.add(op, w.cast(given, float64) if narrow else given, **attrs)
        found = w.cast(found, node.operands[0].dtype) if narrow else found
        return found if lead == 2 else reshaped(w, found, (*flat, *after[lead:]), after)

    return write


def _part_sum(w: Writer, node: Node, x: str) -> str:
    """A product with a matrix that says which element belongs to which part."""
    axis, count = node.attrs["axis"], node.attrs["count"]
    rank, extent = node.operands[0].type.rank, w.at(node.operands[0].shape[axis])
    if is_size(extent):
        raise unsupported(node, "parts of a dimension whose size differs from call to call", "a fixed size there")
    parts = np.zeros((count, extent), node.operands[0].dtype.numpy)
    for i, (start, stop) in enumerate(parts_of(extent, count)):
        parts[i, start:stop] = 1
    letters = "abcdefghijklmnopqrstuvw"[:rank]
    equation = f"{letters},z{letters[axis]}->{letters[:axis]}z{letters[axis + 1 :]}"
    return w.add("Einsum", x, w.constant(parts), equation=equation)


# ---- reductions


def _folded(op: str, wide: DType | None = None) -> Rule:
    """A fold along axes; ``wide`` is the type for bools and small whole numbers, whose result is of the type that it is
    to be."""

    def write(w: Writer, node: Node, x: str) -> str:
        before, after = node.operands[0].dtype, node.results[0].dtype
        inner = int32 if is_small(before) else before
        inner = after if wide is not None and before.kind != "f" else inner
        given = x if inner is before else w.cast(x, inner)
        if node.attrs["axes"]:
            given = w.add(op, given, w.ints(*node.attrs["axes"]), keepdims=int(node.attrs["keepdims"]))
        return given if inner is after else w.cast(given, after)

    return write


def _position(op: str) -> Rule:
    def write(w: Writer, node: Node, x: str) -> str:
        given = w.cast(x, int32) if node.operands[0].dtype is bool_ else x
        return w.add(op, given, axis=node.attrs["axis"], keepdims=int(node.attrs["keepdims"]))

    return write


# ---- order


def top(w: Writer, x: str, count: str, axis: int, largest: bool) -> list[str]:
    """Values and places of the first elements in order."""
    return w.add("TopK", x, count, outputs=2, axis=axis, largest=int(largest), sorted=1)


def _argsort(w: Writer, node: Node, x: str) -> str:
    """The places of the first elements in order."""
    operand, axis = node.operands[0], node.attrs["axis"]
    given = w.cast(x, float32) if is_small(operand.dtype) else x
    count = w.vector(w.at((node.results[0].shape[axis],)))
    return top(w, given, count, axis, node.attrs["descending"])[1]


def _rank(w: Writer, node: Node, x: str) -> str:
    """The places that elements take in order: the inverse of the order."""
    shape, axis = node.operands[0].shape, node.attrs["axis"]
    dtype = node.operands[0].dtype
    given = w.cast(x, float32) if is_small(dtype) else x
    order = top(w, given, w.vector(w.at((shape[axis],))), axis, node.attrs["descending"])[1]
    extent = w.at(shape[axis])
    line = tuple(extent if d == axis else 1 for d in range(len(shape)))
    if is_size(extent):
        end = w.add("Squeeze", w.vector([extent]), w.ints(0))
        counts = w.add("Range", w.constant(0, int64), end, w.constant(1, int64))
        counts = reshaped(w, counts, (extent,), line)
    else:
        counts = w.constant(np.arange(extent).reshape(line))
    return w.add("ScatterElements", order, order, expanded(w, counts, line, shape), axis=axis)


def _cumsum(w: Writer, node: Node, x: str) -> str:
    dtype = node.operands[0].dtype
    given = w.cast(x, int32) if is_small(dtype) else x
    axis = w.constant(node.attrs["axis"], int64)
    found = w.add("CumSum", given, axis, reverse=1 if node.attrs["reverse"] else None)
    return w.cast(found, dtype) if is_small(dtype) else found


RULES: dict[str, Rule] = {
    "matmul": _matmul,
    "conv": _conv,
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
"""By op."""
