"""Instructions of GPUs by name: kernels use none."""

from __future__ import annotations

from graphc.codegen.machine.instruction import Instruction

INSTRUCTIONS: tuple[Instruction, ...] = ()
