"""Reference implementation of library products: computes a descriptor with numpy, on raw host addresses."""

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
    """Return the operands in the order of their addresses, each with the number of bytes accessed from its address
    on."""
    spans: list[tuple[str, int]] = []
    for name in descriptor.operands:
        if name == "bias":
            elements, dtype = descriptor.bias_length, descriptor.d.type
        else:
            matrix: Matrix = getattr(descriptor, name)
            elements, dtype = matrix.extent, matrix.type
        spans.append((name, elements * np.dtype(_STORED[dtype]).itemsize))
    return tuple(spans)


def compute_product(descriptor: ProductDescriptor, addresses: Sequence[int]) -> None:
    """Compute a product in memory of this process. Raises DeviceError for a descriptor refused by the library,
    or whose result overwrites a factor."""
    complaint = descriptor.complaint()
    spans = product_spans(descriptor)
    if not complaint and len(addresses) != len(spans):
        complaint = f"{len(spans)} addresses are needed, got {len(addresses)}"
    complaint = complaint or _misplaced(descriptor, addresses) or _overlap(descriptor, spans, addresses)
    if complaint:
        raise DeviceError(f"a product of the library: {complaint}", where=str(descriptor))
    at = dict(zip(descriptor.operands, addresses, strict=True))
    with np.errstate(all="ignore"):
        _compute(descriptor, at)


def _compute(product: ProductDescriptor, at: dict[str, int]) -> None:
    wide = np.int64 if product.compute == "i32" else np.float64
    a, b = (_factor(product, x, at[name]).astype(wide) for name, x in (("a", product.a), ("b", product.b)))
    a = a.swapaxes(1, 2) if product.transpose_a else a
    b = b.swapaxes(1, 2) if product.transpose_b else b
    result = product.alpha * np.matmul(a, b) if product.alpha != 1 else np.matmul(a, b)
    if product.c is not None:
        result = result + _values(product.c, at["c"]).astype(wide)
    result = _epilogue(product, at, result, a, b)
    _store(_view(product.d, at["d"]), result, product.d.type)


def _epilogue(
    product: ProductDescriptor, at: dict[str, int], result: np.ndarray, a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """Return the result of shape (batch, m, n) after the epilogue, which may also store other results."""
    steps = product.epilogue.split("_")
    if "bias" in steps:
        result = result + _widened(_line(product, at["bias"]), product.d.type)[None, :, None]
    if "aux" in steps:
        _store(_view(product.aux, at["aux"]), result, product.d.type)
    if "relu" in steps:
        result = np.where(result <= 0, 0, result)
    if "gelu" in steps:
        result = _gelu(result)
    if "dgelu" in steps:
        result = result * _gelu_derivative(_values(product.aux, at["aux"]).astype(np.float64))
    sums = {"bgrad": result.sum((0, 2)), "bgrada": a.sum((0, 2)), "bgradb": b.sum((0, 1))}
    for name in sums.keys() & set(steps):
        _store(_line(product, at["bias"]), sums[name], product.d.type)
    return result


def _gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(_GELU_SCALE * (x + _GELU_CUBE * x**3)))


def _gelu_derivative(x: np.ndarray) -> np.ndarray:
    t = np.tanh(_GELU_SCALE * (x + _GELU_CUBE * x**3))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * _GELU_SCALE * (1 + 3 * _GELU_CUBE * x * x)


# ---- memory


def _view(matrix: Matrix, address: int) -> np.ndarray:
    """Return a view of the matrices in memory, of shape (batch, rows, columns)."""
    dtype = np.dtype(_STORED[matrix.type])
    flat = _flat(address, matrix.extent, dtype)
    strides = tuple(x * dtype.itemsize for x in (matrix.stride, 1, matrix.leading))
    shape = (matrix.batch, matrix.rows, matrix.columns)
    return np.lib.stride_tricks.as_strided(flat, shape, strides, writeable=True)


def _line(product: ProductDescriptor, address: int) -> np.ndarray:
    return _flat(address, product.bias_length, np.dtype(_STORED[product.d.type]))


def _flat(address: int, size: int, dtype: np.dtype) -> np.ndarray:
    if not size:
        return np.empty(0, dtype)
    memory = (ctypes.c_uint8 * (size * dtype.itemsize)).from_address(address)
    return np.frombuffer(memoryview(memory), dtype)


def _values(matrix: Matrix, address: int) -> np.ndarray:
    return _widened(_view(matrix, address), matrix.type)


def _widened(stored: np.ndarray, dtype: str) -> np.ndarray:
    return (stored.astype(np.uint32) << 16).view(np.float32) if dtype == "bf16" else stored


def _factor(product: ProductDescriptor, matrix: Matrix, address: int) -> np.ndarray:
    values = _values(matrix, address)
    return _rounded(values, 13) if product.compute == "tf32" and matrix.type == "f32" else values


def _rounded(values: np.ndarray, bits: int) -> np.ndarray:
    """Return f32 numbers with their last ``bits`` bits rounded away, to nearest, ties to even."""
    raw = np.ascontiguousarray(values, np.float32).view(np.uint32)
    half = np.uint32((1 << (bits - 1)) - 1) + (raw >> np.uint32(bits) & np.uint32(1))
    rounded = (raw + half) & np.uint32(0xFFFFFFFF << bits & 0xFFFFFFFF)
    return np.where(np.isfinite(values), rounded.view(np.float32), values)


def _store(view: np.ndarray, values: np.ndarray, dtype: str) -> None:
    if dtype == "bf16":
        view[...] = (_rounded(values.astype(np.float32), 16).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    else:
        view[...] = values.astype(view.dtype)


# ---- faults of the addresses


def _misplaced(product: ProductDescriptor, addresses: Sequence[int]) -> str:
    """Return a complaint about a misaligned address, or an empty string."""
    for name, address in zip(product.operands, addresses, strict=True):
        dtype = product.d.type if name == "bias" else getattr(product, name).type
        if address % np.dtype(_STORED[dtype]).itemsize:
            return f"the address {address:#x} of {name} is not a multiple of the element size"
    return ""


def _overlap(product: ProductDescriptor, spans: Sequence[tuple[str, int]], addresses: Sequence[int]) -> str:
    """Return a complaint if an output overlaps another operand; ``c`` may be ``d``."""
    ranges = {name: (start, start + length) for (name, length), start in zip(spans, addresses, strict=True)}
    for name in product.written:
        for other in product.operands:
            same = name == "d" and other == "c" and ranges[name][0] == ranges[other][0]
            if other == name or same or (other in product.written and other < name):
                continue
            (low, high), (first, last) = ranges[name], ranges[other]
            if low < last and first < high:
                return f"{name} overlaps {other}"
    return ""
