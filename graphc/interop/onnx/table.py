"""All rules of the table of ONNX operators; importing it fills the table."""

from __future__ import annotations

from graphc.interop.onnx.ops import (
    activations,
    conversions,
    elementwise,
    integer_products,
    losses,
    orders,
    products,
    quantization,
    quantized,
    reductions,
    shapes,
    signal,
    sizes,
)
from graphc.interop.onnx.registry import TABLE, find

__all__ = ["FAMILIES", "TABLE", "find"]

FAMILIES = (
    *(activations, conversions, elementwise, integer_products, losses, orders, products, quantization, quantized),
    *(reductions, shapes, signal, sizes),
)
"""The modules that hold the rules."""
