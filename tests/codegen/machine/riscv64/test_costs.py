"""Costs of riscv64: nothing that needs vectors as long as a cache line."""

from __future__ import annotations

from graphc.codegen.machine.riscv64.costs import SCALAR, VECTOR


def test_nothing_is_written_past_the_caches_or_read_in_halves():
    for costs in (SCALAR, VECTOR):
        assert costs.memory.non_temporal_bytes == costs.memory.narrow_load_bytes == 0
