"""Instructions of riscv64 beyond LLVM's scalar operations."""

from __future__ import annotations

from llvmlite import binding

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
"""Pause of processors without that instruction: nothing."""

# NOTE: LLVM 20 (llvmlite 0.45 to 0.47) has no llvm.riscv.pause and would call it as a function.
INSTRUCTIONS = (PAUSE, GO_ON) if binding.llvm_version_info[0] >= 22 else (GO_ON,)
