"""The architectures whose instructions a proof can read."""

from __future__ import annotations

from graphc.base.errors import RealtimeError
from graphc.codegen.machine.target import Target, architecture
from graphc.codegen.realtime import aarch64, riscv64, x86_64
from graphc.codegen.realtime.step import Machine

MACHINES: dict[str, Machine] = {m.architecture: m for m in (x86_64.MACHINE, aarch64.MACHINE, riscv64.MACHINE)}
"""By the first part of a triple."""


def machine_of(target: Target) -> Machine:
    """How the instructions of a target are read; raises RealtimeError for one that is not known."""
    found = MACHINES.get(architecture(target))
    if found is None:
        raise RealtimeError(
            f"nothing is proven of code for {architecture(target)}", remedy=f"one of {', '.join(MACHINES)}"
        )
    return found
