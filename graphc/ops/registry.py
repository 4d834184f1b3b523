"""All op families: importing this module fills the registry."""

from __future__ import annotations

from graphc.ops.contraction import (
    byte_product,
    convolution,
    fourier,
    group_product,
    masked_product,
    matrix_product,
    nibble_product,
    winograd,
)
from graphc.ops.effects import check, host, random, state, tap
from graphc.ops.factorization import eigen, factors, orthogonal
from graphc.ops.flow import branch, checkpoint, control, loop, while_loop
from graphc.ops.movement import parts, shape, size, slice_update, strided
from graphc.ops.pointwise import bits, complex, elementary, elementwise, exact, gamma, math, quantization, special
from graphc.ops.reduction import reduce, statistics, window
from graphc.ops.selection import descent, index, order, sorting, suppression

FAMILIES = (
    elementwise,
    bits,
    math,
    elementary,
    complex,
    special,
    gamma,
    quantization,
    reduce,
    order,
    shape,
    size,
    index,
    strided,
    slice_update,
    sorting,
    descent,
    suppression,
    matrix_product,
    masked_product,
    byte_product,
    nibble_product,
    group_product,
    factors,
    orthogonal,
    eigen,
    convolution,
    winograd,
    fourier,
    window,
    parts,
    random,
    exact,
    state,
    tap,
    statistics,
    check,
    control,
    checkpoint,
    host,
    branch,
    while_loop,
    loop,
)
"""Modules that define ops, in the order of the documentation."""
