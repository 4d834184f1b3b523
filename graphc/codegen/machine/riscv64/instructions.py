"""Instructions of riscv64 that a scalar operation of LLVM does not name."""

from __future__ import annotations

from graphc.codegen.machine.instruction import NOTHING, Instruction, without_operands

PAUSE = Instruction("pause", without_operands("llvm.riscv.pause"), NOTHING)
"""Tells the processor that a loop only waits: a fence without effect where it is not known."""

INSTRUCTIONS = (PAUSE,)
