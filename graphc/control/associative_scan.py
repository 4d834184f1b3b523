"""Prefix scans of an associative function: by recursive halving in eager mode, by blocks in a trace."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from graphc.base.errors import ShapeError
from graphc.base.sizes.size import is_size
from graphc.control.scan import scan
from graphc.ops.movement.shape import concat
from graphc.tensors.matching import Sides, matched_types, types_of
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.tracer import Tracer

Combine = Callable[[Sequence[Tensor], Sequence[Tensor]], list[Tensor]]


def associative_scan(f: Callable[[Any, Any], Any], xs: Any, dim: int = 0, reverse: bool = False) -> Any:
    """Compute all prefix results of an associative function: ``y[i] = f(y[i - 1], x[i])`` along ``dim``,
    ``y[0] = x[0]``.

    ``f`` combines many elements at once: it gets two nested structures like ``xs``, of equal shapes that may be shorter
    along ``dim``. Eager mode calls it about ``2 log2(n)`` times, on halves (Blelloch 1990). Compiled code contains it
    three times for any length: about ``sqrt(n)`` blocks are scanned in parallel, then the block results. ``reverse``
    starts at the end. Raises ShapeError if sizes along ``dim`` differ or are 0, or if f changes shapes; DTypeError if
    it changes types.

    Example:
        >>> import graphc as gc
        >>> gc.associative_scan(lambda a, b: a * b, gc.tensor([1, 2, 3, 4]))
        tensor([ 1,  2,  6, 24])
    """
    leaves, form = flatten(xs)
    if not leaves or not leaves[0].shape:
        raise ShapeError("associative_scan: xs must hold tensors with at least one dimension")
    axis = dim % len(leaves[0].shape)
    sizes = {t.shape[axis] if axis < len(t.shape) else -1 for t in leaves}
    if len(sizes) != 1 or sizes <= {0, -1}:
        raise ShapeError(
            f"associative_scan: sizes along dimension {dim} are {sorted(sizes)}",
            remedy="pass tensors of one size, 1 or more",
        )
    elements = [t.flip(axis) for t in leaves] if reverse else list(leaves)

    def combine(first: Sequence[Tensor], second: Sequence[Tensor]) -> list[Tensor]:
        result = f(unflatten(form, first), unflatten(form, second))
        return matched_types(form, types_of(second), result, _ELEMENT)

    (size,) = sizes
    if not isinstance(front(), Tracer):
        scanned = _by_halves(combine, elements, axis)
    elif is_size(size) or size < _FEWEST:
        scanned = [_in_place(t, axis) for t in _running(combine, [_in_front(t, axis) for t in elements])]
    else:
        scanned = _by_blocks(combine, elements, axis)
    return unflatten(form, [t.flip(axis) for t in scanned] if reverse else scanned)


_ELEMENT = Sides("associative_scan", "element", "as an argument", "as the result")
_FEWEST = 9
"""Least number of elements that are cut into blocks; fewer are combined one after the other."""


# ---- halves


def _by_halves(combine: Combine, xs: Sequence[Tensor], axis: int) -> list[Tensor]:
    """Combine neighbours, recurse on the pairs, and compute the elements between them from the results."""
    count = xs[0].shape[axis]
    if count < 2:
        return list(xs)

    def sliced(tensors: Sequence[Tensor], start: int, stop: int, step: int) -> list[Tensor]:
        index = (*(slice(None) for _ in range(axis)), slice(start, stop, step))
        return [t[index] for t in tensors]

    pairs = combine(sliced(xs, 0, count - 1, 2), sliced(xs, 1, count, 2))
    odd = _by_halves(combine, pairs, axis)
    before = odd if count % 2 else sliced(odd, 0, odd[0].shape[axis] - 1, 1)
    first, others = sliced(xs, 0, 1, 1), sliced(xs, 2, count, 2)
    rest = combine(before, others) if others[0].shape[axis] else others
    even = [concat(a, b, axis=axis) for a, b in zip(first, rest, strict=True)]
    return [_interleaved(a, b, axis) for a, b in zip(even, odd, strict=True)]


def _interleaved(even: Tensor, odd: Tensor, axis: int) -> Tensor:
    """Interleave the elements of two tensors; ``even`` may have one more."""
    pairs, more = odd.shape[axis], even.shape[axis] - odd.shape[axis]
    both = _joined(
        concat(even.narrow(axis, 0, pairs).unsqueeze(axis + 1), odd.unsqueeze(axis + 1), axis=axis + 1), axis
    )
    return concat(both, even.narrow(axis, pairs, 1), axis=axis) if more else both


# ---- blocks


def _by_blocks(combine: Combine, xs: Sequence[Tensor], axis: int) -> list[Tensor]:
    """Scan blocks of elements in parallel, and combine each block but the first with the total of those before it.
    Elements after the last block follow one by one.

    In the comments, t indexes elements of a block and b blocks; other dimensions are omitted.
    """
    count = xs[0].shape[axis]
    length = math.isqrt(count)
    blocks, remaining = divmod(count, length)

    def cut(x: Tensor) -> Tensor:
        return _apart(x.narrow(axis, 0, blocks * length), axis, blocks).movedim(axis + 1, 0)

    inside = _running(combine, [cut(x) for x in xs])  # t, b
    ends = [t.select(0, length - 1) for t in inside]
    tail_input = [_followed(e, x.narrow(axis, blocks * length, remaining), axis) for e, x in zip(ends, xs, strict=True)]
    sums = [
        _in_place(t, axis) for t in _running(combine, [_in_front(t, axis) for t in tail_input])
    ]  # b, then the remaining elements
    before = [_beside(t.narrow(axis, 0, blocks - 1), length) for t in sums]  # t, b - 1
    others = [t.narrow(axis + 1, 1, blocks - 1) for t in inside]  # t, b - 1
    shifted = combine(*([_joined(t.movedim(0, axis), axis) for t in operand] for operand in (before, others)))
    scanned = []
    for own, rest, last in zip(inside, shifted, sums, strict=True):
        first = own.narrow(axis + 1, 0, 1).movedim(0, axis + 1)  # 1, t
        rows = concat(first, _apart(rest, axis, length).movedim(axis, axis + 1), axis=axis)  # b, t
        scanned.append(_followed(_joined(rows, axis), last.narrow(axis, blocks, remaining), axis))
    return scanned


def _followed(x: Tensor, rest: Tensor, axis: int) -> Tensor:
    return concat(x, rest, axis=axis) if rest.shape[axis] else x


def _running(combine: Combine, xs: Sequence[Tensor]) -> list[Tensor]:
    """Scan along the first dimension, one step after the other."""

    def step(state: list[Tensor], x: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        combined = combine(state, x)
        return combined, combined

    count = xs[0].shape[0]
    if not is_size(count) and count == 1:
        return list(xs)
    first = [x.select(0, 0) for x in xs]
    _, rest = scan(step, first, [x.narrow(0, 1, count - 1) for x in xs])
    return [concat(a.unsqueeze(0), b, axis=0) for a, b in zip(first, rest, strict=True)]


def _in_front(x: Tensor, axis: int) -> Tensor:
    """Move ``axis`` to the front and keep it as a dimension of size 1."""
    return x.unsqueeze(axis).movedim(axis + 1, 0)


def _in_place(x: Tensor, axis: int) -> Tensor:
    """Move the first dimension back to ``axis``, the inverse of ``_in_front``."""
    return x.movedim(0, axis + 1).squeeze(axis)


def _beside(x: Tensor, count: int) -> Tensor:
    """Repeat a tensor along a new first dimension."""
    return x.unsqueeze(0).expand(count, *x.shape)


def _apart(x: Tensor, axis: int, outer: int) -> Tensor:
    """Split a dimension into two; the first has size ``outer``."""
    shape = list(x.shape)
    return x.reshape(*shape[:axis], outer, shape[axis] // outer, *shape[axis + 1 :])


def _joined(x: Tensor, axis: int) -> Tensor:
    """Merge a dimension with the next one."""
    shape = list(x.shape)
    return x.reshape(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
