"""What things cost on GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from graphc.codegen.machine.costs import DEFAULT

CUDA = DEFAULT
"""Costs from which fusion and graph passes choose: not measured, as on CPUs."""


@dataclass(frozen=True)
class GpuCosts:
    """Thresholds of the schedule for GPUs. None was measured: no GPU was at hand."""

    threads: int = 256
    """Threads of a block: a multiple of the warp of which a multiprocessor holds several, whatever it is."""
    warp_row: int = 1024
    """Elements of a row up to which a warp works on it, 32 for each of its threads at most."""
    short_sum: int = 32
    """Terms from which on a sum over neighbouring elements is shared by threads."""
    private_rounds: int = 16
    """Elements of a row that a thread keeps in registers at most, of its 255."""


GPU = GpuCosts()
