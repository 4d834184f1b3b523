"""The complementary error function of f32 and f64 as an expression of primitive operations.

``erfc(a) = e^(-a a) P(t) / (a + k)`` with ``t = (a - k) / (a + k)`` (Shepherd and Laframboise, 1981): P is smooth up to
infinity, so that one polynomial keeps all digits down to denormal results. The code has one division, whose rounding
error is compensated, and no branch.
Coefficients: tools/codegen/minimax.py prints them all. Errors measured: docs/vector_math.md.
"""

from __future__ import annotations

from graphc.base.dtypes import float32
from graphc.base.records import dataclass
from graphc.codegen.schedule.expansion.exp_log import LOG2_E, constants_of, without_ln_2
from graphc.codegen.schedule.expansion.steps import hexes, magnitude, nearest, polynomial, scale
from graphc.ir.kernel.nest import NestBuilder, Scalar


@dataclass(frozen=True)
class Constants:
    """Constants of one of the two types."""

    centre: float
    """k, the argument at which t is 0."""
    high: float
    """Argument from which on erfc is 0."""
    scaled: tuple[float, ...]
    """P(t), the coefficients of (a + k) e^(a a) erfc(a)."""


CONSTANTS_F32 = Constants(
    centre=2.0,
    high=10.1,
    scaled=hexes(
        "0x1.058672p+0 -0x1.5fd386p-1 0x1.1e2d9ap-2 -0x1.2a890ep-5 -0x1.60318cp-6"
        " 0x1.a8b74p-8 0x1.8d5a34p-9 -0x1.be0fecp-11 -0x1.25a49cp-11 0x1.278e02p-14"
        " 0x1.1f2806p-14"
    ),
)
CONSTANTS_F64 = Constants(
    centre=2.0,
    high=27.3,
    scaled=hexes(
        "0x1.058671b52c776p+0 -0x1.5fd386754eff9p-1 0x1.1e2deea6b1101p-2"
        " -0x1.2a88e6107d2e9p-5 -0x1.606e41550debap-6 0x1.a89eaff82e0cdp-8"
        " 0x1.9517bb5b62308p-9 -0x1.b6fbf972c26d3p-11 -0x1.5ba43426bf4b5p-11"
        " 0x1.2053f83101081p-15 0x1.2ef9adeb04f78p-13 0x1.1e76f8d7bf38ap-15"
        " -0x1.6beedc0161ad8p-16 -0x1.0e7c7b7fedfaep-16 -0x1.31b9c91dcab89p-20"
        " 0x1.e970c47c4b3ffp-19 0x1.10ba90fdef6cfp-19 -0x1.d365875fb2184p-31"
        " -0x1.4bdbd2e354087p-21 -0x1.5d1cbfb394c42p-22 0x1.8c57940c11375p-25"
        " 0x1.f2c0b89e1dd2ap-24 0x1.a4cb9c6c110a2p-26 -0x1.21e199943bd6fp-26"
        " -0x1.af7db121073b6p-28 0x1.befddc9756ed6p-32 0x1.1926a971ffdc8p-33"
    ),
)


def erfc(nest: NestBuilder, x: Scalar) -> Scalar:
    """Compute 1 - erf(x) without cancellation; the rounding error of the square goes into the exponent, too."""
    constants = CONSTANTS_F32 if x.dtype is float32 else CONSTANTS_F64
    a = magnitude(nest, x, constants.high)
    sum = a + constants.centre
    inverse = 1.0 / sum
    lacking = (nest.fma(-inverse, sum, 1.0) - inverse * (a - (sum - constants.centre))) * inverse
    t = nest.fma(lacking, -2.0 * constants.centre, nest.fma(inverse, -2.0 * constants.centre, 1.0))
    square = a * a
    _, n = nearest(nest, -square, LOG2_E)
    r = without_ln_2(nest, -square, n) - nest.fma(a, a, -square)
    p = polynomial(nest, t, constants.scaled)
    value = polynomial(nest, r, constants_of(x.dtype).exp) * nest.fma(lacking, p, inverse * p)
    tail = scale(nest, value, n)
    return nest.select(x < 0.0, 2.0 - tail, tail)
