"""Look-ups by index: embeddings and one-hot vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.dtypes import int64
from graphc.base.errors import AttributeValueError, DTypeError, ShapeError
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.reduction import reduce
from graphc.ops.selection import index
from graphc.tape.grad_mode import no_grad
from graphc.tensors import composite
from graphc.tensors.indexing import require
from graphc.tensors.placement import beside
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

__all__ = ["embedding", "embedding_bag", "one_hot"]


@compiled_when_repeated
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of ``weight`` [count, size] at ``input`` (integers of any shape): [*input.shape, size].

    The row ``padding_idx`` gets no gradient. ``max_norm`` first scales down, in place, rows of ``weight`` whose
    ``norm_type``-norm is larger. ``scale_grad_by_freq`` divides the gradient of a row by how often the row is used.
    Gradients are dense, whatever ``sparse`` is.
    """
    if not input.dtype.is_integer:
        raise DTypeError(f"embedding: indices must be integers, got {input.dtype.name}", remedy="pass x.long()")
    if len(weight.shape) != 2:
        raise ShapeError(
            f"embedding: the weight {list(weight.shape)} is not a matrix", remedy="pass a matrix of one row per index"
        )
    require(input, 0, weight.shape[0] - 1, "embedding: index")
    if max_norm is not None:
        _limit_norm(weight, input, max_norm, norm_type)
    rows = index.gather(weight, input, axis=0)
    if scale_grad_by_freq:
        rows = _scaled_by_count(rows, input, weight)
    if padding_idx is None:
        return rows
    padding = padding_index(padding_idx, weight.shape[0])
    blocked = ew.eq(input, padding).reshape(*input.shape, *(1,) * (len(weight.shape) - 1))
    return ew.where(blocked, rows.detach(), rows)


def _scaled_by_count(rows: Tensor, input: Tensor, weight: Tensor) -> Tensor:
    """Return the rows unchanged, with gradients divided by how often each row is used."""
    factor = _one_over_count(input, weight).reshape(*rows.shape[:-1], 1)
    return ew.add(ew.mul(rows, factor), ew.mul(rows, ew.sub(1.0, factor)).detach())


def _one_over_count(input: Tensor, weight: Tensor) -> Tensor:
    """Return for each index the reciprocal of its number of occurrences."""
    zeros = beside(front().constant(np.zeros(weight.shape[0], weight.dtype.numpy)), weight)
    flat = input.reshape(-1)
    counts = index.scatter_add(zeros, flat, _ones(input, weight), axis=0)
    return ew.div(1.0, index.gather(counts, flat, axis=0))


def padding_index(padding_idx: int, count: int) -> int:
    """Count ``padding_idx`` from the front; raise AttributeValueError outside of ``count`` rows."""
    if not -count <= padding_idx < count:
        raise AttributeValueError(f"embedding: padding_idx {padding_idx} is outside of {count} rows")
    return padding_idx % count


