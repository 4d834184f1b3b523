"""Argument reduction of large angles modulo a quarter turn, with enough digits of 2/pi (Payne and Hanek, 1983)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.lazy import deferred

if TYPE_CHECKING:
    from fractions import Fraction

_fraction = deferred("fractions:Fraction")

FROM = 2.0**47
"""Threshold of large angles; for smaller ones pi/2 in three parts is exact enough."""
WORDS = 20
"""64-bit words of ``two_over_pi``, of which the first is 0: enough for the largest f64."""
PARTS = ("reduce_large", "reduce_large_rest")
"""The two scalar operations: the reduced angle, with the quarter turns in its exponent, and its rounding error."""
QUADRANT_BITS = 7
"""Encoding of quadrants: reduced angles are at least 2^-62, so exponents of different quadrants are 2^QUADRANT_BITS
apart."""
LEAST_EXPONENT = 1023 - 64
"""Below all biased exponents of reduced angles, by less than 2^QUADRANT_BITS."""
_DIGITS = 1400
"""Fractional bits for the computation of pi."""


def _arc_tangent(inverse: int) -> int:
    """Return atan(1 / inverse) times 2^_DIGITS."""
    term = total = (1 << _DIGITS) // inverse
    k, sign = 1, -1
    while term:
        term //= inverse * inverse
        k += 2
        total += sign * (term // k)
        sign = -sign
    return total


@functools.cache
def half_pi() -> Fraction:
    """Return pi/2, by Machin's formula, to about _DIGITS bits."""
    return _fraction(8 * _arc_tangent(5) - 2 * _arc_tangent(239), 1 << _DIGITS)


@functools.cache
def two_over_pi() -> tuple[int, ...]:
    """Return 2/pi times 2^-64 as WORDS words of 64 fractional bits, the highest first."""
    bits = (1 << 64 * (WORDS - 1)) * half_pi().denominator // half_pi().numerator
    return tuple(bits >> 64 * (WORDS - 1 - k) & (2**64 - 1) for k in range(WORDS))


def _parts(x: float) -> tuple[float, float]:
    """Return a large angle reduced and encoded, and its rounding error; zeros for a small one and for NaN."""
    if not abs(x) > FROM:
        return 0.0, 0.0
    if math.isinf(x):
        return math.nan, math.nan
    turns = _fraction(x) / half_pi()
    n = round(turns)
    reduced = (turns - n) * half_pi()
    rounded = float(reduced)
    return math.ldexp(rounded, (n % 4) << QUADRANT_BITS), float(reduced - _fraction(rounded))


def reference(result: int) -> Callable[[Any], np.ndarray]:
    """Return a function that computes one of the two results for every element."""
    each = np.vectorize(lambda v: _parts(float(v))[result], otypes=[np.float64])
    return lambda x: each(np.asarray(x))
