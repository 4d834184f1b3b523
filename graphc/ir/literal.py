"""Literals of the texts: names, strings, exact scalars, and arrays by value or by digest."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, bfloat16, element, float32, layout_of, narrow, number_of
from graphc.base.lazy import deferred
from graphc.base.sizes.size import Dimension

_sha256 = deferred("hashlib:sha256")

INLINE_LIMIT = 16
"""Largest number of elements to print inline; larger arrays print as a digest, with separate data."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.]+")


def print_name(sigil: str, name: str) -> str:
    """Format ``%name`` or ``@name``, quoted if the name has other characters than letters, digits, ``_`` and ``.``."""
    return sigil + (name if _PLAIN_NAME.fullmatch(name) else json.dumps(name))


def print_scalar(value: Any, dtype: DType) -> str:
    """Format ``f32(0.5)``: the exact value with its type, also for infinities, NaN payloads and negative zero."""
    return f"{dtype.name}({print_number(value, dtype)})"


def print_number(value: Any, dtype: DType) -> str:
    """Format the value without its type: the shortest text that parses to the same bits."""
    if dtype.is_complex:
        return " ".join(print_number(component, dtype.real) for component in (np.real(value), np.imag(value)))
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype is bfloat16:
        return _print_bfloat(value if isinstance(value, np.void) else element(value, dtype))
    if dtype.kind == "p":
        return str(number_of(value) if isinstance(value, np.void) else value)
    if dtype.numpy.kind != "f":
        return str(int(value))
    exact = np.asarray(value).astype(dtype.numpy)
    if np.isnan(exact):
        return _print_nan(exact)
    return str(exact[()]) if float(exact) == float(value) else repr(float(value))


def _print_bfloat(value: np.generic) -> str:
    wide = number_of(value)
    return f"nan:{value.tobytes()[::-1].hex()}" if wide != wide else print_number(wide, float32)


def _print_nan(value: np.ndarray) -> str:
    bits = value.tobytes()[::-1].hex()
    plain = np.asarray(np.nan).astype(value.dtype).tobytes()[::-1].hex()
    return "nan" if bits == plain else f"nan:{bits}"


def parse_number(text: str, dtype: DType) -> np.generic:
    """Parse the text of ``print_number`` to a numpy scalar, rounded to ``dtype``; raise ValueError. A whole number
    without a point is the bits of a bf16, as earlier versions printed them."""
    if dtype.is_complex:
        components = text.split()
        if len(components) != 2:
            raise ValueError(f"{text} is not of type {dtype.name}")
        both = np.stack([parse_number(component, dtype.real) for component in components])
        return both.view(dtype.numpy)[0]
    if dtype.numpy.kind == "V":
        return _parse_record(text, dtype)
    if text.startswith("nan:"):
        return _parse_nan(text, dtype)
    if dtype.numpy.kind == "b":
        good = text in ("true", "false")
        value: Any = text == "true"
    elif dtype.numpy.kind == "f":
        good = re.fullmatch(r"-?(inf|\d+(\.\d+)?(e[+-]?\d+)?)|nan", text)
        value = float(text) if good else 0.0
    else:
        good = re.fullmatch(r"-?\d+", text) and _fits(int(text), dtype)
        value = int(text) if good else 0
    if not good:
        raise ValueError(f"{text} is not of type {dtype.name}")
    with np.errstate(over="ignore"):
        return dtype.numpy.type(value)


def _parse_record(text: str, dtype: DType) -> Any:
    """Parse a bf16, or a pair of them, which is written as its bits."""
    is_nan, is_bits = text.startswith("nan:"), text.isdecimal()
    if is_nan or is_bits:
        bits = int(text[4:], 16) if is_nan else int(text)
        if bits >> dtype.bits:
            raise ValueError(f"{text} is not of type {dtype.name}")
        return np.asarray(bits, f"<u{dtype.itemsize}").view(dtype.numpy)[()]
    if dtype is not bfloat16:
        raise ValueError(f"{text} is not of type {dtype.name}")
    return narrow(np.asarray(parse_number(text, float32)), bfloat16)[()]


def _parse_nan(text: str, dtype: DType) -> np.generic:
    raw = bytes.fromhex(text[4:].zfill(2 * dtype.itemsize))[::-1]
    value = np.frombuffer(raw[: dtype.itemsize], dtype.numpy)[0] if dtype.numpy.kind == "f" else np.float64(0)
    if len(raw) != dtype.itemsize or not np.isnan(value):
        raise ValueError(f"{text} is not of type {dtype.name}")
    return value


def _fits(value: int, dtype: DType) -> bool:
    info = np.iinfo(dtype.numpy)
    return info.min <= value <= info.max


def print_dim(dimension: Dimension) -> str:
    """Format ``dim time = 1..512 hint 128``, followed by ``common [1,32]`` for a dimension with common sizes."""
    common = f" common [{','.join(map(str, dimension.common))}]" if dimension.common else ""
    return f"dim {dimension} = {dimension.low}..{dimension.high} hint {dimension.hint}{common}"


def print_type(dtype: DType, shape: tuple[int, ...]) -> str:
    """Format a type: ``f32[2,3]``."""
    return f"{dtype.name}[{','.join(map(str, shape))}]"


def print_array(array: np.ndarray) -> str:
    """Format ``f32[2](0.5, 1.0)``, or ``f32[64](sha256:<16 hex digits>)`` beyond INLINE_LIMIT elements."""
    dtype = layout_of(array.dtype)
    if array.size > INLINE_LIMIT:
        inside = digest(array)
    else:
        inside = ", ".join(print_number(array.reshape(-1)[i], dtype) for i in range(array.size))
    return f"{print_type(dtype, array.shape)}({inside})"


def digest(array: np.ndarray) -> str:
    """Return ``sha256:`` and 16 hex digits of the hash over type, shape and bytes."""
    state = _sha256(print_type(layout_of(array.dtype), array.shape).encode())
    state.update(np.ascontiguousarray(array).tobytes())
    return f"sha256:{state.hexdigest()[:16]}"
