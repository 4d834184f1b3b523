"""Element types, their numpy counterparts, and PyTorch's promotion rules."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from graphc.base.errors import AttributeValueError, DTypeError
from graphc.base.public import call
from graphc.base.records import dataclass
from graphc.base.sizes.size import is_size
from graphc.base.sizes.symbolic import is_symbolic

__all__ = ["bfloat16", "bool_", "complex64", "complex128", "float16", "float32", "float64", "int16", "int32", "int64"]
__all__ += ["int8", "uint8", "uint16", "uint32", "uint64"]


@dataclass(frozen=True, eq=False)
class DType:
    """An element type. Instances are singletons: compare with ``is`` or ``==``."""

    name: str
    """Short name used in IR text, e.g. ``f32``."""
    long_name: str
    """Public name, e.g. ``float32``."""
    kind: str
    """``f`` float, ``i`` signed integer, ``u`` unsigned integer, ``b`` boolean, ``c`` complex, ``h`` half-width float,
    which is only stored, moved and converted, and, in programs only, ``p`` pair of bf16, whose products are summed."""
    bits: int
    """Storage size in bits (a boolean takes 8)."""

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes."""
        return self.bits // 8

    @cached_property
    def numpy(self) -> np.dtype:
        """The numpy dtype of the same layout.

        numpy has no bfloat16. Its elements, and pairs, are records with one field of bits, so that no arithmetic takes
        them for numbers.
        """
        return _LAYOUTS.get(self.name) or np.dtype(self.long_name)

    @property
    def is_floating_point(self) -> bool:
        """True for f64, f32, f16 and bf16."""
        return self.kind in "fh"

    @property
    def is_complex(self) -> bool:
        """True for c64 and c128."""
        return self.kind == "c"

    @property
    def is_differentiable(self) -> bool:
        """True for floats and complex numbers, which have gradients."""
        return self.kind in "fhc"

    @property
    def real(self) -> DType:
        """The type of the real and imaginary parts of a complex type; other types return themselves."""
        return {"c64": float32, "c128": float64}.get(self.name, self)

    @property
    def complex(self) -> DType:
        """The complex type whose real and imaginary parts have this type; raises DTypeError if none has."""
        dtype = {"f32": complex64, "f64": complex128}.get(self.name)
        if dtype is None:
            raise DTypeError(f"{self.name} has no complex type", remedy="use f32 or f64")
        return dtype

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers, not for bool."""
        return self.kind in "iu"

    def __repr__(self) -> str:
        return f"graphc.{self.long_name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple:
        return (call, ("dtype", self.name))

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: dict) -> DType:
        return self


_LAYOUTS = {"bf16": np.dtype([("bf16", "<u2")]), "bf16x2": np.dtype([("bf16x2", "<u4")])}

float64 = DType("f64", "float64", "f", 64)
float32 = DType("f32", "float32", "f", 32)
complex128 = DType("c128", "complex128", "c", 128)
complex64 = DType("c64", "complex64", "c", 64)
int64 = DType("i64", "int64", "i", 64)
int32 = DType("i32", "int32", "i", 32)
int16 = DType("i16", "int16", "i", 16)
int8 = DType("i8", "int8", "i", 8)
uint64 = DType("u64", "uint64", "u", 64)
uint32 = DType("u32", "uint32", "u", 32)
uint16 = DType("u16", "uint16", "u", 16)
uint8 = DType("u8", "uint8", "u", 8)
bool_ = DType("bool", "bool", "b", 8)

float16 = DType("f16", "float16", "h", 16)
bfloat16 = DType("bf16", "bfloat16", "h", 16)
bfloat16x2 = DType("bf16x2", "bfloat16x2", "p", 32)

ALL = (
    *(float64, float32, float16, bfloat16, complex128, complex64),
    *(int64, int32, int16, int8, uint64, uint32, uint16, uint8, bool_),
)
"""Element types of tensors."""
STORED = (bfloat16x2,)
"""Further types in which programs may store weights."""
BY_NAME = {name: d for d in (*ALL, *STORED) for name in (d.name, d.long_name)}
_BY_NUMPY = {d.numpy: d for d in ALL}
_BY_LAYOUT = {d.numpy: d for d in (*ALL, *STORED)}


def dtype_of(value: object) -> DType:
    """Return the DType named by a string, a numpy dtype or scalar type, or a DType.

    Raises DTypeError if tensors do not have this element type.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in BY_NAME and BY_NAME[value] not in STORED:
        return BY_NAME[value]
    try:
        dtype = _BY_NUMPY.get(np.dtype(value))  # type: ignore[arg-type]
    except TypeError:
        dtype = None
    if dtype is None:
        names = ", ".join(d.name for d in ALL)
        raise DTypeError(f"element type {value!r} is not supported", remedy=f"use one of {names}")
    return dtype


