"""All rules of the table of ATen operators, which importing this module fills."""

from __future__ import annotations

from graphc.interop.aten import (
    complex_numbers,
    composites,
    control,
    convolutions,
    creation,
    derivatives,
    distances,
    indexing,
    losses,
    matrices,
    normalization,
    pointwise,
    pooling,
    products,
    quantized,
    recurrent,
    reductions,
    scalars,
    shapes,
)
from graphc.interop.aten.registry import TABLE, find

__all__ = ["FAMILIES", "TABLE", "find"]

FAMILIES = (
    *(complex_numbers, composites, control, convolutions, creation, derivatives, distances, indexing, losses),
    *(matrices, normalization, pointwise, pooling, products, quantized, recurrent, reductions, scalars, shapes),
)
"""Modules that define the rules."""
