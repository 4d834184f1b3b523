"""Extension of the array API standard for discrete Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.array_api.array import standard
from graphc.base.dtypes import dtype_of
from graphc.tensors.spectra import fourier
from graphc.tensors.tensor import Tensor


def _along_one(name: str, of: Callable[..., Any]) -> Any:
    def function(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return of(x, n, axis, norm)

    return _named(function, name, of)


def _along_several(name: str, of: Callable[..., Any]) -> Any:
    def function(
        x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
    ) -> Tensor:
        return of(x, s, axes, norm)

    return _named(function, name, of)


def _shift(name: str, of: Callable[..., Any]) -> Any:
    def function(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
        return of(x, axes)

    return _named(function, name, of)


def _frequencies(name: str, of: Callable[..., Any]) -> Any:
    def function(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
        return of(n, d, dtype=None if dtype is None else dtype_of(dtype), device=device)

    return _named(function, name, of)


def _named(function: Any, name: str, of: Callable[..., Any]) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = of.__doc__
    return standard(function)


fft, ifft = _along_one("fft", fourier.fft), _along_one("ifft", fourier.ifft)
rfft, irfft = _along_one("rfft", fourier.rfft), _along_one("irfft", fourier.irfft)
hfft, ihfft = _along_one("hfft", fourier.hfft), _along_one("ihfft", fourier.ihfft)
fftn, ifftn = _along_several("fftn", fourier.fftn), _along_several("ifftn", fourier.ifftn)
rfftn, irfftn = _along_several("rfftn", fourier.rfftn), _along_several("irfftn", fourier.irfftn)
fftshift, ifftshift = _shift("fftshift", fourier.fftshift), _shift("ifftshift", fourier.ifftshift)
fftfreq, rfftfreq = _frequencies("fftfreq", fourier.fftfreq), _frequencies("rfftfreq", fourier.rfftfreq)

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn"]
__all__ += ["rfft", "rfftfreq", "rfftn"]
