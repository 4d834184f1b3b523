"""Instructions of aarch64 beyond LLVM's scalar operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphc.codegen.machine.instruction import (
    BYTE_DOT,
    NARROW,
    NOTHING,
    PAIR_DOT,
    WIDEN,
    Instruction,
    InstructionWriter,
    call,
    lanes_of,
    without_operands,
)

_WORDS = ("<4 x i32>", "<2 x i32>")
"""Words of a whole and of half a register."""
_SIGNS = "splat (i32 -2139062144)"
"""Words of four bytes 0x80."""


def _dot(writer: InstructionWriter, name: str, kind: str, total: str, left: str, right: str) -> str:
    """Return ``total`` plus the products of the four bytes of each word, by an instruction of this name."""
    lanes = lanes_of(kind)
    split = f"<{4 * lanes} x i8>"
    factors = [(split, writer.line(f"bitcast {kind} {x} to {split}")) for x in (left, right)]
    return call(writer, kind, f"llvm.aarch64.neon.{name}.v{lanes}i32.v{4 * lanes}i8", [(kind, total), *factors])


def _usdot(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    unsigned, signed, total = operands
    return _dot(writer, "usdot", kind, total, unsigned, signed)


def _sdot(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    """Return ``total`` plus the products of ``u - 128`` with ``s``, minus those of -128 with ``s``.

    Exact: a byte ``u`` with its upper bit flipped is ``u - 128`` as a signed byte, and -128 is one too. No product is
    beyond 2**14, and SDOT adds four of them in 32 bits without saturation; sums wrap as those of ``u`` and ``s`` do.
    LLVM computes the second sum once for each ``s`` of a register block.
    """
    unsigned, signed, total = operands
    shifted = writer.line(f"xor {kind} {unsigned}, {_SIGNS}")
    products = writer.line(_dot(writer, "sdot", kind, total, shifted, signed))
    excess = writer.line(_dot(writer, "sdot", kind, "zeroinitializer", _SIGNS, signed))
    return f"sub {kind} {products}, {excess}"


def _smlal(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    """Return ``total`` plus the products of the halves of each element, each of which is a signed number of 16 bits.

    LLVM forms SMLAL of a product of widened numbers, and separates the halves of a row or vector once for all products
    of a register block.
    """
    left, right, total = operands
    lanes = lanes_of(kind)
    halves, separate = f"<{2 * lanes} x i16>", f"<{lanes} x i16>"
    factors = [writer.line(f"bitcast {kind} {x} to {halves}") for x in (left, right)]
    for first in (0, 1):
        positions = ", ".join(f"i32 {2 * n + first}" for n in range(lanes))
        mask = f"<{lanes} x i32> <{positions}>"
        parts = [writer.line(f"shufflevector {halves} {x}, {halves} poison, {mask}") for x in factors]
        a, b = (writer.line(f"sext {separate} {x} to {kind}") for x in parts)
        sums = f"add {kind} {total}, {writer.line(f'mul {kind} {a}, {b}')}"
        total = sums if first else writer.line(sums)
    return total


USDOT = Instruction(
    "dot4",
    _usdot,
    BYTE_DOT,
    ("vector", "vector", "vector"),
    mnemonics=("usdot",),
    features=frozenset({"i8mm"}),
    kinds=_WORDS,
)
"""A total plus four products of bytes, unsigned by signed; it wraps."""
SDOT = replace(USDOT, text=_sdot, mnemonics=("sdot",), features=frozenset({"dotprod"}))
"""The same by products of signed bytes."""
PAIRS = replace(
    USDOT,
    name="dot2i",
    text=_smlal,
    meaning=PAIR_DOT,
    mnemonics=("smlal",),
    features=frozenset(),
    kinds=("<4 x i32>",),
)
"""A total plus two products of 16 bits, both signed; it wraps. Documented for Neoverse N1: one SMLAL a cycle, and one
MLA of whole registers in two."""
PAUSE = Instruction("pause", without_operands("llvm.aarch64.hint", "i32 1"), NOTHING, mnemonics=("yield",))
"""Tells the processor that a loop only waits."""

INSTRUCTIONS = (
    *(USDOT, SDOT, PAIRS),
    Instruction("widen", WIDEN.text, WIDEN.meaning, ("vector",), mnemonics=("fcvt",)),
    Instruction("narrow", NARROW.text, NARROW.meaning, ("vector",), mnemonics=("fcvt",)),
    PAUSE,
)
