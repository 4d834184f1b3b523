"""Element types: conversion, promotion, limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphc.array_api import promotion
from graphc.array_api.array import standard
from graphc.base.dtypes import DType, dtype_of, limits
from graphc.base.errors import DTypeError
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor


@dataclass(frozen=True)
class finfo_object:
    """Limits of a floating-point type."""

    bits: int
    """Size of a number."""
    eps: float
    """The distance from 1 to the next number."""
    max: float
    """The largest finite number."""
    min: float
    """The smallest finite number."""
    smallest_normal: float
    """The smallest positive number of full precision."""
    dtype: DType


@dataclass(frozen=True)
class iinfo_object:
    """Limits of an integer type."""

    bits: int
    """Size of a number."""
    max: int
    """The largest number."""
    min: int
    """The smallest number."""
    dtype: DType


@standard
def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """``x`` as another type; with ``copy`` False itself where it has it already."""
    need_tensor("astype", x)
    found = x.to_dtype(dtype) if device is None else x.to_dtype(dtype).to(device)
    return found.clone() if copy and found is x else found


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether the promotion of the type, or the type of an array, with others may give ``to``."""
    return promotion.common_type("can_cast", from_, to) is dtype_of(to)


def finfo(type: Any, /) -> finfo_object:
    """The limits of a floating-point type, or of that of an array; of a complex one those of its parts. Raises
    DTypeError for others."""
    dtype = _kind_of("finfo", type, "fc", "a floating-point type").real
    found = np.finfo(dtype.numpy)
    numbers = [float(n) for n in (found.eps, found.max, found.min, found.smallest_normal)]
    return finfo_object(dtype.bits, *numbers, dtype=dtype)


def iinfo(type: Any, /) -> iinfo_object:
    """The limits of an integer type, or of that of an array; raises DTypeError for others."""
    dtype = _kind_of("iinfo", type, "iu", "an integer type")
    low, high = limits(dtype)
    return iinfo_object(dtype.bits, int(high), int(low), dtype)


def _kind_of(name: str, of: Any, kinds: str, wanted: str) -> DType:
    dtype = promotion.common_type(name, of)
    if dtype.kind not in kinds:
        raise DTypeError(f"{name} takes {wanted}, got {dtype.name}", remedy="isdtype(dtype, kind)")
    return dtype


def isdtype(dtype: DType, kind: Any) -> bool:
    """Whether an element type is ``kind``: a type, the name of a kind (``"real floating"``), or in a tuple of them."""
    letters, types = promotion.kinds_of(kind)
    return dtype.kind in letters or dtype in types


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The type of a result of arrays, types and numbers, at least one of which is an array or a type."""
    return promotion.common_type("result_type", *arrays_and_dtypes)


__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]
