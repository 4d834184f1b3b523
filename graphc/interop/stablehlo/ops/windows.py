"""Rules of reductions over sliding windows, and of the scatter to the selected elements of windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from graphc.base.records import dataclass
from graphc.interop.stablehlo.call import OperationCall
from graphc.interop.stablehlo.ops.indexing import scatter_at
from graphc.interop.stablehlo.ops.reductions import combine, is_identity
from graphc.interop.stablehlo.ops.regions import kinds_of
from graphc.interop.stablehlo.ops.shapes import padded
from graphc.interop.stablehlo.registry import rule
from graphc.ops.movement import shape as moves
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.selection.order import cumsum
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

Combine = Callable[[Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]
"""Function of the results of neighbouring windows, the earlier one first."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of windows in each dimension."""

    window: tuple[int, ...]
    stride: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    spread: tuple[int, ...]
    """Distance of neighbouring elements of the tensor; elements between them are padding."""
    dilation: tuple[int, ...]


def _sizes(call: OperationCall, rank: int) -> Sizes:
    ones = (1,) * rank
    padding = call.ints("padding", (0,) * (2 * rank)) if not _is_pairs(call) else sum(call.attributes["padding"], ())
    stride = call.ints("window_strides", ones)
    return Sizes(
        call.ints("window_dimensions"),
        stride,
        padding[::2],
        padding[1::2],
        call.ints("base_dilations", ones),
        call.ints("window_dilations", ones),
    )


def _is_pairs(call: OperationCall) -> bool:
    padding = call.attributes.get("padding")
    return isinstance(padding, tuple) and all(isinstance(p, tuple) for p in padding)


def _slid(tensors: Sequence[Tensor], sizes: Sizes, function: Combine) -> list[Tensor]:
    """Combine the elements of each window of padded tensors.

    Along one dimension after the other, the last one first. Windows of 2, 4, 8 ... elements are combined from pairs of
    shorter ones, so that a window of ``n`` takes the time of ``log2(n)`` elements, in their order.
    """
    results = list(tensors)
    for axis in reversed(range(len(sizes.window))):
        step, window = sizes.dilation[axis], sizes.window[axis]
        powers, length, total, covered = results, 1, None, 0
        while window:
            if window & 1:
                total = powers if total is None else _neighbours(total, powers, axis, covered * step, function)
                covered += length
            window >>= 1
            if window:
                powers = _neighbours(powers, powers, axis, length * step, function)
                length *= 2
        assert total is not None
        results = [_part(x, axis, 0, x.shape[axis], sizes.stride[axis]) for x in total]
    return results


def _neighbours(a: Sequence[Tensor], b: Sequence[Tensor], axis: int, distance: int, function: Combine) -> list[Tensor]:
    """Combine each window of ``a`` with the one of ``b`` that starts ``distance`` later."""
    count = b[0].shape[axis] - distance
    first = [_part(x, axis, 0, count) for x in a]
    return list(function(first, [_part(x, axis, distance, distance + count) for x in b]))


def _part(x: Tensor, axis: int, start: int, stop: int, step: int = 1) -> Tensor:
    if start == 0 and stop == x.shape[axis] and step == 1:
        return x
    starts = tuple([start if i == axis else 0 for i in range(x.ndim)])
    stops = tuple([stop if i == axis else s for i, s in enumerate(x.shape)])
    return moves.slice(x, starts=starts, stops=stops, steps=tuple([step if i == axis else 1 for i in range(x.ndim)]))


@rule("reduce_window")
def reduce_window(call: OperationCall, *operands: Tensor) -> tuple[Tensor, ...]:
    """Combine the elements of each window by the region, after its initial value."""
    count = len(operands) // 2
    tensors, initials = operands[:count], operands[count:]
    sizes, block = _sizes(call, tensors[0].ndim), call.block()
    kinds = kinds_of(block)
    if 0 in call.type.shape:
        return tuple([moves.filled(0, t.dtype, t.shape) for t in call.operation.types])
    known = kinds is not None and all(is_identity(call, k, v) for k, v in zip(kinds, initials, strict=True))
    if known and kinds == ["add"] and (axis := _running(tensors[0], sizes)) is not None:
        return (cumsum(tensors[0], axis=axis, reverse=sizes.high[axis] > 0),)
    interior = tuple([s - 1 for s in sizes.spread])
    filled = [padded(call, x, v, sizes.low, sizes.high, interior) for x, v in zip(tensors, initials, strict=True)]

    def function(a: Sequence[Tensor], b: Sequence[Tensor]) -> Sequence[Tensor]:
        if kinds is not None and not {"first", "second"} & {*kinds}:
            return [combine(k, x, y) for k, x, y in zip(kinds, a, b, strict=True)]
        return call.over_elements(block, *a, *b)

    results = _slid(filled, sizes, function)
    if known:
        return tuple(results)
    shape = tuple(results[0].shape)
    return tuple(function([moves.broadcast_to(v, shape=shape) for v in initials], results))


def _running(x: Tensor, sizes: Sizes) -> int | None:
    """Return the dimension along which windows hold all elements up to each one, or from each one on."""
    axes = [i for i, w in enumerate(sizes.window) if w > 1]
    plain = not any(s != 1 for s in (*sizes.stride, *sizes.spread, *sizes.dilation))
    if len(axes) != 1 or not plain or x.dtype.kind not in "fiuc":
        return None
    axis = axes[0]
    others = any(p for side in (sizes.low, sizes.high) for i, p in enumerate(side) if i != axis)
    pads = {sizes.low[axis], sizes.high[axis]}
    return axis if not others and sizes.window[axis] == x.shape[axis] and pads == {0, x.shape[axis] - 1} else None


@rule("select_and_scatter")
def select_and_scatter(call: OperationCall, x: Tensor, source: Tensor, initial: Tensor) -> Tensor:
    """Add each element of ``source`` at the element of its window that the first region selects: pools' gradient."""
    sizes = _sizes(call, x.ndim)
    kinds = kinds_of(call.block(1))
    if kinds is None:
        raise call.unsupported("a scatter region other than add, multiply, minimum or maximum")
    flat = moves.reshape(front().constant(np.arange(prod(x.shape), dtype=np.int64)), shape=tuple(x.shape))
    sides = {"low": sizes.low, "high": sizes.high, "interior": (0,) * x.ndim}
    padded_by = any(sizes.low + sizes.high)
    tensors = [moves.pad(t, value=v, **sides) if padded_by else t for t, v in ((x, 0), (flat, -1))]

    def function(a: Sequence[Tensor], b: Sequence[Tensor]) -> Sequence[Tensor]:
        (chosen,) = call.over_elements(call.block(0), a[0], b[0])
        first = ew.logical_or(ew.lt(b[1], 0), ew.logical_and(ew.ge(a[1], 0), chosen))
        return [ew.where(first, a[0], b[0]), ew.where(first, a[1], b[1])]

    _, places = _slid(tensors, sizes, function)
    count = prod(x.shape)
    places = moves.reshape(ew.where(ew.lt(places, 0), count, places), shape=(prod(source.shape),))
    start = moves.broadcast_to(initial, shape=(count,))
    result = scatter_at(start, places, moves.reshape(source, shape=(prod(source.shape),)), kinds[0])
    return moves.reshape(result, shape=tuple(x.shape))
