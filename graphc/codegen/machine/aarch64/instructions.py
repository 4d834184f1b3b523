"""Instructions of aarch64 beyond LLVM's scalar operations."""

from __future__ import annotations

from graphc.codegen.machine.instruction import NARROW, NOTHING, WIDEN, Instruction, without_operands

PAUSE = Instruction("pause", without_operands("llvm.aarch64.hint", "i32 1"), NOTHING, mnemonics=("yield",))
"""Tells the processor that a loop only waits."""

INSTRUCTIONS = (
    Instruction("widen", WIDEN.text, WIDEN.meaning, ("vector",), mnemonics=("fcvt",)),
    Instruction("narrow", NARROW.text, NARROW.meaning, ("vector",), mnemonics=("fcvt",)),
    PAUSE,
)
