"""Denormal numbers as zeros: LLVM text that sets a processor's floating-point control register and restores it."""

from __future__ import annotations

from graphc.base.records import dataclass


@dataclass(frozen=True)
class FlushMode:
    """Code around a call, in which denormal operands and results are zeros."""

    declarations: tuple[str, ...]
    set_mode: tuple[str, ...]
    """Lines that keep the present mode in a register or on the stack, and flush from then on."""
    restore_mode: tuple[str, ...]
