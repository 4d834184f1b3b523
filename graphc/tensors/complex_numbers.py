"""Functions that create complex tensors and split them into parts."""

from __future__ import annotations

from typing import Any

from graphc.base.dtypes import float32, float64
from graphc.base.errors import DTypeError
from graphc.ops.pointwise import complex as parts
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.tensors.out import with_hints
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor


def _need_one_type(name: str, first: Any, second: Any) -> None:
    need_tensor(name, first, second)
    if first.dtype is not second.dtype:
        raise DTypeError(
            f"{name}: the parts are {first.dtype.name} and {second.dtype.name}", remedy="pass parts of one type"
        )


@with_hints
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Combine two real tensors of the same type, f32 or f64, into a complex one; they broadcast.

    Raises DTypeError for other types.
    """
    _need_one_type("complex", real, imag)
    return parts.complex(real, imag)


@with_hints
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Compute ``abs * exp(i angle)`` of two real tensors of the same type; the angle is in radians."""
    _need_one_type("polar", abs, angle)
    if abs.dtype not in (float32, float64):
        raise DTypeError(f"polar takes f32 or f64, got {abs.dtype.name}", remedy="call x.float()")
    return complex(ew.mul(abs, mathematics.cos(angle)), ew.mul(abs, mathematics.sin(angle)))


def view_as_real(input: Tensor) -> Tensor:
    """View a complex tensor as real and imaginary parts in a new last dimension of 2; shares its memory."""
    need_tensor("view_as_real", input)
    return parts.view_as_real(input)


def view_as_complex(input: Tensor) -> Tensor:
    """Combine the last dimension, of size 2, of an f32 or f64 tensor to complex numbers. The result shares its memory
    if the parts are adjacent. Raises ShapeError, DTypeError."""
    need_tensor("view_as_complex", input)
    return parts.view_as_complex(input)


def _method(name: str, doc: str) -> Any:
    def function(input: Tensor) -> Any:
        need_tensor(name, input)
        attribute = getattr(input, name)
        return attribute() if callable(attribute) else attribute

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


real = _method("real", "Return the real part, see ``Tensor.real``.")
imag = _method("imag", "Return the imaginary part, see ``Tensor.imag``.")
conj = _method("conj", "Return the complex conjugate, see ``Tensor.conj``.")
conj_physical = _method("conj_physical", "Return the complex conjugate, see ``Tensor.conj``.")
resolve_conj = _method("resolve_conj", "Return the tensor itself, see ``Tensor.is_conj``.")
resolve_neg = _method("resolve_neg", "Return the tensor itself, see ``Tensor.is_conj``.")
is_conj = _method("is_conj", "Return False, see ``Tensor.is_conj``.")
angle = _method("angle", "Return the angle in radians, see ``Tensor.angle``.")
adjoint = _method("adjoint", "Transpose the last two dimensions, and conjugate complex numbers.")

__all__ = ["adjoint", "angle", "conj", "conj_physical", "imag", "is_conj", "polar", "real", "resolve_conj"]
__all__ += ["resolve_neg", "view_as_complex", "view_as_real"]
