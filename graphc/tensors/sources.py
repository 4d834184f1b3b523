"""Functions that create tensors from existing data: any object, buffers, memory with given strides."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.device import device as device_type
from graphc.base.dtypes import dtype_of
from graphc.base.errors import ArgumentError, AttributeValueError
from graphc.tensors.creation import arange, as_tensor, empty, from_numpy, get_default_dtype, tensor
from graphc.tensors.out import with_hints
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

__all__ = ["asarray", "empty_permuted", "empty_strided", "fill", "frombuffer", "scalar_tensor"]


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """Convert an object to a tensor: a tensor, an array, an object with ``__dlpack__``, a buffer, a number or nested
    sequences. The result shares memory if possible, unless ``copy``; with ``copy=False``, raise AttributeValueError if
    it cannot."""
    if isinstance(obj, (bytes, bytearray, memoryview)):
        obj = np.frombuffer(obj, (dtype_of(dtype) if dtype is not None else get_default_dtype()).numpy)
    converted = obj if isinstance(obj, Tensor) else as_tensor(obj)
    shares = isinstance(obj, Tensor) or hasattr(obj, "__array_interface__") or hasattr(obj, "__dlpack__")
    target = converted.device if device is None else device_type(device)
    moved = converted.to(device=target, dtype=converted.dtype if dtype is None else dtype)
    if copy is False and (moved is not converted or not shares):
        raise AttributeValueError(
            "asarray: the data cannot be shared", remedy="pass copy=None, or keep dtype and device"
        )
    result = moved.clone() if copy and moved is converted and shares else moved
    result = result.detach() if result.requires_grad or requires_grad else result
    return result.requires_grad_(requires_grad) if requires_grad else result


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """Create a vector that shares the memory of a buffer: ``count`` elements (-1: all) after ``offset`` bytes. Raise
    AttributeValueError if the buffer is too short."""
    try:
        array = np.frombuffer(buffer, dtype_of(dtype).numpy, count, offset)
    except ValueError as error:
        raise AttributeValueError(f"frombuffer: {error}", remedy="choose count and offset within the buffer") from None
    vector = from_numpy(array)
    return vector.requires_grad_() if requires_grad else vector


def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Convert a number to a tensor without dimensions, of the default floating-point type without ``dtype``."""
    return tensor(s, dtype=get_default_dtype() if dtype is None else dtype, device=device, requires_grad=requires_grad)


def range(start: Any = 0, end: Any = None, step: Any = 1, **options: Any) -> Tensor:
    """Create numbers from ``start`` to ``end`` in steps; ``end`` is included if a step reaches it. The old form of
    ``arange``."""
    if end is None:
        raise ArgumentError("range takes start and end", remedy="call graphc.arange(end)")
    count = int((end - start) / step) + 1
    options.setdefault("dtype", get_default_dtype())
    return arange(start, start + count * step, step, **options)[:count]


def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create a tensor with arbitrary elements and a distance in memory of ``stride`` elements along each dimension."""
    if len(size) != len(stride):
        raise ArgumentError(
            f"empty_strided: {len(stride)} strides for {len(size)} dimensions",
            remedy="pass one stride for each dimension",
        )
    count = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if all(size) else 0
    kind = get_default_dtype() if dtype is None else dtype_of(dtype)
    base = np.empty(count, kind.numpy)
    steps = [s * kind.itemsize for s in stride]
    strided = front().constant(np.lib.stride_tricks.as_strided(base, tuple(size), steps))
    strided = strided if device is None else strided.to(device_type(device))
    return strided.requires_grad_() if requires_grad else strided


def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], **options: Any) -> Tensor:
    """Create a tensor with arbitrary elements whose dimensions are in memory in the order ``physical_layout``, the last
    one densest."""
    order = list(physical_layout)
    if sorted(order) != list(builtins.range(len(size))):
        raise ArgumentError(
            f"empty_permuted: {order} is not an order of {len(size)} dimensions",
            remedy="pass a permutation of the dimensions",
        )
    permuted = empty([size[d] for d in order], **options)
    return permuted.permute(*(order.index(d) for d in builtins.range(len(size))))


def fill(input: Tensor, value: Any) -> Tensor:
    """Return a tensor like ``input`` filled with one value."""
    return input.clone().fill_(value)


asarray, empty_strided, empty_permuted, range, scalar_tensor = map(
    with_hints, (asarray, empty_strided, empty_permuted, range, scalar_tensor)
)
