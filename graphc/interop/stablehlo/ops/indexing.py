"""Rules of operations at positions that only calls know: slices, gather, scatter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, int64, uint8
from graphc.base.records import dataclass
from graphc.interop.stablehlo.call import OperationCall, integers
from graphc.interop.stablehlo.ops.regions import kinds_of
from graphc.interop.stablehlo.registry import rule
from graphc.ir.types import row_major_strides
from graphc.ops.movement import shape as moves
from graphc.ops.movement.slice_update import update_slice
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.selection import index
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

# ---- slices


def _starts(call: OperationCall, starts: Sequence[Tensor], sizes: Sequence[int], counts: Sequence[int]) -> list[Any]:
    """Return the first position along each dimension, moved into the tensor: an int where it is known, else i64."""
    result: list[Any] = []
    for start, size, count in zip(starts, sizes, counts, strict=True):
        known = 0 if size == count else call.known(start)
        if known is None:
            result.append(_clamped(start, size - count))
        else:
            result.append(min(max(int(known), 0), size - count))
    return result


def _clamped(start: Tensor, most: int) -> Tensor:
    return ew.minimum(ew.maximum(ew.cast(start, dtype=int64), 0), most)


def _steps(count: int) -> Tensor:
    return index.iota(shape=(count,), axis=0, dtype=int64)


@rule("dynamic_slice")
def dynamic_slice(call: OperationCall, x: Tensor, *starts: Tensor) -> Tensor:
    counts = call.ints("slice_sizes")
    for axis, start in enumerate(_starts(call, starts, x.shape, counts)):
        if isinstance(start, int):
            sizes = tuple(x.shape)
            first = tuple([start if i == axis else 0 for i in range(x.ndim)])
            last = tuple([start + counts[axis] if i == axis else sizes[i] for i in range(x.ndim)])
            x = moves.slice(x, starts=first, stops=last, steps=(1,) * x.ndim)
        else:
            x = index.gather(x, ew.add(start, _steps(counts[axis])), axis=axis)
    return x


@rule("dynamic_update_slice")
def dynamic_update_slice(call: OperationCall, x: Tensor, new: Tensor, *starts: Tensor) -> Tensor:
    firsts = _starts(call, starts, x.shape, new.shape)
    if 0 in new.shape:
        return x
    if all(isinstance(first, int) for first in firsts):
        return update_slice(x, new, starts=tuple(firsts), steps=(1,) * x.ndim)
    partial = [i for i in range(x.ndim) if x.shape[i] != new.shape[i]]
    if len(partial) == 1:
        axis = partial[0]
        return index.scatter(x, ew.add(firsts[axis], _steps(new.shape[axis])), new, axis=axis)
    strides = row_major_strides(tuple(x.shape))
    terms = [f * stride if isinstance(f, int) else ew.mul(f, stride) for f, stride in zip(firsts, strides, strict=True)]
    base = sum_of(terms)
    offsets = ew.add(window_offsets(tuple(new.shape), strides), base)
    flat = index.scatter(_flat(x), _flat(offsets), _flat(new), axis=0)
    return moves.reshape(flat, shape=tuple(x.shape))


def sum_of(terms: Sequence[Any]) -> Any:
    """Return the sum of numbers and tensors."""
    total = terms[0]
    for term in terms[1:]:
        both = isinstance(total, int) and isinstance(term, int)
        total = total + term if both else ew.add(term, total) if isinstance(term, Tensor) else ew.add(total, term)
    return total


def window_offsets(sizes: Sequence[int], strides: Sequence[int]) -> Tensor:
    """Return the row-major offsets of the elements of a window from its first one."""
    total = np.zeros(tuple(sizes), np.int64)
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        shape = [-1 if i == axis else 1 for i in range(len(sizes))]
        total = total + (np.arange(size, dtype=np.int64) * stride).reshape(shape)
    return front().constant(total)


def _flat(x: Tensor) -> Tensor:
    return moves.reshape(x, shape=(prod(x.shape),))


# ---- gather and scatter


@dataclass
class Windows:
    """Windows of a tensor at positions in ``indices``, as gather reads and scatter writes them."""

    sizes: tuple[int, ...]
    """Sizes of the tensor."""
    window: tuple[int, ...]
    """Sizes of a window, one for each dimension of the tensor."""
    removed: frozenset[int]
    """Dimensions of the tensor that a window has no dimension for."""
    mapped: tuple[int, ...]
    """Dimension of the tensor for each component of a position."""
    batching: Mapping[int, int]
    """Dimensions of the tensor whose position is that along a dimension of the indices."""
    indices: Tensor
    """Positions, components last, i64."""
    batch: tuple[int, ...] = field(init=False)
    """Shape of the positions."""

    def __post_init__(self) -> None:
        self.batch = tuple(self.indices.shape[:-1])

    @property
    def window_dims(self) -> list[int]:
        """Return the dimensions of the tensor that a window has."""
        return [i for i in range(len(self.sizes)) if i not in self.removed]

    def row_axis(self) -> int | None:
        """Return the only dimension that positions select, if windows are whole slices along it."""
        if len(self.mapped) != 1 or self.batching or self.window[self.mapped[0]] != 1:
            return None
        whole = all(w == s for i, (w, s) in enumerate(zip(self.window, self.sizes, strict=True)) if i != self.mapped[0])
        return self.mapped[0] if whole else None

    def component(self, number: int) -> Tensor:
        """Return one component of all positions."""
        zeros, ones = (0,) * len(self.batch), (1,) * (len(self.batch) + 1)
        piece = moves.slice(self.indices, starts=(*zeros, number), stops=(*self.batch, number + 1), steps=ones)
        return moves.reshape(piece, shape=self.batch)

    def most(self, number: int) -> int:
        """Return the largest position of a component with which a window fits."""
        return self.sizes[self.mapped[number]] - self.window[self.mapped[number]]

    def offsets(self, starts: Sequence[Tensor]) -> Tensor:
        """Return the row-major offset of each element of each window: [*batch, *window]."""
        strides = row_major_strides(self.sizes)
        terms: list[Any] = [ew.mul(s, strides[d]) for s, d in zip(starts, self.mapped, strict=True)]
        for d, axis in self.batching.items():
            terms.append(ew.mul(index.iota(shape=self.batch, axis=axis, dtype=int64), strides[d]))
        dims = self.window_dims
        inner = window_offsets([self.window[d] for d in dims], [strides[d] for d in dims])
        if not terms:
            return moves.broadcast_to(inner, shape=(*self.batch, *inner.shape))
        base = moves.reshape(sum_of(terms), shape=(*self.batch, *(1,) * len(dims)))
        return ew.add(base, inner)


def _positions(indices: Tensor, axis: int) -> Tensor:
    """Return indices as i64 with their components in the last dimension."""
    indices = ew.cast(indices, dtype=int64)
    if axis == indices.ndim:
        return moves.reshape(indices, shape=(*indices.shape, 1))
    order = (*[i for i in range(indices.ndim) if i != axis], axis)
    return moves.transpose(indices, permutation=order) if order != tuple(range(indices.ndim)) else indices


def _numbers(call: OperationCall, name: str) -> Any:
    numbers = call.numbers(name)
    return lambda key: integers(numbers.get(key), (), f"line {call.operation.line}: {key}")


def _vector_axis(call: OperationCall, name: str) -> int:
    value = call.numbers(name).get("index_vector_dim", 0)
    return value if isinstance(value, int) else 0


def _batching(numbers: Any, tensor_key: str, index_key: str, axis: int) -> dict[int, int]:
    """Return the dimension of the positions for each batching dimension of the tensor."""
    return {d: i - (i > axis) for d, i in zip(numbers(tensor_key), numbers(index_key), strict=True)}


@rule("gather")
def gather(call: OperationCall, x: Tensor, indices: Tensor) -> Tensor:
    """Return windows at positions, which are moved into the tensor where they reach out of it."""
    name = "dimension_numbers"
    numbers, axis = _numbers(call, name), _vector_axis(call, name)
    batching = _batching(numbers, "operand_batching_dims", "start_indices_batching_dims", axis)
    removed = frozenset((*numbers("collapsed_slice_dims"), *batching))
    sizes = call.ints("slice_sizes")
    windows = Windows(tuple(x.shape), sizes, removed, numbers("start_index_map"), batching, _positions(indices, axis))
    starts = [_clamped(windows.component(i), windows.most(i)) for i in range(len(windows.mapped))]
    count, dims = len(windows.batch), windows.window_dims
    row = windows.row_axis()
    if row is not None:
        result = index.gather(x, starts[0], axis=row)
        order = (*range(row, row + count), *range(row), *range(row + count, result.ndim))
        result = moves.transpose(result, permutation=order)
        result = moves.reshape(result, shape=(*windows.batch, *[sizes[d] for d in dims]))
    else:
        result = index.gather(_flat(x), windows.offsets(starts), axis=0)
    offset_dims = numbers("offset_dims")
    others = [i for i in range(result.ndim) if i not in offset_dims]
    source = {**dict(zip(others, range(count), strict=True)), **{d: count + i for i, d in enumerate(offset_dims)}}
    return moves.transpose(result, permutation=tuple([source[i] for i in range(result.ndim)]))


@rule("scatter")
def scatter(call: OperationCall, *operands: Tensor) -> tuple[Tensor, ...]:
    """Combine windows with updates by addition and the like. Windows that reach out of the tensor are left out."""
    count = len(operands) // 2
    tensors, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    kinds = kinds_of(call.block())
    if kinds is None:
        raise call.unsupported("a region other than add, multiply, minimum, maximum, and, or, or the update")
    name = "scatter_dimension_numbers"
    numbers, axis = _numbers(call, name), _vector_axis(call, name)
    batching = _batching(numbers, "input_batching_dims", "scatter_indices_batching_dims", axis)
    removed = frozenset((*numbers("inserted_window_dims"), *batching))
    update_dims = numbers("update_window_dims")
    sizes = tuple(tensors[0].shape)
    dims = [d for d in range(len(sizes)) if d not in removed]
    extents = dict(zip(dims, [updates[0].shape[d] for d in update_dims], strict=True))
    window = tuple([extents.get(d, 1) for d in range(len(sizes))])
    mapped = numbers("scatter_dims_to_operand_dims")
    windows = Windows(sizes, window, removed, mapped, batching, _positions(indices, axis))
    others = [d for d in range(updates[0].ndim) if d not in update_dims]
    moved = [moves.transpose(u, permutation=(*others, *update_dims)) for u in updates]
    return tuple([_scattered(windows, x, u, kind) for x, u, kind in zip(tensors, moved, kinds, strict=True)])


def _scattered(windows: Windows, x: Tensor, updates: Tensor, kind: str) -> Tensor:
    """Combine one tensor with updates [*batch, *window]."""
    if kind == "first" or 0 in updates.shape:
        return x
    starts = [windows.component(i) for i in range(len(windows.mapped))]
    row = windows.row_axis()
    fits = [ew.logical_and(ew.ge(s, 0), ew.le(s, windows.most(i))) for i, s in enumerate(starts)]
    valid = fits[0] if fits else None
    for other in fits[1:]:
        valid = ew.logical_and(valid, other)
    if row is not None:
        count, rest = len(windows.batch), [s for d, s in enumerate(windows.sizes) if d != row]
        rows = moves.reshape(updates, shape=(*windows.batch, *rest))
        order = (*range(count, count + row), *range(count), *range(count + row, rows.ndim))
        rows = moves.transpose(rows, permutation=order)
        return _combined(x, ew.where(valid, starts[0], x.shape[row]), rows, row, kind)
    offsets = windows.offsets(starts)
    if valid is not None:
        valid = moves.reshape(valid, shape=(*windows.batch, *(1,) * len(windows.window_dims)))
        offsets = ew.where(valid, offsets, prod(x.shape))
    flat = _combined(_flat(x), _flat(offsets), _flat(updates), 0, kind)
    return moves.reshape(flat, shape=tuple(x.shape))


def _combined(x: Tensor, places: Tensor, updates: Tensor, axis: int, kind: str) -> Tensor:
    """Combine elements along an axis with updates; those for the position after the last one are dropped."""
    if x.dtype is bool_ and kind != "second":
        largest = kind in ("add", "maximum", "or")
        x, updates = x.to(uint8), updates.to(uint8)
        return _combined(x, places, updates, axis, "maximum" if largest else "minimum").to(bool_)
    count = x.shape[axis]
    one = tuple([int(i == axis) for i in range(x.ndim)])
    room = moves.pad(x, low=(0,) * x.ndim, high=one, interior=(0,) * x.ndim, value=0)
    result = _SCATTERS[kind](room, places, updates, axis)
    stops = tuple([count if i == axis else s for i, s in enumerate(x.shape)])
    return moves.slice(result, starts=(0,) * x.ndim, stops=stops, steps=(1,) * x.ndim)


_SCATTERS: Mapping[str, Any] = {
    "add": lambda x, i, u, axis: index.scatter_add(x, i, u, axis=axis),
    "multiply": lambda x, i, u, axis: index.scatter_product(x, i, u, axis=axis),
    "maximum": lambda x, i, u, axis: index.scatter_extreme(x, i, u, axis=axis, largest=True),
    "minimum": lambda x, i, u, axis: index.scatter_extreme(x, i, u, axis=axis, largest=False),
    "second": lambda x, i, u, axis: index.scatter(x, i, u, axis=axis),
}


def scatter_at(x: Tensor, places: Tensor, updates: Tensor, kind: str) -> Tensor:
    """Combine the elements of a vector with updates at places; those at its end are dropped."""
    return _combined(x, places, updates, 0, kind)
