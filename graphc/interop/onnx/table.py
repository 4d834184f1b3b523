"""All rules of the table of ONNX operators; importing it fills the table."""

from __future__ import annotations

from graphc.interop.onnx.ops import (
    attention,
    conversions,
    convolutions,
    elementwise,
    grids,
    microsoft,
    microsoft_attention,
    normalization,
    pooling,
    recurrent,
    regions,
    resizing,
    rotary,
    shapes,
)
from graphc.interop.onnx.registry import TABLE, find

__all__ = ["FAMILIES", "TABLE", "find"]

FAMILIES = (
    attention,
    conversions,
    convolutions,
    elementwise,
    grids,
    microsoft,
    microsoft_attention,
    normalization,
    pooling,
    recurrent,
    regions,
    resizing,
    rotary,
    shapes,
)
"""The modules that hold the rules."""
