"""The op that returns a size known at run time as a number."""

from __future__ import annotations

import numpy as np

from graphc.base.dtypes import int64
from graphc.base.errors import AttributeValueError
from graphc.base.sizes import size as sizes
from graphc.ir.op import Attr, ErrorSample, Trait
from graphc.ir.types import TensorType
from graphc.ops.define import define
from graphc.ops.samples import plain

size = define(
    "size",
    "A size of named dimensions as a number (i64).",
    "",
    lambda value: TensorType(int64),
    attrs=[Attr("value", "int", "the size")],
    reference=lambda value: np.asarray(value, np.int64),
    lower=lambda c, index, value: c.nest.index(value, int64),
    traits=Trait.PURE | Trait.GENERATOR,
    bounds=lambda ranges, types, attrs: sizes.bounds(attrs["value"]),
    samples=lambda: [plain(value=n) for n in (0, 7, -3, 2**40)],
    error_samples=[ErrorSample((), "attribute value must be int, got 0.5", {"value": 0.5}, AttributeValueError)],
)
