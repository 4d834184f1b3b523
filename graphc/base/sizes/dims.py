"""Dimension arguments as users give them: negative numbers, several at once, shapes with one -1."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, AttributeValueError, IndexRangeError, ShapeError
from graphc.base.sizes.size import always, is_one, is_size

Dims = int | Sequence[int] | None
_MOST = 1 << 59
"""Elements of a shape, of up to 8 bytes each, that numbers of 64 bits still count."""
_WHOLE = frozenset((int,))


def numpy_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with arguments ``dim`` and ``keepdim`` that takes ``axis`` and ``keepdims`` for them."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "out" in kwargs:
            raise ArgumentError(f"{function.__name__} has no out=", remedy="x.copy_(...) of the result")
        if "axis" in kwargs:
            kwargs["dim"] = kwargs.pop("axis")
        if "keepdims" in kwargs:
            kwargs["keepdim"] = kwargs.pop("keepdims")
        return function(*args, **kwargs)

    return call


def dim_of(dim: int, ndim: int) -> int:
    """A dimension counted from the front; raises IndexRangeError. A tensor without dimensions accepts 0 and -1."""
    try:
        number = operator.index(dim)
    except TypeError:
        raise ArgumentError(f"a dimension must be an int, got {type(dim).__name__}") from None
    bound = max(ndim, 1)
    if not -bound <= number < bound:
        raise IndexRangeError(
            f"dimension {dim} is out of range for a tensor with {ndim} dimensions", remedy=f"{-bound} to {bound - 1}"
        )
    return number % bound


def extent_of(dim: int, shape: Sequence[int], name: str) -> tuple[int, int]:
    """A dimension counted from the front, and its size; raises ShapeError for a tensor without dimensions."""
    if not shape:
        raise ShapeError(f"{name} needs a tensor of at least one dimension", remedy="tensor.reshape(1)")
    at = dim_of(dim, len(shape))
    return at, shape[at]


def dims_of(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Dimensions of a reduction in ascending order: all for None or an empty sequence."""
    if dim is None:
        return tuple(range(ndim))
    try:
        given: tuple[int, ...] = (dim,) if isinstance(dim, int) else tuple(dim)
    except TypeError:
        raise ArgumentError(f"a dimension is an int, got {dim!r}", remedy="an int, or a sequence of ints") from None
    if not given or not ndim:
        for d in given:
            dim_of(d, ndim)
        return tuple(range(ndim))
    found = [dim_of(d, ndim) for d in given]
    if len(set(found)) != len(found):
        raise AttributeValueError(f"a dimension is listed twice in {given}")
    return tuple(sorted(found))


def sizes_of(sizes: Sequence[Any]) -> tuple[int, ...]:
    """``f(2, 3)`` and ``f((2, 3))`` both mean the shape (2, 3)."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = sizes[0]
    if _WHOLE.issuperset(map(type, sizes)) and 0 < abs(prod(sizes)) <= _MOST:
        return tuple(sizes)
    try:
        shape = tuple(s if is_size(s) else operator.index(s) for s in sizes)
    except TypeError:
        raise ArgumentError(f"a shape consists of ints, got {tuple(sizes)!r}") from None
    if prod(s for s in shape if not is_size(s) and s > 0) > _MOST:
        raise ShapeError(f"shape {list(shape)} has too many elements", remedy=f"at most 2**{_MOST.bit_length() - 1}")
    return shape


def new_shape(sizes: Sequence[Any]) -> tuple[int, ...]:
    """The shape of a new tensor; raises ShapeError for a negative size."""
    shape = sizes_of(sizes)
    if any([s < 0 for s in shape]):
        raise ShapeError(f"shape {list(shape)} has a negative size")
    return shape


def common_shape(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The shape that all shapes (a number is one dimension) broadcast to; raises ShapeError when there is none."""
    listed = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    try:
        if any(map(has_sizes, listed)):
            return _common_sizes(listed)
        return tuple(np.broadcast_shapes(*listed))
    except ValueError:
        shown = " and ".join(str(list(s)) for s in listed)
        raise ShapeError(f"shapes {shown} do not broadcast: from the right, sizes are equal or 1") from None


def _common_sizes(shapes: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    rank = max(map(len, shapes))
    result: list[Any] = [1] * rank
    for shape in shapes:
        for dim, size in enumerate(shape, start=rank - len(shape)):
            result[dim] = common_size(result[dim], size)
    return tuple(result)


def common_size(a: Any, b: Any) -> Any:
    """What two sizes broadcast to, at least one of which is known at run time or 1; raises ValueError where they do
    not. A size that is not 1 for all calls is taken for one that repeats nothing."""
    if always("==", a, b) or is_one(b):
        return a
    if is_one(a) or a == b:
        return b
    if b == 1:
        return a
    if a == 1:
        return b
    raise ValueError


def has_sizes(shape: Sequence[Any]) -> bool:
    """Whether a shape depends on sizes that are known at run time."""
    return any([is_size(s) for s in shape])


def same_sizes(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two shapes are the same in all calls; nothing is assumed."""
    return len(a) == len(b) and all([always("==", x, y) for x, y in zip(a, b, strict=True)])


def view_shape(sizes: Sequence[int], count: int) -> tuple[int, ...]:
    """A shape of ``count`` elements in which one size may be -1; raises ShapeError when it does not fit."""
    unknown = [i for i, s in enumerate(sizes) if s == -1]
    if len(unknown) > 1:
        raise ShapeError(f"only one size of {list(sizes)} can be -1")
    if any(s < -1 for s in sizes):
        raise ShapeError(f"shape {list(sizes)} has a negative size")
    known = prod(s for s in sizes if s != -1)
    if unknown:
        if known == 0 or count % known:
            raise ShapeError(f"shape {list(sizes)} does not fit {count} elements")
        return tuple(count // known if s == -1 else s for s in sizes)
    if known != count:
        raise ShapeError(f"shape {list(sizes)} has {known} elements, the tensor has {count}")
    return tuple(sizes)
