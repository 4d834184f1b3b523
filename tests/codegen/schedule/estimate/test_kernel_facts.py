"""Facts of scheduled kernels: form, operations and bytes, against what can be counted by hand."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.estimate.kernel_facts import KernelFacts, kernel_facts
from graphc.codegen.schedule.pipeline import schedule_program
from graphc.lowering.program import lower_graph
from tests.codegen.kernel_native import kernel_of
from tests.passes.graph_text import graph_of


def facts_of(text: str, target: str = "avx2") -> list[KernelFacts]:
    """The facts of each call of the program that the graph becomes."""
    program = schedule_program(lower_graph(graph_of(text)), target_named(target))
    return [kernel_facts(program.kernel(c.kernel)) for c in program.calls]


def test_elementwise():
    (facts,) = facts_of(
        """graph @g(%x: f32[64,32], %y: f32[64,32]) -> (f32[64,32]) {
          %a = add(%x, %y) : f32[64,32]
          %b = mul(%a, %y) : f32[64,32]
          return %b
        }"""
    )
    assert (facts.flops, facts.read, facts.written, facts.scratch) == (2 * 2048, 2 * 8192, 8192, ())
    assert (
        facts.vectorization.lanes,
        facts.vectorization.reduced,
        facts.vectorization.block,
        facts.vectorization.neighbours,
    ) == (8, False, False, True)
    assert "lanes of 8 along the kept axis" in str(facts.vectorization)


def test_broadcast_operands_are_read_once():
    (facts,) = facts_of(
        """graph @g(%x: f32[64,32], %y: f32[32]) -> (f32[64,32]) {
          %a = add(%x, %y) : f32[64,32]
          return %a
        }"""
    )
    assert (facts.flops, facts.read, facts.written) == (2048, 8192 + 128, 8192)


def test_slices_are_read_in_part():
    (facts,) = facts_of(
        """graph @g(%x: f32[64,32]) -> (f32[16,32]) {
          %s = slice(%x) {starts=[0, 0], stops=[16, 32], steps=[1, 1]} : f32[16,32]
          %a = abs(%s) : f32[16,32]
          return %a
        }"""
    )
    assert (facts.read, facts.written) == (16 * 32 * 4, 16 * 32 * 4)


def test_rows():
    (facts,) = facts_of(
        """graph @g(%x: f32[64,32]) -> (f32[64]) {
          %s = sum(%x) {axes=[1], keepdims=false} : f32[64]
          return %s
        }"""
    )
    assert facts.vectorization.reduced and facts.flops == 2048 and (facts.read, facts.written) == (8192, 256)


@pytest.mark.parametrize("target, lanes", [("sse2", 4), ("avx2", 8), ("avx512", 16)])
def test_products_are_register_blocks(target: str, lanes: int):
    facts = facts_of(
        """graph @g(%x: f32[64,96], %y: f32[96,64]) -> (f32[64,64]) {
          %a = matmul(%x, %y) : f32[64,64]
          return %a
        }""",
        target,
    )[-1]
    assert facts.vectorization.lanes == lanes and facts.vectorization.block and facts.vectorization.registers > 4
    assert facts.flops == 2 * 64 * 64 * 96
    assert str(facts.vectorization).startswith("register block")


def test_work_on_sums_counts_for_every_lane():
    facts = facts_of(
        """graph @g(%x: f32[64,96], %y: f32[96,64]) -> (f32[64,64]) {
          %a = matmul(%x, %y) : f32[64,64]
          %b = maximum(%a, f32(0.0)) : f32[64,64]
          return %b
        }"""
    )[-1]
    assert facts.flops == 2 * 64 * 64 * 96 + 64 * 64


def test_products_of_rows_with_rows_are_summed_over_lanes():
    (facts,) = facts_of(
        """graph @g(%x: f32[1,4096], %y: f32[4,4096]) -> (f32[1,4]) {
          %a = matmul(%x, %y) {transpose_b=true} : f32[1,4]
          return %a
        }"""
    )
    assert facts.vectorization.block and facts.vectorization.reduced and "sums over lanes" in str(facts.vectorization)
    assert facts.flops == pytest.approx(2 * 4 * 4096, rel=0.01)


def test_a_kernel_without_lanes():
    kernel = kernel_of(
        """
        kernel @k(%x: f32[4] in, %y: f32[4] out) {
          for i in 4 serial {
            v: f32 = load %x[i]
            store %y[i] = v
          }
        }"""
    )
    facts = kernel_facts(kernel)
    assert facts.vectorization.lanes == 1 and str(facts.vectorization) == "one element at a time"
    assert (facts.flops, facts.read, facts.written) == (0, 16, 16)
