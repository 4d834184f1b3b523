"""All rules of the table of ONNX operators; importing it fills the table."""

from __future__ import annotations

from graphc.interop.onnx.ops import (
    activations,
    control_flow,
    conversions,
    elementwise,
    generators,
    indexing,
    losses,
    orders,
    products,
    reductions,
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
    control_flow,
    conversions,
    elementwise,
    generators,
    indexing,
    losses,
    orders,
    products,
    reductions,
    sequences,
    shapes,
    signal,
    sizes,
    slicing,
)
"""The modules that hold the rules."""
