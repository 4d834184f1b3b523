"""Costs of aarch64: nothing that needs vectors as long as a cache line."""

from __future__ import annotations

from graphc.codegen.machine.aarch64.costs import NEON


def test_nothing_is_written_past_the_caches_or_read_in_halves():
    assert NEON.memory.non_temporal_bytes == NEON.memory.narrow_load_bytes == 0
