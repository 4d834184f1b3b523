"""Large angles modulo a quarter turn, by as many digits of 2/pi as the largest number needs (Payne and Hanek, 1983)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

FROM = 2.0**47
"""Smaller angles need no more than pi/2 in three parts."""
WORDS = 20
"""64-bit words of ``two_over_pi``, of which the first is 0: as many as the largest f64 needs."""
PARTS = ("reduce_large", "reduce_large_rest")
"""The two scalar operations: the angle that is left, with the quarter turns in its exponent, and what it lacks."""
QUADRANT_BITS = 7
"""The angle that is left is at least 2^-62, so that exponents of different quadrants are 2^QUADRANT_BITS apart."""
LEAST_EXPONENT = 1023 - 64
"""Below all biased exponents of angles that are left, by less than 2^QUADRANT_BITS."""
_DIGITS = 1400
"""Bits behind the point with which pi is computed."""


def _arc_tangent(inverse: int) -> int:
    """atan(1 / inverse) times 2^_DIGITS."""
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
    """pi/2, by Machin's formula, to about _DIGITS bits."""
    return Fraction(8 * _arc_tangent(5) - 2 * _arc_tangent(239), 1 << _DIGITS)


@functools.cache
def two_over_pi() -> tuple[int, ...]:
    """2/pi times 2^-64 as WORDS words of 64 bits behind the point, the highest first."""
    bits = (1 << 64 * (WORDS - 1)) * half_pi().denominator // half_pi().numerator
    return tuple(bits >> 64 * (WORDS - 1 - k) & (2**64 - 1) for k in range(WORDS))


def _parts(x: float) -> tuple[float, float]:
    """What is left of a large angle, encoded, and what that lacks; zeros of a small one and of NaN."""
    if not abs(x) > FROM:
        return 0.0, 0.0
    if math.isinf(x):
        return math.nan, math.nan
    turns = Fraction(x) / half_pi()
    n = round(turns)
    left = (turns - n) * half_pi()
    rounded = float(left)
    return math.ldexp(rounded, (n % 4) << QUADRANT_BITS), float(left - Fraction(rounded))


def reference(part: int) -> Callable[[Any], np.ndarray]:
    """One of the parts of every element."""
    each = np.vectorize(lambda v: _parts(float(v))[part], otypes=[np.float64])
    return lambda x: each(np.asarray(x))
