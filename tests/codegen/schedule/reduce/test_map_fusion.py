"""Sums of columns that go along with the kernel before: when they do, and equal numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphc.codegen.machine.costs import DEFAULT
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.reduce.split_reduction import split_reductions
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Program
from graphc.ir.kernel.verify import verify_program
from tests.native import Native, lowered, priced, scheduled, target_or_skip
from tests.passes.graph_text import graph_of

ROWS = """
    graph @g(%x: f32[48,40]) -> (f32[48,40], f32[40]) {
      %m = sum(%x) {axes=[1], keepdims=true} : f32[48,1]
      %y = mul(%x, %m) : f32[48,40]
      %c = sum(%y) {axes=[0]} : f32[40]
      return %y, %c
    }"""
MAP = """
    graph @g(%x: f32[48,40]) -> (f32[48,40], f32[40]) {
      %y = exp(%x) : f32[48,40]
      %c = sum(%y) {axes=[0]} : f32[40]
      return %y, %c
    }"""
TWICE = """
    graph @g(%x: f32[48,40], %z: f32[48,40]) -> (f32[48,40], f32[40], f32[48,40], f32[40]) {
      %m = sum(%x) {axes=[1], keepdims=true} : f32[48,1]
      %y = mul(%x, %m) : f32[48,40]
      %c = sum(%y) {axes=[0]} : f32[40]
      %n = sum(%z) {axes=[1], keepdims=true} : f32[48,1]
      %v = mul(%z, %n) : f32[48,40]
      %d = sum(%v) {axes=[0]} : f32[40]
      return %y, %c, %v, %d
    }"""
FLIPPED = """
    graph @g(%x: f32[48,40]) -> (f32[48,40], f32[40]) {
      %m = sum(%x) {axes=[1], keepdims=true} : f32[48,1]
      %y = mul(%x, %m) : f32[48,40]
      %f = flip(%y) {axes=[0]} : f32[48,40]
      %w = mul(%f, %x) : f32[48,40]
      %c = sum(%w) {axes=[0]} : f32[40]
      return %y, %c
    }"""
PRODUCT = """
    graph @g(%x: f32[48,40], %w: f32[40,40]) -> (f32[48,40], f32[40]) {
      %y = matmul(%x, %w) : f32[48,40]
      %c = sum(%y) {axes=[0]} : f32[40]
      return %y, %c
    }"""
OTHER = """
    graph @g(%x: f32[48,40], %z: f32[48,40]) -> (f32[48,40], f32[40]) {
      %m = sum(%x) {axes=[1], keepdims=true} : f32[48,1]
      %y = mul(%x, %m) : f32[48,40]
      %c = sum(%z) {axes=[0]} : f32[40]
      return %y, %c
    }"""


SMALL = {"rows_from": 1, "rows_stretch": 640, "high": 2, "wide": 8}
"""Costs at which small arrays have the form of large ones."""


def split(text: str) -> Program:
    program = split_reductions(lowered(graph_of(text)), replace(DEFAULT.reduction, **SMALL))
    verify_program(program)
    return program


@pytest.mark.parametrize(("text", "kernels"), [(ROWS, 2), (MAP, 1), (TWICE, 2), (FLIPPED, 3), (PRODUCT, 3), (OTHER, 3)])
def test_which_kernels_are_joined(text: str, kernels: int):
    program = split(text)
    assert len(program.kernels) == kernels


@pytest.mark.parametrize("text", [ROWS, MAP, TWICE, FLIPPED, PRODUCT, OTHER])
def test_equal_numbers(text: str):
    rng = np.random.default_rng(0)
    shapes = [s.shape for s in lowered(graph_of(text)).storages if s.cls == "input"]
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    expected = run_program(lowered(graph_of(text)), inputs)
    target = priced(target_or_skip("host"), reduction=SMALL)
    native = Native(scheduled(lowered(graph_of(text)), target), target)(inputs)
    for found in (run_program(split(text), inputs), native):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)


def test_joined_loops_have_lanes():
    kernel = next(
        k
        for k in scheduled(lowered(graph_of(ROWS)), priced(target_named("avx512"), reduction=SMALL)).kernels
        if "partial" in k.name
    )
    assert {b.role for b in kernel.buffers} == {"in", "out", "scratch"}
