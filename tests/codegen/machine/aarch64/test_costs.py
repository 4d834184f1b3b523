"""Costs of aarch64: nothing that needs vectors as long as a cache line."""

from __future__ import annotations

from graphc.codegen.machine.aarch64.costs import DOTPROD, I8MM, NEON


def test_nothing_is_written_past_the_caches_or_read_in_halves():
    assert NEON.memory.non_temporal_bytes == NEON.memory.narrow_load_bytes == 0


def test_bytes_are_widened_where_no_instruction_multiplies_quads():
    assert [costs.rewrites.byte_pairs for costs in (NEON, DOTPROD, I8MM)] == [True, False, False]
    assert NEON.rewrites.byte_speed < 1 < DOTPROD.rewrites.byte_speed < I8MM.rewrites.byte_speed
