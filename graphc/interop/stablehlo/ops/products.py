"""Rules of matrix products and convolutions with general dimension numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from graphc.interop.stablehlo.call import OperationCall, integers
from graphc.interop.stablehlo.registry import rule
from graphc.ops.contraction.convolution import conv
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.movement import shape as moves
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.tensor import Tensor


@rule("dot_general")
def dot_general(call: OperationCall, x: Tensor, y: Tensor) -> Tensor:
    """Return sums of products over contracted dimensions, for each index of the batch dimensions."""
    numbers = call.numbers("dot_dimension_numbers")

    def dims(key: str) -> tuple[int, ...]:
        return integers(numbers.get(key), (), f"line {call.operation.line}: {key}")

    result = call.type
    x, y = (ew.cast(t, dtype=result.dtype) if t.dtype is not result.dtype else t for t in (x, y))
    left = _matrix(x, dims("lhs_batching_dimensions"), dims("lhs_contracting_dimensions"), False)
    right = _matrix(y, dims("rhs_batching_dimensions"), dims("rhs_contracting_dimensions"), True)
    return moves.reshape(matmul(left, right), shape=result.shape)


def _matrix(x: Tensor, batch: Sequence[int], contracted: Sequence[int], first: bool) -> Tensor:
    """Return ``x`` as [batch, free, contracted], or as [batch, contracted, free]."""
    free = [d for d in range(x.ndim) if d not in (*batch, *contracted)]
    groups = (batch, contracted, free) if first else (batch, free, contracted)
    order = tuple([d for group in groups for d in group])
    if order != tuple(range(x.ndim)):
        x = moves.transpose(x, permutation=order)
    extents = [prod(x.shape[len(batch) :][: len(groups[1])]), prod(x.shape[len(batch) + len(groups[1]) :])]
    lead = (prod(x.shape[: len(batch)]),) if batch else ()
    return moves.reshape(x, shape=(*lead, *extents))


@rule("convolution")
def convolution(call: OperationCall, x: Tensor, weight: Tensor) -> Tensor:
    """Convolve with windows that may be reversed, dilated, and slide over spread elements, in groups."""
    orders = _layouts(call, x.ndim)
    x, weight = (moves.transpose(t, permutation=order) for t, order in zip((x, weight), orders, strict=False))
    rank = x.ndim - 2
    ones = (1,) * rank
    padding = _padding(call, rank)
    spread, groups = call.ints("lhs_dilation", ones), call.int("feature_group_count", 1)
    backwards = tuple([2 + i for i, flag in enumerate(call.attributes.get("window_reversal") or ()) if flag])
    if backwards:
        weight = moves.flip(weight, axes=backwards)
    if any(s != 1 for s in spread) or any(p < 0 for pair in padding for p in pair):
        low, high = ([0, 0, *side] for side in zip(*padding, strict=True))
        x = moves.pad(x, low=low, high=high, interior=[0, 0, *[s - 1 for s in spread]], value=0)
        padding = [(0, 0)] * rank
    batches = call.int("batch_group_count", 1)
    if batches > 1:
        x, groups = _batches_as_groups(x, batches), batches
    windows: dict[str, Any] = {"stride": call.ints("window_strides", ones), "padding": padding, "groups": groups}
    result = conv(x, weight, dilation=call.ints("rhs_dilation", ones), **windows)
    back = [0] * result.ndim
    for i, d in enumerate(orders[2]):
        back[d] = i
    return moves.transpose(ew.cast(result, dtype=call.type.dtype), permutation=back)


def _batches_as_groups(x: Tensor, count: int) -> Tensor:
    """Rearrange [count * batch, channels, ...] as [batch, count * channels, ...]."""
    batch, channels, *rest = x.shape
    split = moves.reshape(x, shape=(count, batch // count, channels, *rest))
    order = (1, 0, *range(2, split.ndim))
    return moves.reshape(moves.transpose(split, permutation=order), shape=(batch // count, count * channels, *rest))


def _padding(call: OperationCall, rank: int) -> list[tuple[int, int]]:
    padding = call.attributes.get("padding")
    if isinstance(padding, tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in padding):
        return [(int(a), int(b)) for a, b in padding] or [(0, 0)] * rank
    flat = call.ints("padding", (0,) * (2 * rank))
    return list(zip(flat[::2], flat[1::2], strict=True))


def _layouts(call: OperationCall, rank: int) -> list[tuple[int, ...]]:
    """Return the order of dimensions that gives [batch, features, ...], [out, in, ...] and [batch, features, ...]."""
    layouts = call.attributes.get("dimension_numbers")
    if not isinstance(layouts, tuple) or len(layouts) != 3:
        raise call.unsupported("these dimension numbers")
    spatial = tuple(range(rank - 2))
    letters = (("b", "f"), ("o", "i"), ("b", "f"))
    return [tuple([layout.index(d) for d in (*pair, *spatial)]) for layout, pair in zip(layouts, letters, strict=True)]
