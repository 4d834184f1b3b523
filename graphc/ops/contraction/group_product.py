"""Products of rows with a matrix of 8-bit codes in groups that share a scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from graphc.base.dtypes import float32, float64, int8, int32
from graphc.base.errors import DTypeError, ShapeError
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import Scalar
from graphc.ir.op import ErrorSample, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops.contraction.matrix_product import matmul_multiply_adds
from graphc.ops.define import define
from graphc.ops.samples import plain

PANEL = 64
"""Columns of a panel: a whole number of vectors of any width, and a line of the cache or more for each row."""


def panel_width(columns: int) -> int:
    """Return ``PANEL``, or the number of columns where that is no multiple of it: they are one panel then."""
    return columns if columns % PANEL else PANEL


def panels_of(array: np.ndarray) -> np.ndarray:
    """Return the panels [P, K, W] of a matrix [K, P * W]."""
    width = panel_width(array.shape[1])
    return np.ascontiguousarray(array.reshape(len(array), -1, width).swapaxes(0, 1))


def _infer(a: TensorType, codes: TensorType, scale: TensorType) -> TensorType:
    if a.dtype is not float32 or codes.dtype is not int8 or scale.dtype is not float32:
        raise DTypeError(f"group_matmul: {a}, {codes} and {scale}", remedy="pass rows f32, codes i8 and scales f32")
    fit = a.rank >= 2 and codes.rank == scale.rank and codes.rank in (2, 3)
    *panels, depth, width = codes.shape if fit else (0, 0)
    groups = scale.shape[-2] if fit else 0
    if not fit or a.shape[-1] != depth or scale.shape != (*panels, groups, width) or not groups or depth % groups:
        raise ShapeError(
            f"group_matmul: {a}, {codes} and {scale} do not fit",
            remedy="pass rows[..., K], codes[P, K, W] and scales[P, G, W], where G divides K, or both without P",
        )
    return TensorType(float32, (*a.shape[:-1], *panels, width))


def product_of_groups(a: np.ndarray, codes: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the products f32[..., P, W] of rows [..., K] with codes [P, K, W] times scales [P, G, W]."""
    values = codes.astype(np.float32) * np.repeat(scale, codes.shape[-2] // scale.shape[-2], axis=-2)
    return np.tensordot(a, values, axes=(-1, -2))


def sum_of_groups(
    c: LowerContext, scale: OperandRef, place: Sequence[Index], sizes: Sequence[int], product: Callable[..., Scalar]
) -> Scalar:
    """Emit the sum of groups: each the sum of ``product(group, *indices)`` over ``sizes``, times the group's scale.
    ``place`` is the panel, if there are several, and the column in it."""
    nest, (*panel, column) = c.nest, place

    def group(g: Index) -> Scalar:
        return nest.reduce("add", 0, float32, sizes, partial(product, g)) * c.load(scale, (*panel, g, column))

    return nest.reduce("add", 0, float32, [scale.shape[-2]], group)


def _lower(c: LowerContext, index: tuple[Index, ...], a: OperandRef, codes: OperandRef, scale: OperandRef) -> Scalar:
    row, (*panel, column) = index[: len(a.shape) - 1], index[len(a.shape) - 1 :]
    size = codes.shape[-2] // scale.shape[-2]

    def product(g: Index, i: Index) -> Scalar:
        element = c.load(a, (*row, g * size + i))
        return element * c.load(codes, (*panel, g * size + i, column)).cast(float32)

    return sum_of_groups(c, scale, (*panel, column), [size], product)


def _samples() -> list[Sample]:
    """Return samples of numbers whose sums are exact in any order."""

    def one(*rows: int, groups: int, size: int, columns: int) -> Sample:
        random = np.random.default_rng(columns)
        a = random.integers(-32, 33, (*rows, groups * size)).astype(np.float32) / 16
        codes = random.integers(-128, 128, (groups * size, columns)).astype(np.int8)
        scale = random.integers(-6, 7, (groups, columns)).astype(np.float32) / 2
        return plain(a, *(map(panels_of, (codes, scale)) if columns > PANEL else (codes, scale)))

    return [
        one(3, groups=2, size=32, columns=20),
        one(1, groups=3, size=16, columns=70),
        one(2, groups=2, size=16, columns=2 * PANEL),
        one(2, 5, groups=1, size=8, columns=33),
    ]


group_matmul = define(
    "group_matmul",
    "Rows times the panels of a matrix of 8-bit codes: sums of products of each group of neighbours along the summed "
    "axis, times the group's scale.",
    "a codes scale",
    _infer,
    reference=product_of_groups,
    lower=_lower,
    traits=Trait.PURE | Trait.CONTRACTION,
    multiply_adds=matmul_multiply_adds,
    samples=_samples,
    error_samples=(
        ErrorSample(
            (TensorType(float32, (2, 40)), TensorType(int8, (1, 32, 3)), TensorType(float32, (1, 1, 3))),
            "do not fit",
            {},
        ),
        ErrorSample(
            (TensorType(float32, (2, 32)), TensorType(int8, (1, 32, 3)), TensorType(float32, (1, 5, 3))),
            "do not fit",
            {},
        ),
        ErrorSample(
            (TensorType(float64, (2, 32)), TensorType(int32, (1, 32, 3)), TensorType(float32, (1, 1, 3))),
            "group_matmul: f64",
            {},
            DTypeError,
        ),
    ),
)
