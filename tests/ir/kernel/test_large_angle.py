"""The reduction of large angles in whole numbers."""

from __future__ import annotations

import math

import mpmath
import numpy as np

from graphc.ir.kernel.large_angle import (
    FROM,
    LEAST_EXPONENT,
    QUADRANT_BITS,
    WORDS,
    half_pi,
    reference,
    two_over_pi,
)


def test_the_digits_are_those_of_pi():
    with mpmath.workdps(420):
        value = mpmath.mpf(half_pi().numerator) / half_pi().denominator
        assert abs(value - mpmath.pi / 2) < mpmath.mpf(2) ** -1380
        bits = sum(word << 64 * (WORDS - 1 - k) for k, word in enumerate(two_over_pi()))
        assert two_over_pi()[0] == 0
        assert 0 <= 2 / mpmath.pi - mpmath.mpf(bits) / mpmath.mpf(2) ** (64 * (WORDS - 1)) < mpmath.mpf(2) ** -1215


def test_quarter_turns_lie_in_the_exponent():
    x = np.array([1e15, -1e15, 1e300, -1.7e308, 6381956970095103 * 2.0**797])
    encoded, rest = reference(0)(x), reference(1)(x)
    for value, angle, lacking in zip(x.tolist(), encoded.tolist(), rest.tolist(), strict=True):
        quadrant = (math.frexp(angle)[1] + 1022 - LEAST_EXPONENT) >> QUADRANT_BITS
        left = math.ldexp(angle, -(quadrant << QUADRANT_BITS))
        with mpmath.workdps(400):
            turned = mpmath.mpf(left) + mpmath.mpf(lacking) + quadrant * mpmath.pi / 2
            assert abs(mpmath.sin(turned) - mpmath.sin(mpmath.mpf(value))) < mpmath.mpf(2) ** -105
            assert abs(mpmath.cos(turned) - mpmath.cos(mpmath.mpf(value))) < mpmath.mpf(2) ** -105


def test_small_angles_are_not_looked_at_and_infinite_ones_have_none():
    x = np.array([0.0, 1.0, FROM, -FROM, np.inf, np.nan])
    np.testing.assert_array_equal(reference(0)(x), [0, 0, 0, 0, np.nan, 0])
    np.testing.assert_array_equal(reference(1)(x), [0, 0, 0, 0, np.nan, 0])
