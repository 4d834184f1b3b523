"""ONNX operators that move elements: views, slices, concatenations, and what computes sizes for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.interop.onnx.graph import TensorAttribute
from graphc.interop.onnx.registry import host, op
from graphc.interop.onnx.values import Value, array_of_sizes
from graphc.tensors import free_functions as free
from graphc.tensors import functions
from graphc.tensors.tensor import Tensor


@op("Shape", values=True)
def shape(data: Value, *, start: int = 0, end: int | None = None) -> Any:
    """The sizes, which are known without computing the tensor."""
    return array_of_sizes(data.shape[slice(start, end)])


@op("Reshape", since=5, host="shape")
def reshape(data: Tensor, shape: Sequence[Any], *, allowzero: int = 0) -> Tensor:
    """0 stands for the size of the operand there, unless ``allowzero``."""
    sizes = [data.shape[i] if not allowzero and type(n) is int and n == 0 else n for i, n in enumerate(shape)]
    return data.reshape(tuple(sizes))


@op("Transpose")
def transpose(data: Tensor, *, perm: Sequence[int] | None = None) -> Tensor:
    return data.permute(tuple(perm if perm is not None else reversed(range(data.ndim))))


@op("Concat")
def concat(*inputs: Tensor, axis: int = 1) -> Tensor:
    return free.cat(list(inputs), axis)


@host("Concat")
def concat_sizes(*inputs: np.ndarray, axis: int = 1) -> np.ndarray:
    return np.concatenate(inputs, axis)


@op("Gather")
def gather(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """Slices of an axis; negative indices count from its end."""
    return data[(slice(None),) * (axis % data.ndim) + (indices.to("int64"),)]


@host("Gather")
def gather_sizes(data: np.ndarray, indices: np.ndarray, *, axis: int = 0) -> np.ndarray:
    return np.take(data, indices, axis)


@op("Unsqueeze", host="axes")
def unsqueeze(data: Tensor, axes: Sequence[int]) -> Tensor:
    rank = data.ndim + len(axes)
    found = data
    for axis in sorted(a % rank for a in axes):
        found = functions.unsqueeze(found, axis)
    return found


@host("Unsqueeze")
def unsqueeze_sizes(data: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    return np.expand_dims(data, tuple([int(a) for a in axes]))


@op("Constant", values=True)
def constant(**attributes: Any) -> Any:
    """One of its attributes, whatever it is called."""
    (value,) = attributes.values()
    if isinstance(value, TensorAttribute):
        return Value(value.element, None, value.array)
    real = isinstance(value, float) or (isinstance(value, tuple) and any(isinstance(v, float) for v in value))
    return np.array(value, np.float32 if real else None)
