"""Rules of ATen operators on complex numbers: components, conjugates, angles, Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.interop.aten.registry import rule
from graphc.tensors import complex_numbers as numbers
from graphc.tensors import functions
from graphc.tensors.spectra import fourier
from graphc.tensors.tensor import Tensor

for _name in ("angle", "complex", "imag", "polar", "real", "view_as_complex", "view_as_real"):
    rule(_name)(getattr(numbers, _name))
rule("conj", "_conj", "conj_physical", "_conj_physical")(numbers.conj)
rule("isreal")(functions.isreal)
rule("adjoint", "mH", "matrix_H")(numbers.adjoint)
for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    for _dims in ("", "2", "n"):
        rule(f"fft_{_name}{_dims}")(getattr(fourier, _name + _dims))
for _name in ("fftshift", "ifftshift"):
    rule(f"fft_{_name}")(getattr(fourier, _name))


# ---- internal operators to which PyTorch lowers transforms

_NORMS = ("backward", "ortho", "forward")
"""Normalizations by PyTorch's codes 0 to 2: none, division by the root of the number of points, division by that
number. Inverse transforms have them in reverse order: there the last one is ``backward``."""


@rule("_fft_r2c")
def fft_r2c(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    return (fourier.rfftn if onesided else fourier.fftn)(self, None, dim, _NORMS[normalization])


@rule("_fft_c2c")
def fft_c2c(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    if forward:
        return fourier.fftn(self, None, dim, _NORMS[normalization])
    return fourier.ifftn(self, None, dim, _NORMS[-1 - normalization])


@rule("_fft_c2r")
def fft_c2r(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    return fourier.irfftn(self, [*[-1] * (len(dim) - 1), last_dim_size], dim, _NORMS[-1 - normalization])
