"""Element types of ONNX: which type of graphc's tensors holds each, and which arrays come and go."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from graphc.base import dtypes
from graphc.base.dtypes import DType
from graphc.base.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Element:
    """An element type. graphc computes what is narrower than its own types in wider ones; values are rounded where a
    model casts to such a type and where results leave the model."""

    name: str
    """As in ``TensorProto.DataType``."""
    code: int
    array: str
    """The numpy dtype of arrays, by name; those numpy lacks are of ``ml_dtypes``."""
    carrier: DType | None
    """What tensors hold it in; None for what only lives in arrays, such as texts."""

    @property
    def numpy(self) -> np.dtype:
        """The dtype of arrays."""
        if self.array not in _NUMPY:
            return np.dtype(getattr(import_module("ml_dtypes"), self.array))
        return np.dtype(self.array)

    @property
    def is_floating_point(self) -> bool:
        """Whether it is a real number."""
        return self.carrier is not None and self.carrier.is_floating_point

    @property
    def is_native(self) -> bool:
        """Whether tensors of graphc have this very type."""
        return self.carrier is not None and self.array in (self.carrier.long_name, "bool")

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return element_of_code, (self.code,)


_NUMPY = frozenset(
    {"float32", "float64", "float16", "bool", "object", "complex64", "complex128"}
    | {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
)
FLOAT = Element("FLOAT", 1, "float32", dtypes.float32)
UINT8 = Element("UINT8", 2, "uint8", dtypes.uint8)
INT8 = Element("INT8", 3, "int8", dtypes.int8)
UINT16 = Element("UINT16", 4, "uint16", dtypes.int32)
INT16 = Element("INT16", 5, "int16", dtypes.int32)
INT32 = Element("INT32", 6, "int32", dtypes.int32)
INT64 = Element("INT64", 7, "int64", dtypes.int64)
STRING = Element("STRING", 8, "object", None)
BOOL = Element("BOOL", 9, "bool", dtypes.bool_)
FLOAT16 = Element("FLOAT16", 10, "float16", dtypes.float32)
DOUBLE = Element("DOUBLE", 11, "float64", dtypes.float64)
UINT32 = Element("UINT32", 12, "uint32", dtypes.int64)
UINT64 = Element("UINT64", 13, "uint64", dtypes.int64)
"""Held by its bits: numbers beyond 2^63 - 1 are negative ones in tensors."""
COMPLEX64 = Element("COMPLEX64", 14, "complex64", None)
COMPLEX128 = Element("COMPLEX128", 15, "complex128", None)
BFLOAT16 = Element("BFLOAT16", 16, "bfloat16", dtypes.float32)
FLOAT8E4M3FN = Element("FLOAT8E4M3FN", 17, "float8_e4m3fn", dtypes.float32)
FLOAT8E4M3FNUZ = Element("FLOAT8E4M3FNUZ", 18, "float8_e4m3fnuz", dtypes.float32)
FLOAT8E5M2 = Element("FLOAT8E5M2", 19, "float8_e5m2", dtypes.float32)
FLOAT8E5M2FNUZ = Element("FLOAT8E5M2FNUZ", 20, "float8_e5m2fnuz", dtypes.float32)
UINT4 = Element("UINT4", 21, "uint4", dtypes.uint8)
INT4 = Element("INT4", 22, "int4", dtypes.int8)
FLOAT4E2M1 = Element("FLOAT4E2M1", 23, "float4_e2m1fn", dtypes.float32)
FLOAT8E8M0 = Element("FLOAT8E8M0", 24, "float8_e8m0fnu", dtypes.float32)
UINT2 = Element("UINT2", 25, "uint2", dtypes.uint8)
INT2 = Element("INT2", 26, "int2", dtypes.int8)

ELEMENTS = (
    *(FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE, UINT32, UINT64),
    *(COMPLEX64, COMPLEX128, BFLOAT16, FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ),
    *(UINT4, INT4, FLOAT4E2M1, FLOAT8E8M0, UINT2, INT2),
)
BY_CODE = {e.code: e for e in ELEMENTS}
BY_TYPE = {f"tensor({e.array if e.array != 'object' else 'string'})": e for e in ELEMENTS}
"""By what schemas call them."""
BY_TYPE |= {"tensor(float)": FLOAT, "tensor(double)": DOUBLE, "tensor(float8e4m3fn)": FLOAT8E4M3FN}
_OF_CARRIER = {e.carrier: e for e in (FLOAT, DOUBLE, INT8, INT32, INT64, UINT8, BOOL)}


def element_of(dtype: DType) -> Element:
    """The element type that tensors of graphc have of themselves."""
    return _OF_CARRIER[dtype]


def element_of_code(code: int) -> Element:
    """The element type of a number of ``TensorProto.DataType``. Raises UnsupportedError."""
    if code not in BY_CODE:
        raise UnsupportedError(f"the element type {code} of ONNX, which graphc does not know")
    return BY_CODE[code]


def element_of_array(dtype: np.dtype) -> Element:
    """The element type of an array. Raises UnsupportedError."""
    if dtype.kind in "OUST":
        return STRING
    for element in ELEMENTS:
        if element.array == dtype.name:
            return element
    raise UnsupportedError(f"arrays of {dtype}, for which ONNX has nothing")


def carried(array: np.ndarray, element: Element) -> np.ndarray:
    """An array of this element type as the array of the type that tensors hold it in. Raises UnsupportedError."""
    if element.carrier is None:
        raise UnsupportedError(f"tensors of {element.name}, which graphc has not", remedy="a model without them")
    if element is UINT64:
        return array.astype(np.uint64).view(np.int64)
    return array.astype(element.carrier.numpy)


def delivered(array: np.ndarray, element: Element) -> np.ndarray:
    """What tensors hold as an array of the element type itself: rounded, and cut to its bits."""
    if element is UINT64:
        return array.view(np.uint64)
    return array if array.dtype == element.numpy else array.astype(element.numpy)
