"""Tensors of numbers that differ between calls, and of sizes of named dimensions."""

from __future__ import annotations

from typing import Any

from graphc.base.dtypes import DType, dtype_of, fitted, float64, int64, python_scalar_type
from graphc.base.sizes.symbolic import is_symbolic
from graphc.base.values import is_open
from graphc.ops.movement.shape import concat, filled, reshape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.selection.index import iota
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import TensorBase, front


def is_given(number: Any) -> bool:
    """Return whether a number may differ between calls: it is symbolic, or computed from sizes."""
    return is_symbolic(number) or is_open(number)


def tensor_of(data: Any, dtype: Any, default: DType) -> Tensor | None:
    """Return a tensor of a symbolic number, or of a list of ints and floats with symbolic ones; None for other data.

    Its element type is ``dtype``, or if that is None, i64 for ints and ``default`` for floats.
    """
    listed = type(data) in (list, tuple)
    items = list(data) if listed else [data]
    if not any(map(is_given, items)) or not all(isinstance(x, (int, float)) for x in items):
        return None
    if any(isinstance(x, bool) for x in items):
        return None
    integral = all(isinstance(x, int) for x in items)
    kind = (int64 if integral else default) if dtype is None else dtype_of(dtype)
    scalars = [front().scalar(fitted(x, kind), kind) for x in items]
    if not listed:
        return scalars[0]
    return concat(*(reshape(s, shape=(1,)) for s in scalars), axis=0)


def filled_with(number: Any, shape: tuple[int, ...], dtype: Any, default: DType) -> Tensor:
    """Return a tensor filled with one number; its element type follows ``tensor_of``, with bool for a bool."""
    kind = python_scalar_type(number) if dtype is None else dtype_of(dtype)
    kind = default if dtype is None and kind.is_floating_point else kind
    return front().own(filled(fitted(number, kind), kind, shape))


def counted(count: Any, first: Any, each: Any, kind: DType) -> Tensor:
    """Return ``first``, ``first + each``, ... with a symbolic number of elements; computed as numpy does."""
    steps = iota(shape=(count,), axis=0, dtype=int64 if isinstance(first, int) and isinstance(each, int) else float64)
    if not (type(each) is int and each == 1):
        steps = ew.mul(steps, each)
    if not (type(first) is int and first == 0):
        steps = ew.add(steps, first)
    return front().own(ew.cast(steps, dtype=kind) if steps.dtype is not kind else steps)


def spaced(ends: tuple[Any, Any], count: Any, real: DType, kind: DType) -> Tensor:
    """Return ``count`` equally spaced numbers between two ends, both included, computed from both ends towards the
    middle. Ends (also as tensors) or count differ between calls. The computation is in the type ``real`` and cast to
    ``kind``, as linspace does it with numpy."""
    first, last = (
        ew.cast(x, dtype=real) if isinstance(x, TensorBase) else front().scalar(fitted(x, real), real) for x in ends
    )
    positions = iota(shape=(count,), axis=0, dtype=int64)
    # A single number is the first end, without a distance to another.
    each = ew.div(ew.sub(last, first), ew.cast(ew.maximum(front().scalar(count - 1, int64), 1), dtype=real))
    remaining = ew.cast(ew.sub(count - 1, positions), dtype=real)
    late = ew.bit_and(ew.ge(positions, count // 2), ew.gt(positions, 0))
    values = ew.where(
        late, ew.sub(last, ew.mul(each, remaining)), ew.add(first, ew.mul(each, ew.cast(positions, dtype=real)))
    )
    return ew.cast(values, dtype=kind) if kind is not real else values
