"""Chains: calls in loops over blocks compute what the calls one after the other do, and hold only a block."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings

import graphc
from graphc.base.dtypes import float32
from graphc.base.host_function import HostFunction
from graphc.codegen.machine.target import host_target
from graphc.codegen.schedule.blocks.tile_and_fuse import tile_and_fuse
from graphc.codegen.schedule.pipeline import schedule_program
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.index import as_index
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Program
from graphc.ir.kernel.verify import verify_program
from graphc.ir.types import TensorType
from graphc.lowering.program import lower_graph
from graphc.nn import functional as F
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.effects.host import host_call
from graphc.ops.movement.shape import concat
from graphc.passes.pipeline import optimize
from graphc.runtime.host_calls import running
from tests.end_to_end.random_graphs import random_graphs
from tests.native import Tolerance, check_results, lowered, run_graph, run_native

ATTENTION = """
graph @attention(%q: f32[2,12,3,8], %k: f32[2,12,3,8], %v: f32[2,12,3,8]) -> (f32[2,3,12,8]) {
  %qt = transpose(%q) {permutation=[0,2,1,3]} : f32[2,3,12,8]
  %kt = transpose(%k) {permutation=[0,2,1,3]} : f32[2,3,12,8]
  %vt = transpose(%v) {permutation=[0,2,1,3]} : f32[2,3,12,8]
  %s = matmul(%qt, %kt) {transpose_b=true} : f32[2,3,12,12]
  %m = max(%s) {axes=[3], keepdims=true} : f32[2,3,12,1]
  %d = sub(%s, %m) : f32[2,3,12,12]
  %e = exp(%d) : f32[2,3,12,12]
  %t = sum(%e) {axes=[3], keepdims=true} : f32[2,3,12,1]
  %p = div(%e, %t) : f32[2,3,12,12]
  %o = matmul(%p, %vt) : f32[2,3,12,8]
  return %o
}
"""
ROWS_FROM_ELSEWHERE = """
graph @f(%x: f32[64,8], %w: f32[8,8]) -> (f32[64,8]) {
  %a = matmul(%x, %w) : f32[64,8]
  %b = flip(%a) {axes=[0]} : f32[64,8]
  %c = matmul(%b, %w) : f32[64,8]
  return %c
}
"""
COLUMN_SUMS = """
graph @f(%x: f32[64,8], %w: f32[8,8]) -> (f32[64,8]) {
  %a = matmul(%x, %w) : f32[64,8]
  %s = sum(%a) {axes=[0], keepdims=true} : f32[1,8]
  %b = sub(%a, %s) : f32[64,8]
  %c = matmul(%b, %w) : f32[64,8]
  return %c
}
"""


def small(nbytes: int):
    """The host with a second cache of that size."""
    return replace(host_target(), l2_bytes=nbytes)


def chained(text: str, nbytes: int) -> tuple[Program, Program]:
    """The lowered program and the one with its chains in blocks, both verified."""
    program = lowered(parse_graph(text))
    result = tile_and_fuse(program, small(nbytes))
    verify_program(result)
    return program, result


def check_same(program: Program, blocked: Program) -> None:
    rng = np.random.default_rng(0)
    given_ = [s for s in program.storages if s.cls in ("input", "param", "state")]
    arguments = [rng.standard_normal(s.shape).astype(s.dtype.numpy) for s in given_]
    for got, expected in zip(run_program(blocked, arguments), run_program(program, arguments), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("nbytes", "loops"), [(2400, (2, 3)), (1200, (2, 3, 2)), (4400, (2,)), (1 << 20, ())])
def test_attention_holds_a_block_of_scores(nbytes: int, loops: tuple[int, ...]):
    program, blocked = chained(ATTENTION, nbytes)
    assert {tuple(a.extent for a in c.loops) for c in blocked.calls} == {loops}
    scores = blocked.storage("s")
    assert scores.size * max(1, int(np.prod(loops))) == program.storage("s").size
    check_same(program, blocked)


def test_keys_are_packed_once_for_all_blocks_of_queries():
    program = lowered(parse_graph(ATTENTION.replace("12", "48").replace(",8]", ",32]")))
    scheduled = schedule_program(program, small(8000))
    packs = [c for c in scheduled.calls if c.kernel.endswith("_pack")]
    products = [c for c in scheduled.calls if not c.kernel.endswith("_pack")]
    assert packs and all(len(c.loops) == 2 for c in packs)
    assert all(len(c.loops) == 3 for c in products)


@pytest.mark.parametrize("text", [ROWS_FROM_ELSEWHERE, COLUMN_SUMS])
def test_rows_that_need_other_rows_stay_together(text: str):
    program, blocked = chained(text, 128)
    assert blocked is program


def test_neighbours_in_chains_of_their_own():
    text = ATTENTION.replace("return %o", "%r = matmul(%o, %kt) {transpose_b=true} : f32[2,3,12,12]\n  return %r")
    program, blocked = chained(text.replace("-> (f32[2,3,12,8])", "-> (f32[2,3,12,12])"), 1200)
    assert all(c.loops for c in blocked.calls)
    check_same(program, blocked)


def test_native_code_of_a_chain():
    graph = parse_graph(ATTENTION)
    rng = np.random.default_rng(1)
    arguments = [rng.standard_normal((2, 12, 3, 8)).astype(np.float32) for _ in range(3)]
    check_results(run_native(graph, arguments, small(1200)), run_graph(graph, arguments), Tolerance(1e-4, 2e-5))


def test_random_graphs():
    chained: list[bool] = []

    @settings(max_examples=60, deadline=None, database=None, derandomize=True, phases=[Phase.generate, Phase.shrink])
    @given(random_graphs())
    def check(case: tuple[Graph, list[np.ndarray]]) -> None:
        graph, arguments = case
        program = lowered(graph)
        blocked = tile_and_fuse(program, small(16))
        chained.append(blocked is not program)
        verify_program(blocked)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = [run_program(p, [a.copy() for a in arguments]) for p in (blocked, program)]
        for got, expected in zip(*results, strict=True):
            np.testing.assert_array_equal(got, expected)

    check()
    assert any(chained)


def test_training_step_of_attention():
    w = graphc.randn(3, 16, 16, requires_grad=True)

    def loss(x: graphc.Tensor) -> list[graphc.Tensor]:
        q, k, v = (F.linear(x, w[i]).reshape(2, 24, 2, 8).transpose(1, 2) for i in range(3))
        out = F.scaled_dot_product_attention(q, k, v).square().sum()
        return [out, *graphc.autograd.grad(out, [w])]

    graph = optimize(graphc.trace(loss, graphc.randn(2, 24, 16)))
    program = lower_graph(graph)
    blocked = tile_and_fuse(program, small(2000))
    verify_program(blocked)
    assert sum(1 for c in blocked.calls if c.loops) >= 4
    check_same(program, blocked)


def in_parts() -> Graph:
    """Rows of a large temporary become rows of two parts of what a function gets."""
    graph = Graph("f")
    x, w, v = (graph.add_input(TensorType(float32, (64 if name == "x" else 8, 8)), name) for name in "xwv")
    with use(GraphDispatcher(graph)):
        a = matmul(x, w)
        whole = concat(matmul(a, w), matmul(a, v), axis=0)
        _, result = host_call(graph.scalar(0.0, float32), whole, number=0, name="f", results="f32[128,8]")
        graph.set_outputs([result])
    return graph


def test_calls_that_write_to_parts_of_a_storage():
    blocked = tile_and_fuse(lowered(in_parts()), small(256))
    verify_program(blocked)
    assert {c.offset(i).constant for c in blocked.calls for i in range(len(c.args)) if c.loops} == {0, 512}
    rng = np.random.default_rng(0)
    x, w, v = (rng.standard_normal((rows, 8)).astype(np.float32) for rows in (64, 8, 8))
    spec = (128, 8), np.dtype(np.float32)
    with running([HostFunction("f", lambda state, array: [array], (spec,), (spec,))], {}):
        ((result,), _) = run_native(in_parts(), [x, w, v], small(256))
    np.testing.assert_allclose(result, np.concatenate([x @ w @ w, x @ w @ v]), rtol=1e-4, atol=1e-4)


def test_calls_that_write_to_parts_which_overlap_stay():
    program = lowered(in_parts())
    moved = [replace(c, offsets=tuple(as_index(min(o.constant, 8)) for o in c.offsets)) for c in program.calls]
    overlapping = replace(program, calls=tuple(moved))
    assert tile_and_fuse(overlapping, small(256)) is overlapping
