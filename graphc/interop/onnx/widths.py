"""Element types narrower than graphc's dtypes: cuts integers to their bits."""

from __future__ import annotations

from graphc.interop.onnx.elements import Element
from graphc.tensors.tensor import Tensor

_BITS = {"UINT16": 16, "UINT32": 32, "INT16": 16, "UINT4": 4, "INT4": 4, "UINT2": 2, "INT2": 2}


def narrowed(x: Tensor, element: Element) -> Tensor:
    """Wrap integers beyond an element type to its bits. Returns all other tensors as they are."""
    bits = _BITS.get(element.name)
    if bits is None or element.carrier is None or x.dtype is not element.carrier:
        return x
    low = x & ((1 << bits) - 1)
    if element.name.startswith("U"):
        return low
    sign = 1 << (bits - 1)
    return (low ^ sign) - sign
