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


def _infer(a: TensorType, codes: TensorType, scale: TensorType) -> TensorType:
    if a.dtype is not float32 or codes.dtype is not int8 or scale.dtype is not float32:
        raise DTypeError(f"group_matmul: {a}, {codes} and {scale}", remedy="pass rows f32, codes i8 and scales f32")
    fit = a.rank >= 2 and codes.rank == scale.rank == 2
    depth, columns = codes.shape if fit else (0, 0)
    if not fit or a.shape[-1] != depth or scale.shape[1] != columns or not scale.shape[0] or depth % scale.shape[0]:
        raise ShapeError(
            f"group_matmul: {a}, {codes} and {scale} do not fit",
            remedy="pass rows[..., K], codes[K, N] and scales[G, N], where G divides K",
        )
    return TensorType(float32, (*a.shape[:-1], columns))


def product_of_groups(a: np.ndarray, codes: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the products f32[..., N] of rows [..., K] with codes [K, N] times scales [G, N]."""
    return np.matmul(a, codes.astype(np.float32) * np.repeat(scale, len(codes) // len(scale), axis=0))


def sum_of_groups(
    c: LowerContext, scale: OperandRef, column: Index, sizes: Sequence[int], product: Callable[..., Scalar]
) -> Scalar:
    """Emit the sum of groups: each the sum of ``product(group, *indices)`` over ``sizes``, times the group's scale."""
    nest = c.nest

    def group(g: Index) -> Scalar:
        return nest.reduce("add", 0, float32, sizes, partial(product, g)) * c.load(scale, (g, column))

    return nest.reduce("add", 0, float32, [scale.shape[0]], group)


def _lower(c: LowerContext, index: tuple[Index, ...], a: OperandRef, codes: OperandRef, scale: OperandRef) -> Scalar:
    column, size = index[-1], codes.shape[0] // scale.shape[0]

    def product(g: Index, i: Index) -> Scalar:
        element = c.load(a, (*index[:-1], g * size + i))
        return element * c.load(codes, (g * size + i, column)).cast(float32)

    return sum_of_groups(c, scale, column, [size], product)


def _samples() -> list[Sample]:
    """Return samples of numbers whose sums are exact in any order."""

    def one(*rows: int, groups: int, size: int, columns: int) -> Sample:
        random = np.random.default_rng(columns)
        a = random.integers(-32, 33, (*rows, groups * size)).astype(np.float32) / 16
        codes = random.integers(-128, 128, (groups * size, columns)).astype(np.int8)
        return plain(a, codes, random.integers(-6, 7, (groups, columns)).astype(np.float32) / 2)

    return [
        one(3, groups=2, size=32, columns=20),
        one(1, groups=3, size=16, columns=70),
        one(2, 5, groups=1, size=8, columns=33),
    ]


group_matmul = define(
    "group_matmul",
    "Rows times a matrix of 8-bit codes: sums of products of each group of neighbours along the summed axis, times the "
    "group's scale.",
    "a codes scale",
    _infer,
    reference=product_of_groups,
    lower=_lower,
    traits=Trait.PURE | Trait.CONTRACTION,
    multiply_adds=matmul_multiply_adds,
    samples=_samples,
    error_samples=(
        ErrorSample(
            (TensorType(float32, (2, 40)), TensorType(int8, (32, 3)), TensorType(float32, (1, 3))), "do not fit", {}
        ),
        ErrorSample(
            (TensorType(float32, (2, 32)), TensorType(int8, (32, 3)), TensorType(float32, (5, 3))), "do not fit", {}
        ),
        ErrorSample(
            (TensorType(float64, (2, 32)), TensorType(int32, (32, 3)), TensorType(float32, (1, 3))),
            "group_matmul: f64",
            {},
            DTypeError,
        ),
    ),
)
