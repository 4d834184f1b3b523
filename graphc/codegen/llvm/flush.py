"""Entries of programs that take denormal numbers for zeros."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.codegen.llvm.module import Function, Parameter
from graphc.codegen.machine.denormals import FlushMode

FLUSHED = "graphc_flushed"
"""Name of the function that runs a program, or a chunk of it, while denormal numbers are zeros."""


def flushing(name: str, parameters: Sequence[Parameter], mode: FlushMode, local: bool) -> Function:
    """Return a function that calls FLUSHED with denormal numbers as zeros, and restores the mode of its caller."""
    arguments = ", ".join(f"{kind.partition(' ')[0]} {register}" for kind, register in parameters)
    lines = [*mode.set_mode, f"  call void @{FLUSHED}({arguments})", *mode.restore_mode]
    return Function(name, tuple(parameters), "\n".join(["entry:", *lines, "  ret void"]), local=local, calls=True)
