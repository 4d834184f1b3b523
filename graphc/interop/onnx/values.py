"""Values of a graph while it runs: tensors, and arrays that are known without computing tensors, such as sizes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from graphc.base.dtypes import int64
from graphc.base.sizes.size import Size, SizeNumber
from graphc.interop.onnx.elements import INT64, Element, carried, delivered, element_of, element_of_array
from graphc.tensors.creation import from_numpy, full
from graphc.tensors.free_functions import stack
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.tracer import Tracer

MOST_KNOWN = 4096
"""Elements: what is computed of arrays while a graph is traced is sizes and the like; longer arrays are data."""


class Value:
    """A tensor with its element type. Known ones have an array, of dtype object where it holds sizes of named
    dimensions; the tensor of such a one is made when it is asked for, in each trace and branch its own."""

    __slots__ = ("_array", "_made_by", "_tensor", "element")

    def __init__(self, element: Element, tensor: Tensor | None = None, array: np.ndarray | None = None):
        self.element = element
        self._tensor = tensor
        self._array = array
        self._made_by: Any = None
        """What the tensor of a known value was made by: eager mode, or a trace."""

    @staticmethod
    def of(found: Any, element: Element | None = None) -> Value:
        """The value of what a rule gives: a tensor, an array, a number, or a Value."""
        if isinstance(found, Value):
            return found
        if isinstance(found, Tensor):
            return Value(element or element_of(found.dtype), found)
        array = np.asarray(found)
        if element is None:
            element = INT64 if array.dtype == object and _holds_sizes(array) else element_of_array(array.dtype)
        return Value(element, None, array)

    @property
    def is_known(self) -> bool:
        """Whether there is an array."""
        return self._array is not None

    @property
    def is_open(self) -> bool:
        """Whether calls alone know the elements: it is a tensor of a trace, and none of its constants."""
        if self._array is not None:
            return False
        tracer = front()
        return isinstance(tracer, Tracer) and tracer.known(self.tensor) is None

    @property
    def shape(self) -> tuple[Any, ...]:
        """Sizes, without computing anything."""
        return tuple(self._array.shape if self._array is not None else self.tensor.shape)

    @property
    def tensor(self) -> Tensor:
        """The tensor, in the type of graphc that holds the element type."""
        if self._array is None:
            assert self._tensor is not None
            return self._tensor
        if self._tensor is None or self._made_by is not front():
            self._tensor, self._made_by = self._made(), front()
        return self._tensor

    def _made(self) -> Tensor:
        """The tensor of a known value."""
        assert self._array is not None
        if self._array.dtype == object and _holds_sizes(self._array):
            return _tensor_of_sizes(self._array, self.element)
        return from_numpy(np.ascontiguousarray(carried(self._array, self.element)).reshape(self.shape))

    @property
    def array(self) -> np.ndarray:
        """The array, of the element type itself or of sizes. In a trace only known values have one: raises
        ValueNeededError."""
        if self._array is not None:
            return self._array
        assert self._tensor is not None
        return delivered(self._tensor.detach().numpy(), self.element)

    @property
    def number(self) -> Any:
        """The one element: a number of Python, or a size."""
        array = self.array.reshape(-1)
        return array[0] if array.dtype == object else array[0].item()

    @property
    def numbers(self) -> Any:
        """The number of Python of a scalar, a tuple of a vector, otherwise the array."""
        array = self.array
        if array.ndim == 0:
            return self.number
        return tuple(array.tolist()) if array.ndim == 1 else array


def array_of_sizes(sizes: Iterable[Any]) -> np.ndarray:
    """A vector of sizes: i64 where all are ints, otherwise of dtype object."""
    found = list(sizes)
    array = np.empty(len(found), object)
    for i, size in enumerate(found):
        array[i] = size
    return settled(array)


def settled(array: np.ndarray) -> np.ndarray:
    """An array of dtype object as one of numbers where none of its elements depends on named dimensions."""
    if array.dtype != object or _holds_sizes(array):
        return array
    for kinds, dtype in (((bool, np.bool_), np.bool_), ((int, np.integer), np.int64), ((float, int), np.float64)):
        if array.size and all(isinstance(v, kinds) for v in array.reshape(-1)):
            return array.astype(dtype)
    return array if array.size else array.astype(np.int64)


def _holds_sizes(array: np.ndarray) -> bool:
    """Whether there are sizes of named dimensions in it, or numbers computed from such."""
    return any(type(v) in (Size, SizeNumber) for v in array.reshape(-1))


def _tensor_of_sizes(array: np.ndarray, element: Element) -> Tensor:
    """Sizes that each call has, as a tensor."""
    parts = [full((), v, dtype=element.carrier or int64) for v in array.reshape(-1)]
    return stack(parts).reshape(array.shape)
