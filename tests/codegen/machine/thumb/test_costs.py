"""Costs of Cortex-M: products of bytes."""

from __future__ import annotations

from graphc.codegen.machine.costs import DEFAULT
from graphc.codegen.machine.thumb.costs import DSP


def test_bytes_are_widened_to_pairs_and_nothing_else_differs():
    assert DSP.rewrites.byte_pairs and not DEFAULT.rewrites.byte_pairs
    assert DSP.memory == DEFAULT.memory and DSP.contraction == DEFAULT.contraction
