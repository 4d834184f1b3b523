"""All op families: importing this module fills the registry."""

from __future__ import annotations

from graphc.ops import (
    check,
    control,
    convolution,
    elementary,
    elementwise,
    exact,
    index,
    loop,
    math,
    matrix_product,
    nibble_product,
    order,
    parts,
    random,
    reduce,
    shape,
    size,
    special,
    state,
    tap,
    window,
    winograd,
)

FAMILIES = (
    elementwise,
    math,
    elementary,
    special,
    reduce,
    order,
    shape,
    size,
    index,
    matrix_product,
    nibble_product,
    convolution,
    winograd,
    window,
    parts,
    random,
    exact,
    state,
    tap,
    check,
    control,
    loop,
)
"""The modules that define ops, in the order of the documentation."""
