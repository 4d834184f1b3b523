"""Instructions of Cortex-M's DSP extension beyond LLVM's scalar operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from graphc.codegen.machine.instruction import BYTE_DOT, PAIR_DOT, Instruction, InstructionWriter, call, lanes_of

_KINDS = ("i32", "<2 x i32>")


def _pairs(writer: InstructionWriter, left: str, right: str, total: str) -> str:
    """Return ``total`` plus two products of 16 bits, by SMLAD."""
    return call(writer, "i32", "llvm.arm.smlad", [("i32", x) for x in (left, right, total)])


def _quads(writer: InstructionWriter, left: str, right: str, total: str) -> str:
    """Return ``total`` plus four products of unsigned bytes with signed ones: bytes 0 and 2, then bytes 1 and 3.

    LLVM turns a word within the instruction that widens two of its bytes, and widens a word of a register block once.
    """
    for turns in (0, 8):
        factors: list[str] = []
        for name, word in (("uxtb16", left), ("sxtb16", right)):
            turned = [("i32", word), ("i32", word), ("i32", str(turns))]
            word = writer.line(call(writer, "i32", "llvm.fshr.i32", turned)) if turns else word
            factors.append(writer.line(call(writer, "i32", f"llvm.arm.{name}", [("i32", word)])))
        products = _pairs(writer, factors[0], factors[1], total)
        total = products if turns else writer.line(products)
    return total


def _by_lanes(
    scalar: Callable[..., str],
    writer: InstructionWriter,
    operands: Sequence[str],
    kind: str,
) -> str:
    """Return the instruction for each lane of a vector: registers hold one word."""
    if not lanes_of(kind):
        return scalar(writer, *operands)
    result = "poison"
    for lane in range(lanes_of(kind)):
        words = [writer.line(f"extractelement {kind} {x}, i32 {lane}") for x in operands]
        word = writer.line(scalar(writer, *words))
        inserted = f"insertelement {kind} {result}, i32 {word}, i32 {lane}"
        result = inserted if lane == lanes_of(kind) - 1 else writer.line(inserted)
    return result


PAIRS = Instruction(
    "dot2i",
    partial(_by_lanes, _pairs),
    PAIR_DOT,
    ("vector", "vector", "vector"),
    mnemonics=("smlad",),
    kinds=_KINDS,
)
"""A total plus two products of 16 bits, both signed; it wraps. One cycle on Cortex-M4 (Arm, DDI 0439)."""
QUADS = Instruction(
    "dot4",
    partial(_by_lanes, _quads),
    BYTE_DOT,
    ("vector", "vector", "vector"),
    mnemonics=("smlad",),
    kinds=_KINDS,
)
"""A total plus four products of bytes, unsigned by signed; it wraps."""

INSTRUCTIONS = (PAIRS, QUADS)
