"""Rules of ONNX operators that create tensors: constants, ranges, identity matrices, and random numbers."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.sizes.size import is_size
from graphc.interop.onnx.call import Call
from graphc.interop.onnx.elements import FLOAT, Element, element_of_code
from graphc.interop.onnx.graph import TensorAttribute
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import MOST_KNOWN, Value
from graphc.ops import dispatch
from graphc.ops.size_numbers import depends_on_sizes
from graphc.tensors import creation
from graphc.tensors.free_functions import where
from graphc.tensors.random.generator import Generator
from graphc.tensors.tensor import Tensor


@op("Constant", values=True)
def constant(**attributes: Any) -> Any:
    """Return the only attribute, whatever its name."""
    (value,) = attributes.values()
    if isinstance(value, TensorAttribute):
        return Value(value.element, None, value.array)
    real = isinstance(value, float) or (isinstance(value, tuple) and any(isinstance(v, float) for v in value))
    if isinstance(value, str) or (isinstance(value, tuple) and any(isinstance(v, str) for v in value)):
        return np.array(value, object)
    return np.array(value, np.float32 if real else np.int64)


_ZERO = TensorAttribute(np.zeros(1, np.float32), FLOAT)


@op("ConstantOfShape", host="input", values=True)
def constant_of_shape(input: Value, *, value: TensorAttribute = _ZERO) -> Any:
    sizes = input.array.reshape(-1).tolist()
    number = value.array.reshape(-1)[0]
    if not any(map(is_size, sizes)) and math.prod(sizes) <= MOST_KNOWN:
        return Value(value.element, None, np.full(sizes, number, value.array.dtype))
    scalar = Value(value.element, None, np.asarray(number, value.array.dtype)).tensor
    return Value(value.element, scalar.expand(tuple(sizes)))


@op("EyeLike", since=9, values=True)
def eye_like(input: Value, *, dtype: int | None = None, k: int = 0) -> Value:
    element = input.element if dtype is None else element_of_code(dtype)
    rows, columns = input.shape
    hit = creation.arange(rows).unsqueeze(1) + k == creation.arange(columns)
    return Value(element, hit.to(_carrier(element)))


@op("Range", since=11, host="start limit delta", values=True)
def range_(start: Value, limit: Value, delta: Value, *, stash_type: int = 1) -> Value:
    """Return numbers from ``start`` to before ``limit``, or none where the steps lead away from it."""
    first, end, step = (v.number for v in (start, limit, delta))
    element = start.element
    if not any(map(depends_on_sizes, (first, end, step))):
        count = max(math.ceil((end - first) / step), 0) if isinstance(step, float) else max(-((first - end) // step), 0)
        if count <= MOST_KNOWN:
            numbers = first + step * np.arange(count, dtype=element.numpy if element.numpy.kind in "fi" else np.float32)
            return Value(element, None, numbers.astype(element.numpy))
        end = end if count else first
    return Value(element, creation.arange(first, end, step, dtype=_carrier(element)))


@op("OneHot", host="depth")
def one_hot(indices: Tensor, depth: Any, values: Tensor, *, axis: int = -1) -> Tensor:
    """Return the second of ``values`` at ``indices``, and the first elsewhere.

    Negative indices count from the end. Indices out of range mark nothing.
    """
    count = np.asarray(depth).reshape(-1)[0]
    count = count if is_size(count) else int(count)
    rank = indices.ndim + 1
    at = axis % rank
    positions = indices.to("int64").unsqueeze(at)
    classes = creation.arange(count).reshape(tuple([count if i == at else 1 for i in range(rank)]))
    return where(where(positions < 0, positions + count, positions) == classes, values[1], values[0])


def _carrier(element: Element) -> Any:
    return element.carrier


# ---- random numbers


@op("RandomNormal", values=True)
def random_normal(
    *, shape: Sequence[int], dtype: int = 1, mean: float = 0, scale: float = 1, seed: float | None = None, call: Call
) -> Value:
    element = element_of_code(dtype)
    drawn = creation.randn(tuple(shape), dtype=_carrier(element), generator=_generator(call, seed))
    return Value(element, drawn * scale + mean)


@op("RandomUniform", values=True)
def random_uniform(
    *, shape: Sequence[int], dtype: int = 1, low: float = 0, high: float = 1, seed: float | None = None, call: Call
) -> Value:
    element = element_of_code(dtype)
    drawn = creation.rand(tuple(shape), dtype=_carrier(element), generator=_generator(call, seed))
    return Value(element, drawn * (high - low) + low)


@op("RandomNormalLike", values=True)
def random_normal_like(input: Value, *, dtype: int | None = None, call: Call, **options: Any) -> Value:
    return random_normal(shape=input.shape, dtype=dtype or input.element.code, call=call, **options)


@op("RandomUniformLike", values=True)
def random_uniform_like(input: Value, *, dtype: int | None = None, call: Call, **options: Any) -> Value:
    return random_uniform(shape=input.shape, dtype=dtype or input.element.code, call=call, **options)


@op("Bernoulli", values=True)
def bernoulli(input: Value, *, dtype: int | None = None, seed: float | None = None, call: Call) -> Value:
    element = input.element if dtype is None else element_of_code(dtype)
    probabilities = input.tensor
    drawn = creation.rand(tuple(input.shape), dtype=_carrier(input.element), generator=_generator(call, seed))
    return Value(element, (drawn < probabilities).to(_carrier(element)))


@op("Multinomial", values=True)
def multinomial(input: Value, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None, call: Call) -> Value:
    """Sample class indices from log weights: the argmax of the weights with Gumbel noise."""
    element = element_of_code(dtype)
    batch, classes = input.shape
    uniform = creation.rand(
        (batch, sample_size, classes), dtype=_carrier(input.element), generator=_generator(call, seed)
    )
    noise = -(-uniform.clamp(min=_SMALLEST).log()).clamp(min=_SMALLEST).log()
    return Value(element, (input.tensor.unsqueeze(1) + noise).argmax(-1).to(_carrier(element)))


_SMALLEST = 1e-20
"""Lower limit of arguments of the logarithm."""


def _generator(call: Call, seed: float | None) -> Generator | None:
    """Return the random stream of an operator with a seed, which continues from call to call. None means graphc's
    own."""
    if seed is None:
        return None
    with dispatch.use(dispatch.default()):
        return call.kept(lambda: Generator().manual_seed(int.from_bytes(struct.pack("<f", seed), "little")))
