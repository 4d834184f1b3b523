"""Arithmetic of f32 and f64 in integers, as LLVM text, for processors that have none, and division of 64-bit integers.

LLVM calls these functions by the names of the compiler's runtime library (libgcc, compiler-rt). Results are those of
IEEE 754: rounded to nearest, ties to even, with subnormal numbers, infinities and signed zeros. A NaN is quiet,
positive and without payload, as on RISC-V with floating point. Conversions to integers take the nearest limit of the
type.

Functions are weak, so that a program may also link those of its compiler, which stand in other groups.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphc.codegen.link.soft_float.arithmetic import arithmetic
from graphc.codegen.link.soft_float.blocks import DOUBLE, SINGLE
from graphc.codegen.link.soft_float.conversions import between_formats, conversions
from graphc.codegen.link.soft_float.division import division

TEXTS: Mapping[str, str] = {
    **arithmetic(SINGLE),
    **arithmetic(DOUBLE),
    **{name: text for f in (SINGLE, DOUBLE) for bits in (32, 64) for name, text in conversions(f, bits).items()},
    **between_formats(),
    **division(),
}
"""Text of each function by its name, without the line of the target."""
