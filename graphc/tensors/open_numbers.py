"""Tensors made of symbolic numbers, which the graph takes as arguments."""

from __future__ import annotations

from typing import Any

from graphc.base.dtypes import DType, dtype_of, fitted, int64
from graphc.base.symbolic import is_symbolic
from graphc.ops.shape import concat, filled, reshape
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front


def tensor_of(data: Any, dtype: Any, default: DType) -> Tensor | None:
    """A tensor of a symbolic number, or of a list of ints and floats of which some are symbolic; None of other data.

    Its element type is ``dtype``, or where that is None i64 of ints, else ``default``.
    """
    listed = type(data) in (list, tuple)
    items = list(data) if listed else [data]
    if not any(map(is_symbolic, items)) or not all(isinstance(x, (int, float)) for x in items):
        return None
    if any(isinstance(x, bool) for x in items):
        return None
    whole = all(isinstance(x, int) for x in items)
    kind = (int64 if whole else default) if dtype is None else dtype_of(dtype)
    scalars = [front().scalar(fitted(x, kind), kind) for x in items]
    if not listed:
        return scalars[0]
    return concat(*(reshape(s, shape=(1,)) for s in scalars), axis=0)


def filled_with(number: Any, shape: tuple[int, ...], dtype: Any, default: DType) -> Tensor:
    """A tensor whose elements are one symbolic number; the element type is that of ``tensor_of``."""
    kind = (int64 if isinstance(number, int) else default) if dtype is None else dtype_of(dtype)
    return front().own(filled(fitted(number, kind), kind, shape))