def named(name: str) -> DType:
    """Return the DType with a short or long name, types of stored weights included; raises KeyError."""
    return BY_NAME[name]


def layout_of(dtype: np.dtype) -> DType:
    """Return the DType of an array inside a program, where bf16 and pairs have numpy dtypes of their own.

    Raises DTypeError for any other dtype.
    """
    return _BY_LAYOUT.get(dtype) or dtype_of(dtype)


def limits(dtype: DType) -> tuple[bool | int | float, bool | int | float]:
    """Return the smallest and the largest element of a type; infinities for floats. Raises DTypeError for complex
    types."""
    if dtype.kind == "b":
        return False, True
    if dtype.is_floating_point:
        return -math.inf, math.inf
    if dtype.is_complex:
        raise DTypeError(f"complex numbers ({dtype.name}) have no order", remedy="compare x.abs(), x.real or x.imag")
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


def largest_finite(dtype: DType) -> float:
    """Return the largest finite number of a floating-point type."""
    return float.fromhex("0x1.fep127") if dtype is bfloat16 else float(np.finfo(dtype.numpy).max)


def fitted(value: Any, dtype: DType) -> Any:
    """Convert a number to an element of a type: truncate fractions, wrap negative integers around in unsigned types.

    Raises AttributeValueError for a number out of range, and for NaN and infinities in integer types.
    """
    if value.__class__ is complex and not dtype.is_complex:
        raise AttributeValueError(
            f"{value!r} does not fit {dtype.name}", remedy="pass a real number, or use a complex type"
        )
    if dtype.is_differentiable or (is_size(value) and dtype.kind == "i"):
        return value
    if dtype.kind == "b":
        return bool(value)
    number: Any = value
    low, high = limits(dtype)
    is_integer = isinstance(number, (int, np.integer))
    if is_integer and dtype.kind == "u":
        low = -high
    if not (is_integer or math.isfinite(number)) or not low <= number <= high:
        raise AttributeValueError(f"{value!r} does not fit {dtype.name}", remedy=f"pass a number from {low} to {high}")
    number = number if is_integer and is_symbolic(number) else int(number)
    return number % (int(high) + 1) if number < 0 and dtype.kind == "u" else number


def bits_of(array: np.ndarray | np.generic) -> np.ndarray:
    """View half-width floats or pairs as unsigned integers, in the same memory."""
    return np.asarray(array).view(f"<u{array.dtype.itemsize}")


def elements(values: Any, dtype: DType) -> np.ndarray:
    """Convert numbers to an array of a type with rounding. Pairs are passed as bits; an array of the type is not
    copied."""
    array = np.asarray(values)
    if array.dtype == dtype.numpy:
        return array
    if dtype.kind == "p":
        return array.astype(f"<u{dtype.itemsize}").view(dtype.numpy)
    return rounded(numbers(array), dtype)


@np.errstate(all="ignore")
def rounded(values: Any, dtype: DType) -> np.ndarray:
    """Convert numbers, or nested sequences of numbers, to a new array. Overflow gives infinity without numpy's
    warning."""
    if dtype is bfloat16:
        return narrow(np.array(values, np.float32), dtype)
    return np.array(values, dtype.numpy)


SMALL = float(np.finfo(np.float16).max)
"""Numbers up to this magnitude are finite in every floating-point type."""


def zero_dimensional(value: bool | int | float | complex, dtype: DType) -> np.ndarray:
    """Convert a Python number to a new 0-dimensional array. Overflow gives infinity as in ``rounded``, which is
    slower."""
    return rounded(value, dtype) if dtype is bfloat16 or abs(value) > SMALL else np.array(value, dtype.numpy)


def element(value: Any, dtype: DType) -> np.generic:
    """Convert a number to the numpy scalar of a type."""
    return elements(value, dtype)[()]  # pyright: ignore[reportReturnType]


