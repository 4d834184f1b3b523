"""Element types: conversion, promotion, limits."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.array_api import promotion
from graphc.array_api.array import standard
from graphc.base.dtypes import DType, dtype_of, limits
from graphc.base.errors import DTypeError
from graphc.base.records import dataclass
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor


@dataclass(frozen=True)
class finfo_object:
    """Limits of a floating-point type."""

    bits: int
    """Bits of a number."""
    eps: float
    """Distance from 1 to the next number."""
    max: float
    """Largest finite number."""
    min: float
    """Smallest finite number."""
    smallest_normal: float
    """Smallest positive number of full precision."""
    dtype: DType


@dataclass(frozen=True)
class iinfo_object:
    """Limits of an integer type."""

    bits: int
    """Size of a number."""
    max: int
    """Largest number."""
    min: int
    """Smallest number."""
    dtype: DType


@standard
def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Convert ``x`` to another type. With ``copy`` False, returns ``x`` itself if it has the type."""
    need_tensor("astype", x)
    converted = x.to_dtype(dtype) if device is None else x.to_dtype(dtype).to(device)
    return converted.clone() if copy and converted is x else converted


def can_cast(from_: Any, to: Any, /) -> bool:
    """Check whether the promotion of the type (or of an array's type) with ``to`` gives ``to``."""
    return promotion.common_type("can_cast", from_, to) is dtype_of(to)


def finfo(type: Any, /) -> finfo_object:
    """Return the limits of a floating-point type, or of an array's type. For a complex type, of its components.

    Raises DTypeError for other types.
    """
    dtype = _kind_of("finfo", type, "fc", "a floating-point type").real
    info = np.finfo(dtype.numpy)
    numbers = [float(n) for n in (info.eps, info.max, info.min, info.smallest_normal)]
    return finfo_object(dtype.bits, *numbers, dtype=dtype)


def iinfo(type: Any, /) -> iinfo_object:
    """Return the limits of an integer type, or of an array's type. Raises DTypeError for other types."""
    dtype = _kind_of("iinfo", type, "iu", "an integer type")
    low, high = limits(dtype)
    return iinfo_object(dtype.bits, int(high), int(low), dtype)


def _kind_of(name: str, source: Any, kinds: str, expected: str) -> DType:
    dtype = promotion.common_type(name, source)
    if dtype.kind not in kinds:
        raise DTypeError(f"{name} takes {expected}, got {dtype.name}", remedy="check it with isdtype(dtype, kind)")
    return dtype


def isdtype(dtype: DType, kind: Any) -> bool:
    """Check whether an element type is ``kind``: a type, the name of a kind (``"real floating"``), or one of a tuple of
    these."""
    letters, types = promotion.kinds_of(kind)
    return dtype.kind in letters or dtype in types


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Return the type of a result of arrays, types and numbers. At least one must be an array or a type."""
    return promotion.common_type("result_type", *arrays_and_dtypes)


__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]
