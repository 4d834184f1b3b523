"""All op families: importing this module fills the registry."""

from __future__ import annotations

from graphc.ops import (
    check,
    contraction,
    control,
    convolution,
    elementary,
    elementwise,
    exact,
    index,
    loop,
    math,
    order,
    parts,
    random,
    reduce,
    shape,
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
    index,
    contraction,
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
