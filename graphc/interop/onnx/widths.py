"""Element types narrower than those of graphc's tensors: cutting to their bits, rounding to their precision."""

from __future__ import annotations

from graphc.interop.onnx.elements import Element
from graphc.tensors.tensor import Tensor

_BITS = {"UINT16": 16, "UINT32": 32, "INT16": 16, "UINT4": 4, "INT4": 4, "UINT2": 2, "INT2": 2}


def narrowed(x: Tensor, element: Element) -> Tensor:
    """Whole numbers beyond an element type as what is left of them in its bits; everything else as it is."""
    bits = _BITS.get(element.name)
    if bits is None or element.carrier is None or x.dtype is not element.carrier:
        return x
    low = x & ((1 << bits) - 1)
    if element.name.startswith("U"):
        return low
    sign = 1 << (bits - 1)
    return (low ^ sign) - sign
