"""Costs of 32-bit RISC-V: products of bytes."""

from __future__ import annotations

from graphc.codegen.machine.costs import DEFAULT
from graphc.codegen.machine.riscv32.costs import SCALAR


def test_bytes_are_widened_to_pairs_and_nothing_else_differs():
    assert SCALAR.rewrites.byte_pairs and not DEFAULT.rewrites.byte_pairs
    assert SCALAR.memory == DEFAULT.memory and SCALAR.contraction == DEFAULT.contraction
