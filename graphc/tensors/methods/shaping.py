"""Tensor methods that rearrange elements: views, joining, splitting, indexing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.dtypes import DType, int64
from graphc.base.errors import ArgumentError, AttributeValueError, IndexRangeError, RecompileWarning, ShapeError
from graphc.base.sizes.dims import common_shape, dim_of, extent_of, is_wildcard, same_sizes, sizes_of, view_shape
from graphc.base.sizes.size import always, is_size
from graphc.ops import dispatch
from graphc.ops.define import as_type, common_type
from graphc.ops.movement import shape
from graphc.ops.movement.strided import as_strided
from graphc.ops.pointwise import bits
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise.parts_of_complex import conjugate
from graphc.ops.selection.index import gather, iota
from graphc.tensors import compaction, indexing
from graphc.tensors.methods.selection import Selection, concatenated, expanded, filling, several
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.routes import rearranging
from graphc.tensors.tensor_base import TensorBase, front, name_in_error

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor


@lru_cache(maxsize=1024)
def _view_shape(sizes: tuple[int, ...], count: int) -> tuple[int, ...]:
    return view_shape(sizes_of(sizes), count)


@lru_cache(maxsize=1024)
def _expanded_shape(sizes: tuple[int, ...], extents: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape of an expanded tensor; None unless plain repetition suffices."""
    lead = len(sizes) - len(extents)
    if lead < 0 or min(sizes, default=0) < -1 or -1 in sizes[:lead]:
        return None
    trailing = [s if w == -1 else w for w, s in zip(sizes[lead:], extents, strict=True)]
    full = (*sizes[:lead], *trailing)
    return None if full == (1,) * lead + extents else full


