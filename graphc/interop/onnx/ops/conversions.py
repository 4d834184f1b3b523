"""Rules of ONNX operators that convert between element types."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, float32, float64, int32, int64
from graphc.base.errors import DTypeError, UnsupportedError
from graphc.interop.onnx.elements import BOOL, FLOAT16, STRING, UINT64, Element, carried, element_of_code
from graphc.interop.onnx.real_sizes import as_real as as_real_size
from graphc.interop.onnx.real_sizes import whole_part
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.rounding import rounded, rounds
from graphc.interop.onnx.unsigned import as_real, of_real
from graphc.interop.onnx.values import Value, settled
from graphc.interop.onnx.widths import narrowed
from graphc.ops.pointwise import bits
from graphc.tensors.creation import from_numpy
from graphc.tensors.tensor import Tensor

_THROUGH_I32 = frozenset({"INT8", "UINT8", "INT4", "UINT4", "INT2", "UINT2"})
"""Element types to which real numbers convert by their lowest bits."""


@op("Cast", since=6, values=True)
def cast(x: Value, *, to: int, saturate: int = 1, round_mode: str = "up") -> Value:
    return converted(x, element_of_code(to), bool(saturate), round_mode)


@op("CastLike", values=True)
def cast_like(x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up") -> Value:
    return converted(x, like.element, bool(saturate), round_mode)


def converted(x: Value, element: Element, saturate: bool = True, mode: str = "up") -> Value:
    """Convert a value to another element type.

    Static values stay static, except for floating-point types that numpy lacks.
    """
    if element is x.element:
        return x
    if element is STRING:
        return Value(STRING, None, _texts(x.array))
    if x.element is STRING:
        x = Value.of(_numbers(x.array, element.is_floating_point))
        if element.carrier is None or x.element is element:
            return x
    if element.carrier is None or x.element.carrier is None:
        raise UnsupportedError(f"graphc cannot cast {x.element.name} to {element.name}")
    if x.is_known and x.array.dtype == object:
        return Value(element, None, settled(_converted_sizes(x.array, element)))
    if x.is_known and x.array.dtype.kind in "biuf" and not (rounds(element) and element is not FLOAT16):
        return Value(element, None, x.array.astype(element.numpy))
    return Value(element, as_element(x.tensor, x.element, element, saturate, mode))


def _converted_sizes(array: np.ndarray, element: Element) -> np.ndarray:
    """Convert sizes of named dimensions to real numbers, or such numbers back to sizes."""
    converted = np.empty(array.shape, object)
    for index, value in np.ndenumerate(array):
        converted[index] = as_real_size(value) if element.is_floating_point else whole_part(value)
    return converted if element is not BOOL else converted != 0


def as_element(x: Tensor, source: Element, element: Element, saturate: bool = True, mode: str = "up") -> Tensor:
    """Convert a tensor that carries one element type to the carrier of another.

    Real numbers round to the nearest. Integers keep their lowest bits.
    """
    if element is BOOL:
        return x.to(bool_)
    if element.is_floating_point:
        wide = element.carrier is float64 or (rounds(element) and x.dtype in (int32, int64, float64))
        x = as_real(x, float64) if source is UINT64 else x.to(float64 if wide else float32)
        return rounded(x, element, saturate, mode) if rounds(element) else x.to(element.carrier)
    if element is UINT64 and source.is_floating_point:
        return of_real(x)
    if element.name in _THROUGH_I32 and source.is_floating_point:
        x = x.to(int32)
    return narrowed(x.to(element.carrier), element)


def _texts(array: np.ndarray) -> np.ndarray:
    """Format numbers as strings, in as few digits as distinguish them."""
    strings = np.empty(array.shape, object)
    for index, value in np.ndenumerate(array):
        strings[index] = _text(value)
    return strings


def _text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "1" if value else "0"
    text = str(value)
    return {"nan": "NaN", "inf": "INF", "-inf": "-INF"}.get(text, text)


def _numbers(array: np.ndarray, real: bool) -> np.ndarray:
    """Parse strings as numbers. Raises DTypeError for any other string."""
    try:
        if real:
            return np.array([float(text) for text in array.reshape(-1)], np.float64).reshape(array.shape)
        return np.array([int(float(t)) if _is_real(t) else int(t) for t in array.reshape(-1)], np.int64).reshape(
            array.shape
        )
    except (ValueError, OverflowError) as error:
        raise DTypeError(f"Cast of a string to a number: {error}"[:200]) from None


def _is_real(text: str) -> bool:
    return any(c in text for c in ".eEnN")


# ---- the same bits

_WIDTHS = {"BOOL": 8, "FLOAT4E2M1": 4, "INT4": 4, "UINT4": 4, "INT2": 2, "UINT2": 2}
_OF_WIDE = frozenset({"FLOAT", "DOUBLE"})


@op("BitCast", values=True)
def bit_cast(x: Value, *, to: int) -> Value:
    """Reinterpret the bits. Floating-point types with wider carriers need a static array."""
    element = element_of_code(to)
    if _width(x.element) != _width(element):
        raise DTypeError(f"BitCast from {x.element.name} to {element.name}: their sizes in bits differ")
    if rounds(x.element) or rounds(element):
        return Value(element, from_numpy(carried(_same_bits(x.array, element), element)))
    if x.is_known and x.array.dtype != object:
        return Value(element, None, _same_bits(x.array, element))
    tensor = x.tensor
    if x.element.name in _OF_WIDE:
        tensor = bits.bitcast(tensor, dtype=int32 if tensor.dtype is float32 else int64)
    if element is BOOL:
        return Value(element, tensor.ne(0))
    if element.name in _OF_WIDE:
        word = tensor.to(int32) if element.carrier is float32 else tensor
        return Value(element, bits.bitcast(word, dtype=element.carrier))
    return Value(element, narrowed(tensor.to(element.carrier), element))


def _width(element: Element) -> int:
    return _WIDTHS.get(element.name) or element.numpy.itemsize * 8


def _same_bits(array: np.ndarray, element: Element) -> np.ndarray:
    """Reinterpret an array as another element type. Elements narrower than a byte take one byte each."""
    if _width(element) < 8:
        mask = (1 << _width(element)) - 1
        low = array.view(np.uint8) & mask
        if element.name.startswith("INT"):
            sign = 1 << (_width(element) - 1)
            return ((low.astype(np.int8) ^ sign) - sign).astype(element.numpy)
        return low.view(element.numpy) if element.is_floating_point else low.astype(element.numpy)
    return np.ascontiguousarray(array).view(element.numpy).reshape(array.shape)
