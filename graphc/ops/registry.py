"""All op families: importing this module fills the registry."""

from __future__ import annotations

# Ops are registered in this order, which lists of all ops and seeded samples of them follow.
# isort: off
from graphc.ops.pointwise import bits
from graphc.ops.flow import branch
from graphc.ops.effects import check
from graphc.ops.flow import checkpoint
from graphc.ops.pointwise import complex
from graphc.ops.flow import control
from graphc.ops.contraction import convolution
from graphc.ops.factorization import eigen
from graphc.ops.pointwise import elementary
from graphc.ops.pointwise import elementwise
from graphc.ops.pointwise import exact
from graphc.ops.factorization import factors
from graphc.ops.contraction import fourier
from graphc.ops.pointwise import gamma
from graphc.ops.effects import host
from graphc.ops.selection import index
from graphc.ops.flow import loop
from graphc.ops.contraction import masked_product
from graphc.ops.pointwise import math
from graphc.ops.contraction import matrix_product
from graphc.ops.contraction import nibble_product
from graphc.ops.selection import order
from graphc.ops.factorization import orthogonal
from graphc.ops.movement import parts
from graphc.ops.effects import random
from graphc.ops.reduction import reduce
from graphc.ops.movement import shape
from graphc.ops.movement import size
from graphc.ops.movement import slice_update
from graphc.ops.selection import sorting
from graphc.ops.pointwise import special
from graphc.ops.effects import state
from graphc.ops.reduction import statistics
from graphc.ops.movement import strided
from graphc.ops.effects import tap
from graphc.ops.flow import while_loop
from graphc.ops.reduction import window
from graphc.ops.contraction import winograd
# isort: on

FAMILIES = (
    elementwise,
    bits,
    math,
    elementary,
    complex,
    special,
    gamma,
    reduce,
    order,
    shape,
    size,
    index,
    strided,
    slice_update,
    sorting,
    matrix_product,
    masked_product,
    nibble_product,
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
