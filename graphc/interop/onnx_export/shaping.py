"""Rules for ops that move elements: views, joins, look-ups and writes at positions, and what counts."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from graphc.base.dtypes import int32, int64
from graphc.base.sizes.size import bounds, is_size
from graphc.interop.onnx_export.sizes import same
from graphc.interop.onnx_export.writer import Rule, Writer, unsupported
from graphc.ir.graph.graph import Node
from graphc.ops.strided import strided_view

Shape = Sequence[Any]
END = np.iinfo(np.int64).max
"""Where a slice ends that goes to the end, whatever the size."""


def reshaped(w: Writer, x: str, before: Shape, after: Shape) -> str:
    """``x`` of one shape under another one. Sizes of 1 come and go, and what else a call's sizes are follows from those
    of ``x`` where it can."""
    before, after = w.at(tuple(before)), w.at(tuple(after))
    if len(before) == len(after) and all(map(same, before, after)):
        return x
    gone = _ones(after, before)
    if gone is not None:
        return w.add("Squeeze", x, w.ints(*gone))
    come = _ones(before, after)
    if come is not None:
        return w.add("Unsqueeze", x, w.ints(*come))
    entries = []
    for axis, size in enumerate(after):
        kept = is_size(size) and axis < len(before) and same(before[axis], size)
        entries.append(size if not is_size(size) else 0 if kept else -1)
    empty = any(not is_size(n) and n == 0 for n in after)
    unsure = entries.count(-1) > 1 or (empty and any(map(is_size, after)))
    if unsure or any(bounds(n)[0] < 1 for n, e in zip(after, entries, strict=True) if e == -1):
        return w.add("Reshape", x, w.vector(after), allowzero=1)
    return w.add("Reshape", x, w.ints(*entries), allowzero=1 if empty else None)


def _ones(short: Shape, long: Shape) -> list[int] | None:
    """The axes of the longer shape without which it is the shorter one, all of size 1; None where there are none."""
    found, at = [], 0
    for axis, size in enumerate(long):
        if at < len(short) and same(short[at], size) and len(long) - axis > 0:
            at += 1
        elif not is_size(size) and size == 1:
            found.append(axis)
        else:
            return None
    return found if at == len(short) and found else None


def expanded(w: Writer, x: str, before: Shape, after: Shape) -> str:
    """``x`` repeated along its dimensions of size 1, and new leading ones."""
    before, after = w.at(tuple(before)), w.at(tuple(after))
    lead = len(after) - len(before)
    wanted = [1 if d >= lead and same(before[d - lead], n) else n for d, n in enumerate(after)]
    plain = all(not is_size(n) and n == 1 for n in wanted)
    return x if plain and not lead else w.add("Expand", x, w.vector(wanted))


def sliced(w: Writer, x: str, shape: Shape, starts: Shape, stops: Shape, steps: Sequence[int]) -> str:
    """A slice along the dimensions that it does not take whole."""
    shape, starts, stops = w.at(tuple(shape)), w.at(tuple(starts)), w.at(tuple(stops))
    axes = [d for d in range(len(shape)) if not (same(starts[d], 0) and same(stops[d], shape[d]) and steps[d] == 1)]
    if not axes:
        return x
    ends = [END if same(stops[d], shape[d]) else stops[d] for d in axes]
    given = (w.vector([starts[d] for d in axes]), w.vector(ends), w.ints(*axes))
    strided = any(steps[d] != 1 for d in axes)
    return w.add("Slice", x, *given, *([w.ints(*(steps[d] for d in axes))] if strided else []))


def padded(w: Writer, node: Node, x: str, shape: Shape, low: Shape, high: Shape, value: Any) -> str:
    """Constants around the elements; then negative numbers cut off."""
    low, high, shape = w.at(tuple(low)), w.at(tuple(high)), w.at(tuple(shape))
    around = [tuple(n if is_size(n) or n > 0 else 0 for n in side) for side in (low, high)]
    cut = [tuple(0 if is_size(n) or n > 0 else -n for n in side) for side in (low, high)]
    if not all(same(n, 0) for side in around for n in side):
        pads = w.vector((*around[0], *around[1]))
        x = w.add("Pad", x, pads, w.constant(value, node.operands[0].dtype), mode="constant")
    whole = [n + a + b for n, a, b in zip(shape, *around, strict=True)]
    return sliced(w, x, whole, cut[0], [n - c for n, c in zip(whole, cut[1], strict=True)], [1] * len(whole))


def positions(w: Writer, node: Node, number: int, name: str) -> str:
    """Indices in a type that ONNX takes."""
    return name if node.operands[number].dtype in (int32, int64) else w.cast(name, int64)


def _pad(w: Writer, node: Node, x: str) -> str:
    shape, interior = list(node.operands[0].shape), node.attrs["interior"]
    value = node.attrs["value"]
    for axis, gap in enumerate(interior):
        if not gap or same(w.at(shape[axis]), 0):
            continue
        apart = [*shape[: axis + 1], 1, *shape[axis + 1 :]]
        x = reshaped(w, x, shape, apart)
        none = [0] * len(apart)
        x = padded(w, node, x, apart, none, [gap if d == axis + 1 else 0 for d in range(len(apart))], value)
        spread = [*shape[:axis], shape[axis] * (gap + 1), *shape[axis + 1 :]]
        x = reshaped(w, x, [*shape[: axis + 1], gap + 1, *shape[axis + 1 :]], spread)
        whole = [n - gap if d == axis else n for d, n in enumerate(spread)]
        x = sliced(w, x, spread, [0] * len(spread), whole, [1] * len(spread))
        shape = whole
    return padded(w, node, x, shape, node.attrs["low"], node.attrs["high"], value)


def _concat(w: Writer, node: Node, first: str, *others: str) -> str:
    return w.add("Concat", first, *others, axis=node.attrs["axis"]) if others else first


def _flip(w: Writer, node: Node, x: str) -> str:
    axes = node.attrs["axes"]
    if not axes:
        return x
    ends = (w.ints(*(-1 for _ in axes)), w.ints(*(-END for _ in axes)))
    return w.add("Slice", x, *ends, w.ints(*axes), w.ints(*(-1 for _ in axes)))


def _as_strided(w: Writer, node: Node, x: str) -> str:
    before, after = w.at(node.operands[0].shape), w.at(node.attrs["shape"])
    strides, offset = w.at(node.attrs["strides"]), w.at(node.attrs["offset"])
    if any(map(is_size, (*before, *after, *strides, offset))):
        raise unsupported(node, "as_strided with sizes that differ from call to call", "slices, reshape and permute")
    places = strided_view(np.arange(prod(before)), after, strides, offset)
    flat = reshaped(w, x, before, (prod(before),))
    return w.add("Gather", flat, w.constant(np.array(places)), axis=0)


def _scattered(reduction: Any) -> Rule:
    """Updates written one by one: the indices are repeated for each element that is written at them."""

    def write(w: Writer, node: Node, x: str, indices: str, updates: str) -> str:
        target, places, _ = (v.shape for v in node.operands)
        axis = node.attrs["axis"]
        wanted = (*target[:axis], prod(places), *target[axis + 1 :])
        line = tuple(prod(places) if d == axis else 1 for d in range(len(target)))
        flat = reshaped(w, positions(w, node, 1, indices), places, line)
        given = reshaped(w, updates, node.operands[2].shape, wanted)
        how = reduction(node) if callable(reduction) else reduction
        return w.add("ScatterElements", x, expanded(w, flat, line, wanted), given, axis=axis, reduction=how)

    return write


def _iota(w: Writer, node: Node) -> str:
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
"""By op."""
