"""Instructions of GPUs: none that kernels ask for by name."""

from __future__ import annotations

from graphc.codegen.machine.instruction import Instruction

INSTRUCTIONS: tuple[Instruction, ...] = ()
