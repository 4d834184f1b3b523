"""``FloatTensor`` and the like: tensor classes by element type, for programs in PyTorch's old style."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.dtypes import DType, bool_, float32, float64, int8, int32, int64, uint8
from graphc.tensors.creation import empty, tensor
from graphc.tensors.tensor import Tensor

__all__ = ["BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "IntTensor", "LongTensor"]


class _OfType(type):
    """Metaclass: CPU tensors of the element type are instances of its classes, and calls create such tensors."""

    dtype: DType

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor) and value.dtype is cls.dtype and value.is_cpu

    def __call__(cls, *args: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], (Tensor, np.ndarray, list, tuple)):
            return args[0] if isinstance(args[0], cls) else tensor(args[0], dtype=cls.dtype)
        return empty(*args or (0,), dtype=cls.dtype)


def _of(name: str, dtype: DType) -> Any:
    doc = f"A tensor of type {dtype.long_name}: from data, ``{name}([1, 2])``, or with any elements, ``{name}(2, 3)``."
    return _OfType(name, (), {"dtype": dtype, "__doc__": doc, "__module__": "graphc"})


BoolTensor, ByteTensor, CharTensor = _of("BoolTensor", bool_), _of("ByteTensor", uint8), _of("CharTensor", int8)
IntTensor, LongTensor = _of("IntTensor", int32), _of("LongTensor", int64)
FloatTensor, DoubleTensor = _of("FloatTensor", float32), _of("DoubleTensor", float64)
