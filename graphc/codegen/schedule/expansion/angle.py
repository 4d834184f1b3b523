"""atan2, the angle of a point, of f32 and f64 as an expression of primitive operations.

The smaller coordinate divided by the larger one is the tangent of an angle up to pi/4, which a polynomial gives. The
larger coordinate and the signs of both select the octant. The code has one division and no branch.
Coefficients: tools/codegen/minimax.py prints them all. Errors measured: docs/vector_math.md.
"""

from __future__ import annotations

from graphc.base.dtypes import float32
from graphc.codegen.schedule.expansion.steps import hexes, polynomial
from graphc.ir.kernel.nest import NestBuilder, Scalar

ATAN_F32 = hexes(
    "-0x1.55553ep-2 0x1.9991e4p-3 -0x1.242086p-3 0x1.c08c5p-4 -0x1.580932p-4 0x1.da2ac2p-5 -0x1.fd80cap-6"
    " 0x1.6429bcp-7 -0x1.d3679ap-10"
)
"""(atan q - q) / q^3 in q^2, 0 < q <= 1."""
ATAN_F64 = hexes(
    "-0x1.5555555555526p-2 0x1.99999999955b1p-3 -0x1.249249237f4b1p-3 0x1.c71c717fcc93dp-4"
    " -0x1.745d11ae445ccp-4 0x1.3b136698116ap-4 -0x1.110e511673138p-4 0x1.e1bba5a97d1c1p-5"
    " -0x1.ae5e6f51d0b41p-5 0x1.82dacb7ebd79bp-5 -0x1.59a3dd7409a9bp-5 0x1.2c2e12b08699cp-5"
    " -0x1.e9f90cce996a4p-6 0x1.683b6da1dadc7p-6 -0x1.c78cf6cdcc4fap-7 0x1.d7b4afb70d096p-8"
    " -0x1.7a347bc2e2652p-9 0x1.b3f2bf0df53dfp-11 -0x1.3f2e8d81cc17ap-13 0x1.bbdfdb4556b2ep-17"
)
"""(atan q - q) / q^3 in q^2, 0 < q <= 1, in f64."""
HALF_PI_F32 = hexes("0x1.921fb6p+0 -0x1.777a5cp-25")
"""pi/2 as the nearest f32 plus the remainder."""
HALF_PI_F64 = hexes("0x1.921fb54442d18p+0 0x1.1a62633145c07p-54")
"""pi/2 as the nearest f64 plus the remainder."""


def atan2(nest: NestBuilder, y: Scalar, x: Scalar) -> Scalar:
    """Compute the angle of the point (x, y), from -pi to pi; follows IEEE 754 at the origin and at infinities."""
    height, width = nest.op("abs", y), nest.op("abs", x)
    low, high = nest.op("min", height, width), nest.op("max", height, width)
    # Equal coordinates: 1 instead of inf / inf, but 0 at the origin.
    ratio = nest.select(low.eq(high), 1.0, low / high)
    ratio = nest.select(high.eq(0), 0.0, ratio)
    square = ratio * ratio
    coefficients, (half, rest) = (ATAN_F32, HALF_PI_F32) if y.dtype is float32 else (ATAN_F64, HALF_PI_F64)
    angle = nest.fma(ratio * square, polynomial(nest, square, coefficients), ratio)
    angle = nest.select(height > width, half - (angle - rest), angle)
    behind = nest.op("copysign", nest.const(1.0, x.dtype), x) < 0
    angle = nest.select(behind, 2 * half - (angle - 2 * rest), angle)
    return nest.op("copysign", angle, y)
