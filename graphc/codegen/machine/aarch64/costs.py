"""Costs on aarch64, by the instructions that multiply bytes."""

from __future__ import annotations

from dataclasses import replace

from graphc.codegen.machine.costs import DEFAULT, Costs


def _with_bytes(speed: float, pairs: bool) -> Costs:
    return replace(DEFAULT, rewrites=replace(DEFAULT.rewrites, byte_pairs=pairs, byte_speed=speed))


I8MM = DEFAULT
"""Not measured: as on x86-64, where one instruction multiplies quads of bytes too."""
DOTPROD = _with_bytes(1.5, pairs=False)
"""Not measured. Counted in loops that multiply 64x256 by 256x64, for blocks of 8 rows of 2 vectors and four steps of
the sum: 44 vector operations of 65 instructions, where f32 takes 64 of 120."""
NEON = _with_bytes(0.5, pairs=True)
"""Not measured. Documented for Neoverse N1: one SMLAL a cycle, and two FMLA with as many products each."""
