"""Costs on riscv64."""

from __future__ import annotations

from graphc.codegen.machine.costs import DEFAULT

SCALAR = VECTOR = DEFAULT
"""Not measured: as on x86-64."""
