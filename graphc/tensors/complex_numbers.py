"""Functions that make complex tensors and take them apart."""

from __future__ import annotations

from typing import Any

from graphc.base.dtypes import float32, float64
from graphc.base.errors import DTypeError
from graphc.ops import complex as parts
from graphc.ops import elementwise as ew
from graphc.ops import math as mathematics
from graphc.tensors.out import with_hints
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor


def _need_one_type(name: str, first: Any, second: Any) -> None:
    need_tensor(name, first, second)
    if first.dtype is not second.dtype:
        raise DTypeError(
            f"{name}: the parts are {first.dtype.name} and {second.dtype.name}", remedy="parts of one type"
        )


@with_hints
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """The complex tensor of two real ones of the same type, f32 or f64, which broadcast.

    Raises DTypeError for other types.
    """
    _need_one_type("complex", real, imag)
    return parts.complex(real, imag)


@with_hints
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """``abs * exp(i angle)`` of two real tensors of the same type; the angle is in radians."""
    _need_one_type("polar", abs, angle)
    if abs.dtype not in (float32, float64):
        raise DTypeError(f"polar takes f32 or f64, got {abs.dtype.name}", remedy="x.float()")
    return complex(ew.mul(abs, mathematics.cos(angle)), ew.mul(abs, mathematics.sin(angle)))


def view_as_real(input: Tensor) -> Tensor:
    """Real and imaginary parts of a complex tensor in one more dimension of 2 behind the others; shares its memory."""
    need_tensor("view_as_real", input)
    return parts.view_as_real(input)


def view_as_complex(input: Tensor) -> Tensor:
    """The complex numbers whose parts are the last dimension, of 2, of an f32 or f64 tensor; shares its memory where
    the parts lie side by side. Raises ShapeError, DTypeError."""
    need_tensor("view_as_complex", input)
    return parts.view_as_complex(input)


def _method(name: str, doc: str) -> Any:
    def function(input: Tensor) -> Any:
        need_tensor(name, input)
        found = getattr(input, name)
        return found() if callable(found) else found

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


real = _method("real", "The real part, see ``Tensor.real``.")
imag = _method("imag", "The imaginary part, see ``Tensor.imag``.")
conj = _method("conj", "The complex conjugate, see ``Tensor.conj``.")
conj_physical = _method("conj_physical", "The complex conjugate, see ``Tensor.conj``.")
resolve_conj = _method("resolve_conj", "The tensor itself, see ``Tensor.is_conj``.")
resolve_neg = _method("resolve_neg", "The tensor itself, see ``Tensor.is_conj``.")
is_conj = _method("is_conj", "False, see ``Tensor.is_conj``.")
angle = _method("angle", "The angle in radians, see ``Tensor.angle``.")
adjoint = _method("adjoint", "The last two dimensions exchanged, complex numbers conjugated.")

__all__ = [
    "adjoint",
    "angle",
    "conj",
    "conj_physical",
    "imag",
    "is_conj",
    "polar",
    "real",
    "resolve_conj",
    "resolve_neg",
    "view_as_complex",
    "view_as_real",
]