def _limit_norm(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    with no_grad():
        norms = composite.norm(weight, norm_type, 1, keepdim=True)
        # This factor keeps a row just inside the limit; the margin prevents division by zero.
        scaled = ew.mul(weight, ew.div(max_norm, ew.add(norms, 1e-7)))
        used = index.scatter_add(ew.mul(norms, 0).reshape(-1), input.reshape(-1), _ones(input, norms), axis=0)
        large = ew.logical_and(ew.gt(norms, max_norm), ew.gt(used, 0).reshape(-1, 1))
        weight.copy_(ew.where(large, scaled, weight))


def _ones(input: Tensor, like: Tensor) -> Tensor:
    return beside(front().constant(np.ones(input.numel(), like.dtype.numpy)), like)


@compiled_when_repeated
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Combine the rows of ``weight`` [count, size] at ``input`` per bag by ``sum``, ``mean`` or ``max``: [bags, size].

    Bags are the rows of ``input`` [bags, length], or slices of a vector that begin at ``offsets`` (with
    ``include_last_offset`` its last entry is the end of the last bag). Entries equal to ``padding_idx`` do not count;
    an empty bag gives zeros. ``per_sample_weights`` (of the input's shape, for ``sum``) scale rows.
    """
    _check_bags(input, offsets, mode, per_sample_weights)
    if len(weight.shape) != 2:
        raise ShapeError(
            f"embedding_bag: the weight {list(weight.shape)} is not a matrix",
            remedy="pass a matrix of one row per index",
        )
    require(input, 0, weight.shape[0] - 1, "embedding_bag: index")
    if max_norm is not None:
        _limit_norm(weight, input, max_norm, norm_type)
    rows = index.gather(weight, input.reshape(-1), axis=0)
    if scale_grad_by_freq:
        rows = _scaled_by_count(rows, input, weight)
    bags, count = _bags(input, offsets, include_last_offset)
    counted = ew.ge(bags, 0)
    if padding_idx is not None:
        counted = ew.logical_and(counted, ew.ne(input.reshape(-1), padding_index(padding_idx, weight.shape[0])))
    if mode == "max":
        return _largest(rows, bags, counted, count)
    ones = ew.cast(counted, dtype=rows.dtype)
    scale = ones if per_sample_weights is None else ew.mul(ones, per_sample_weights.reshape(-1))
    zeros = weight.new_zeros(count, weight.shape[1])
    total = index.scatter_add(zeros, bags, ew.mul(rows, scale.unsqueeze(1)), axis=0)
    if mode == "sum":
        return total
    sizes = index.scatter_add(weight.new_zeros(count), bags, ones, axis=0)
    return ew.div(total, ew.maximum(sizes, 1).unsqueeze(1))


def _largest(rows: Tensor, bags: Tensor, counted: Tensor, count: int) -> Tensor:
    """Return the largest row of each bag, 0 for an empty bag."""
    member = ew.logical_and(ew.eq(bags, index.iota(shape=(count, 1), axis=0)), counted)
    if not rows.shape[0]:
        return rows.new_zeros(count, rows.shape[1])
    top = reduce.max(ew.where(member.unsqueeze(2), rows, -np.inf), axes=(1,), keepdims=False)
    return ew.where(reduce.any(member, axes=(1,), keepdims=True), top, 0)


def _check_bags(input: Tensor, offsets: Any, mode: str, weights: Any) -> None:
    if mode not in ("sum", "mean", "max"):
        raise AttributeValueError(f"embedding_bag: mode {mode!r} is not known", remedy="pass 'sum', 'mean' or 'max'")
    if weights is not None and mode != "sum":
        raise AttributeValueError(f"embedding_bag: per_sample_weights need mode 'sum', got {mode!r}")
    if not input.dtype.is_integer:
        raise DTypeError(f"embedding_bag: indices must be integers, got {input.dtype.name}", remedy="pass x.long()")
    if len(input.shape) == 2 and offsets is not None:
        raise AttributeValueError("embedding_bag: the rows of a matrix are the bags, so offsets must be None")
    if len(input.shape) == 1 and (offsets is None or len(offsets.shape) != 1):
        raise AttributeValueError("embedding_bag: a vector of indices needs a vector of offsets")
    if len(input.shape) not in (1, 2):
        raise AttributeValueError(f"embedding_bag: indices must be a vector or a matrix, got {list(input.shape)}")
    if weights is not None and tuple(weights.shape) != tuple(input.shape):
        raise ShapeError(
            f"embedding_bag: per_sample_weights {list(weights.shape)} and indices {list(input.shape)} differ in shape"
        )


def _bags(input: Tensor, offsets: Tensor | None, include_last: bool) -> tuple[Tensor, int]:
    """Return the bag of every index, and the number of bags."""
    if offsets is None:
        count, length = input.shape
        return index.iota(shape=(count, length), axis=0).reshape(-1), count
    starts = offsets.narrow(0, 0, offsets.shape[0] - 1) if include_last else offsets
    positions = index.iota(shape=(1, input.shape[0]), axis=1)
    has_started = ew.le(starts.to(int64).unsqueeze(1), positions)
    return ew.sub(composite.total(has_started, 0), 1), starts.shape[0]


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return 1 at the index that each element names along a new last dimension of ``num_classes``, else 0 (i64).

    ``num_classes=-1`` uses the largest element plus 1; this reads values, so it does not work in a trace.

    Example:
        >>> import graphc as gc
        >>> gc.nn.functional.one_hot(gc.tensor([0, 2]), num_classes=3)
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    if not tensor.dtype.is_integer:
        raise DTypeError(f"one_hot: class indices must be integers, got {tensor.dtype.name}", remedy="pass x.long()")
    count = int(tensor.max().item()) + 1 if num_classes == -1 else num_classes
    if count < 1:
        raise AttributeValueError(f"one_hot: num_classes {num_classes} must be positive, or -1")
    require(tensor, 0, count - 1, "one_hot: class")
    classes = index.iota(shape=(count,), axis=0, dtype=tensor.dtype)
    return ew.eq(tensor.reshape(*tensor.shape, 1), classes).to(int64)
