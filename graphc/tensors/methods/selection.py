"""Tensor methods that select, scatter and split by dimension: index_add, scatter_reduce, tensor_split, unfold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.device import device as device_of
from graphc.base.dtypes import DType, dtype_of, fitted, int64, uint8
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, IndexRangeError, ShapeError
from graphc.base.sizes.dims import common_shape, dim_of, extent_of, new_shape, sizes_of
from graphc.ops.define import as_type, common_type
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.reduction.reduce import sum_to
from graphc.ops.selection.index import gather, iota, scatter, scatter_add, scatter_extreme, scatter_product
from graphc.tensors import composite, indexing
from graphc.tensors.methods import algebra, ordering
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor_base import TensorBase, front, name_in_error, need_tensor

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor


def filling(name: str, mask: Any, value: Any, dtype: DType) -> Any:
    """Convert ``value`` (one number) to ``dtype``; raise ArgumentError, ShapeError or AttributeValueError."""
    if mask.dtype.kind != "b":
        raise ArgumentError(f"{name} needs a boolean mask, got {mask.dtype.name}", remedy="call mask.bool()")
    if not isinstance(value, TensorBase):
        return front().scalar(fitted(value, dtype), dtype)
    if value.shape:
        raise ShapeError(f"{name}: the value is a tensor of shape {list(value.shape)}", remedy="use graphc.where")
    return as_type(value, dtype)


class Selection(TensorBase):
    """Selection and assignment along dimensions."""

    def take(self, index: Tensor) -> Tensor:
        """Select elements at positions of the flattened tensor."""
        return indexing.take(shape.reshape(self, shape=(self.numel(),)), (index,))

    @compiled_when_repeated
    def take_along_dim(self, indices: Tensor, dim: int | None = None) -> Tensor:
        """Gather elements like ``gather``, but with shapes that broadcast; from the flattened tensor for None."""
        if dim is None:
            return Selection.take(self, shape.reshape(indices, shape=(indices.numel(),)))
        at = dim_of(dim, self.ndim)
        sizes = common_shape(
            tuple(1 if d == at else s for d, s in enumerate(self.shape)),
            tuple(1 if d == at else s for d, s in enumerate(indices.shape)),
        )
        wide = self.expand(*(s if d != at else self.shape[d] for d, s in enumerate(sizes)))  # type: ignore[attr-defined]
        chosen = indices.expand(*(s if d != at else indices.shape[d] for d, s in enumerate(sizes)))
        indexing.require(indices, -self.shape[at], self.shape[at] - 1, "take_along_dim: index")
        chosen = ew.where(ew.lt(chosen, 0), ew.add(chosen, self.shape[at]), chosen)
        return ordering.take_along(wide, chosen, at)

    @compiled_when_repeated
    def index_add(self, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
        """Add the entries of ``source`` to the entries of a dimension that ``index`` selects."""
        at = indexing.need_entries("index_add", self, dim, index, source)
        if not self.shape:
            vector = self.reshape(1)  # type: ignore[attr-defined]
            return vector.index_add(0, index, source.reshape(1), alpha=alpha).reshape(())
        value = source if alpha == 1 else as_type(ew.mul(source, alpha), self.dtype)
        return indexing.added(self, indexing.entries(index, self.shape[at], "index_add: index"), value, at)

    @compiled_when_repeated
    def index_copy(self, dim: int, index: Tensor, source: Tensor) -> Tensor:
        """Replace the entries of a dimension that ``index`` selects by the entries of ``source``."""
        return self.clone().index_copy_(dim, index, source)  # type: ignore[attr-defined]

    @compiled_when_repeated
    def index_fill(self, dim: int, index: Tensor, value: Any) -> Tensor:
        """Fill the entries of a dimension that ``index`` selects."""
        return self.clone().index_fill_(dim, index, value)  # type: ignore[attr-defined]

    def index_put(self, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
        """Replace the elements at ``indices`` by ``values``, or add these with ``accumulate``."""
        return self.clone().index_put_(indices, values, accumulate)  # type: ignore[attr-defined]

    def masked_scatter(self, mask: Any, source: Tensor) -> Tensor:
        """Replace the elements at true positions of the mask by elements of ``source``, in order."""
        if mask.dtype.kind != "b":
            raise DTypeError(f"masked_scatter needs a boolean mask, got {mask.dtype.name}", remedy="call mask.bool()")
        if source.dtype is not self.dtype:
            what = f"masked_scatter: the tensor is {self.dtype.name}, source {source.dtype.name}"
            raise DTypeError(what, remedy=f"call source.to(graphc.{self.dtype.long_name})")
        extents = common_shape(self.shape, mask.shape)
        x: Any
        x, mask = (t if t.shape == extents else shape.broadcast_to(t, shape=extents) for t in (self, mask))
        if isinstance(mask._data, np.ndarray) and int(mask._data.sum()) > source.numel():
            raise ShapeError(
                f"masked_scatter: source has {source.numel()} elements for {int(mask._data.sum())} true mask elements",
                remedy="pass a source with at least one element per true mask element",
            )
        if not source.numel() or not math.prod(extents):
            return x.clone()  # type: ignore[attr-defined]
        flat = shape.reshape(mask, shape=(math.prod(extents),))
        source_index = ew.sub(ordering.Ordering.cumsum(flat, 0), 1)
        last = max(source.numel() - 1, 0)
        selected = gather(
            shape.reshape(source, shape=(source.numel(),)), composite.clamp(source_index, 0, last), axis=0
        )
        return ew.where(mask, shape.reshape(selected, shape=extents), x)

    @compiled_when_repeated
    def scatter_reduce(
        self, dim: int, index: Tensor, src: Tensor, reduce: str = "sum", *, include_self: bool = True
    ) -> Tensor:
        """Combine the tensor with ``src[i, j]`` at ``index[i, j], j`` (for ``dim`` 0) by ``sum``, ``mean``, ``prod``,
        ``amax`` or ``amin``."""
        at = indexing.need_places("scatter_reduce", self, dim, index, src)
        if reduce not in ("sum", "mean", "prod", "amax", "amin"):
            raise AttributeValueError(
                f"scatter_reduce: unknown reduce {reduce!r}", remedy="use sum, mean, prod, amax or amin"
            )
        if not self.shape:
            vector = self.reshape(1)  # type: ignore[attr-defined]
            return vector.scatter_reduce(0, index, src, reduce, include_self=include_self).reshape(())
        index = indexing.entries(index, self.shape[at], "scatter_reduce: index")
        if self.dtype.kind == "b" and reduce != "mean":
            bits = (ew.cast(t, dtype=uint8) for t in (self, src))
            fold = {"sum": "amax", "prod": "amin"}.get(reduce, reduce)
            combined = Selection.scatter_reduce(next(bits), at, index, next(bits), fold, include_self=include_self)
            return ew.ne(combined, 0)
        source = indexing.leading(src, index.shape)
        if reduce in ("sum", "mean"):
            return _scatter_sum(self, at, index, source, reduce == "mean", include_self)
        return _scatter_reduced(self, at, index, source, reduce, include_self)

    def index_reduce(
        self, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
    ) -> Tensor:
        """Combine the entries of a dimension that ``index`` selects with those of ``source`` by ``prod``, ``mean``,
        ``amax`` or ``amin``."""
        at = indexing.need_entries("index_reduce", self, dim, index, source)
        if reduce not in ("prod", "mean", "amax", "amin"):
            raise AttributeValueError(f"index_reduce: unknown reduce {reduce!r}", remedy="use prod, mean, amax or amin")
        if not self.shape:
            return Selection.scatter_reduce(
                self, 0, index.reshape(()), source.reshape(()), reduce, include_self=include_self
            )
        wide = tuple(1 if d != at else index.numel() for d in range(self.ndim))
        positions = shape.broadcast_to(shape.reshape(index, shape=wide), shape=source.shape)
        return Selection.scatter_reduce(self, at, positions, source, reduce, include_self=include_self)

    def put(self, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
        """Replace elements at positions of the flattened tensor by elements of ``source``, or add these with
        ``accumulate``."""
        if index.numel() != source.numel():
            raise ShapeError(
                f"put: {source.numel()} elements for {index.numel()} positions",
                remedy="pass as many elements as positions",
            )
        flat: Any = shape.reshape(self, shape=(self.numel(),))
        values, positions = (shape.reshape(t, shape=(t.numel(),)) for t in (source, index))
        return flat.index_put((positions,), values, accumulate).reshape(self.shape)

    def diagonal_scatter(self, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """Replace a diagonal by ``src``."""
        return _with_view(self, lambda x: x.diagonal(offset, dim1, dim2), src, "diagonal_scatter")

    def as_strided_scatter(
        self, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int = 0
    ) -> Tensor:
        """Replace the elements of the view ``as_strided`` by ``src``."""
        return _with_view(self, lambda x: x.as_strided(size, stride, storage_offset), src, "as_strided_scatter")

    def nonzero_static(self, *, size: int, fill_value: int = -1) -> Tensor:
        """Return the indices of the first ``size`` nonzero elements, one row each, then rows of ``fill_value``. Unlike
        ``nonzero``, the shape does not depend on values, so that it can be traced."""
        flat = ew.ne(shape.reshape(self, shape=(self.numel(),)), 0)
        order = ew.sub(ordering.Ordering.cumsum(flat, 0), 1)
        slot = ew.where(ew.logical_and(flat, ew.lt(order, size)), order, size)
        positions: Any = scatter(
            shape.filled(-1, int64, (size + 1,)), slot, iota(shape=flat.shape, axis=0, dtype=int64), axis=0
        )
        positions = positions.narrow(0, 0, size)
        columns = unravelled(positions, self.shape)
        if not columns:
            return shape.filled(fill_value, int64, (size, 0))
        rows = shape.concat(*(shape.reshape(c, shape=(size, 1)) for c in columns), axis=1)
        return ew.where(ew.lt(shape.reshape(positions, shape=(size, 1)), 0), fill_value, rows)

    def select_scatter(self, src: Tensor, dim: int, index: int) -> Tensor:
        """Replace one entry of a dimension by ``src``."""
        at = dim_of(dim, self.ndim)
        result = self.clone()  # type: ignore[attr-defined]
        result[(slice(None),) * at + (index,)] = src
        return result

    def slice_scatter(
        self, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
    ) -> Tensor:
        """Replace a slice of a dimension by ``src``."""
        at = dim_of(dim, self.ndim)
        result = self.clone()  # type: ignore[attr-defined]
        result[(slice(None),) * at + (slice(start, end, step),)] = src
        return result

    def diag(self, diagonal: int = 0) -> Tensor:
        """Return the diagonal of a matrix, or the matrix with a vector on its diagonal."""
        return algebra.diag(self, diagonal)

    def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
        """Return matrices with the last dimension on their diagonal."""
        return algebra.diag_embed(self, offset, dim1, dim2)

    def diagflat(self, offset: int = 0) -> Tensor:
        """Return the matrix with all elements on its diagonal."""
        return algebra.diag_embed(shape.reshape(self, shape=(self.numel(),)), offset)

    def argwhere(self) -> Tensor:
        """Return the indices of nonzero elements, one row each; not possible in compiled code."""
        return self.nonzero()  # type: ignore[attr-defined]

    def sum_to_size(self, *size: Any) -> Tensor:
        """Sum over the dimensions along which ``size`` was broadcast to reach this shape; over all of them for ()."""
        target_shape = sizes_of(size)
        if not target_shape:
            return composite.total(self)
        if len(target_shape) > self.ndim or any(
            w not in (1, s) for w, s in zip(target_shape[::-1], self.shape[::-1], strict=False)
        ):
            raise ShapeError(f"sum_to_size: {list(target_shape)} does not broadcast to {list(self.shape)}")
        return sum_to(self, target_shape)

    # ---- splitting and windows

    def tensor_split(self, indices_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Split into that many views of nearly equal size, or at the given positions."""
        _, extent = extent_of(dim, self.shape, "tensor_split")
        if isinstance(indices_or_sections, TensorBase):
            purpose = "tensor_split() by a tensor, whose results have sizes that depend on values,"
            indices_or_sections = front().values(indices_or_sections, purpose).tolist()
        if isinstance(indices_or_sections, int):
            if indices_or_sections < 1:
                raise AttributeValueError(f"tensor_split needs at least one part, got {indices_or_sections}")
            base, more = divmod(extent, indices_or_sections)
            sizes = [base + (i < more) for i in range(indices_or_sections)]
            bounds = np.cumsum([0, *sizes]).tolist()
        else:
            bounds = [0, *(slice(None, i).indices(extent)[1] for i in indices_or_sections), extent]
        pairs = itertools.pairwise(bounds)
        return tuple(self.narrow(dim, a, max(b - a, 0)) for a, b in pairs)  # type: ignore[attr-defined]

    def hsplit(self, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
        """Split equally along the second dimension (the first one of a vector); see tensor_split."""
        return self._split_equally("hsplit", indices_or_sections, 0 if self.ndim == 1 else 1, 1)

    def vsplit(self, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
        """Split equally along the first dimension; see tensor_split."""
        return self._split_equally("vsplit", indices_or_sections, 0, 2)

    def dsplit(self, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
        """Split equally along the third dimension; see tensor_split."""
        return self._split_equally("dsplit", indices_or_sections, 2, 3)

    def _split_equally(self, name: str, sections: Any, dim: int, rank: int) -> tuple[Tensor, ...]:
        if self.ndim < rank:
            raise ShapeError(f"{name} takes at least {rank} dimensions, got {list(self.shape)}")
        if isinstance(sections, int) and (sections < 1 or self.shape[dim] % sections):
            raise AttributeValueError(
                f"{name}: cannot split {self.shape[dim]} entries into {sections} equal parts",
                remedy=f"call tensor_split({sections}, {dim})",
            )
        return Selection.tensor_split(self, sections, dim)

    def split_with_sizes(self, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Split into views of the given sizes."""
        return self.split(list(split_sizes), dim)  # type: ignore[attr-defined]

    def unfold(self, dimension: int, size: int, step: int) -> Tensor:
        """Return all windows of ``size`` entries of a dimension, ``step`` apart, with their elements in a new last
        dimension."""
        at = dim_of(dimension, self.ndim)
        extent = self.shape[at] if self.shape else 1
        if size > extent or size < 0 or step < 1:
            raise IndexRangeError(f"unfold: size {size}, step {step} do not fit a dimension of size {extent}")
        count = (extent - size) // step + 1
        starts = ew.mul(iota(shape=(count, size), axis=0, dtype=int64), step)
        positions = ew.add(starts, iota(shape=(count, size), axis=1, dtype=int64))
        source: Any = self if self.shape else shape.reshape(self, shape=(1,))
        windows = gather(source, positions, axis=at)
        return windows.movedim(at + 1, -1) if self.shape else windows.reshape(size)

    def fliplr(self) -> Tensor:
        """Reverse the second dimension."""
        if self.ndim < 2:
            raise ShapeError(f"fliplr needs at least 2 dimensions, got {self.ndim}")
        return shape.flip(self, axes=(1,))

    def flipud(self) -> Tensor:
        """Reverse the first dimension."""
        if self.ndim < 1:
            raise ShapeError("flipud needs at least 1 dimension")
        return shape.flip(self, axes=(0,))

    def rot90(self, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
        """Rotate by ``k`` right angles from the first towards the second of two dimensions."""
        named = [dim_of(d, self.ndim) for d in dims]
        if not isinstance(k, int):
            raise ArgumentError(f"rot90: k must be an int, got {k!r}", remedy="pass an int")
        if self.ndim < 2 or len(named) != 2 or named[0] == named[1]:
            raise AttributeValueError(
                f"rot90 rotates in a plane, got dimensions {[*dims]} of {self.ndim}",
                remedy="pass two different dimensions",
            )
        a, b = named
        turned: Any = self
        if k % 4 == 1:
            turned = shape.flip(self, axes=(b,)).transpose(a, b)
        elif k % 4 == 2:
            turned = shape.flip(self, axes=tuple(sorted((a, b))))
        elif k % 4 == 3:
            turned = shape.flip(self, axes=(a,)).transpose(a, b)
        return turned.clone() if turned is self else turned


def _scatter_sum(x: Any, at: int, index: Any, source: Any, mean: bool, include_self: bool) -> Any:
    hits = x.new_zeros(x.shape).scatter_add(at, index, shape.filled(1, x.dtype, index.shape))
    start = x if include_self else ew.where(ew.gt(hits, 0), 0, x)
    total = start.scatter_add(at, index, source)
    if not mean:
        return total
    count = composite.clamp(ew.add(hits, 1) if include_self else hits, 1, None)
    return ew.div(total, count) if x.dtype.is_differentiable else ew.floor_div(total, count)


def _scatter_reduced(x: Any, at: int, index: Any, source: Any, fold: str, include_self: bool) -> Any:
    """Combine elements by ``prod``, ``amax`` or ``amin``."""
    positions = indexing.along(index, at, x.shape)
    flat = shape.reshape(x, shape=(x.numel(),))
    low, high = ordering.limits(x.dtype)
    if not include_self:
        none = shape.filled(0, int64, flat.shape)
        hits = scatter_add(none, positions, shape.filled(1, int64, positions.shape), axis=0)
        neutral = {"prod": 1, "amax": low, "amin": high}[fold]
        flat = ew.where(ew.gt(hits, 0), neutral, flat)
    if fold == "prod":
        combined = scatter_product(flat, positions, source, axis=0)
    else:
        combined = scatter_extreme(flat, positions, source, axis=0, largest=fold == "amax")
    return shape.reshape(combined, shape=x.shape)


def _with_view(x: Any, view: Callable[[Any], Any], src: Any, name: str) -> Any:
    """Replace the elements of the view that ``view`` returns by ``src``."""
    target = view(x)  # raises if this tensor has no such view
    if target.shape != src.shape:
        raise ShapeError(
            f"{name}: src has shape {list(src.shape)}, the view {list(target.shape)}", remedy="call src.expand(...)"
        )
    positions = view(shape.reshape(iota(shape=(x.numel(),), axis=0, dtype=int64), shape=x.shape))
    return Selection.put(x, positions, as_type(src, x.dtype))


def unravelled(index: Any, extents: Sequence[int]) -> tuple[Any, ...]:
    """Convert positions in a flattened tensor to coordinates."""
    coordinates = []
    for extent in reversed(extents):
        coordinates.append(ew.mod(index, extent))
        index = ew.floor_div(index, extent)
    return tuple(reversed(coordinates))


# ---- joining


def several(name: str, tensors: Any) -> list[Any]:
    """Return the tensors that an argument lists. Raise ArgumentError for one tensor, and for anything but tensors."""
    if isinstance(tensors, TensorBase) or not isinstance(tensors, Iterable):
        got = "one tensor" if isinstance(tensors, TensorBase) else type(tensors).__name__
        raise ArgumentError(f"{name} takes a list of tensors, got {got}", remedy=f"call {name}([a, b])")
    listed = list(tensors)
    need_tensor(name, *listed)
    return listed


def _rows(name: str, tensors: Any, rank: int) -> list[Any]:
    return [at_least(t, rank) for t in several(name, tensors)]


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """Return the combinations of ``r`` elements of a vector, one per row, in order; ``with_replacement`` repeats
    elements."""
    need_tensor("combinations", input)
    if len(input.shape) != 1 or r < 0:
        raise ArgumentError(f"combinations takes a vector and r >= 0, got {list(input.shape)} and {r}")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(input.shape[0]), r)), np.int64).reshape(-1, r)
    if not rows.size:
        nothing = shape.reshape(input.narrow(0, 0, 0), shape=(0,))
        return shape.reshape(nothing, shape=rows.shape if r else (0,))
    return gather(input, front().constant(rows), axis=0)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Return the powers of a vector's elements as columns, the highest first unless ``increasing``."""
    if len(x.shape) != 1 or (N is not None and N < 0):
        raise ArgumentError(f"vander takes a vector and N >= 0, got {list(x.shape)} and {N}")
    count = x.shape[0] if N is None else N
    ones = shape.filled(1, x.dtype if x.dtype.is_differentiable else int64, x.shape)
    columns, last = [], ones
    for _ in range(count):
        columns.append(shape.reshape(last, shape=(*x.shape, 1)))
        last = ew.mul(last, x)
    if not columns:
        return shape.filled(0, ones.dtype, (*x.shape, 0))
    return shape.concat(*(columns if increasing else columns[::-1]), axis=1)


def at_least(x: Any, rank: int) -> Any:
    """Give ``x`` at least ``rank`` (1 to 3) dimensions: vectors become rows, matrices get a last dimension of 1."""
    if len(x.shape) >= rank:
        return x
    shapes = {
        (1, 0): (1,),
        (2, 0): (1, 1),
        (2, 1): (1, *x.shape),
        (3, 0): (1, 1, 1),
        (3, 1): (1, *x.shape, 1),
        (3, 2): (*x.shape, 1),
    }
    return shape.reshape(x, shape=shapes[(rank, len(x.shape))])


def joined(name: str, tensors: Sequence[Any], axis: int) -> Any:
    """Concatenate tensors along a dimension, with promoted element types."""
    if not tensors:
        raise ArgumentError(f"{name} needs at least one tensor", remedy="pass a list of tensors that is not empty")
    need_tensor(name, *tensors)
    dtype = common_type(list(tensors), name)
    return concatenated(name, [as_type(t, dtype) for t in tensors], axis)


def concatenated(name: str, tensors: Sequence[Any], axis: int) -> Any:
    """Concatenate tensors of one element type; errors name the user's function."""
    try:
        return shape.concat(*tensors, axis=axis)
    except ShapeError as error:
        name_in_error(error, "concat", name)
        raise


def expanded(x: Any, sizes: tuple[int, ...]) -> Any:
    """Broadcast ``x``; errors name ``expand``."""
    try:
        return shape.broadcast_to(x, shape=sizes)
    except ShapeError as error:
        name_in_error(error, "broadcast_to", "expand")
        raise


def hstack(tensors: Sequence[Any]) -> Any:
    """Concatenate tensors along the second dimension, vectors along the first."""
    rows = _rows("hstack", tensors, 1)
    return joined("hstack", rows, 0 if not rows or len(rows[0].shape) == 1 else 1)


def vstack(tensors: Sequence[Any]) -> Any:
    """Concatenate tensors along the first dimension, vectors as rows."""
    return joined("vstack", _rows("vstack", tensors, 2), 0)


def dstack(tensors: Sequence[Any]) -> Any:
    """Concatenate tensors along the third dimension."""
    return joined("dstack", _rows("dstack", tensors, 3), 2)


def column_stack(tensors: Sequence[Any]) -> Any:
    """Concatenate tensors along the second dimension, vectors as columns."""
    listed = several("column_stack", tensors)
    columns = [shape.reshape(t, shape=(t.numel(), 1)) if len(t.shape) < 2 else t for t in listed]
    return joined("column_stack", columns, 1)


def block_diag(*tensors: Any) -> Any:
    """Return the matrix with the given ones along its diagonal and zeros elsewhere."""
    need_tensor("block_diag", *tensors)
    blocks = [at_least(t, 2) for t in tensors]
    width = sum(b.shape[1] for b in blocks)
    rows, offset = [], 0
    for b in blocks:
        right = width - offset - b.shape[1]
        rows.append(shape.pad(b, low=(0, offset), high=(0, right), interior=(0, 0)))
        offset += b.shape[1]
    return joined("block_diag", rows, 0)


def cartesian_prod(*tensors: Any) -> Any:
    """Return all combinations of one element of each vector, as rows."""
    need_tensor("cartesian_prod", *tensors)
    if len(tensors) == 1:
        return tensors[0]
    count = len(tensors)
    extents = tuple(t.numel() for t in tensors)
    grids = [
        shape.broadcast_to(
            shape.reshape(t, shape=tuple(t.numel() if d == i else 1 for d in range(count))), shape=extents
        )
        for i, t in enumerate(tensors)
    ]
    flat = [shape.reshape(g, shape=(math.prod(extents), 1)) for g in grids]
    return joined("cartesian_prod", flat, 1)


def triangle_indices(row: int, col: int, offset: int, lower: bool, dtype: Any, device: Any) -> Any:
    """Return the rows and columns ([2, n]) of one triangle of a matrix."""
    if device is not None:
        device_of(device)
    ones = np.ones(new_shape((row, col)), bool)
    indices = np.nonzero(np.tril(ones, offset) if lower else np.triu(ones, offset))
    return front().constant(np.stack(indices).astype(dtype_of(dtype).numpy))
