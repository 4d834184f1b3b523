"""Element types of ONNX: the dtype of graphc's tensors that carries each, and the dtype of its arrays."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from graphc.base import dtypes
from graphc.base.dtypes import DType
from graphc.base.errors import UnsupportedError
from graphc.base.records import dataclass


@dataclass(frozen=True)
class Element:
    """Element type of ONNX.

    graphc computes narrow types in wider ones. It rounds values where a model casts to a narrow type and where results
    leave the model.
    """

    name: str
    """Name in ``TensorProto.DataType``."""
    code: int
    array: str
    """Name of the numpy dtype of arrays. ``ml_dtypes`` provides the dtypes that numpy lacks."""
    carrier: DType | None
    """Dtype of the tensors that hold it. None for types that only live in arrays, such as strings."""

    @property
    def numpy(self) -> np.dtype:
        """Return the numpy dtype of arrays."""
        if self.array not in _NUMPY:
            return np.dtype(getattr(import_module("ml_dtypes"), self.array))
        return np.dtype(self.array)

    @property
    def is_floating_point(self) -> bool:
        """Check whether the values are real numbers."""
        return self.carrier is not None and self.carrier.is_floating_point

    @property
    def is_native(self) -> bool:
        """Check whether graphc's tensors have exactly this type."""
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
"""Tensors hold its bits as i64: numbers above 2^63 - 1 are negative there."""
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
"""Element types by their names in operator schemas."""
BY_TYPE |= {"tensor(float)": FLOAT, "tensor(double)": DOUBLE, "tensor(float8e4m3fn)": FLOAT8E4M3FN}
_OF_CARRIER = {e.carrier: e for e in (FLOAT, DOUBLE, INT8, INT32, INT64, UINT8, BOOL)}


def element_of(dtype: DType) -> Element:
    """Return the element type whose carrier is ``dtype``."""
    return _OF_CARRIER[dtype]


def element_of_code(code: int) -> Element:
    """Return the element type for a code of ``TensorProto.DataType``. Raises UnsupportedError for an unknown code."""
    if code not in BY_CODE:
        raise UnsupportedError(f"graphc does not know the element type {code} of ONNX")
    return BY_CODE[code]


def element_of_array(dtype: np.dtype) -> Element:
    """Return the element type of an array's dtype. Raises UnsupportedError where ONNX has none."""
    if dtype.kind in "OUST":
        return STRING
    for element in ELEMENTS:
        if element.array == dtype.name:
            return element
    raise UnsupportedError(f"ONNX has no element type for arrays of {dtype}")


def carried(array: np.ndarray, element: Element) -> np.ndarray:
    """Convert an array to the dtype in which tensors hold ``element``. Raises UnsupportedError."""
    if element.carrier is None:
        raise UnsupportedError(
            f"graphc has no tensors of {element.name}",
            remedy="remove them from the model, or cast them to a numeric type",
        )
    if element is UINT64:
        return array.astype(np.uint64).view(np.int64)
    return array.astype(element.carrier.numpy)


def delivered(array: np.ndarray, element: Element) -> np.ndarray:
    """Convert the array of a tensor to the element type itself: rounded, or cut to its bits."""
    if element is UINT64:
        return array.view(np.uint64)
    return array if array.dtype == element.numpy else array.astype(element.numpy)
