"""Rules for ops that move elements: views, concatenation, gathers, scatters, and index ranges."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from graphc.base.dtypes import int32, int64
from graphc.base.sizes.size import bounds, is_size
from graphc.interop.onnx_export.sizes import same
from graphc.interop.onnx_export.writer import GraphWriter, Rule, unsupported
from graphc.ir.graph.graph import Node
from graphc.ops.movement.strided import strided_view

Shape = Sequence[Any]
END = np.iinfo(np.int64).max
"""Stop of a slice that extends to the end, whatever the size."""


def reshaped(w: GraphWriter, x: str, before: Shape, after: Shape) -> str:
    """Reshape ``x``.

    Squeezes or unsqueezes where only sizes of 1 change. Symbolic sizes follow from the sizes of ``x`` where possible.
    """
    before, after = w.at(tuple(before)), w.at(tuple(after))
    if len(before) == len(after) and all(map(same, before, after)):
        return x
    removed = _ones(after, before)
    if removed is not None:
        return w.add("Squeeze", x, w.ints(*removed))
    added = _ones(before, after)
    if added is not None:
        return w.add("Unsqueeze", x, w.ints(*added))
    entries = []
    for axis, size in enumerate(after):
        keeps = is_size(size) and axis < len(before) and same(before[axis], size)
        entries.append(size if not is_size(size) else 0 if keeps else -1)
    empty = any(not is_size(n) and n == 0 for n in after)
    unsure = entries.count(-1) > 1 or (empty and any(map(is_size, after)))
    if unsure or any(bounds(n)[0] < 1 for n, e in zip(after, entries, strict=True) if e == -1):
        return w.add("Reshape", x, w.vector(after), allowzero=1)
    return w.add("Reshape", x, w.ints(*entries), allowzero=1 if empty else None)


def _ones(short: Shape, long: Shape) -> list[int] | None:
    """Return the axes of size 1 whose removal turns ``long`` into ``short``, or None."""
    axes_of_one, at = [], 0
    for axis, size in enumerate(long):
        if at < len(short) and same(short[at], size) and len(long) - axis > 0:
            at += 1
        elif not is_size(size) and size == 1:
            axes_of_one.append(axis)
        else:
            return None
    return axes_of_one if at == len(short) and axes_of_one else None


def expanded(w: GraphWriter, x: str, before: Shape, after: Shape) -> str:
    """Repeat ``x`` along its dimensions of size 1, and along new leading ones."""
    before, after = w.at(tuple(before)), w.at(tuple(after))
    lead = len(after) - len(before)
    target = [1 if d >= lead and same(before[d - lead], n) else n for d, n in enumerate(after)]
    plain = all(not is_size(n) and n == 1 for n in target)
    return x if plain and not lead else w.add("Expand", x, w.vector(target))


def sliced(w: GraphWriter, x: str, shape: Shape, starts: Shape, stops: Shape, steps: Sequence[int]) -> str:
    """Slice the dimensions of which the slice does not take all."""
    shape, starts, stops = w.at(tuple(shape)), w.at(tuple(starts)), w.at(tuple(stops))
    axes = [d for d in range(len(shape)) if not (same(starts[d], 0) and same(stops[d], shape[d]) and steps[d] == 1)]
    if not axes:
        return x
    ends = [END if same(stops[d], shape[d]) else stops[d] for d in axes]
    bounds = (w.vector([starts[d] for d in axes]), w.vector(ends), w.ints(*axes))
    strided = any(steps[d] != 1 for d in axes)
    return w.add("Slice", x, *bounds, *([w.ints(*(steps[d] for d in axes))] if strided else []))


def padded(w: GraphWriter, node: Node, x: str, shape: Shape, low: Shape, high: Shape, value: Any) -> str:
    """Pad with constants, then crop by negative numbers."""
    low, high, shape = w.at(tuple(low)), w.at(tuple(high)), w.at(tuple(shape))
    around = [tuple(n if is_size(n) or n > 0 else 0 for n in side) for side in (low, high)]
    cut = [tuple(0 if is_size(n) or n > 0 else -n for n in side) for side in (low, high)]
    if not all(same(n, 0) for side in around for n in side):
        pads = w.vector((*around[0], *around[1]))
        x = w.add("Pad", x, pads, w.constant(value, node.operands[0].dtype), mode="constant")
    padded_shape = [n + a + b for n, a, b in zip(shape, *around, strict=True)]
    return sliced(
        w, x, padded_shape, cut[0], [n - c for n, c in zip(padded_shape, cut[1], strict=True)], [1] * len(padded_shape)
    )


def positions(w: GraphWriter, node: Node, number: int, name: str) -> str:
    """Cast indices to a type that ONNX takes."""
    return name if node.operands[number].dtype in (int32, int64) else w.cast(name, int64)


def _pad(w: GraphWriter, node: Node, x: str) -> str:
    shape, interior = list(node.operands[0].shape), node.attrs["interior"]
    value = node.attrs["value"]
    for axis, gap in enumerate(interior):
        if not gap or same(w.at(shape[axis]), 0):
            continue
        separated = [*shape[: axis + 1], 1, *shape[axis + 1 :]]
        x = reshaped(w, x, shape, separated)
        none = [0] * len(separated)
        x = padded(w, node, x, separated, none, [gap if d == axis + 1 else 0 for d in range(len(separated))], value)
        spread = [*shape[:axis], shape[axis] * (gap + 1), *shape[axis + 1 :]]
        x = reshaped(w, x, [*shape[: axis + 1], gap + 1, *shape[axis + 1 :]], spread)
        result_shape = [n - gap if d == axis else n for d, n in enumerate(spread)]
        x = sliced(w, x, spread, [0] * len(spread), result_shape, [1] * len(spread))
        shape = result_shape
    return padded(w, node, x, shape, node.attrs["low"], node.attrs["high"], value)


def _concat(w: GraphWriter, node: Node, first: str, *others: str) -> str:
    return w.add("Concat", first, *others, axis=node.attrs["axis"]) if others else first


def _flip(w: GraphWriter, node: Node, x: str) -> str:
    axes = node.attrs["axes"]
    if not axes:
        return x
    ends = (w.ints(*(-1 for _ in axes)), w.ints(*(-END for _ in axes)))
    return w.add("Slice", x, *ends, w.ints(*axes), w.ints(*(-1 for _ in axes)))


def _as_strided(w: GraphWriter, node: Node, x: str) -> str:
    before, after = w.at(node.operands[0].shape), w.at(node.attrs["shape"])
    strides, offset = w.at(node.attrs["strides"]), w.at(node.attrs["offset"])
    if any(map(is_size, (*before, *after, *strides, offset))):
        raise unsupported(
            node, "as_strided with sizes that differ from call to call", "use slices, reshape and permute"
        )
    flat_indices = strided_view(np.arange(prod(before)), after, strides, offset)
    flat = reshaped(w, x, before, (prod(before),))
    return w.add("Gather", flat, w.constant(np.array(flat_indices)), axis=0)


def _scattered(reduction: Any) -> Rule:
    """Return a rule for scattered updates: indices repeat for each element written at them."""

    def write(w: GraphWriter, node: Node, x: str, indices: str, updates: str) -> str:
        target, index_shape, _ = (v.shape for v in node.operands)
        axis = node.attrs["axis"]
        target_shape = (*target[:axis], prod(index_shape), *target[axis + 1 :])
        line = tuple(prod(index_shape) if d == axis else 1 for d in range(len(target)))
        flat = reshaped(w, positions(w, node, 1, indices), index_shape, line)
        values = reshaped(w, updates, node.operands[2].shape, target_shape)
        mode = reduction(node) if callable(reduction) else reduction
        return w.add("ScatterElements", x, expanded(w, flat, line, target_shape), values, axis=axis, reduction=mode)

    return write


def _iota(w: GraphWriter, node: Node) -> str:
    shape, axis, dtype = w.at(node.attrs["shape"]), node.attrs["axis"], node.attrs["dtype"]
    line = tuple(shape[axis] if d == axis else 1 for d in range(len(shape)))
    if not is_size(shape[axis]):
        counts = w.constant(np.arange(shape[axis]).astype(dtype.numpy).reshape(line))
        return expanded(w, counts, line, shape)
    end = w.add("Squeeze", w.vector([shape[axis]]), w.ints(0))
    counts = w.add("Range", w.constant(0, int64), end, w.constant(1, int64))
    counts = counts if dtype is int64 else w.cast(counts, dtype)
    return expanded(w, reshaped(w, counts, (shape[axis],), line), line, shape)


RULES: dict[str, Rule] = {
    "reshape": lambda w, node, x: reshaped(w, x, node.operands[0].shape, node.attrs["shape"]),
    "transpose": lambda w, node, x: w.transpose(x, node.attrs["permutation"]),
    "broadcast_to": lambda w, node, x: expanded(w, x, node.operands[0].shape, node.attrs["shape"]),
    "slice": lambda w, node, x: sliced(
        w, x, node.operands[0].shape, node.attrs["starts"], node.attrs["stops"], node.attrs["steps"]
    ),
    "pad": _pad,
    "concat": _concat,
    "flip": _flip,
    "gather": lambda w, node, x, i: w.add("Gather", x, positions(w, node, 1, i), axis=node.attrs["axis"]),
    "as_strided": _as_strided,
    "scatter": _scattered(None),
    "scatter_add": _scattered("add"),
    "scatter_extreme": _scattered(lambda node: "max" if node.attrs["largest"] else "min"),
    "scatter_product": _scattered("mul"),
    "iota": _iota,
    "size": lambda w, node: w.add("Squeeze", w.vector([w.at(node.attrs["value"])]), w.ints(0)),
    "later": lambda w, node, x, after: x,
    "tap": lambda w, node, x: x,
}
"""Rules by op."""
