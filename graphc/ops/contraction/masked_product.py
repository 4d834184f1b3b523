"""Masked products: rows contain zeros where a mask hides elements; elements of b that meet only zeros are not read."""

from __future__ import annotations

from functools import partial

import numpy as np

from graphc.base.dtypes import float32, int32
from graphc.base.errors import DTypeError, ShapeError
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.op import ErrorSample, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops.contraction.matrix_product import lower_matmul, matmul_multiply_adds, product_type
from graphc.ops.define import define
from graphc.ops.rules import check_kind
from graphc.ops.samples import floats, plain


def _infer(a: TensorType, b: TensorType) -> TensorType:
    check_kind("masked_matmul", 0, a.dtype, "f")
    return product_type("masked_matmul", a, b)


def _weighed(nest: NestBuilder, a: Scalar, b: Scalar) -> Scalar:
    """Emit one term of the sum."""
    return nest.op("weigh", a, b)


def _samples() -> list[Sample]:
    """Return rows with zeros: at the end, in between, nowhere and everywhere."""

    def one(*lead: int, nonzero: slice, depth: int, columns: int) -> Sample:
        a = np.zeros((*lead, depth), np.float32)
        a[..., nonzero] = floats((*lead, depth), "float32")[..., nonzero]
        return plain(a, floats((*lead[:-1], depth, columns), "float32"))

    return [
        one(3, 1, nonzero=slice(0, 21), depth=40, columns=33),
        one(2, 2, 1, nonzero=slice(5, 30, 7), depth=35, columns=64),
        one(1, nonzero=slice(0, 0), depth=17, columns=5),
        one(4, nonzero=slice(None), depth=6, columns=9),
    ]


masked_matmul = define(
    "masked_matmul",
    "A matrix product whose rows are 0 where elements are masked. Elements of b that meet only zeros count as finite: "
    "they need not be read.",
    "a b",
    _infer,
    reference=np.matmul,
    lower=partial(lower_matmul, term=_weighed),
    traits=Trait.PURE | Trait.CONTRACTION,
    multiply_adds=matmul_multiply_adds,
    samples=_samples,
    error_samples=(
        ErrorSample(
            (TensorType(float32, (2, 3)), TensorType(float32, (4, 2))), "inner dimensions differ", {}, ShapeError
        ),
        ErrorSample((TensorType(int32, (2, 2)), TensorType(int32, (2, 2))), "operand 0 is", {}, DTypeError),
    ),
)
