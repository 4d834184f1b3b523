"""Validation of dimension arguments: negative indices, several dimensions at once, shapes with one -1."""

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
"""Largest number of elements: at 8 bytes each, their size in bytes still fits 64 bits."""
_INT_ONLY = frozenset((int,))


def numpy_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of ``dim`` and ``keepdim`` to accept numpy's ``axis`` and ``keepdims`` too."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "out" in kwargs:
            raise ArgumentError(f"{function.__name__} has no out=", remedy="copy the result: x.copy_(...)")
        if "axis" in kwargs:
            kwargs["dim"] = kwargs.pop("axis")
        if "keepdims" in kwargs:
            kwargs["keepdim"] = kwargs.pop("keepdims")
        return function(*args, **kwargs)

    return call


def dim_of(dim: int, ndim: int) -> int:
    """Return a dimension counted from the front; raises IndexRangeError. A 0-dimensional tensor accepts 0 and -1."""
    try:
        index = operator.index(dim)
    except TypeError:
        raise ArgumentError(f"a dimension must be an int, got {type(dim).__name__}") from None
    bound = max(ndim, 1)
    if not -bound <= index < bound:
        raise IndexRangeError(
            f"dimension {dim} is out of range for a tensor with {ndim} dimensions",
            remedy=f"use {-bound} to {bound - 1}",
        )
    return index % bound


def extent_of(dim: int, shape: Sequence[int], name: str) -> tuple[int, int]:
    """Return a dimension counted from the front, and its size; raises ShapeError for a 0-dimensional tensor."""
    if not shape:
        raise ShapeError(f"{name} needs a tensor of at least one dimension", remedy="pass tensor.reshape(1)")
    index = dim_of(dim, len(shape))
    return index, shape[index]


def dims_of(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Return the dimensions of a reduction in ascending order: all of them for None or an empty sequence."""
    if dim is None:
        return tuple(range(ndim))
    try:
        dims: tuple[int, ...] = (dim,) if isinstance(dim, int) else tuple(dim)
    except TypeError:
        raise ArgumentError(f"a dimension is an int, got {dim!r}", remedy="pass an int or a sequence of ints") from None
    if not dims or not ndim:
        for d in dims:
            dim_of(d, ndim)
        return tuple(range(ndim))
    indices = [dim_of(d, ndim) for d in dims]
    if len(set(indices)) != len(indices):
        raise AttributeValueError(f"a dimension is listed twice in {dims}")
    return tuple(sorted(indices))


def sizes_of(sizes: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape of a call with sizes: both ``f(2, 3)`` and ``f((2, 3))`` mean (2, 3)."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = sizes[0]
    if _INT_ONLY.issuperset(map(type, sizes)) and 0 < abs(prod(sizes)) <= _MOST:
        return tuple(sizes)
    try:
        shape = tuple(s if is_size(s) else operator.index(s) for s in sizes)
    except TypeError:
        raise ArgumentError(f"a shape consists of ints, got {tuple(sizes)!r}") from None
    if prod(s for s in shape if not is_size(s) and s > 0) > _MOST:
        raise ShapeError(
            f"shape {list(shape)} has too many elements", remedy=f"use at most 2**{_MOST.bit_length() - 1} elements"
        )
    return shape


def new_shape(sizes: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape of a new tensor; raises ShapeError for a negative size."""
    shape = sizes_of(sizes)
    if any([s < 0 for s in shape]):
        raise ShapeError(f"shape {list(shape)} has a negative size")
    return shape


def common_shape(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which all shapes broadcast (a number is one dimension); raises ShapeError."""
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
    """Return the size to which two sizes broadcast, at least one of which is symbolic or 1; raises ValueError.

    A symbolic size other than the constant 1 is assumed not to be broadcast.
    """
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
    """Return whether a shape has symbolic sizes."""
    return any([is_size(s) for s in shape])


def same_sizes(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Return whether two shapes are equal in all calls; assumes nothing."""
    return len(a) == len(b) and all([always("==", x, y) for x, y in zip(a, b, strict=True)])


def is_wildcard(size: Any) -> bool:
    """Return whether a size of a new shape is -1. A symbolic one never is, whatever its value in a call."""
    return not is_size(size) and size == -1


def view_shape(sizes: Sequence[int], count: int) -> tuple[int, ...]:
    """Return a shape of ``count`` elements in which one size may be -1; raises ShapeError if it does not fit."""
    wildcards = [i for i, s in enumerate(sizes) if is_wildcard(s)]
    if len(wildcards) > 1:
        raise ShapeError(f"only one size of {list(sizes)} can be -1")
    if any(s < -1 for s in sizes):
        raise ShapeError(f"shape {list(sizes)} has a negative size")
    product = prod(s for s in sizes if not is_wildcard(s))
    if wildcards:
        if product == 0 or count % product:
            raise ShapeError(f"shape {list(sizes)} does not fit {count} elements")
        return tuple(count // product if is_wildcard(s) else s for s in sizes)
    if product != count:
        raise ShapeError(f"shape {list(sizes)} has {product} elements, the tensor has {count}")
    return tuple(sizes)
