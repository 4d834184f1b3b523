"""Look-ups by index: embeddings and one-hot vectors."""

from __future__ import annotations

import numpy as np

from graphc import composite
from graphc.autograd.grad_mode import no_grad
from graphc.dtypes import int64
from graphc.errors import AttributeValueError, DTypeError
from graphc.ops import elementwise as ew
from graphc.ops import index
from graphc.tensor import Tensor
from graphc.tensor_base import front


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of ``weight`` [count, size] at ``input`` (integers of any shape): [*input.shape, size].

    The row ``padding_idx`` gets no gradient. ``max_norm`` first scales down, in place, rows of ``weight`` whose
    ``norm_type``-norm is larger. Gradients are dense whatever ``sparse`` says.
    """
    if scale_grad_by_freq:
        raise AttributeValueError("embedding: scale_grad_by_freq is not supported")
    if not input.dtype.is_integer:
        raise DTypeError(f"embedding: indices are integers, got {input.dtype.name}", remedy="x.long()")
    if max_norm is not None:
        _limit_norm(weight, input, max_norm, norm_type)
    rows = index.gather(weight, input, axis=0)
    if padding_idx is None:
        return rows
    padding = padding_index(padding_idx, weight.shape[0])
    blocked = ew.eq(input, padding).reshape(*input.shape, *(1,) * (len(weight.shape) - 1))
    return ew.where(blocked, rows.detach(), rows)


def padding_index(padding_idx: int, count: int) -> int:
    """``padding_idx`` counted from the front; raises AttributeValueError outside of ``count`` rows."""
    if not -count <= padding_idx < count:
        raise AttributeValueError(f"embedding: padding_idx {padding_idx} is outside of {count} rows")
    return padding_idx % count


def _limit_norm(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    with no_grad():
        norms = composite.norm(weight, norm_type, 1, keepdim=True)
        # The factor that keeps a row just inside, with a margin against division by zero.
        scaled = ew.mul(weight, ew.div(max_norm, ew.add(norms, 1e-7)))
        used = index.scatter_add(ew.mul(norms, 0).reshape(-1), input.reshape(-1), _ones(input, norms), axis=0)
        large = ew.logical_and(ew.gt(norms, max_norm), ew.gt(used, 0).reshape(-1, 1))
        weight.copy_(ew.where(large, scaled, weight))


def _ones(input: Tensor, like: Tensor) -> Tensor:
    return front().constant(np.ones(input.numel(), like.dtype.numpy))


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the position that each element names along a new last dimension of ``num_classes``, else 0 (i64).

    ``num_classes=-1`` takes the largest element plus 1, which needs the values: not under trace.
    """
    if not tensor.dtype.is_integer:
        raise DTypeError(f"one_hot: class numbers are integers, got {tensor.dtype.name}", remedy="x.long()")
    count = int(tensor.max().item()) + 1 if num_classes == -1 else num_classes
    if count < 1:
        raise AttributeValueError(f"one_hot: num_classes {num_classes} must be positive, or -1")
    classes = index.iota(shape=(count,), axis=0, dtype=tensor.dtype)
    return ew.eq(tensor.reshape(*tensor.shape, 1), classes).to(int64)