def number_of(value: np.ndarray | np.generic) -> Any:
    """Return the only element of an array as a Python number; the bits of a pair."""
    array = np.asarray(value)
    if array.dtype.kind != "V":
        return array.item()
    return (widen if array.dtype == bfloat16.numpy else bits_of)(array).item()


def narrow(array: np.ndarray, dtype: DType) -> np.ndarray:
    """Convert float32 to f16 or bf16, rounding to nearest, ties to even; overflow gives infinity."""
    if dtype is float16:
        with np.errstate(over="ignore"):
            return array.astype(np.float16)
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    nearest = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    narrowed = np.where(np.isnan(array), quiet, nearest).astype(np.uint16)
    return narrowed.reshape(array.shape).view(bfloat16.numpy)


def widen(array: np.ndarray) -> np.ndarray:
    """Convert f16 or bf16 to float32, which is exact."""
    if array.dtype == bfloat16.numpy:
        return np.asarray(bits_of(array).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return array.astype(np.float32)


def numbers(array: np.ndarray) -> np.ndarray:
    """Return the elements in a type that numpy can compute with: bf16 as float32, all others unchanged."""
    return widen(array) if array.dtype == bfloat16.numpy else array


def pair(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Round two float32 arrays to bf16 and pack them as pairs, the first in the lower bits."""
    bits = (bits_of(narrow(np.asarray(a, np.float32), bfloat16)).astype(np.uint32) for a in (low, high))
    return np.asarray(next(bits) | (next(bits) << np.uint32(16))).view(bfloat16x2.numpy)


def halves(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second elements of pairs as float32."""
    bits = bits_of(pairs)
    low, high = bits << np.uint32(16), bits & np.uint32(0xFFFF0000)
    return np.asarray(low).view(np.float32), np.asarray(high).view(np.float32)


_ORDER = "buihfc"
"""Kinds from the narrowest category to the widest; half-width floats are floats."""


def promote(a: DType, b: DType) -> DType:
    """Return the common type of two operands by PyTorch's promotion rules.

    PyTorch promotes u16, u32 and u64 with no other integer and not with bool. Here the smallest type that holds both is
    taken, and f64 for u64 with a signed integer.
    """
    if a is b:
        return a
    low, high = sorted((a, b), key=lambda d: (_ORDER.index(d.kind), d.bits))
    if high.kind == "c":
        return complex128 if complex128 in (a, b) or low is float64 else complex64
    if high.is_floating_point:
        return float32 if low.kind == high.kind == "h" else high
    return high if low.kind in ("b", high.kind) or low.bits < high.bits else _signed(2 * low.bits)


def _signed(bits: int) -> DType:
    """Return the smallest signed integer type of at least this many bits; f64 beyond 64."""
    return next((d for d in sorted(ALL, key=lambda d: d.bits) if d.kind == "i" and d.bits >= bits), float64)


_DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}


def holds_all(wide: DType, narrow: DType) -> bool:
    """Return whether a different type ``wide`` represents all numbers of ``narrow`` exactly; False for complex
    types."""
    if wide is narrow or wide.kind in "bcp" or narrow.kind in "cp":
        return False
    if narrow.kind == "b":
        return True
    if narrow.is_floating_point:
        return wide.kind == "f" and wide.bits > narrow.bits
    digits = narrow.bits - (narrow.kind == "i")
    if wide.is_floating_point:
        return digits <= _DIGITS[wide.name]
    return wide.bits - (wide.kind == "i") >= digits and (wide.kind == "i" or narrow.kind == "u")


def scalar_type(value: complex | np.generic, against: DType) -> DType:
    """Return the type of a Python scalar next to a tensor of type ``against``: it never widens within its category."""
    if isinstance(value, (bool, np.bool_)):
        return against
    if isinstance(value, (int, np.integer)):
        return int64 if against.kind == "b" else against
    if isinstance(value, (complex, np.complexfloating)) and not against.is_complex:
        return complex128 if against is float64 else complex64
    return against if against.is_differentiable else float32


def python_scalar_type(value: complex | np.generic) -> DType:
    """Return the type of a tensor made from a Python scalar alone."""
    if isinstance(value, (bool, np.bool_)):
        return bool_
    if isinstance(value, (complex, np.complexfloating)):
        return complex64
    return int64 if isinstance(value, (int, np.integer)) else float32
