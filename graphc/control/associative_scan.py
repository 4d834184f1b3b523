"""All partial results of an associative function: by halves in eager mode, by blocks of steps in a trace."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from graphc.base.errors import ArgumentError, DTypeError, ShapeError
from graphc.base.sizes.size import is_size
from graphc.control.scan import scan
from graphc.ops.shape import concat
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.tracer import Tracer

Combine = Callable[[Sequence[Tensor], Sequence[Tensor]], list[Tensor]]


def associative_scan(f: Callable[[Any, Any], Any], xs: Any, dim: int = 0, reverse: bool = False) -> Any:
    """All partial results of an associative function: ``y[i] = f(y[i - 1], x[i])`` along ``dim``, ``y[0] = x[0]``.

    ``f`` takes and gives many elements at once: two nested structures like ``xs``, of the same shapes but for the size
    of ``dim``. In eager mode it is called about ``2 log2(n)`` times, for halves of what is left (Blelloch 1990). What
    is compiled holds it three times, whatever the length: about ``sqrt(n)`` blocks go along their elements side by
    side, then from block to block. ``reverse`` begins at the end. Raises ShapeError where sizes along ``dim`` differ or
    are 0, and where f changes shapes, DTypeError where it changes types.
    """
    leaves, form = flatten(xs)
    if not leaves or not leaves[0].shape:
        raise ShapeError("associative_scan needs tensors with a dimension to go along")
    axis = dim % len(leaves[0].shape)
    sizes = {t.shape[axis] if axis < len(t.shape) else -1 for t in leaves}
    if len(sizes) != 1 or sizes <= {0, -1}:
        raise ShapeError(
            f"associative_scan: sizes along dimension {dim} are {sorted(sizes)}", remedy="one size, 1 or more"
        )
    given = [t.flip(axis) for t in leaves] if reverse else list(leaves)

    def combine(first: Sequence[Tensor], second: Sequence[Tensor]) -> list[Tensor]:
        found = flatten(f(unflatten(form, first), unflatten(form, second)))[0]
        if len(found) != len(second):
            raise ArgumentError(f"associative_scan: the function gives {len(found)} tensors for {len(second)}")
        for i, (before, after) in enumerate(zip(second, found, strict=True)):
            _same(i, before, after)
        return found

    (size,) = sizes
    if not isinstance(front(), Tracer):
        found = _by_halves(combine, given, axis)
    elif is_size(size) or size < _FEWEST:
        found = [_in_place(t, axis) for t in _running(combine, [_in_front(t, axis) for t in given])]
    else:
        found = _by_blocks(combine, given, axis)
    return unflatten(form, [t.flip(axis) for t in found] if reverse else found)


_FEWEST = 9
"""Elements of which there are blocks; fewer are combined one after the other."""


def _same(i: int, before: Tensor, after: Tensor) -> None:
    if before.dtype is not after.dtype:
        what = f"associative_scan: tensor {i} was {before.dtype.name} and becomes {after.dtype.name}"
        raise DTypeError(what, remedy="cast it")
    if tuple(before.shape) != tuple(after.shape):
        what = f"associative_scan: tensor {i} had shape {list(before.shape)} and gets {list(after.shape)}"
        raise ShapeError(what, remedy="a function that combines elements at the same places")


# ---- halves


def _by_halves(combine: Combine, xs: Sequence[Tensor], axis: int) -> list[Tensor]:
    """Combines neighbours, solves for these pairs, and makes the places between them of the results."""
    count = xs[0].shape[axis]
    if count < 2:
        return list(xs)

    def part(tensors: Sequence[Tensor], start: int, stop: int, step: int) -> list[Tensor]:
        index = (*(slice(None) for _ in range(axis)), slice(start, stop, step))
        return [t[index] for t in tensors]

    pairs = combine(part(xs, 0, count - 1, 2), part(xs, 1, count, 2))
    odd = _by_halves(combine, pairs, axis)
    left = odd if count % 2 else part(odd, 0, odd[0].shape[axis] - 1, 1)
    first, others = part(xs, 0, 1, 1), part(xs, 2, count, 2)
    rest = combine(left, others) if others[0].shape[axis] else others
    even = [concat(a, b, axis=axis) for a, b in zip(first, rest, strict=True)]
    return [_interleaved(a, b, axis) for a, b in zip(even, odd, strict=True)]


def _interleaved(even: Tensor, odd: Tensor, axis: int) -> Tensor:
    """Elements of both in turn; the first may have one more."""
    pairs, more = odd.shape[axis], even.shape[axis] - odd.shape[axis]
    both = _joined(
        concat(even.narrow(axis, 0, pairs).unsqueeze(axis + 1), odd.unsqueeze(axis + 1), axis=axis + 1), axis
    )
    return concat(both, even.narrow(axis, pairs, 1), axis=axis) if more else both


# ---- blocks


def _by_blocks(combine: Combine, xs: Sequence[Tensor], axis: int) -> list[Tensor]:
    """Cuts the elements into blocks, goes along all of them at once, and combines each but the first with what stands
    before it. Elements behind the last block follow one after the other.

    In the comments: t counts elements of a block, b blocks; other dimensions are left out.
    """
    count = xs[0].shape[axis]
    length = math.isqrt(count)
    blocks, left = divmod(count, length)

    def cut(x: Tensor) -> Tensor:
        return _apart(x.narrow(axis, 0, blocks * length), axis, blocks).movedim(axis + 1, 0)

    inside = _running(combine, [cut(x) for x in xs])  # t, b
    ends = [t.select(0, length - 1) for t in inside]
    behind = [_followed(e, x.narrow(axis, blocks * length, left), axis) for e, x in zip(ends, xs, strict=True)]
    sums = [_in_place(t, axis) for t in _running(combine, [_in_front(t, axis) for t in behind])]  # b, those left
    before = [_beside(t.narrow(axis, 0, blocks - 1), length) for t in sums]  # t, b - 1
    others = [t.narrow(axis + 1, 1, blocks - 1) for t in inside]  # t, b - 1
    whole = combine(*([_joined(t.movedim(0, axis), axis) for t in part] for part in (before, others)))
    found = []
    for own, rest, last in zip(inside, whole, sums, strict=True):
        first = own.narrow(axis + 1, 0, 1).movedim(0, axis + 1)  # 1, t
        rows = concat(first, _apart(rest, axis, length).movedim(axis, axis + 1), axis=axis)  # b, t
        found.append(_followed(_joined(rows, axis), last.narrow(axis, blocks, left), axis))
    return found


def _followed(x: Tensor, rest: Tensor, axis: int) -> Tensor:
    return concat(x, rest, axis=axis) if rest.shape[axis] else x


def _running(combine: Combine, xs: Sequence[Tensor]) -> list[Tensor]:
    """The partial results along the first dimension, one step after the other."""

    def step(state: list[Tensor], x: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        found = combine(state, x)
        return found, found

    count = xs[0].shape[0]
    if not is_size(count) and count == 1:
        return list(xs)
    first = [x.select(0, 0) for x in xs]
    _, rest = scan(step, first, [x.narrow(0, 1, count - 1) for x in xs])
    return [concat(a.unsqueeze(0), b, axis=0) for a, b in zip(first, rest, strict=True)]


def _in_front(x: Tensor, axis: int) -> Tensor:
    """Single elements along a new first dimension."""
    return x.unsqueeze(axis).movedim(axis + 1, 0)


def _in_place(x: Tensor, axis: int) -> Tensor:
    """The other way round."""
    return x.movedim(0, axis + 1).squeeze(axis)


def _beside(x: Tensor, count: int) -> Tensor:
    """The same again and again, along a new first dimension."""
    return x.unsqueeze(0).expand(count, *x.shape)


def _apart(x: Tensor, axis: int, outer: int) -> Tensor:
    """A dimension as two, of which the first has a given size."""
    shape = list(x.shape)
    return x.reshape(*shape[:axis], outer, shape[axis] // outer, *shape[axis + 1 :])


def _joined(x: Tensor, axis: int) -> Tensor:
    """A dimension and the next one as one."""
    shape = list(x.shape)
    return x.reshape(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
