"""Tensors of numbers that differ between calls, and of sizes of named dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.dtypes import DType, dtype_of, fitted, float32, float64, int64, python_scalar_type
from graphc.base.errors import ArgumentError
from graphc.base.sizes.dims import new_shape
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


def plain_number(name: str, value: Any) -> Any:
    """Return a number, or the value of a tensor without dimensions; raise ArgumentError for others."""
    if isinstance(value, Tensor) and not value.shape:
        return value.item()
    if isinstance(value, (bool, int, float, np.number)):
        return value
    actual = f"a tensor of shape {list(value.shape)}" if isinstance(value, Tensor) else repr(value)
    raise ArgumentError(f"{name} takes numbers, got {actual}", remedy="pass a number, or a tensor without dimensions")


def _is_open_scalar(value: Any) -> bool:
    """Return whether a value is a tensor without dimensions whose element differs between calls."""
    return isinstance(value, Tensor) and not value.shape and front().known(value) is None


def _end(value: Any, kind: DType) -> Any:
    return ew.cast(value, dtype=kind) if isinstance(value, Tensor) else fitted(value, kind)


def spaced_between(name: str, start: Any, end: Any, steps: int, kind: DType, of: DType | None = None) -> Any:
    """Return equally spaced numbers, computed from both ends towards the middle. For an integer type ``kind`` the ends
    are truncated, as in PyTorch.

    The result is a tensor of type ``of`` (None: ``kind``) if a number, or a tensor at an end, differs between calls;
    else an array.
    """
    (count,) = new_shape((steps,))
    ends = [v if _is_open_scalar(v) else plain_number(name, v) for v in (start, end)]
    inner = kind if kind.kind == "f" else float32 if kind.kind == "h" else float64
    if any(is_given(n) or _is_open_scalar(n) for n in (count, *ends)):
        typed_ends = [v if kind.is_floating_point or is_given(v) else _end(v, kind) for v in ends]
        return front().own(spaced((typed_ends[0], typed_ends[1]), count, inner, of or kind))
    real = inner.numpy.type
    with np.errstate(all="ignore"):
        low, high = (real(fitted(v, kind)) for v in ends)
        each = (high - low) / real(count - 1) if count > 1 else real(0)
        positions = np.arange(count).astype(real)
        late = positions >= count // 2 if count > 1 else positions < 0
        return np.where(late, high - each * positions[::-1], low + each * positions).astype(real)
