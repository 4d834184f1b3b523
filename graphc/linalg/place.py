"""Where factors and solutions are computed: in native code, or by numpy's LAPACK, which compiled code calls."""

from __future__ import annotations

from typing import Any

from graphc.base.sizes.size import is_size
from graphc.ops import dispatch
from graphc.ops.define import OpFunction
from graphc.ops.shape import filled
from graphc.tracing.host import opaque

NATIVE_ROWS = 64
"""Rows of the largest matrices of which compiled code computes factors by itself, where it can call Python. Measured on
one core of an x86-64 with AVX-512: against LAPACK with the call, native code takes 0.1 to 0.8 of the time up to 48
rows, as long at 64 and twice as long at 128 (``python -m benchmarks.linalg``)."""


_ROTATED_ROWS = 12
_ROTATED_ROWS_OF_MANY = 3
"""The same of eigenvalues of one symmetric matrix, and of several. Measured: against LAPACK with the call, native code
takes a quarter of the time for one matrix of 4 rows, as long for one of 12; for 1,000 of 3 rows 1/24, for those of 6
three times as long."""


def rotated_rows(x: Any) -> int:
    """Up to how many rows eigenvalues of symmetric matrices are computed natively."""
    return _ROTATED_ROWS if all(s == 1 for s in x.shape[:-2]) else _ROTATED_ROWS_OF_MANY


def apply(op: OpFunction, *operands: Any, most: int = NATIVE_ROWS, **attrs: Any) -> Any:
    """The result of an op on matrices: eagerly, and in graphs that cannot call Python, the op's; in compiled code that
    of native code up to ``most`` rows, above it and for complex numbers that of a call of numpy, whose name says so in
    ``explain``."""
    rows = max(operands[0].shape[-2:])
    calls_python = getattr(dispatch.current(), "host", None) is not None
    complex = operands[0].dtype.is_complex
    if not calls_python or (rows <= most and not complex) or any(is_size(s) for x in operands for s in x.shape):
        return op(*operands, **attrs)

    def by_numpy(*tensors: Any) -> Any:
        return op(*tensors, **attrs)

    def like(*tensors: Any) -> Any:
        types = tuple([t._data.type for t in tensors])
        (found,) = op.op.result_types(types, op.op.normalize(attrs))
        return filled(0, found.dtype, found.shape)

    reason = "there is no native code for complex ones" if complex else f"these are more than {most}"
    by_numpy.__name__ = f"linalg: {op.op.name} of {rows} rows by numpy, as {reason}"
    return opaque(by_numpy, results=like)(*operands)
