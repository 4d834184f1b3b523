"""All rules of the table of ONNX operators; importing it fills the table."""

from __future__ import annotations

from graphc.interop.onnx.ops import (
    control_flow,
    conversions,
    detection,
    elementwise,
    features,
    generators,
    images,
    indexing,
    sequences,
    shapes,
    slicing,
    texts,
    training,
    trees,
)
from graphc.interop.onnx.registry import TABLE, find

__all__ = ["FAMILIES", "TABLE", "find"]

FAMILIES = (
    control_flow,
    conversions,
    detection,
    elementwise,
    features,
    generators,
    images,
    indexing,
    sequences,
    shapes,
    slicing,
    texts,
    training,
    trees,
)
"""The modules that hold the rules."""
