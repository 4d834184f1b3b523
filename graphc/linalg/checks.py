"""Checks of matrix arguments, and the error for matrices without a result."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ConditionError, DTypeError, ShapeError
from graphc.ops.effects.check import check_true
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.tensor_base import need_tensor

__all__ = ["LinAlgError"]

LinAlgError = ConditionError
"""Error, in eager and compiled code, for matrices without an inverse or a factor."""


def need_float(name: str, *tensors: Any) -> None:
    """Raise ArgumentError for a value that is not a tensor, DTypeError for types other than floating point or complex,
    or different types."""
    need_tensor(name, *tensors)
    for t in tensors:
        if t.dtype.kind not in "fc":
            raise DTypeError(
                f"{name} takes matrices of floats or complex numbers, got {t.dtype.name}", remedy="call x.double()"
            )
        if t.dtype is not tensors[0].dtype:
            raise DTypeError(f"{name}: element types differ: {tensors[0].dtype.name} and {t.dtype.name}")


def need_matrix(name: str, x: Any) -> Any:
    """Return the tensor; raise ShapeError unless it holds floats or complex numbers in at least two dimensions."""
    need_float(name, x)
    if x.ndim < 2:
        raise ShapeError(f"{name} takes matrices, got {list(x.shape)}", remedy="pass at least two dimensions")
    return x


def need_square(name: str, x: Any) -> Any:
    """Return the tensor; raise ShapeError unless it holds square matrices."""
    need_tensor(name, x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name} takes square matrices, got {list(x.shape)}")
    need_float(name, x)
    return x


def expanded(x: Any, batch: tuple[int, ...]) -> Any:
    """Broadcast matrices to one for each entry of a batch."""
    full_shape = (*batch, *x.shape[-2:])
    return x if tuple(x.shape) == full_shape else shape.broadcast_to(x, shape=full_shape)


def identity(x: Any, n: int | None = None) -> Any:
    """Return the identity matrix with ``n`` rows (None: as many as ``x``) in the type of ``x``."""
    size = x.shape[-1] if n is None else n
    return ew.cast(x.new_ones(size, size).tril().triu(), dtype=x.dtype)


def require(condition: Any, message: str) -> None:
    """Raise LinAlgError with the message unless all elements of a boolean tensor are true; compiled code checks in each
    call."""
    check_true(condition, message=message)
