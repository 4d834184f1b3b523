"""Limits of element types, as in PyTorch: ``finfo`` of floating-point types, ``iinfo`` of integer types."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.dtypes import DType, bfloat16, dtype_of, limits
from graphc.base.errors import DTypeError
from graphc.tensors.creation import get_default_dtype

__all__ = ["finfo", "iinfo"]


class finfo:
    """Limits of a floating-point type (None: the default one): ``bits``, ``max``, ``min``, ``eps`` (from 1 to the next
    number), ``tiny`` or ``smallest_normal`` (the smallest number of full precision) and ``resolution``. Raises
    DTypeError for another kind of type.

    Example:
        >>> import graphc as gc
        >>> gc.finfo(gc.float32).max
        3.4028234663852886e+38
    """

    def __init__(self, type: Any = None):
        kind = get_default_dtype() if type is None else dtype_of(type)
        if kind.kind not in "fhc":
            raise DTypeError(f"finfo takes a floating-point type, got {kind.long_name}", remedy="use graphc.iinfo")
        if kind is bfloat16:  # NOTE: numpy lacks bf16; it has 8 bits of precision and the exponents of f32.
            self.bits, self.eps, self.resolution = 16, 2.0**-7, 0.01
            self.max, self.tiny = (2 - 2.0**-7) * 2.0**127, 2.0**-126
        else:
            info = np.finfo(kind.numpy)
            self.bits, self.eps, self.resolution = info.bits, float(info.eps), 10.0**-info.precision
            self.max, self.tiny = float(info.max), float(info.tiny)
        self.min, self.smallest_normal, self.dtype = -self.max, self.tiny, kind.long_name

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{name}={getattr(self, name):g}' for name in names)}, dtype={self.dtype})"


class iinfo:
    """Limits of an integer type: ``bits``, ``max`` and ``min``. Raises DTypeError for another kind of type."""

    def __init__(self, type: Any):
        kind: DType = dtype_of(type)
        if kind.kind not in "iu":
            raise DTypeError(f"iinfo takes an integer type, got {kind.long_name}", remedy="use graphc.finfo")
        low, high = limits(kind)
        self.bits, self.min, self.max, self.dtype = kind.bits, int(low), int(high), kind.long_name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
