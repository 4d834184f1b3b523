"""Indexing of tensors: ints, slices, None, Ellipsis and integer tensors and boolean masks as ops."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, fitted, int64, uint8
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, IndexRangeError, ShapeError
from graphc.base.records import NamedTuple
from graphc.base.sizes.dims import common_shape, dim_of, same_sizes
from graphc.base.sizes.size import is_one, is_size, larger, positive_part, smaller
from graphc.ir.types import row_major_strides
from graphc.ops import dispatch
from graphc.ops.effects.check import check_index, check_range
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.selection.index import (
    gather,
    gathered_shape,
    iota,
    row_major_places,
    scatter,
    scatter_add,
    scatter_extreme,
)
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tape.tangents import USED
from graphc.tensors import compaction, routes
from graphc.tensors.repeated import PLAIN, compiled_when_repeated
from graphc.tensors.tensor_base import VOLATILE, TensorBase, converted, front, refresh


class IndexPlan(NamedTuple):
    """An index decomposed into a slice of every dimension, the shape after slicing, and the index tensors."""

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    steps: tuple[int, ...]
    shape: tuple[int, ...]
    """The shape after slicing, without dimensions indexed by an int, with the new dimensions from None."""
    tensors: tuple[tuple[int, Any], ...]
    """Dimension in ``shape`` and integer tensor, in ascending order of dimensions."""


class MaskIndices(NamedTuple):
    """The indices at which a boolean mask holds, along one of the dimensions it covers."""

    index: Any
    extent: int
    mask: tuple[int, ...]
    """The shape of the mask."""


def _items(index: Any, rank: int) -> list[Any]:
    """Expand an index to one entry per dimension (plus None entries): replace Ellipsis by slices and masks by
    indices."""
    items: list[Any] = []
    for item in index if isinstance(index, tuple) else (index,):
        items.extend(_entries(item))
    used_dims = sum(item is not None and item is not Ellipsis for item in items)
    if sum(item is Ellipsis for item in items) > 1:
        raise IndexRangeError("an index can have one Ellipsis")
    if used_dims > rank:
        raise IndexRangeError(f"{used_dims} indices for a tensor with {rank} dimensions")
    if Ellipsis not in [item if item is Ellipsis else None for item in items]:
        items.append(Ellipsis)
    ellipsis = next(i for i, item in enumerate(items) if item is Ellipsis)
    return [*items[:ellipsis], *[builtins.slice(None)] * (rank - used_dims), *items[ellipsis + 1 :]]


def _entries(item: Any) -> Sequence[Any]:
    if isinstance(item, (bool, np.bool_)):
        raise _no_bool()
    if isinstance(item, (list, range)):
        item = np.asarray(item, dtype=np.int64 if not len(item) else None)
    if isinstance(item, np.ndarray):
        item = front().constant(item)
    if not isinstance(item, TensorBase):
        return (item,)
    if item.dtype.kind == "b":
        if not item.shape:
            raise _no_bool()
        mask = front().known(item)
        if mask is None:
            columns = compaction.positions(item, "an index by a boolean mask").unbind(1)
        else:
            columns = [front().constant(column) for column in np.nonzero(mask)]
        return [MaskIndices(c, s, item.shape) for c, s in zip(columns, item.shape, strict=True)]
    if item.dtype.is_floating_point:
        raise IndexRangeError(f"tensors used as indices must be integers or booleans, got {item.dtype.name}")
    if not item.shape and isinstance(front().local(item)._data, np.ndarray):
        return (int(item._data),)
    return (item,)


def _no_bool() -> ArgumentError:
    return ArgumentError("a bool cannot be an index", remedy="use tensor[None] for a new dimension")


def plan(index: Any, extents: tuple[int, ...]) -> IndexPlan:
    """Decompose an index; raise IndexRangeError, ArgumentError or AttributeValueError if it does not fit the shape."""
    ranges: list[tuple[int, int, int]] = []
    result_shape: list[int] = []
    tensors = []
    for item in _items(index, len(extents)):
        if item is None:
            result_shape.append(1)
            continue
        extent = extents[len(ranges)]
        if isinstance(item, MaskIndices):
            if item.extent != extent:
                raise IndexRangeError(
                    f"a mask of shape {list(item.mask)} does not fit a tensor of shape {list(extents)}"
                )
            item = item.index
        if isinstance(item, TensorBase):
            tensors.append((len(result_shape), item))
            item = builtins.slice(None)
        if isinstance(item, builtins.slice):
            start, stop, step = _range(item, extent)
            stop = larger(start, stop)
            result_shape.append((stop - start + step - 1) // step)
        else:
            start = _position(item, extent, len(ranges))
            stop, step = start + 1, 1
        ranges.append((start, stop, step))
    starts, stops, steps = zip(*ranges, strict=True) if ranges else ((), (), ())
    return IndexPlan(starts, stops, steps, tuple(result_shape), tuple(tensors))


def _range(item: slice, extent: int) -> tuple[int, int, int]:
    bounds = [b if b is None or isinstance(b, int) else _scalar(b) for b in (item.start, item.stop, item.step)]
    if bounds[2] is not None and bounds[2] <= 0:
        raise AttributeValueError(
            f"the step of a slice must be 1 or more, got {bounds[2]}", remedy="call tensor.flip(dim) for a step of -1"
        )
    if not any(map(is_size, (*bounds, extent))):
        return builtins.slice(*bounds).indices(extent)
    start, stop, step = bounds
    return _within(start, extent, 0), _within(stop, extent, extent), 1 if step is None else step


def _within(bound: Any, extent: Any, otherwise: Any) -> Any:
    """Clamp a bound of a slice to the dimension; negative bounds count from the end."""
    if bound is None:
        return otherwise
    bound = bound + extent if bound < 0 else bound
    return smaller(positive_part(bound), extent)


def _scalar(bound: Any) -> int:
    try:
        return operator.index(bound)
    except TypeError:
        raise ArgumentError(f"a slice must consist of ints, got {type(bound).__name__}") from None


def _position(item: Any, extent: int, dim: int) -> int:
    try:
        number = item if is_size(item) else operator.index(item)
    except TypeError:
        raise ArgumentError(
            f"{type(item).__name__} cannot be an index",
            remedy="use ints, slices, None, Ellipsis, integer or boolean tensors",
        ) from None
    if not -extent <= number < extent:
        raise IndexRangeError(f"index {number} is out of range for dimension {dim} of size {extent}")
    return number % extent if extent else 0


_BOUNDS = (int, type(None))


def _cache_key(item: Any) -> Any:
    """Return a hashable key for an index entry that makes a view; NotImplemented for other entries."""
    kind = item.__class__
    if kind is int or item is None or item is Ellipsis:
        return item
    if kind is builtins.slice:
        start, stop, step = item.start, item.stop, item.step
        if start.__class__ in _BOUNDS and stop.__class__ in _BOUNDS and step.__class__ in _BOUNDS:
            return start, stop, step
    return NotImplemented


def _as_view(index: Any) -> Any:
    """Append an Ellipsis to the index, so that numpy returns a view even for a single element."""
    if index.__class__ is tuple:
        return index if any([item is Ellipsis for item in index]) else (*index, Ellipsis)
    return index if index is Ellipsis else (index, Ellipsis)


def take(x: Any, index: Any) -> Any:
    """Return ``x[index]``: a view for ints, slices, None and Ellipsis, a new tensor for index tensors."""
    if dispatch.active() is not None or x._data.__class__ is not np.ndarray:
        return _indexed(x, index)
    kind = index.__class__
    entry = tuple([_cache_key(item) for item in index]) if kind is tuple else _cache_key(index)
    if entry is NotImplemented or (kind is tuple and NotImplemented in entry):
        return _indexed(x, index)
    key = take, kind, entry, x._data.shape
    cached_route = routes.known(key)
    if cached_route is not None:
        return dispatch.default().view(x, cached_route)
    result = _indexed(x, index)
    if (route := routes.route_to(result, x, operator.itemgetter(_as_view(index)))) is not None:
        routes.remember(key, route)
    return result


def _is_plain_mask(x: Any, index: Any) -> bool:
    """Return whether numpy can apply the mask directly: it covers the first dimensions, and nothing needs recording."""
    if index.__class__ not in PLAIN or index.dtype is not bool_ or dispatch.active() is not None:
        return False
    if (x._requires_grad and is_grad_enabled()) or USED[0] or VOLATILE[0]:
        return False
    arrays = [refresh(t)._data for t in (x, index)]
    return all([a.__class__ is np.ndarray for a in arrays]) and index.ndim > 0 and index.shape == x.shape[: index.ndim]


def _indexed(x: Any, index: Any) -> Any:
    if _is_plain_mask(x, index):
        return front().constant(x._data[index._data])
    return _of_entries(x, index) if index.__class__ in PLAIN and index.dtype.kind in "iu" else _by_plan(x, index)


@compiled_when_repeated
def _of_entries(x: Any, index: Any) -> Any:
    return _by_plan(x, index)


def _by_plan(x: Any, index: Any) -> Any:
    p = plan(index, x.shape)
    result = slice_by(x, p)
    return _take_tensors(result, p.tensors) if p.tensors else result


def slice_by(x: Any, p: IndexPlan) -> Any:
    """Apply the slices of a plan, the view-making step of ``take``."""
    first = same_sizes(p.starts, (0,) * len(x.shape)) and same_sizes(p.steps, (1,) * len(x.shape))
    if not (first and same_sizes(p.stops, x.shape)):
        x = shape.slice(x, starts=p.starts, stops=p.stops, steps=p.steps)
    return x if same_sizes(x.shape, p.shape) and x._view is not None else shape.reshape(x, shape=p.shape)


def wrapped(index: Any, extent: int) -> Any:
    """Count negative numbers in an index tensor from the end."""
    return ew.where(ew.lt(index, 0), ew.add(index, extent), index)


@compiled_when_repeated
def _take_tensors(x: Any, tensors: tuple[tuple[int, Any], ...]) -> Any:
    dims = [dim for dim, _ in tensors]
    try:
        common_shape(*(index.shape for _, index in tensors))
    except ShapeError as error:
        raise IndexRangeError(f"index tensors: {error.what}") from None
    if len(dims) == 1:
        return gather(x, _checked(tensors[0][1], x.shape[dims[0]]), axis=dims[0])
    adjacent = dims == list(range(dims[0], dims[-1] + 1))
    front_dim = dims[0] if adjacent else 0
    others = [d for d in range(len(x.shape)) if d not in dims]
    order = (*others[:front_dim], *dims, *others[front_dim:])
    if order != tuple(range(len(x.shape))):
        x = shape.transpose(x, permutation=order)
    extents = x.shape[front_dim : front_dim + len(dims)]
    linear: Any = None
    for extent, (_, index) in zip(extents, tensors, strict=True):
        index = _checked(ew.cast(index, dtype=int64), extent)
        linear = index if linear is None else ew.add(ew.mul(linear, extent), index)
    flat = (*x.shape[:front_dim], prod(extents), *x.shape[front_dim + len(dims) :])
    return gather(shape.reshape(x, shape=flat), linear, axis=front_dim)


def require(index: Any, low: int, high: int, what: str, allowed: tuple[int, ...] = ()) -> None:
    """Raise IndexRangeError, naming ``what``, unless all elements are in ``low``..``high`` or ``allowed``. Unknown
    elements are checked in each call, before it writes to parameters and states."""
    array = front().known(index)
    if array is not None:
        check_range(array, low, high, allowed, what)
    else:
        check_index(index, low=low, high=high, allowed=allowed, what=what)


def _checked(index: Any, extent: int) -> Any:
    """Wrap negative numbers of an index; raise IndexRangeError if it is out of range."""
    require(index, -extent, extent - 1, "index")
    array = front().known(index)
    if index.dtype.kind == "u" or (array is not None and not (array < 0).any()):
        return index
    return wrapped(index, extent)


def put(x: Any, index: Any, value: Any, accumulate: bool = False) -> None:
    """Assign ``x[index] = value`` in place; ``value`` is broadcast. With ``accumulate`` add it, repeatedly for repeated
    indices; otherwise the last value for an element wins."""
    if isinstance(index, TensorBase) and index.dtype.kind == "b" and not accumulate and _is_single(value):
        _put_mask(x, index, value)
        return
    p = plan(index, x.shape)
    target = slice_by(x, p)
    if not p.tensors:
        if accumulate:
            target.add_(value)
        elif not _is_same_view(target, value):
            target.copy_(value)
        return
    if len(p.tensors) == 1:
        ((axis, index_tensor),) = p.tensors
        put_entries(target, axis, _checked(index_tensor, target.shape[axis]), value, accumulate)
        return
    _put_tensors(target, p.tensors, value, accumulate)


def _put_tensors(x: Any, tensors: tuple[tuple[int, Any], ...], value: Any, accumulate: bool) -> None:
    """Assign at several index tensors. The dimensions from the first to the last indexed one are merged, so that
    trailing dimensions are written contiguously."""
    dims = [dim for dim, _ in tensors]
    first, end = dims[0], dims[-1] + 1
    try:
        common = common_shape(*(index.shape for _, index in tensors))
    except ShapeError as error:
        raise IndexRangeError(f"index tensors: {error.what}") from None
    between = [d for d in range(first, end) if d not in dims]
    before, trailing, extents = x.shape[:first], x.shape[end:], x.shape[first:end]
    full = (*common, *(x.shape[d] for d in between))
    value = _broadcast(
        value,
        x.dtype,
        (*common, *before, *full[len(common) :], *trailing) if between else (*before, *common, *trailing),
    )
    if between and first:
        rank = len(common)
        order = (*range(rank, rank + first), *range(rank), *range(rank + first, len(value.shape)))
        value = shape.transpose(value, permutation=order)
    positions = _linear(tensors, extents, first, full)
    flat = shape.reshape(front().before_write(x), shape=(*before, prod(extents), *trailing))
    front().assign(x, shape.reshape(_written(flat, positions, value, first, accumulate), shape=x.shape))


def _linear(tensors: tuple[tuple[int, Any], ...], extents: tuple[int, ...], first: int, full: tuple[int, ...]) -> Any:
    """Return row-major positions of index tensors and of all entries of the dimensions between them, in shape
    ``full``."""
    index_tensors = dict(tensors)
    unindexed = len(extents) - len(index_tensors)
    total: Any = None
    axis = len(full) - unindexed
    for d, stride in enumerate(row_major_strides(extents)):
        if first + d in index_tensors:
            index = _checked(ew.cast(index_tensors[first + d], dtype=int64), extents[d])
            term = shape.reshape(index, shape=(*index.shape, *(1,) * unindexed))
        else:
            term, axis = iota(shape=full, axis=axis), axis + 1
        term = term if is_one(stride) else ew.mul(term, stride)
        total = term if total is None else ew.add(total, term)
    return total if total.shape == full else shape.broadcast_to(total, shape=full)


def put_entries(x: Any, axis: int, positions: Any, value: Any, accumulate: bool) -> None:
    """Assign ``value``, broadcast, to the entries of a dimension at in-range ``positions``, like ``put``."""
    value = _broadcast(value, x.dtype, gathered_shape(x.shape, positions.shape, axis))
    front().assign(x, _written(front().before_write(x), positions, value, axis, accumulate))


def _written(x: Any, positions: Any, value: Any, axis: int, accumulate: bool) -> Any:
    return added(x, positions, value, axis) if accumulate else scatter(x, positions, value, axis=axis)


def fill(x: Any, dim: int, index: Any, value: Any) -> None:
    """Assign ``value`` (one element) in place to the entries of a dimension that ``index`` selects. The gradient of
    ``value`` counts every element once, however often it is selected."""
    extent = x.shape[dim]
    positions = _checked(index, extent)
    hit = scatter(shape.filled(False, bool_, (extent,)), positions, shape.filled(True, bool_, positions.shape), axis=0)
    _put_where(shape.reshape(hit, shape=(extent,) + (1,) * (len(x.shape) - dim - 1)), x, value)


def _is_same_view(target: Any, value: Any) -> bool:
    """Return whether ``value`` is the view ``target`` itself, as after ``x[i] += y``, which writes twice."""
    if target is value or not isinstance(value, TensorBase) or target._view is None or value._view is None:
        return target is value
    return value._view.base is target._view.base and value._view.steps == target._view.steps


def _is_single(value: Any) -> bool:
    return not isinstance(value, TensorBase) or value.numel() == 1


def _put_mask(x: Any, mask: Any, value: Any) -> None:
    if mask.shape != x.shape[: len(mask.shape)]:
        raise IndexRangeError(f"a mask of shape {list(mask.shape)} does not fit a tensor of shape {list(x.shape)}")
    mask = shape.reshape(mask, shape=mask.shape + (1,) * (len(x.shape) - len(mask.shape)))
    _put_where(mask, x, value)


def _put_where(mask: Any, x: Any, value: Any) -> None:
    value = shape.reshape(_broadcast(value, x.dtype, getattr(value, "shape", ())), shape=())
    front().assign(x, ew.where(mask, value, front().before_write(x)))


def _broadcast(value: Any, dtype: Any, extents: tuple[int, ...]) -> Any:
    if isinstance(value, (bool, int, float)):
        value = front().scalar(fitted(value, dtype), dtype)
    elif not isinstance(value, TensorBase):
        value = front().constant(converted(value, dtype))
    if value.dtype is not dtype:
        value = ew.cast(value, dtype=dtype)
    lead = len(value.shape) - len(extents)
    if lead > 0 and all(s == 1 for s in value.shape[:lead]):
        value = shape.reshape(value, shape=value.shape[lead:])
    if value.shape == extents:
        return value
    try:
        return shape.broadcast_to(value, shape=extents)
    except ShapeError:
        raise ShapeError(
            f"a value of shape {list(value.shape)} does not broadcast to the indexed shape {list(extents)}"
        ) from None


def need_places(name: str, x: Any, dim: int, index: Any, src: Any = None) -> int:
    """Check the arguments of a gather or scatter along ``dim``, and return that dimension as non-negative.

    Tensors without dimensions count as vectors of one element. Raises ShapeError, DTypeError or IndexRangeError.
    """
    axis = dim_of(dim, len(x.shape))
    if index.dtype.kind not in "iu":
        raise DTypeError(f"{name}: index must be integers, got {index.dtype.name}", remedy="call index.long()")
    index_shape, extents = index.shape or (1,), x.shape or (1,)
    others = [] if src is None else [src.shape or (1,)]
    fits = len(index_shape) == len(extents) and all(len(o) == len(index_shape) for o in others)
    fits = fits and all(d == axis or p <= s for d, (p, s) in enumerate(zip(index_shape, extents, strict=True)))
    fits = fits and all(p <= s for o in others for p, s in zip(index_shape, o, strict=True))
    if not fits and index.numel():
        source_text = "" if src is None else f" and src {list(src.shape)}"
        raise ShapeError(
            f"{name}: index {list(index.shape)} does not fit the tensor {list(x.shape)}{source_text} along dimension "
            f"{axis}",
            remedy="pass an index of the same rank, no larger than the tensor except along that dimension",
        )
    if src is not None and src.dtype is not x.dtype:
        raise DTypeError(
            f"{name}: the tensor is {x.dtype.name}, src {src.dtype.name}",
            remedy=f"call src.to(graphc.{x.dtype.long_name})",
        )
    return axis


def need_entries(name: str, x: Any, dim: int, index: Any, source: Any = None) -> int:
    """Check an index vector into the entries of ``dim``, and return that dimension as non-negative. With ``source``,
    also check its entries.

    Raises IndexRangeError, ShapeError or DTypeError.
    """
    axis = dim_of(dim, len(x.shape))
    if index.dtype.kind not in "iu":
        raise DTypeError(f"{name}: index must be integers, got {index.dtype.name}", remedy="call index.long()")
    if len(index.shape) > 1 or (not x.shape and index.numel() != 1):
        raise IndexRangeError(
            f"{name}: index has shape {list(index.shape)} for a tensor of shape {list(x.shape)}",
            remedy="pass a vector: index.flatten()",
        )
    if source is None:
        return axis
    expected_shape = (*x.shape[:axis], index.numel(), *x.shape[axis + 1 :]) if x.shape else ()
    if tuple(source.shape) != expected_shape:
        raise ShapeError(
            f"{name}: {index.numel()} entries of dimension {axis} of {list(x.shape)} are {list(expected_shape)}, "
            f"source is {list(source.shape)}",
            remedy=f"call source.expand{expected_shape}",
        )
    if source.dtype is not x.dtype:
        what = f"{name}: the tensor is {x.dtype.name}, source {source.dtype.name}"
        raise DTypeError(what, remedy=f"call source.to(graphc.{x.dtype.long_name})")
    return axis


def entries(index: Any, extent: int, what: str) -> Any:
    """Return ``index`` as a vector; it must be in 0..``extent - 1``, and ``what`` names it in errors."""
    require(index, 0, extent - 1, what)
    return index if index.shape else shape.reshape(index, shape=(1,))


def leading(x: Any, extents: tuple[int, ...]) -> Any:
    """Return the first ``extents`` elements of ``x`` along all dimensions; a vector of one element and a scalar are
    equivalent."""
    if x.shape == extents:
        return x
    if not x.shape or not extents:
        return shape.reshape(x[:1] if x.shape else x, shape=extents)
    return take(x, tuple(builtins.slice(0, s) for s in extents))


def added(x: Any, positions: Any, updates: Any, axis: int) -> Any:
    """Add updates to ``x`` at positions along an axis; for booleans, combine them by logical or."""
    if x.dtype.kind != "b":
        return scatter_add(x, positions, updates, axis=axis)
    bits = [ew.cast(t, dtype=uint8) for t in (x, updates)]
    return ew.ne(scatter_extreme(bits[0], positions, bits[1], axis=axis, largest=True), 0)


def along(index: Any, dim: int, extents: tuple[int, ...], what: str = "") -> Any:
    """Return the positions in a flattened tensor of shape ``extents`` that ``gather(dim, index)`` reads. If ``what``
    names the index for errors, check its range."""
    if what:
        require(index, 0, extents[dim] - 1, what)
    return row_major_places(ew.cast(index, dtype=int64), dim, extents)
