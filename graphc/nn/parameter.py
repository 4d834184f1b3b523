"""Tensors that register themselves with a module: Parameter and Buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from graphc.base.dtypes import dtype_of, element, float32
from graphc.base.errors import ArgumentError
from graphc.tensors.repeated import PLAIN
from graphc.tensors.tensor import Tensor

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"]


class Parameter(Tensor):
    """Tensor to train: a module that has it as an attribute lists it in ``parameters()``.

    Args:
        data: a tensor; the parameter shares its memory, but not its history (default: an empty tensor).
        requires_grad: compute gradients for it.

    Returns:
        The parameter, a leaf tensor.

    Raises:
        ArgumentError: data that is not a tensor.

    Example:
        >>> import graphc as gc
        >>> gc.nn.Parameter(gc.zeros(2))
        Parameter containing:
        tensor([0., 0.], requires_grad=True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        return cls._make_subclass(cls, _leaf("Parameter", data), requires_grad)

    def __init__(self, data: Any = None, requires_grad: bool = True):
        pass


class Buffer(Tensor):
    """A tensor that belongs to a module but is not trained.

    Persistent buffers are part of the module's state dictionary.
    """

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        buffer = cls._make_subclass(cls, _leaf("Buffer", data), False)
        buffer.persistent = persistent
        return buffer

    def __init__(self, data: Any = None, *, persistent: bool = True):
        pass


PLAIN.update((Parameter, Buffer))


class UninitializedParameter(Parameter):
    """A parameter whose shape is not known yet."""

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return cls._make_subclass(cls, filled((0,), 0.0, dtype, device), requires_grad)

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None):
        pass

    def materialize(self, shape: Sequence[int]) -> None:
        """Turn this object, in place, into a parameter of zeros of that shape."""
        self.data = filled(shape, 0.0, self.dtype)
        self.__class__ = Parameter  # type: ignore[assignment]


class UninitializedBuffer(Tensor):
    """A buffer whose shape is not known yet."""

    def __new__(cls, device: Any = None, dtype: Any = None) -> Any:
        return cls._make_subclass(cls, filled((0,), 0.0, dtype, device), False)

    def __init__(self, device: Any = None, dtype: Any = None):
        pass

    def materialize(self, shape: Sequence[int]) -> None:
        """Turn this object, in place, into a tensor of zeros of that shape."""
        self.data = filled(shape, 0.0, self.dtype)
        self.__class__ = Tensor  # type: ignore[assignment]


def is_uninitialized(tensor: Any) -> TypeGuard[UninitializedParameter | UninitializedBuffer]:
    """Check whether the shape of a parameter or buffer is not known yet."""
    return isinstance(tensor, (UninitializedParameter, UninitializedBuffer))


def _leaf(kind: str, data: Any) -> Tensor:
    if data is None:
        return Tensor._wrap(np.empty(0, np.float32))
    if not isinstance(data, Tensor):
        raise ArgumentError(
            f"{kind}: {type(data).__name__} is not a tensor", remedy="convert the data first: graphc.tensor(...)"
        )
    return data.detach()


def empty_parameter(shape: Sequence[int], dtype: Any = None, device: Any = None) -> Parameter:
    """Create a parameter of the given shape, f32 when ``dtype`` is None; it is zero until it is initialized."""
    return Parameter(filled(shape, 0.0, dtype, device))


def filled(shape: Sequence[int], value: float, dtype: Any = None, device: Any = None) -> Tensor:
    """Create a tensor filled with one value, f32 when ``dtype`` is None."""
    tensor = Tensor._wrap(np.full(tuple(shape), element(value, float32 if dtype is None else dtype_of(dtype))))
    return tensor if device is None else tensor.to(device)
