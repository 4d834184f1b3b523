"""Conditions under which products of ONNX's quantized codes are computed from bytes."""

from __future__ import annotations

from graphc.base.sizes.size import is_size
from graphc.interop.onnx.values import Value
from graphc.tensors.tensor import Tensor

_BYTES = frozenset({"INT8", "UINT8"})


def are_bytes(*values: Value) -> bool:
    """Check for codes of 8 bits."""
    return all(x.element.name in _BYTES for x in values)


def point_of(zero: Value | None) -> Tensor | None:
    """Return the tensor of a zero point, or None where it is known to be 0."""
    return None if zero is None or (zero.is_known and not zero.array.any()) else zero.tensor


def point_of_all(zero: Value | None) -> Tensor | int | None:
    """Return the zero point of all codes: a number where it is known, otherwise a tensor; None for 0."""
    if zero is None:
        return None
    return int(zero.number) or None if zero.is_known and zero.array.size == 1 else zero.tensor.reshape(())


def takes_matrix(a: Value, b: Value) -> bool:
    """Check whether a product of rows with a matrix of codes can be computed from bytes."""
    return are_bytes(a, b) and len(b.shape) == 2 <= len(a.shape) and not is_size(b.shape[0])


def takes_filters(x: Value, w: Value) -> bool:
    """Check for an image and filters of bytes, of known sizes."""
    return are_bytes(x, w) and not any(map(is_size, w.shape))
