"""Choice of the implementation of matrix ops: native code, or numpy's LAPACK in a host call."""

from __future__ import annotations

from typing import Any

from graphc.base.sizes.size import is_size
from graphc.ops import dispatch
from graphc.ops.define import OpFunction
from graphc.ops.movement.shape import filled
from graphc.tracing.host import opaque

NATIVE_ROWS = 64
"""Rows of the largest matrices that compiled code factors natively, if it can call Python. Measured on one core of an
x86-64 with AVX-512: compared to a host call of LAPACK, native code takes 0.1 to 0.8 of the time up to 48 rows, equal
time at 64 and twice the time at 128 (``python -m benchmarks.linalg``)."""


_ROTATED_ROWS = 12
_ROTATED_ROWS_OF_MANY = 3
"""The same limits for eigenvalues of a single symmetric matrix, and of several. Measured: compared to a host call of
LAPACK, native code takes a quarter of the time for one matrix of 4 rows and equal time for one of 12; for 1,000 of 3
rows 1/24, for 1,000 of 6 rows three times as long."""


def rotated_rows(x: Any) -> int:
    """Return the largest number of rows for which eigenvalues of symmetric matrices are computed natively."""
    return _ROTATED_ROWS if all(s == 1 for s in x.shape[:-2]) else _ROTATED_ROWS_OF_MANY


def apply(op: OpFunction, *operands: Any, most: int = NATIVE_ROWS, **attrs: Any) -> Any:
    """Apply an op to matrices.

    Eager code, and graphs that cannot call Python, apply the op itself. Compiled code is native up to ``most`` rows;
    above, and for complex numbers, it calls numpy, and ``explain`` shows the reason.
    """
    rows = max(operands[0].shape[-2:])
    calls_python = getattr(dispatch.current(), "host", None) is not None
    complex = operands[0].dtype.is_complex
    if not calls_python or (rows <= most and not complex) or any(is_size(s) for x in operands for s in x.shape):
        return op(*operands, **attrs)

    def by_numpy(*tensors: Any) -> Any:
        return op(*tensors, **attrs)

    def like(*tensors: Any) -> Any:
        types = tuple([t._data.type for t in tensors])
        (result_type,) = op.op.result_types(types, op.op.normalize(attrs))
        return filled(0, result_type.dtype, result_type.shape)

    reason = "there is no native code for complex ones" if complex else f"these are more than {most}"
    by_numpy.__name__ = f"linalg: {op.op.name} of {rows} rows by numpy, as {reason}"
    return opaque(by_numpy, results=like)(*operands)
