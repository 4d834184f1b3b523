"""Instructions of riscv64 that a scalar operation of LLVM does not name."""

from __future__ import annotations

from graphc.codegen.machine.instruction import NOTHING, Instruction, without_operands

PAUSE = Instruction(
    "pause",
    without_operands("llvm.riscv.pause"),
    NOTHING,
    mnemonics=("pause",),
    features=frozenset({"zihintpause"}),
)
"""Tells the processor that a loop only waits."""
GO_ON = Instruction("pause", without_operands("llvm.donothing"), NOTHING)
"""What others do there."""

INSTRUCTIONS = (PAUSE, GO_ON)
