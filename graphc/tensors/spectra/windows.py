"""Windows for spectra: vectors that decrease to both ends, symmetric or periodic."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.errors import AttributeValueError, DTypeError
from graphc.tensors import creation
from graphc.tensors.tensor import Tensor


def make_window(name: str, length: int, periodic: bool, formula: Any, options: dict[str, Any]) -> Tensor:
    """Evaluate ``formula(x)`` at ``length`` points from 0 to 1; the last point of a periodic window is beyond its end.
    A single point is 1. Raises DTypeError for types other than floats, AttributeValueError for a negative length."""
    dtype = options.pop("dtype", None) or creation.get_default_dtype()
    if not dtype.is_floating_point:
        raise DTypeError(f"{name} must be floating point, not {dtype.name}", remedy="pass dtype=graphc.float32")
    if length < 0:
        raise AttributeValueError(
            f"{name}: cannot make a window of {length} points", remedy="pass a length of 0 or more"
        )
    steps = length if periodic else length - 1
    points = np.arange(length) / max(steps, 1)
    return creation.tensor(formula(points) if length > 1 else np.ones(length), dtype=dtype, **options)


def cosines(*weights: float) -> Any:
    """Return the sum of cosines with alternating signs: ``w0 - w1 cos(2 pi x) + w2 cos(4 pi x) - ...``."""
    return lambda x: sum(w * (-1) ** k * np.cos(2 * np.pi * k * x) for k, w in enumerate(weights))


def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Return the window ``0.5 - 0.5 cos(2 pi x)``. ``options``: dtype, device, requires_grad."""
    return make_window("hann_window", window_length, periodic, cosines(0.5, 0.5), options)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """Return the window ``alpha - beta cos(2 pi x)``. ``options``: dtype, device, requires_grad."""
    return make_window("hamming_window", window_length, periodic, cosines(alpha, beta), options)


def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Return the window ``0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x)``. ``options``: dtype, device, requires_grad."""
    return make_window("blackman_window", window_length, periodic, cosines(0.42, 0.5, 0.08), options)


def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Return the triangular window ``1 - |2 x - 1|``. ``options``: dtype, device, requires_grad."""
    return make_window("bartlett_window", window_length, periodic, lambda x: 1 - np.abs(2 * x - 1), options)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """Return the window ``I0(beta sqrt(1 - (2 x - 1)^2)) / I0(beta)`` with the modified Bessel function I0.
    ``options``: dtype, device, requires_grad."""

    def formula(x: np.ndarray) -> np.ndarray:
        return np.i0(beta * np.sqrt(np.maximum(1 - (2 * x - 1) ** 2, 0))) / np.i0(beta)

    return make_window("kaiser_window", window_length, periodic, formula, options)


__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]
