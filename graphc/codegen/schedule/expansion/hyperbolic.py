"""sinh and cosh of f32 and f64 as expressions of primitive operations, with the polynomials of exp and expm1.

Errors measured: docs/vector_math.md.
"""

from __future__ import annotations

from graphc.codegen.schedule.expansion.exp_log import LOG2_E, constants_of, without_ln_2
from graphc.codegen.schedule.expansion.steps import (
    INF,
    inverse_power_of_two,
    magnitude,
    nearest,
    polynomial,
    scale,
)
from graphc.ir.kernel.nest import NestBuilder, Scalar

_BEYOND = 1.0
"""Extension of exp's range for sinh and cosh: at least ln 2, as they are half as large as exp."""


def sinh(nest: NestBuilder, x: Scalar) -> Scalar:
    """Compute sinh as ``t + t / (2 t + 1)`` with ``t = (e^|x| - 1) / 2``, which overflows where the result does.

    Below 1, where half of a denormal number might not be one, it is ``(u + u / (u + 1)) / 2`` with ``u = e^|x| - 1``.
    """
    constants = constants_of(x.dtype)
    a = magnitude(nest, x, constants.exp_range[1] + _BEYOND)
    shifted, n = nearest(nest, a, LOG2_E)
    r = without_ln_2(nest, a, n)
    q = nest.fma(r * r, polynomial(nest, r, constants.expm1), r)
    # 2^(2-n) is 0 for the largest n, where 2^-n would leave the range of normal numbers.
    rest = nest.fma(inverse_power_of_two(nest, shifted, 2), -0.25, 1.0)
    small = a < 1.0
    t = scale(nest, q + rest, nest.select(small, n, n - 1.0))
    sum = t + t / nest.fma(t, nest.select(small, 1.0, nest.const(2.0, x.dtype)), 1.0)
    result = nest.select(small, sum * 0.5, nest.select(t < INF, sum, t))
    return nest.op("copysign", result, x)


def cosh(nest: NestBuilder, x: Scalar) -> Scalar:
    """Compute cosh as ``e + 1 / (4 e)`` with ``e = e^|x| / 2``."""
    constants = constants_of(x.dtype)
    a = magnitude(nest, x, constants.exp_range[1] + _BEYOND)
    _, n = nearest(nest, a, LOG2_E)
    half = scale(nest, polynomial(nest, without_ln_2(nest, a, n), constants.exp), n - 1.0)
    return half + 0.25 / half
