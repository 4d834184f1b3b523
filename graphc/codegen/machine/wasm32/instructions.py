"""Instructions of WebAssembly beyond LLVM's scalar operations: the multiply-add of relaxed SIMD."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.codegen.machine.instruction import (
    Instruction,
    InstructionWriter,
    bytes_of,
    element_of,
    lanes_of,
    over_lanes,
)

RELAXED = "relaxed-simd"
"""Feature of the variant with a multiply-add. LLVM does not learn of it, see ``_madd``."""
_VECTOR_BYTES = 16


def _madd(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    """Return ``a * b + c`` for any number of elements, in whole vectors.

    The code calls a function with the name of the instruction, and the linker replaces each call by the instruction.
    NOTE: with the feature on, LLVM uses other relaxed instructions too, whose minimum of a NaN and a number may be
    either.
    """
    lanes, whole = lanes_of(kind), _VECTOR_BYTES // bytes_of(kind)
    element = element_of(kind)
    vector = f"<{whole} x {element}>"

    def madd(vectors: Sequence[str]) -> str:
        name = f"f{8 * bytes_of(kind)}x{whole}.relaxed_madd"
        writer.declare(name, f"declare {vector} @{name}({vector}, {vector}, {vector}) nounwind willreturn memory(none)")
        return f"call {vector} @{name}({', '.join(f'{vector} {x}' for x in vectors)})"

    if lanes == whole:
        return madd(operands)
    if not lanes:
        vectors = [writer.line(f"insertelement {vector} poison, {element} {x}, i64 0") for x in operands]
        total = writer.line(madd(vectors))
        return f"extractelement {vector} {total}, i64 0"
    joined = ""
    for start in range(0, lanes, whole):
        before = writer.line(joined) if joined else "poison"
        picks = [start + i if start + i < lanes else -1 for i in range(whole)]
        piece = writer.line(madd([writer.line(_shuffle(kind, x, "poison", picks)) for x in operands]))
        widened = writer.line(_shuffle(vector, piece, "poison", [i if i < whole else -1 for i in range(lanes)]))
        joined = _shuffle(
            kind, before, widened, [lanes + i - start if start <= i < start + whole else i for i in range(lanes)]
        )
    return joined


def _shuffle(kind: str, first: str, second: str, picks: Sequence[int]) -> str:
    """Format a shuffle of two vectors; the pick -1 is any element."""
    mask = ", ".join(f"i32 {pick}" if pick >= 0 else "i32 poison" for pick in picks)
    return f"shufflevector {kind} {first}, {kind} {second}, <{len(picks)} x i32> <{mask}>"


MADD = Instruction(
    "fma",
    _madd,
    over_lanes(
        "%a: TYPE[LANES] in, %b: TYPE[LANES] in, %c: TYPE[LANES] in, %r: TYPE[LANES] out",
        *("a: TYPE = load %a[l]", "b: TYPE = load %b[l]", "c: TYPE = load %c[l]"),
        *("r: TYPE = fma(a, b, c)", "store %r[l] = r"),
    ),
    ("vector", "vector", "vector"),
    features=frozenset({RELAXED}),
)
"""Multiply-add in one rounding. Engines may round twice: the loader takes such code only where they do not."""

INSTRUCTIONS = (MADD,)
