"""Bit casts: reinterpret the bits of elements as another type of the same width."""

from __future__ import annotations

import numpy as np

from graphc.base.dtypes import DType, dtype_of, float32, float64, int32
from graphc.base.errors import DTypeError
from graphc.ir.kernel import scalar
from graphc.ir.op import Attr, ErrorSample, Sample
from graphc.ir.types import TensorType
from graphc.ops.define import define
from graphc.ops.pointwise.elementwise import ELEMENTWISE
from graphc.ops.rules import check_kind
from graphc.ops.samples import array, extremes, floats, plain


def _infer(x: TensorType, dtype: DType) -> TensorType:
    check_kind("bitcast", 0, x.dtype, "fiu")
    if dtype.kind not in "fiu" or dtype.bits != x.dtype.bits:
        raise DTypeError(
            f"bitcast: cannot read the bits of {x.dtype.name} as {dtype.name}", remedy="convert with x.to(dtype)"
        )
    return TensorType(dtype, x.shape)


def _samples() -> list[Sample]:
    special = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, 3e38, 1e-30]
    return [
        plain(floats((3, 5), "float32"), dtype=int32),
        plain(array(special, "float32"), dtype=int32),
        plain(array(special, "float64"), dtype=dtype_of("int64")),
        plain(array([0, 1, -1, 0x3F800000, 0x7F800000, -0x800000], "int32"), dtype=float32),
        plain(array([0, 0x3FF0000000000000, -(1 << 63)], "int64"), dtype=float64),
        plain(extremes("int8"), dtype=dtype_of("uint8")),
        plain(extremes("uint8"), dtype=dtype_of("int8")),
        plain(floats((0, 3), "float32"), dtype=int32),
        plain(floats((), "float32"), dtype=int32),
    ]


bitcast = define(
    "bitcast",
    "The bits of x as an element type of the same width.",
    "x",
    _infer,
    attrs=[Attr("dtype", "dtype", "the new element type")],
    reference=lambda x, dtype: scalar.bitcast(x, dtype).copy(),
    lower=lambda c, index, x, dtype: c.nest.op("bitcast", c.broadcast(x, index), dtype=dtype),
    traits=ELEMENTWISE,
    samples=_samples,
    error_samples=(
        ErrorSample((TensorType(float32, (2,)),), "cannot read the bits of f32 as i64", {"dtype": dtype_of("int64")}),
        ErrorSample((TensorType(float32, (2,)),), "attribute 'dtype' is missing"),
    ),
)
