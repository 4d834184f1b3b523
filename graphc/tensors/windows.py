"""Windows for spectra: vectors that fall to the ends, symmetric or as one period of what repeats."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.errors import AttributeValueError, DTypeError
from graphc.tensors import creation
from graphc.tensors.tensor import Tensor


def made(name: str, length: int, periodic: bool, formula: Any, options: dict[str, Any]) -> Tensor:
    """``formula(x)`` at ``length`` places from 0 to 1, of which a periodic window has the last one behind it; 1 where
    there is one place. Raises DTypeError for other types than floats, AttributeValueError for a negative length."""
    dtype = options.pop("dtype", None) or creation.get_default_dtype()
    if not dtype.is_floating_point:
        raise DTypeError(f"{name} is floating point, not {dtype.name}", remedy="dtype=graphc.float32")
    if length < 0:
        raise AttributeValueError(f"{name}: {length} places", remedy="0 or more")
    steps = length if periodic else length - 1
    places = np.arange(length) / max(steps, 1)
    return creation.tensor(formula(places) if length > 1 else np.ones(length), dtype=dtype, **options)


def cosines(*weights: float) -> Any:
    """Sums of cosines with alternating signs: ``w0 - w1 cos(2 pi x) + w2 cos(4 pi x) - ...``."""
    return lambda x: sum(w * (-1) ** k * np.cos(2 * np.pi * k * x) for k, w in enumerate(weights))


def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """``0.5 - 0.5 cos(2 pi x)``. ``options``: dtype, device, requires_grad."""
    return made("hann_window", window_length, periodic, cosines(0.5, 0.5), options)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """``alpha - beta cos(2 pi x)``. ``options``: dtype, device, requires_grad."""
    return made("hamming_window", window_length, periodic, cosines(alpha, beta), options)


def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """``0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x)``. ``options``: dtype, device, requires_grad."""
    return made("blackman_window", window_length, periodic, cosines(0.42, 0.5, 0.08), options)


def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A triangle: ``1 - |2 x - 1|``. ``options``: dtype, device, requires_grad."""
    return made("bartlett_window", window_length, periodic, lambda x: 1 - np.abs(2 * x - 1), options)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """``I0(beta sqrt(1 - (2 x - 1)^2)) / I0(beta)`` with the modified Bessel function I0. ``options``: dtype, device,
    requires_grad."""

    def formula(x: np.ndarray) -> np.ndarray:
        return np.i0(beta * np.sqrt(np.maximum(1 - (2 * x - 1) ** 2, 0))) / np.i0(beta)

    return made("kaiser_window", window_length, periodic, formula, options)


__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]
