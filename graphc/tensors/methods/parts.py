"""Tensor methods for complex numbers: their parts, conjugates and angles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.dtypes import bool_, complex64, complex128, float32
from graphc.base.errors import DTypeError
from graphc.ops.pointwise import complex as parts
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.pointwise.parts_of_complex import conjugate
from graphc.tensors.tensor_base import TensorBase, front

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor


class Parts(TensorBase):
    """Real and imaginary parts, which share the memory of a complex tensor."""

    def is_complex(self) -> bool:
        """Return whether the element type is complex."""
        return self.dtype.is_complex

    @property
    def real(self) -> Tensor:
        """The real part, which shares memory with a complex tensor; a real tensor itself."""
        return parts.real(self) if self.dtype.is_complex else self  # type: ignore[return-value]

    @real.setter
    def real(self, value: Any) -> None:
        self.real.copy_(_as_tensor(value))

    @property
    def imag(self) -> Tensor:
        """The imaginary part, which shares memory with the tensor. Raises DTypeError for a real one."""
        if not self.dtype.is_complex:
            raise DTypeError(
                f"imag is for complex tensors, this one is {self.dtype.name}", remedy="call x.to(complex64)"
            )
        return parts.imag(self)  # type: ignore[return-value]

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag.copy_(_as_tensor(value))

    def isreal(self) -> Tensor:
        """Return whether the imaginary part is 0; true for all elements of a real tensor."""
        if self.dtype.is_complex:
            return ew.eq(parts.imag(self), 0)
        return self.new_ones(self.shape, dtype=bool_)  # type: ignore[attr-defined]

    def conj(self) -> Tensor:
        """Return the complex conjugate as a new tensor; a real tensor itself."""
        return conjugate(self)

    conj_physical = conj

    def is_conj(self) -> bool:
        """Return False: conjugates are computed immediately, never as views."""
        return False

    is_neg = is_conj

    def resolve_conj(self) -> Tensor:
        """Return the tensor itself, see ``is_conj``."""
        return self  # type: ignore[return-value]

    resolve_neg = resolve_conj

    def angle(self) -> Tensor:
        """Compute the angle in radians, from -pi to pi; 0 or pi for real numbers, and NaN for NaN."""
        if self.dtype.is_complex:
            return mathematics.atan2(parts.imag(self), parts.real(self))
        real = self if self.dtype.is_floating_point else ew.cast(self, dtype=float32)
        return ew.where(ew.lt(real, 0), math.pi, ew.where(mathematics.isnan(real), real, 0))

    def sgn(self) -> Tensor:
        """Return ``x / |x|``, 0 where x is 0; for real numbers the sign."""
        return ew.sign(self) if self.dtype.is_complex else self.sign()  # type: ignore[attr-defined]

    def cfloat(self) -> Tensor:
        """Convert to complex64."""
        return self.to_dtype(complex64)  # type: ignore[attr-defined]

    def cdouble(self) -> Tensor:
        """Convert to complex128."""
        return self.to_dtype(complex128)  # type: ignore[attr-defined]


def _as_tensor(value: Any) -> Any:
    return value if isinstance(value, TensorBase) else front().constant(np.asarray(value))
