"""Costs of WebAssembly."""

from __future__ import annotations

from graphc.codegen.machine.costs import DEFAULT
from graphc.codegen.machine.target import target_named
from graphc.codegen.machine.wasm32.costs import SIMD128


def test_costs_are_those_of_an_unknown_machine_with_vectors_of_16_bytes():
    assert target_named("wasm").costs is SIMD128 is DEFAULT
    assert target_named("sse2").costs.contraction == SIMD128.contraction
