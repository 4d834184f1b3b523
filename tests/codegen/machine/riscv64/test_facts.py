"""Facts of riscv64: registers of an f64, or vectors of 16 bytes."""

from __future__ import annotations

import pytest

from graphc.codegen.llvm.thread_pool import emit_pool
from graphc.codegen.machine.riscv64.facts import FAMILY, describe
from graphc.codegen.machine.target import target_named
from graphc.compiler.stages import Stages
from tests.compiler.graphs import mlp


def test_vectors_are_an_extension():
    scalar, vector = FAMILY.named["rv64gc"], FAMILY.named["rv64gcv"]
    assert (scalar.vector_bytes, scalar.registers) == (8, 16)
    assert (vector.vector_bytes, vector.registers) == (16, 32)
    assert scalar.fma and vector.fma and not scalar.masked and vector.masked
    assert describe("riscv64-unknown-linux-gnu", "sifive-u74", "+c,+d,+zvl128b").vector_bytes == 8


def test_threads_wait_by_the_system_call_of_linux():
    for name in FAMILY.named:
        target = target_named(name)
        assert target.has_pool and target.waits is not None and target.waits.futex == 98
        assert "@syscall(i64 98" in emit_pool(target)


@pytest.mark.parametrize(("name", "verb"), [("rv64gc", "fmadd.s"), ("rv64gcv", "vfmacc.v")])
def test_products_are_fused_multiply_adds(name: str, verb: str):
    assert verb in Stages(mlp(), target=target_named(name)).text("asm")
