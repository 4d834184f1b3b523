"""Functions that create arrays: from data, constants, ranges, triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.array_api.array import standard
from graphc.base.dtypes import dtype_of
from graphc.base.errors import ArgumentError, AttributeValueError, ShapeError
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.selection.index import iota
from graphc.tensors import creation
from graphc.tensors.free_functions import meshgrid as grid
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor


@standard
def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return an array of a tensor, a numpy array, an object with ``__dlpack__`` or a buffer, a number, or nested
    sequences.

    It shares memory and gradients with a tensor, and memory with other objects, unless ``copy``, another type or
    another device prevents that. Raises ArgumentError where ``copy`` is False and a copy is needed, DTypeError for an
    unknown type.
    """
    obj = _with_memory(obj)
    has_memory = isinstance(obj, (Tensor, np.ndarray)) or hasattr(obj, "__dlpack__")
    array = creation.as_tensor(obj, dtype, device) if has_memory else creation.tensor(obj, dtype=dtype, device=device)
    shared = has_memory and array.dtype.numpy == getattr(obj.dtype, "numpy", obj.dtype) and _is_at(obj, array)
    if copy is False and not shared:
        raise ArgumentError("asarray: this needs a copy, and copy is False", remedy="pass copy=None")
    return array.clone() if copy and shared else array


def _with_memory(obj: Any) -> Any:
    """Return an object with a buffer as an array over it, other objects as they are."""
    if isinstance(obj, (Tensor, np.ndarray, np.generic)):
        return obj
    try:
        return np.asarray(memoryview(obj))
    except TypeError:
        return obj


def _is_at(source: Any, array: Tensor) -> bool:
    return not isinstance(source, Tensor) or source.device == array.device


def _extents(shape: Any) -> tuple[int, ...]:
    return (shape,) if not isinstance(shape, (tuple, list)) else tuple(shape)


@standard
def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an uninitialized array. ``shape`` is a number or a tuple."""
    return creation.empty(_extents(shape), dtype=dtype, device=device)


@standard
def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return zeros. ``shape`` is a number or a tuple."""
    return creation.zeros(_extents(shape), dtype=dtype, device=device)


@standard
def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return ones. ``shape`` is a number or a tuple."""
    return creation.ones(_extents(shape), dtype=dtype, device=device)


@standard
def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array with every element ``fill_value``, whose type is the default type."""
    return creation.full(_extents(shape), fill_value, dtype=dtype, device=device)


@standard
def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an uninitialized array with the shape, type and device of ``x``."""
    return creation.empty_like(x, dtype=dtype, device=device)


@standard
def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return zeros with the shape, type and device of ``x``."""
    return creation.zeros_like(x, dtype=dtype, device=device)


@standard
def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return ones with the shape, type and device of ``x``."""
    return creation.ones_like(x, dtype=dtype, device=device)


@standard
def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array with every element ``fill_value``, with the shape, type and device of ``x``."""
    return creation.full_like(x, fill_value, dtype=dtype, device=device)


@standard
def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return numbers from ``start`` to before ``stop`` in steps, or from 0 to before ``start`` without ``stop``.

    The array is empty where the steps lead away from the end. Raises AttributeValueError for a step of 0.
    """
    low, high = (0, start) if stop is None else (start, stop)
    if step == 0:
        raise AttributeValueError("arange: the step is 0", remedy="pass a step towards the end")
    if (high - low) * step <= 0:
        are_integers = all([isinstance(n, (int, np.integer)) for n in (low, high, step)])
        return creation.arange(
            0, dtype=dtype or (None if are_integers else creation.get_default_dtype()), device=device
        )
    return creation.arange(low, high, step, dtype=dtype, device=device)


@standard
def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``. Without ``endpoint`` ``stop`` is excluded."""
    if endpoint:
        return creation.linspace(start, stop, num, dtype=dtype, device=device)
    return creation.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


@standard
def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a matrix with ones on the diagonal ``k``, zeros elsewhere."""
    kind = creation.get_default_dtype() if dtype is None else dtype_of(dtype)
    if k == 0:
        return creation.eye(n_rows, n_cols, dtype=kind, device=device)
    extents = (n_rows, n_rows if n_cols is None else n_cols)
    k = max(-extents[0], min(k, extents[1]))
    hit = ew.eq(iota(shape=extents, axis=1), ew.add(iota(shape=extents, axis=0), k))
    return creation.as_tensor(ew.cast(hit, dtype=kind), device=device)


@standard
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return an array over the memory of an object with ``__dlpack__``. Copies for ``copy`` or another device.

    Raises ArgumentError where ``copy`` is False and the memory is on another device.
    """
    array = creation.from_dlpack(x)
    moved = array if device is None else array.to(device)
    if copy is False and moved is not array:
        raise ArgumentError(f"from_dlpack: the memory is on {array.device}, and copy is False", remedy="pass copy=None")
    return moved.clone() if copy and moved is array else moved


@standard
def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Return the coordinates of a grid from vectors of one type. ``xy`` means columns first, ``ij`` rows first."""
    return tuple(grid(*arrays, indexing=indexing))


@standard
def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return the lower triangle of matrices, up to diagonal ``k``."""
    return _need_matrix("tril", x).tril(k)


@standard
def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return the upper triangle of matrices, from diagonal ``k`` on."""
    return _need_matrix("triu", x).triu(k)


def _need_matrix(name: str, x: Any) -> Any:
    need_tensor(name, x)
    if x.ndim < 2:
        raise ShapeError(
            f"{name} takes matrices, got {list(x.shape)}", remedy="pass an array with at least two dimensions"
        )
    return x


__all__ = ["arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace"]
__all__ += ["meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like"]
