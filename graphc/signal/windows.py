"""Windows for filters and spectra under the names of ``torch.signal.windows``; symmetric unless ``sym=False``.

With ``M`` points and ``sym=False`` a window is the first M points of the symmetric one of M + 1. All functions take
``dtype`` (f32 or f64, by default the default type), ``device`` and ``requires_grad``. They raise AttributeValueError,
which is a ValueError, for a negative ``M`` and for other types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import float32, float64
from graphc.base.errors import ArgumentError, AttributeValueError
from graphc.tensors import creation
from graphc.tensors.spectra import windows
from graphc.tensors.spectra.windows import cosines, make_window
from graphc.tensors.tensor import Tensor

_NUTTALL = (0.3635819, 0.4891775, 0.1365995, 0.0106411)
"""Nuttall, Some windows with very good sidelobe behavior, 1981: four terms with the lowest side lobes."""


def _dtype(name: str, options: dict[str, Any]) -> Any:
    dtype = options.get("dtype") or creation.get_default_dtype()
    if dtype not in (float32, float64):
        raise AttributeValueError(f"{name} is f32 or f64, not {dtype.name}", remedy="pass dtype=graphc.float32")
    return dtype


def _by_point(name: str, M: int, sym: bool, options: dict[str, Any], formula: Any) -> Tensor:
    """Return ``formula(k, steps)`` at the points k = 0 to M - 1; in a symmetric window the last point is ``steps``."""
    dtype = _dtype(name, options)
    if M < 0:
        raise AttributeValueError(f"{name}: {M} points", remedy="pass 0 or more")
    steps = M - 1 if sym or M <= 1 else M
    return creation.tensor(formula(np.arange(M), steps), **{**options, "dtype": dtype})


def _need_positive(name: str, what: str, value: float) -> None:
    if value <= 0:
        raise AttributeValueError(f"{name}: {what} is {value}", remedy="pass a positive number")


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return a triangle window: ``1 - |2 x - 1|`` for x from 0 to 1."""
    _dtype("bartlett", options)
    return windows.bartlett_window(M, not sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return ``0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x)`` for x from 0 to 1."""
    return general_cosine(M, a=(0.42, 0.5, 0.08), sym=sym, **options)


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return half a period of the sine, ``sin(pi (k + 0.5) / M)``, which is never 0."""
    return _by_point("cosine", M, sym, options, lambda k, steps: np.sin(np.pi * (k + 0.5) / (steps + 1)))


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """Return ``exp(-|k - center| / tau)``. The center defaults to the middle; another one needs ``sym=False``."""
    _need_positive("exponential", "tau", tau)
    if sym and center is not None:
        raise AttributeValueError(
            "exponential: a symmetric window has its center in the middle", remedy="pass sym=False"
        )
    return _by_point(
        *("exponential", M, sym, options),
        lambda k, steps: np.exp(-np.abs(k - (steps / 2 if center is None else center)) / tau),
    )


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """Return ``exp(-(k - middle)^2 / (2 std^2))``."""
    _need_positive("gaussian", "std", std)
    return _by_point("gaussian", M, sym, options, lambda k, steps: np.exp(-(((k - steps / 2) / std) ** 2) / 2))


def general_cosine(M: int, *, a: Sequence[float], sym: bool = True, **options: Any) -> Tensor:
    """Return ``a[0] - a[1] cos(2 pi x) + a[2] cos(4 pi x) - ...`` for x from 0 to 1."""
    _dtype("general_cosine", options)
    if not isinstance(a, Sequence):
        raise ArgumentError(f"general_cosine: the weights are {a!r}", remedy="pass for example a=[0.5, 0.5]")
    if not a:
        raise AttributeValueError("general_cosine: there are no weights", remedy="pass for example a=[0.5, 0.5]")
    return make_window("general_cosine", M, not sym, cosines(*a), options)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """Return ``alpha - (1 - alpha) cos(2 pi x)`` for x from 0 to 1."""
    return general_cosine(M, a=(alpha, 1.0 - alpha), sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return ``0.54 - 0.46 cos(2 pi x)`` for x from 0 to 1."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return ``0.5 - 0.5 cos(2 pi x)`` for x from 0 to 1."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """Return ``I0(beta sqrt(1 - (2 x - 1)^2)) / I0(beta)`` for x from 0 to 1, with the modified Bessel function I0."""
    _dtype("kaiser", options)
    if beta < 0:
        raise AttributeValueError(f"kaiser: beta is {beta}", remedy="pass 0 or more")
    return windows.kaiser_window(M, not sym, beta, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return Nuttall's window of four cosines with the lowest side lobes."""
    return general_cosine(M, a=_NUTTALL, sym=sym, **options)


__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming"]
__all__ += ["hann", "kaiser", "nuttall"]
