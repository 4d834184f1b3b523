"""All rules of the table of ONNX operators; importing it fills the table."""

from __future__ import annotations

from graphc.interop.onnx.ops import (
    activations,
    attention,
    control_flow,
    conversions,
    convolutions,
    elementwise,
    generators,
    grids,
    indexing,
    integer_products,
    losses,
    normalization,
    orders,
    pooling,
    products,
    quantization,
    quantized,
    recurrent,
    reductions,
    regions,
    resizing,
    rotary,
    sequences,
    shapes,
    signal,
    sizes,
    slicing,
)
from graphc.interop.onnx.registry import TABLE, find

__all__ = ["FAMILIES", "TABLE", "find"]

FAMILIES = (
    activations,
    attention,
    control_flow,
    conversions,
    convolutions,
    elementwise,
    generators,
    grids,
    indexing,
    integer_products,
    losses,
    normalization,
    orders,
    pooling,
    products,
    quantization,
    quantized,
    recurrent,
    reductions,
    regions,
    resizing,
    rotary,
    sequences,
    shapes,
    signal,
    sizes,
    slicing,
)
"""The modules that hold the rules."""
