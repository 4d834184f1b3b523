"""What functions of matrices take, and how they say that there is no result."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ConditionError, DTypeError, ShapeError
from graphc.ops import elementwise as ew
from graphc.ops import shape
from graphc.ops.check import check_true
from graphc.tensors.tensor_base import need_tensor

LinAlgError = ConditionError
"""What is raised, eagerly and by compiled code, for matrices of which there is no inverse or factor."""


def need_float(name: str, *tensors: Any) -> None:
    """Raises ArgumentError for what is no tensor, DTypeError for types that are neither floating point nor
    complex, or differ."""
    need_tensor(name, *tensors)
    for t in tensors:
        if t.dtype.kind not in "fc":
            raise DTypeError(
                f"{name} takes matrices of floats or complex numbers, got {t.dtype.name}", remedy="x.double()"
            )
        if t.dtype is not tensors[0].dtype:
            raise DTypeError(f"{name}: element types differ: {tensors[0].dtype.name} and {t.dtype.name}")


def need_matrix(name: str, x: Any) -> Any:
    """The tensor itself, of floats or complex numbers with at least two dimensions; raises ShapeError."""
    need_float(name, x)
    if x.ndim < 2:
        raise ShapeError(f"{name} takes matrices, got {list(x.shape)}", remedy="at least two dimensions")
    return x


def need_square(name: str, x: Any) -> Any:
    """The tensor itself, of square matrices; raises ShapeError."""
    need_tensor(name, x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name} takes square matrices, got {list(x.shape)}")
    need_float(name, x)
    return x


def expanded(x: Any, batch: tuple[int, ...]) -> Any:
    """Matrices, one for each entry of a batch."""
    whole = (*batch, *x.shape[-2:])
    return x if tuple(x.shape) == whole else shape.broadcast_to(x, shape=whole)


def identity(x: Any, n: int | None = None) -> Any:
    """The identity of ``n`` rows (those of ``x``) in the type of ``x``."""
    size = x.shape[-1] if n is None else n
    return ew.cast(x.new_ones(size, size).tril().triu(), dtype=x.dtype)


def require(condition: Any, message: str) -> None:
    """Raises LinAlgError with the message unless all elements of a boolean tensor are true; compiled code checks at
    each call."""
    check_true(condition, message=message)
