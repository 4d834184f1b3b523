"""Costs of x86-64: what was measured with AVX-512 only."""

from __future__ import annotations

from graphc.codegen.machine.x86_64.costs import AVX2, AVX512, SSE2


def test_only_whole_lines_are_written_past_the_caches():
    """A vector of AVX-512 is a cache line; narrower ones would be written piece by piece."""
    assert AVX512.memory.non_temporal_bytes > 0
    assert AVX2.memory.non_temporal_bytes == SSE2.memory.non_temporal_bytes == 0


def test_loads_of_half_a_line_belong_to_vectors_of_a_line():
    assert AVX512.memory.narrow_load_bytes == 32
    assert AVX2.memory.narrow_load_bytes == SSE2.memory.narrow_load_bytes == 0