@compiled_when_repeated
def concatenate(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Concatenate tensors along a dimension; empty vectors are dropped, and element types are promoted."""
    tensors = several("cat", tensors)
    if not tensors:
        raise AttributeValueError("cat needs at least one tensor")
    dtype = common_type(tensors, "cat")
    # A vector of symbolic size counts like any other; only one that is empty in all calls is dropped.
    extents = next((t.shape for t in tensors if not same_sizes(t.shape, (0,))), (0,))
    axis = dim_of(dim, len(extents))
    nothing = (*extents[:axis], 0, *extents[axis + 1 :])
    operands = [t if not same_sizes(t.shape, (0,)) else shape.reshape(t, shape=nothing) for t in tensors]
    return concatenated("cat", [as_type(t, dtype) for t in operands], axis)


@compiled_when_repeated
def stacked(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Stack tensors of one shape along a new dimension."""
    tensors = several("stack", tensors)
    if not tensors:
        raise ArgumentError("stack needs at least one tensor")
    first = tensors[0].shape
    for i, t in enumerate(tensors):
        if t.shape != first:
            raise ShapeError(f"stack needs equal shapes, got {list(first)} and {list(t.shape)} at entry {i}")
    axis = dim_of(dim, len(first) + 1)
    return concatenate([t.unsqueeze(axis) for t in tensors], axis)


def _named(name: str, args: Sequence[Any], named: Any = None, **other: Any) -> tuple[int, ...]:
    """Return sizes or dimensions from single ints, a sequence, or a keyword."""
    for word, value in other.items():
        if word not in ("shape",) or named is not None:
            raise ArgumentError(f"{name} has no argument {word!r}")
        named = value
    if named is None:
        return sizes_of(args)
    if args or not isinstance(named, (tuple, list)):
        raise ArgumentError(f"{name}: {named!r} is not the only sequence of ints", remedy=f"call {name}(1, 2)")
    return sizes_of((named,))


class Shaping(Selection):
    """Views, joining, splitting and indexing."""

    @rearranging
    def view(self, *sizes: Any, size: Any = None) -> Tensor:
        """View the memory in another shape (one size may be -1), or copy the bits to another type of the same width.

        Raises ShapeError if the elements' order in memory does not allow a view.
        """
        sizes = sizes if size is None else (size,)
        if len(sizes) == 1 and isinstance(sizes[0], DType):
            return bits.bitcast(self, dtype=sizes[0])
        if len(sizes) == 1 and not isinstance(sizes[0], (int, tuple, list)):
            raise ArgumentError(f"view takes sizes, got {sizes[0]!r}", remedy="call tensor.to(dtype)")
        result = self.reshape(*sizes)
        if result._view is None and self.numel():
            raise ShapeError(
                f"a tensor of shape {list(self.shape)} with these strides cannot be viewed as {list(result.shape)}",
                remedy="call tensor.reshape(...), or tensor.contiguous().view(...)",
            )
        return result

    @rearranging
    def reshape(self, *sizes: Any, **named: Any) -> Tensor:
        """Reshape to a shape of the same size (one size may be -1); a view if possible."""
        if named:
            sizes = _named("reshape", sizes, **named)
        if all([size.__class__ is int for size in sizes]) and dispatch.active() is None:
            return shape.reshape(self, shape=_view_shape(sizes, self._data.size))
        return shape.reshape(self, shape=view_shape(sizes_of(sizes), self.numel()))

    def view_as(self, other: Tensor) -> Tensor:
        """View this tensor in the shape of another one."""
        return self.view(other.shape)

    def reshape_as(self, other: Tensor) -> Tensor:
        """Reshape this tensor to the shape of another one."""
        return self.reshape(other.shape)

    @rearranging
    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        """Flatten dimensions start_dim..end_dim into one."""
        start, end = dim_of(start_dim, self.ndim), dim_of(end_dim, self.ndim)
        if not self.shape:
            return self.reshape(1)
        if start > end:
            raise AttributeValueError(f"flatten: start_dim {start_dim} is after end_dim {end_dim}")
        return self.reshape(*self.shape[:start], prod(self.shape[start : end + 1]), *self.shape[end + 1 :])

    @rearranging
    def unflatten(self, dim: int, sizes: Sequence[int]) -> Tensor:
        """Split one dimension into several."""
        at, extent = extent_of(dim, self.shape, "unflatten")
        return self.reshape(*self.shape[:at], *view_shape(sizes_of((sizes,)), extent), *self.shape[at + 1 :])

    @rearranging
    def ravel(self) -> Tensor:
        """Flatten to one dimension."""
        return self.reshape(-1) if self.numel() else self.reshape(0)

    @rearranging
    def permute(self, *args: Any, dims: Any = None) -> Tensor:
        """Reorder the dimensions; each one is listed once."""
        order = [dim_of(d, self.ndim) for d in _named("permute", args, dims)]
        if sorted(order) != list(range(self.ndim)):
            raise AttributeValueError(f"permute: {order} must list each of {self.ndim} dimensions once")
        return shape.transpose(self, permutation=tuple(order))

    @rearranging
    def transpose(self, dim0: int, dim1: int) -> Tensor:
        """Exchange two dimensions."""
        rank = self.ndim
        a, b, order = dim_of(dim0, rank), dim_of(dim1, rank), [*range(rank)]
        if order:
            order[a], order[b] = b, a
        return shape.transpose(self, permutation=tuple(order))

    swapdims = transpose

    def swapaxes(self, axis0: int, axis1: int) -> Tensor:
        """Exchange two dimensions."""
        return self.transpose(axis0, axis1)

    @rearranging
    def t(self) -> Tensor:
        """Transpose a matrix (vectors are unchanged)."""
        if self.ndim > 2:
            raise ShapeError(f"t() takes at most 2 dimensions, got {self.ndim}", remedy="call transpose(d0, d1)")
        return shape.transpose(self, permutation=tuple(range(self.ndim))[::-1])

    @property
    @rearranging
    def T(self) -> Tensor:
        """This tensor with its dimensions in reverse order."""
        return shape.transpose(self, permutation=tuple(range(self.ndim))[::-1])

    def adjoint(self) -> Tensor:
        """Transpose the last two dimensions, and conjugate complex numbers."""
        return conjugate(self.transpose(-2, -1) if self.shape else self)

    @property
    def H(self) -> Tensor:
        """The conjugated transpose of a matrix."""
        return conjugate(self.t())

    @property
    def mH(self) -> Tensor:
        """This tensor with its last two dimensions exchanged, and complex numbers conjugated."""
        return conjugate(self.transpose(-2, -1))

    @property
    def mT(self) -> Tensor:
        """This tensor with its last two dimensions exchanged."""
        return self.transpose(-2, -1)

    @rearranging
    def movedim(self, source: Any, destination: Any) -> Tensor:
        """Move dimensions to other positions; the rest keep their order."""
        sources = [dim_of(d, self.ndim) for d in (source if isinstance(source, (tuple, list)) else (source,))]
        targets = [
            dim_of(d, self.ndim) for d in (destination if isinstance(destination, (tuple, list)) else (destination,))
        ]
        if len(sources) != len(targets) or any(len(set(dims)) < len(dims) for dims in (sources, targets)):
            raise AttributeValueError(
                f"movedim: cannot move {source} to {destination}", remedy="pass one destination for each source"
            )
        order = [d for d in range(self.ndim) if d not in sources]
        for target, dim in sorted(zip(targets, sources, strict=True)):
            order.insert(target, dim)
        return shape.transpose(self, permutation=tuple(order))

    moveaxis = movedim

    @rearranging
    def squeeze(self, dim: Any = None) -> Tensor:
        """Remove dimensions of size 1 (all of them, or the given ones)."""
        if dim is None:
            dims = set(range(self.ndim))
        else:
            dims = {dim_of(d, self.ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}
        remaining = tuple(s for d, s in enumerate(self.shape) if d not in dims or s != 1)
        return shape.reshape(self, shape=remaining)

    def storage_offset(self) -> int:
        """Return the number of elements in memory before this tensor's first one."""
        first, own = (
            front().layout(t).__array_interface__["data"][0]
            for t in (self if self._view is None else self._view.base, self)
        )
        return (own - first) // front().layout(self).itemsize

    def as_strided(self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
        """Return a view of this tensor's elements with any shape and strides (in elements, from ``storage_offset`` on).

        The tensor must be row-major, and the view must not reach beyond its elements. Raises ArgumentError,
        IndexRangeError.
        """
        if not self.is_contiguous():  # type: ignore[attr-defined]
            raise ArgumentError("as_strided takes a row-major tensor", remedy="call tensor.contiguous()")
        offset = 0 if storage_offset is None else storage_offset - self.storage_offset()
        return as_strided(self, shape=tuple(size), strides=tuple(stride), offset=offset)

    @rearranging
    def unsqueeze(self, dim: int) -> Tensor:
        """Insert a dimension of size 1 before ``dim``."""
        at = dim_of(dim, self.ndim + 1)
        return shape.reshape(self, shape=(*self.shape[:at], 1, *self.shape[at:]))

    @rearranging
    def expand(self, *sizes: Any, size: Any = None) -> Tensor:
        """Repeat dimensions of size 1 without copying; -1 keeps a dimension."""
        if size is None and dispatch.active() is None and all([s.__class__ is int for s in sizes]):
            full = _expanded_shape(sizes, self._data.shape)
            if full is not None:
                return expanded(self, full)
        requested = _named("expand", sizes, size)
        lead = len(requested) - self.ndim
        if lead < 0 or any(map(is_wildcard, requested[:lead])):
            raise ShapeError(f"expand: {list(requested)} does not fit a tensor of shape {list(self.shape)}")
        trailing = [s if is_wildcard(w) else w for w, s in zip(requested[lead:], self.shape, strict=True)]
        full = (*requested[:lead], *trailing)
        # NOTE: without repetition the memory stays writable.
        alike = same_sizes(full, (1,) * lead + tuple(self.shape))
        return shape.reshape(self, shape=full) if alike else expanded(self, full)

    def expand_as(self, other: Tensor) -> Tensor:
        """Expand this tensor to the shape of another one."""
        return self.expand(other.shape)

    def broadcast_to(self, *sizes: Any, size: Any = None) -> Tensor:
        """Repeat dimensions without copying to reach a shape (numpy's rules)."""
        try:
            return self.expand(*sizes, size=size)
        except ShapeError as error:
            name_in_error(error, "expand", "broadcast_to")
            raise

    @compiled_when_repeated
    def repeat(self, *sizes: Any, repeats: Any = None) -> Tensor:
        """Repeat the tensor along each dimension."""
        counts = _named("repeat", sizes, repeats)
        if any(c < 0 for c in counts):
            raise ShapeError(f"repeat: {list(counts)} has a negative number", remedy="pass numbers of 0 or more")
        lead = len(counts) - self.ndim
        if lead < 0:
            raise ShapeError(f"repeat: {list(counts)} has fewer entries than the tensor has dimensions ({self.ndim})")
        extents = (1,) * lead + self.shape
        paired = tuple(v for s in extents for v in (1, s))
        wide = tuple(v for c, s in zip(counts, extents, strict=True) for v in (c, s))
        result = shape.broadcast_to(shape.reshape(self, shape=paired), shape=wide)
        return shape.reshape(result, shape=tuple(c * s for c, s in zip(counts, extents, strict=True))).clone()

    @compiled_when_repeated
    def tile(self, *sizes: Any, dims: Any = None) -> Tensor:
        """Repeat the tensor like ``repeat``, with missing leading counts taken as 1."""
        counts = _named("tile", sizes, dims)
        return self.repeat((1,) * (self.ndim - len(counts)) + counts)

    def repeat_interleave(
        self, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
    ) -> Tensor:
        """Repeat each entry of a dimension (of the flattened tensor for None) next to itself.

        ``repeats`` is a number, or one per entry, whose values are needed. Without it, this tensor holds the numbers,
        and the result is the index of each repeated entry. ``output_size`` is not needed.
        """
        x = self.flatten() if dim is None else self
        at = 0 if dim is None else dim_of(dim, self.ndim)
        if isinstance(repeats, int) and repeats < 0:
            raise AttributeValueError(f"repeat_interleave: repeats is {repeats}", remedy="pass repeats >= 0")
        if not isinstance(repeats, int):
            numbers = x if repeats is None else repeats
            indices = compaction.repeat_indices(numbers, x.shape[at])
            return indices if repeats is None else gather(x, indices, axis=at)
        wide = x.unsqueeze(at + 1).expand(*x.shape[: at + 1], repeats, *x.shape[at + 1 :])
        repeated = wide.flatten(at, at + 1)
        return repeated.clone() if repeats == 1 else repeated

    # ---- splitting and joining

    @rearranging
    def narrow(self, dim: int, start: int, length: int) -> Tensor:
        """Return a view of ``length`` entries of a dimension, from ``start`` on."""
        at, extent = extent_of(dim, self.shape, "narrow")
        if isinstance(start, TensorBase):
            if start.shape or not start.dtype.is_integer:
                raise ArgumentError(
                    f"narrow: start is a {start.dtype.name} tensor {list(start.shape)}", remedy="pass an int"
                )
            if front().known(start) is None:
                return self._narrowed_in_calls(at, start, length)  # type: ignore[attr-defined]
            start = int(start.item())  # type: ignore[attr-defined]
        start = start + extent if start < 0 else start
        if not 0 <= start <= extent or length < 0 or start + length > extent:
            raise IndexRangeError(f"narrow: {start}..{start + length} is outside of dimension {dim} of size {extent}")
        return indexing.take(self, (slice(None),) * at + (slice(start, start + length),))

    def _narrowed_in_calls(self, at: int, start: Any, length: int) -> Any:
        """Return a copy of ``narrow`` with a start that differs between calls."""
        extent = self.shape[at]
        indexing.require(start, -extent, extent - length, "narrow: start")
        first = ew.where(ew.lt(start, 0), ew.add(start, extent), start)
        positions = ew.add(iota(shape=(length,), axis=0, dtype=int64), first)
        indexing.require(positions, 0, max(extent - 1, 0), "narrow: position")
        return gather(self, positions, axis=at)

    @rearranging
    def select(self, dim: int, index: int) -> Tensor:
        """Select one entry of a dimension, which is removed; a view."""
        return indexing.take(self, (slice(None),) * dim_of(dim, self.ndim) + (index,))

    @rearranging
    def split(self, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Split into views of ``split_size`` entries each (the last may be smaller), or of the sizes in a list."""
        _, extent = extent_of(dim, self.shape, "split")
        if not isinstance(split_size, (int, tuple, list)):
            raise ArgumentError(f"split: split_size is {split_size!r}", remedy="pass an int or a list of ints")
        if isinstance(split_size, int):
            if split_size < 0 or (split_size == 0 and extent):
                raise AttributeValueError(f"split: split_size must be positive, got {split_size}")
            count = -(-extent // (split_size or 1))
            last = extent - (count - 1) * split_size
            sizes = [*(split_size for _ in range(count - 1)), last] if count else [0]
        else:
            sizes = list(split_size)
            if sum(sizes) != extent or any(s < 0 for s in sizes):
                raise ShapeError(f"split: sizes {sizes} do not sum to {extent}, the size of dimension {dim}")
        starts, before = accumulate(sizes, initial=0), (slice(None),) * dim_of(dim, self.ndim)
        ranges = zip(starts, sizes, strict=False)
        return tuple([indexing.take(self, (*before, slice(start, start + size))) for start, size in ranges])

    @rearranging
    def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        """Split into at most ``chunks`` views of equal size (the last may be smaller)."""
        if not isinstance(chunks, int):
            raise ArgumentError(f"chunk: chunks is {chunks!r}", remedy="pass an int")
        if chunks <= 0:
            raise AttributeValueError(f"chunk needs a positive number of chunks, got {chunks}")
        _, extent = extent_of(dim, self.shape, "chunk")
        size = -(-extent // chunks)
        if is_size(size) and (chunks - 1) * size < extent:
            return self.split([*(size for _ in range(chunks - 1)), extent - (chunks - 1) * size], dim)
        return self.split(size if extent else [0] * chunks, dim)

    unsafe_split, unsafe_chunk, unsafe_split_with_sizes = split, chunk, Selection.split_with_sizes

    @rearranging
    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """Return the entries of a dimension as views."""
        if not self.shape:
            raise IndexRangeError("unbind needs a tensor of at least one dimension")
        return tuple(self.select(dim, i) for i in range(self.shape[dim_of(dim, self.ndim)]))

    def flip(self, *args: Any, dims: Any = None) -> Tensor:
        """Reverse the order of elements along dimensions."""
        rank = self.ndim
        axes = sorted([dim_of(d, rank) for d in _named("flip", args, dims)])
        return shape.flip(self, axes=tuple(axes) if rank else ())

    @compiled_when_repeated
    def roll(self, shifts: Any, dims: Any = None) -> Tensor:
        """Roll elements along dimensions (of the flattened tensor for None), from one end to the other."""
        moves = shifts if isinstance(shifts, (tuple, list)) else (shifts,)
        if not all(isinstance(m, (int, np.integer)) for m in moves):
            raise ArgumentError(f"roll: shifts is {shifts!r}", remedy="pass ints")
        if not moves:
            raise ArgumentError("roll: shifts is empty", remedy="pass an int for each dimension")
        rolled_dims = () if dims is None else dims if isinstance(dims, (tuple, list)) else (dims,)
        if not rolled_dims and len(moves) == 1:
            return self.flatten().roll(moves, (0,)).reshape(self.shape)
        if len(moves) != len(rolled_dims):
            raise AttributeValueError(f"roll: {len(moves)} shifts for {len(rolled_dims)} dimensions")
        if not self.shape:
            raise IndexRangeError("roll along a dimension needs a tensor with dimensions")
        result: Any = self
        for shift, dim in zip(moves, rolled_dims, strict=True):
            extent = self.shape[dim_of(dim, self.ndim)]
            cut = -shift % extent if extent else 0
            if not always("==", cut, 0):
                halves = result.narrow(dim, cut, extent - cut), result.narrow(dim, 0, cut)
                result = concatenate(halves, dim)
        return result.clone() if result is self else result

    def _triangle(self, diagonal: int, compare: Any) -> Any:
        if self.ndim < 2:
            raise ShapeError(f"tril and triu need at least 2 dimensions, got {self.ndim}")
        size = self.shape[-2:]
        row, column = iota(shape=size, axis=0), iota(shape=size, axis=1)
        return ew.where(compare(column, ew.add(row, diagonal)), self, False)

    @compiled_when_repeated
    def tril(self, diagonal: int = 0) -> Tensor:
        """Return the lower triangle of matrices, zero above the diagonal."""
        return self._triangle(diagonal, ew.le)

    @compiled_when_repeated
    def triu(self, diagonal: int = 0) -> Tensor:
        """Return the upper triangle of matrices, zero below the diagonal."""
        return self._triangle(diagonal, ew.ge)

    @rearranging
    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """Return the diagonal of two dimensions as a new last dimension; a view if the two can be viewed as one."""
        a, b = dim_of(dim1, self.ndim), dim_of(dim2, self.ndim)
        if a == b:
            raise AttributeValueError(f"diagonal: dimensions {dim1} and {dim2} are the same")
        if self.stride(a) < self.stride(b):  # type: ignore[attr-defined]
            a, b, offset = b, a, -offset
        x = self.movedim((a, b), (-2, -1))
        rows, columns = x.shape[-2:]
        top, first_column = max(-offset, 0), max(offset, 0)
        count = max(0, min(rows - top, columns - first_column))
        start = min(top * columns + first_column, rows * columns)
        stop = start + (count - 1) * (columns + 1) + 1 if count else start
        flat = x.reshape(*x.shape[:-2], rows * columns)
        return indexing.take(flat, (..., slice(start, stop, columns + 1)))

    # ---- indexing

    def __getitem__(self, index: Any) -> Tensor:
        return indexing.take(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        indexing.put(self, index, value)

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("a tensor without dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise ArgumentError("a tensor without dimensions cannot be iterated over")
        if is_size(self.shape[0]):
            warnings.warn(
                f"a loop over a tensor with {self.shape[0]} slices is traced for the number that there are in this "
                "call; use graphc.scan(f, state, x) for one program for all numbers",
                RecompileWarning,
                stacklevel=2,
            )
        return iter(self.unbind(0))

    @compiled_when_repeated
    def index_select(self, dim: int, index: Tensor) -> Tensor:
        """Select the entries of a dimension at the indices in a one-dimensional integer tensor."""
        at = indexing.need_entries("index_select", self, dim, index)
        if not self.shape:
            return self.reshape(1).index_select(0, index).reshape(())
        return gather(self, indexing.entries(index, self.shape[at], "index_select: index"), axis=at)

    @compiled_when_repeated
    def gather(self, dim: int, index: Tensor) -> Tensor:
        """Gather element ``index[i, j], j`` (for ``dim`` 0) as element ``i, j`` of the result."""
        at = indexing.need_places("gather", self, dim, index)
        flat = shape.reshape(self, shape=(self.numel(),))
        if not index.numel():
            return shape.reshape(shape.slice(flat, starts=(0,), stops=(0,), steps=(1,)), shape=index.shape)
        return gather(flat, indexing.along(index, at, self.shape or (1,), "gather: index"), axis=0)

    @compiled_when_repeated
    def scatter_add(self, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """Add ``src[i, j]`` to the tensor at ``index[i, j], j`` (for ``dim`` 0)."""
        at = indexing.need_places("scatter_add", self, dim, index, src)
        if not index.numel():
            return self.clone()  # type: ignore[attr-defined]
        positions = indexing.along(index, at, self.shape or (1,), "scatter_add: index")
        updates = indexing.leading(src, index.shape)
        flat = indexing.added(shape.reshape(self, shape=(self.numel(),)), positions, updates, 0)
        return shape.reshape(flat, shape=self.shape)

    @compiled_when_repeated
    def scatter(
        self, dim: int, index: Tensor, src: Any = None, *, value: float | None = None, reduce: str | None = None
    ) -> Tensor:
        """Put ``src[i, j]`` (or a number) into the tensor at ``index[i, j], j`` (for ``dim`` 0).

        ``reduce`` is None, ``add`` or ``multiply``.
        """
        update = value if src is None else src
        if update is None:
            raise ArgumentError("scatter needs src or value")
        src = update if isinstance(update, TensorBase) else shape.filled(update, self.dtype, index.shape)
        if reduce is not None:
            how = {"add": "sum", "multiply": "prod"}.get(reduce)
            if how is None:
                raise AttributeValueError(f"scatter: unknown reduce {reduce!r}", remedy="pass 'add' or 'multiply'")
            return self.scatter_reduce(dim, index, src, how)  # type: ignore[arg-type]
        at = indexing.need_places("scatter", self, dim, index, src)
        if not (is_size(count := index.numel()) or count):
            return self.clone()  # type: ignore[attr-defined]
        positions, src = (
            indexing.along(index, at, self.shape or (1,), "scatter: index"),
            indexing.leading(src, index.shape),
        )
        result = front().own(shape.reshape(self, shape=(self.numel(),)))
        indexing.put(result, positions, src)
        return result.reshape(self.shape)

    @compiled_when_repeated
    def masked_fill(self, mask: Tensor, value: Any) -> Tensor:
        """Replace elements by ``value`` where the mask is true."""
        return ew.where(mask, filling("masked_fill", mask, value, self.dtype), self)

    def where(self, condition: Tensor, other: Any) -> Tensor:
        """Select this tensor's elements where the condition holds, else those of ``other``."""
        return ew.where(condition, self, other)

    def nonzero(self, as_tuple: bool = False) -> Any:
        """Return the indices of nonzero elements, one row each, or one vector for each dimension."""
        indices = compaction.positions(self.reshape(1) if as_tuple and not self.ndim else self, "nonzero()")
        return indices.unbind(1) if as_tuple else indices

    def masked_select(self, mask: Tensor) -> Tensor:
        """Select the elements at true positions of the mask as a vector."""
        extents = common_shape(self.shape, mask.shape)
        wide = self.expand(*extents), mask.expand(*extents)
        return indexing.take(*(wide if extents else [t.reshape(1) for t in wide]))
