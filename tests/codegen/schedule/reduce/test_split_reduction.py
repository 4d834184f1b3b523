"""Split reductions: the same results, independent of threads, and only where it is worth it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphc.codegen.machine.costs import DEFAULT
from graphc.codegen.schedule.reduce.split_reduction import split_reductions
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Program
from graphc.ir.kernel.verify import verify_program
from graphc.ops import registry
from tests.native import Tolerance, check_native, lowered, priced, target_or_skip

assert registry.FAMILIES

SUM = """
graph @sums(%x: f32[31,45]) -> (f32[]) {
  %e = exp(%x) : f32[31,45]
  %s = sum(%e) {axes=[0,1]} : f32[]
  %y = div(%s, f32(1395.0)) : f32[]
  return %y
}
"""
COLUMNS = """
graph @columns(%x: f32[700,3]) -> (f32[3]) {
  %y = sum(%x) {axes=[0]} : f32[3]
  return %y
}
"""
ARGMAX = """
graph @first(%x: f32[1037]) -> (i64[]) {
  %y = argmax(%x) {axis=0, keepdims=false} : i64[]
  return %y
}
"""
ALL = """
graph @every(%x: f32[1037]) -> (bool[], f32[]) {
  %g = gt(%x, f32(-5.0)) : bool[1037]
  %y = all(%g) {axes=[0]} : bool[]
  %m = min(%x) {axes=[0]} : f32[]
  return %y, %m
}
"""
DOT = """
graph @dot(%x: f32[2,1500], %w: f32[1500,3]) -> (f32[2,3]) {
  %y = matmul(%x, %w) : f32[2,3]
  return %y
}
"""
ROWS = """
graph @rows(%x: f32[64,100]) -> (f32[64]) {
  %y = sum(%x) {axes=[1]} : f32[64]
  return %y
}
"""
SOFTMAX = """
graph @softmax(%x: f32[2000]) -> (f32[2000]) {
  %m = max(%x) {axes=[0], keepdims=true} : f32[1]
  %d = sub(%x, %m) : f32[2000]
  %e = exp(%d) : f32[2000]
  %s = sum(%e) {axes=[0], keepdims=true} : f32[1]
  %y = div(%e, %s) : f32[2000]
  return %y
}
"""


SHORT = replace(DEFAULT.reduction, split_from=256, stretch=100)
"""Reductions of the size of tests count as long."""


def split_short(program: Program) -> Program:
    return split_reductions(program, SHORT)


def inputs(text: str) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.normal(size=v.shape).astype(np.float32) for v in parse_graph(text).inputs]


@pytest.mark.parametrize(
    ("text", "added"), [(SUM, 1), (COLUMNS, 1), (ARGMAX, 2), (ALL, 2), (DOT, 1), (ROWS, 0), (SOFTMAX, None)]
)
def test_results_stay(text: str, added: int | None):
    program = lowered(parse_graph(text))
    split = split_short(program)
    verify_program(split)
    if added is not None:
        assert len(split.calls) == len(program.calls) + added
    arguments = inputs(text)
    Tolerance(rtol=1e-5).check(run_program(split, arguments), run_program(program, arguments))
    check_native(
        parse_graph(text),
        arguments,
        priced(target_or_skip("host"), reduction={"split_from": 256, "stretch": 100}),
        Tolerance(rtol=1e-5),
    )


def test_stretches_cover_the_whole_reduction_once():
    """Powers of two in random order: a sum that misses or repeats one differs."""
    x = np.random.default_rng(1).permutation(np.repeat(2.0 ** np.arange(-8, 8), 45)).astype(np.float32)[: 700 * 1]
    text = COLUMNS.replace("[700,3]", "[700,1]").replace("f32[3]", "f32[1]")
    program = split_short(lowered(parse_graph(text)))
    (total,) = run_program(program, [x.reshape(700, 1)])
    assert total[0] == x.sum(dtype=np.float64)


def test_the_split_depends_on_the_size_only():
    program = lowered(parse_graph(SUM))
    assert split_short(program) == split_short(program)


@pytest.mark.parametrize("name,value", [("split_from", 1 << 18), ("few_results", 0)])
def test_what_is_short_or_has_many_results_stays(name: str, value: int):
    program = lowered(parse_graph(COLUMNS))
    assert split_reductions(program, replace(SHORT, **{name: value})) is program


def test_two_calls_have_partial_results_of_their_own():
    text = """
graph @twice(%a: f32[500], %b: f32[500]) -> (f32[], f32[]) {
  %x = sum(%a) {axes=[0]} : f32[]
  %y = sum(%b) {axes=[0]} : f32[]
  return %x, %y
}
"""
    program = split_short(lowered(parse_graph(text)))
    verify_program(program)
    assert len([s for s in program.storages if s.cls == "temp"]) == 2
    arguments = inputs(text)
    for got, array in zip(run_program(program, arguments), arguments, strict=True):
        np.testing.assert_allclose(got, array.sum(), rtol=1e-4)
