"""Values of a graph while it runs: tensors, and static arrays such as sizes, which need no tensor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from graphc.base.dtypes import int64
from graphc.base.records import dataclass
from graphc.base.sizes.size import Size, SizeNumber
from graphc.interop.onnx.elements import INT64, Element, carried, delivered, element_of, element_of_array
from graphc.tensors.creation import full
from graphc.tensors.free_functions import stack
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.tracer import Tracer

MOST_KNOWN = 4096
"""Elements of a static result while a graph is traced. Sizes and the like are short. Longer arrays are data."""


class Value:
    """Tensor with its ONNX element type.

    A static value has an array, of dtype object where it holds sizes of named dimensions. Its tensor is built on
    demand, one in each trace and branch.
    """

    __slots__ = ("_array", "_tensor", "_tensor_owner", "codes", "element", "steps")

    def __init__(self, element: Element, tensor: Tensor | None = None, array: np.ndarray | None = None):
        self.element = element
        self._tensor = tensor
        self._array = array
        self._tensor_owner: Any = None
        """Eager mode, or the trace, that built the tensor of a static value."""
        self.codes: Codes | None = None
        """Codes of which the tensor is the dequantized form."""
        self.steps: Steps | None = None
        """Numbers of which the tensor has the codes."""

    @staticmethod
    def of(result: Any, element: Element | None = None) -> Value:
        """Return the value of a rule's result: a tensor, an array, a number, or a Value."""
        if isinstance(result, Value):
            return result
        if isinstance(result, Tensor):
            return Value(element or element_of(result.dtype), result)
        array = np.asarray(result)
        if element is None:
            element = INT64 if array.dtype == object and _holds_sizes(array) else element_of_array(array.dtype)
        return Value(element, None, array)

    @property
    def is_known(self) -> bool:
        """Check whether the value is static: it has an array."""
        return self._array is not None

    @property
    def is_open(self) -> bool:
        """Check whether only calls know the elements: the tensor belongs to a trace and is not one of its constants."""
        if self._array is not None:
            return False
        tracer = front()
        return isinstance(tracer, Tracer) and tracer.known(self.tensor) is None

    @property
    def shape(self) -> tuple[Any, ...]:
        """Return the sizes without computing anything."""
        return tuple(self._array.shape if self._array is not None else self.tensor.shape)

    @property
    def tensor(self) -> Tensor:
        """Return the tensor in the dtype that carries the element type."""
        if self._array is None:
            assert self._tensor is not None
            return self._tensor
        if self._tensor is None or self._tensor_owner is not front():
            self._tensor, self._tensor_owner = self._static_tensor(), front()
        return self._tensor

    def _static_tensor(self) -> Tensor:
        """Build the tensor of a static value."""
        assert self._array is not None
        if self._array.dtype == object and _holds_sizes(self._array):
            return _tensor_of_sizes(self._array, self.element)
        # NOTE: from_numpy would hand the memory out, and memory that others write is never prepacked.
        return front().constant(np.ascontiguousarray(carried(self._array, self.element)).reshape(self.shape))

    @property
    def array(self) -> np.ndarray:
        """Return the array, of the element type itself or of sizes. Raises ValueNeededError in a trace unless the value
        is static."""
        if self._array is not None:
            return self._array
        assert self._tensor is not None
        return delivered(front().values(self._tensor.detach(), "an input"), self.element)

    @property
    def number(self) -> Any:
        """Return the one element: a Python number, or a size."""
        array = self.array.reshape(-1)
        return array[0] if array.dtype == object else array[0].item()

    @property
    def numbers(self) -> Any:
        """Return the Python number of a scalar, a tuple of a vector, otherwise the array."""
        array = self.array
        if array.ndim == 0:
            return self.number
        return tuple(array.tolist()) if array.ndim == 1 else array


@dataclass(frozen=True)
class Codes:
    """Quantized codes, whose numbers are ``(codes - zero) * scale``."""

    codes: Value
    scale: Tensor
    """One scale, or one for each index of ``axis``."""
    zero: Value | None
    axis: int
    step: float | None = None
    """The one scale, where it is known."""

    def is_along(self, axis: int | None) -> bool:
        """Check for one scale, or for a scale for each index of ``axis``."""
        return self.scale.shape.numel() == 1 or (self.scale.ndim == 1 and axis == self.axis)


@dataclass(frozen=True)
class Steps:
    """Quantization of f32 numbers with a known scale."""

    source: Tensor
    """The numbers."""
    scale: float
    low: int
    """Smallest integer before the zero point is added."""
    high: int
    """Largest integer before the zero point is added."""
    zero: int


def array_of_sizes(sizes: Iterable[Any]) -> np.ndarray:
    """Return a vector of sizes: i64 where all are ints, otherwise of dtype object."""
    elements = list(sizes)
    array = np.empty(len(elements), object)
    for i, size in enumerate(elements):
        array[i] = size
    return settled(array)


def settled(array: np.ndarray) -> np.ndarray:
    """Convert an array of dtype object to a numeric dtype, unless an element depends on named dimensions."""
    if array.dtype != object or _holds_sizes(array):
        return array
    for kinds, dtype in (((bool, np.bool_), np.bool_), ((int, np.integer), np.int64), ((float, int), np.float64)):
        if array.size and all(isinstance(v, kinds) for v in array.reshape(-1)):
            return array.astype(dtype)
    return array if array.size else array.astype(np.int64)


def _holds_sizes(array: np.ndarray) -> bool:
    """Check whether the array holds sizes of named dimensions, or numbers computed from them."""
    return any(type(v) in (Size, SizeNumber) for v in array.reshape(-1))


def _tensor_of_sizes(array: np.ndarray, element: Element) -> Tensor:
    """Return the sizes of each call as a tensor."""
    scalars = [full((), v, dtype=element.carrier or int64) for v in array.reshape(-1)]
    return stack(scalars).reshape(array.shape)
