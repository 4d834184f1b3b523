"""All rules of the table of StableHLO operations, which importing this module fills."""

from __future__ import annotations

from graphc.interop.stablehlo.ops import (
    control_flow,
    conversions,
    elementwise,
    indexing,
    linear_algebra,
    products,
    reductions,
    shapes,
    sorting,
    windows,
)
from graphc.interop.stablehlo.registry import TABLE, TARGETS

__all__ = ["FAMILIES", "TABLE", "TARGETS"]

FAMILIES = (
    *(control_flow, conversions, elementwise, indexing, linear_algebra, products, reductions, shapes, sorting),
    windows,
)
"""Modules that define the rules."""
