"""The stand-in for the library of products: computes by numpy what a descriptor says, on raw addresses of the host."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence

import numpy as np

from graphc.base.errors import DeviceError
from graphc.files.product_descriptor import Matrix, ProductDescriptor

_STORED = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": np.uint16,
    "i8": np.int8,
    "i32": np.int32,
}
_GELU_SCALE, _GELU_CUBE = math.sqrt(2 / math.pi), 0.044715


def product_spans(descriptor: ProductDescriptor) -> tuple[tuple[str, int], ...]:
    """The operands in the order of their addresses, each with the bytes that are touched from its address on."""
    found: list[tuple[str, int]] = []
    for name in descriptor.operands:
        if name == "bias":
            elements, dtype = descriptor.bias_length, descriptor.d.type
        else:
            matrix: Matrix = getattr(descriptor, name)
            elements, dtype = matrix.extent, matrix.type
        found.append((name, elements * np.dtype(_STORED[dtype]).itemsize))
    return tuple(found)


def compute_product(descriptor: ProductDescriptor, addresses: Sequence[int]) -> None:
    """Computes a product on memory of this process. Raises DeviceError for a descriptor that the library would refuse,
    or whose result overwrites a factor."""
    complaint = descriptor.complaint()
    spans = product_spans(descriptor)
    if not complaint and len(addresses) != len(spans):
        complaint = f"{len(spans)} addresses are needed, {len(addresses)} are given"
    complaint = complaint or _misplaced(descriptor, addresses) or _overlap(descriptor, spans, addresses)
    if complaint:
        raise DeviceError(f"a product of the library: {complaint}", where=str(descriptor))
    at = dict(zip(descriptor.operands, addresses, strict=True))
    with np.errstate(all="ignore"):
        _compute(descriptor, at)


def _compute(given: ProductDescriptor, at: dict[str, int]) -> None:
    wide = np.int64 if given.compute == "i32" else np.float64
    a, b = (_factor(given, x, at[name]).astype(wide) for name, x in (("a", given.a), ("b", given.b)))
    a = a.swapaxes(1, 2) if given.transpose_a else a
    b = b.swapaxes(1, 2) if given.transpose_b else b
    result = given.alpha * np.matmul(a, b) if given.alpha != 1 else np.matmul(a, b)
    if given.c is not None:
        result = result + _values(given.c, at["c"]).astype(wide)
    result = _epilogue(given, at, result, a, b)
    _store(_view(given.d, at["d"]), result, given.d.type)


def _epilogue(
    given: ProductDescriptor, at: dict[str, int], result: np.ndarray, a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """The result of shape (batch, m, n) behind the epilogue, which may store more."""
    parts = given.epilogue.split("_")
    if "bias" in parts:
        result = result + _widened(_line(given, at["bias"]), given.d.type)[None, :, None]
    if "aux" in parts:
        _store(_view(given.aux, at["aux"]), result, given.d.type)
    if "relu" in parts:
        result = np.where(result <= 0, 0, result)
    if "gelu" in parts:
        result = _gelu(result)
    if "dgelu" in parts:
        result = result * _gelu_derivative(_values(given.aux, at["aux"]).astype(np.float64))
    sums = {"bgrad": result.sum((0, 2)), "bgrada": a.sum((0, 2)), "bgradb": b.sum((0, 1))}
    for name in sums.keys() & set(parts):
        _store(_line(given, at["bias"]), sums[name], given.d.type)
    return result


def _gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(_GELU_SCALE * (x + _GELU_CUBE * x**3)))


def _gelu_derivative(x: np.ndarray) -> np.ndarray:
    t = np.tanh(_GELU_SCALE * (x + _GELU_CUBE * x**3))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * _GELU_SCALE * (1 + 3 * _GELU_CUBE * x * x)


# ---- memory


def _view(matrix: Matrix, address: int) -> np.ndarray:
    """The matrices as they lie in memory, of shape (batch, rows, columns)."""
    dtype = np.dtype(_STORED[matrix.type])
    flat = _flat(address, matrix.extent, dtype)
    strides = tuple(x * dtype.itemsize for x in (matrix.stride, 1, matrix.leading))
    shape = (matrix.batch, matrix.rows, matrix.columns)
    return np.lib.stride_tricks.as_strided(flat, shape, strides, writeable=True)


def _line(given: ProductDescriptor, address: int) -> np.ndarray:
    return _flat(address, given.bias_length, np.dtype(_STORED[given.d.type]))


def _flat(address: int, size: int, dtype: np.dtype) -> np.ndarray:
    if not size:
        return np.empty(0, dtype)
    memory = (ctypes.c_uint8 * (size * dtype.itemsize)).from_address(address)
    return np.frombuffer(memoryview(memory), dtype)


def _values(matrix: Matrix, address: int) -> np.ndarray:
    return _widened(_view(matrix, address), matrix.type)


def _widened(stored: np.ndarray, dtype: str) -> np.ndarray:
    return (stored.astype(np.uint32) << 16).view(np.float32) if dtype == "bf16" else stored


def _factor(given: ProductDescriptor, matrix: Matrix, address: int) -> np.ndarray:
    values = _values(matrix, address)
    return _rounded(values, 13) if given.compute == "tf32" and matrix.type == "f32" else values


def _rounded(values: np.ndarray, bits: int) -> np.ndarray:
    """f32 numbers whose last bits are rounded away, to nearest, ties to even."""
    raw = np.ascontiguousarray(values, np.float32).view(np.uint32)
    half = np.uint32((1 << (bits - 1)) - 1) + (raw >> np.uint32(bits) & np.uint32(1))
    kept = (raw + half) & np.uint32(0xFFFFFFFF << bits & 0xFFFFFFFF)
    return np.where(np.isfinite(values), kept.view(np.float32), values)


def _store(place: np.ndarray, values: np.ndarray, dtype: str) -> None:
    if dtype == "bf16":
        place[...] = (_rounded(values.astype(np.float32), 16).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    else:
        place[...] = values.astype(place.dtype)


# ---- what the library or its result would suffer from


def _misplaced(given: ProductDescriptor, addresses: Sequence[int]) -> str:
    """An address at which no element can lie."""
    for name, address in zip(given.operands, addresses, strict=True):
        dtype = given.d.type if name == "bias" else getattr(given, name).type
        if address % np.dtype(_STORED[dtype]).itemsize:
            return f"the address {address:#x} of {name} is not that of an element"
    return ""


def _overlap(given: ProductDescriptor, spans: Sequence[tuple[str, int]], addresses: Sequence[int]) -> str:
    """What is written over something that is read; ``c`` may be ``d``."""
    ranges = {name: (start, start + length) for (name, length), start in zip(spans, addresses, strict=True)}
    for name in given.written:
        for other in given.operands:
            same = name == "d" and other == "c" and ranges[name][0] == ranges[other][0]
            if other == name or same or (other in given.written and other < name):
                continue
            (low, high), (first, last) = ranges[name], ranges[other]
            if low < last and first < high:
                return f"{name} lies over {other}"
    return ""
