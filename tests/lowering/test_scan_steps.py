"""Scans as repeated calls: where carries, slices and packed operands lie, alone and shared by threads."""

from __future__ import annotations

import numpy as np
import pytest

import graphc.ops.registry  # noqa: F401  (fills REGISTRY)
from graphc.codegen.machine.target import host_target
from graphc.codegen.schedule.pipeline import schedule_program
from graphc.codegen.schedule.threads.plan import plan_threads
from graphc.compiler.compile import compile_stages, load_compiled
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.index import Axis, as_index
from graphc.lowering.program import lower_graph
from graphc.lowering.scan_steps import Repetition, Subview
from tests import native
from tests.native import priced
from tests.runtime.threaded import SHARED, thread_count

NETWORK = """
graph @network(%h: f32[4,64], %x: f32[10,4,64], %w: f32[64,64], %v: f32[64,32]) -> (f32[4,64], f32[10,4,32]) {
  %start = tanh(%h) : f32[4,64]
  %scan.0, %scan.1 = scan(%start, %x, %w) {body=graph @step(
      %h: f32[4,64], %x: f32[4,64], %w: f32[64,64]
  ) -> (f32[4,64], f32[4,64]) {
    %m = matmul(%h, %w) {transpose_b=true} : f32[4,64]
    %a = add(%m, %x) : f32[4,64]
    %t = tanh(%a) : f32[4,64]
    return %t, %t
  }, carries=1, sequences=1, length=10, reverse=true} : f32[4,64], f32[10,4,64]
  %y = matmul(%scan.1, %v) : f32[10,4,32]
  return %scan.0, %y
}
"""
EXCHANGE = """
graph @exchange(%a: f32[3], %b: f32[3], %x: f32[5,3]) -> (f32[3], f32[3], f32[5,3], f32[5,3], f32[5,3]) {
  %s.0, %s.1, %s.2, %s.3, %s.4 = scan(%a, %b, %x) {body=graph @step(%a: f32[3], %b: f32[3], %x: f32[3]) ->
      (f32[3], f32[3], f32[3], f32[3], f32[3]) {
    %n = add(%a, %x) : f32[3]
    return %b, %n, %a, %x, %n
  }, carries=2, sequences=1, length=5} : f32[3], f32[3], f32[5,3], f32[5,3], f32[5,3]
  return %s.0, %s.1, %s.2, %s.3, %s.4
}
"""
TURNED = """
graph @turned(%h: f32[4,64], %x: f32[10,4,64], %v: f32[64,32]) -> (f32[4,64], f32[4,10,32]) {
  %scan.0, %scan.1 = scan(%h, %x) {body=graph @step(%h: f32[4,64], %x: f32[4,64]) -> (f32[4,64], f32[4,64]) {
    %a = add(%h, %x) : f32[4,64]
    %t = tanh(%a) : f32[4,64]
    return %t, %t
  }, carries=1, sequences=1, length=10, reverse=false} : f32[4,64], f32[10,4,64]
  %b = transpose(%scan.1) {permutation=[1,0,2]} : f32[4,10,64]
  %y = matmul(%b, %v) : f32[4,10,32]
  return %scan.0, %y
}
"""


NESTED = """
graph @nested(%h: f32[8,32], %x: f32[5,3,8,32], %w: f32[32,32]) -> (f32[8,32], f32[5,8]) {
  %scan.0, %scan.1 = scan(%h, %x, %w) {body=graph @outer(
      %h: f32[8,32], %x: f32[3,8,32], %w: f32[32,32]
  ) -> (f32[8,32], f32[8]) {
    %inner = scan(%h, %x, %w) {body=graph @inner(
        %h: f32[8,32], %x: f32[8,32], %w: f32[32,32]
    ) -> (f32[8,32]) {
      %m = matmul(%h, %w) : f32[8,32]
      %a = add(%m, %x) : f32[8,32]
      return %a
    }, carries=1, sequences=1, length=3, reverse=false} : f32[8,32]
    %t = tanh(%inner) : f32[8,32]
    %s = sum(%t) {axes=[1]} : f32[8]
    return %t, %s
  }, carries=1, sequences=1, length=5, reverse=true} : f32[8,32], f32[5,8]
  return %scan.0, %scan.1
}
"""


def arrays(graph: Graph) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [(0.1 * rng.standard_normal(v.shape)).astype(v.dtype.numpy) for v in graph.inputs]


@pytest.mark.parametrize("text", [NETWORK, EXCHANGE, NESTED, TURNED])
def test_every_stage_gives_what_the_graph_means(text: str):
    graph = parse_graph(text)
    native.check_all(graph, arrays(graph))


def test_carries_are_computed_in_place_and_slices_lie_in_their_sequences():
    program = lower_graph(parse_graph(NETWORK))
    inside = [c for c in program.calls if c.loops]
    (loop,) = inside[0].loops
    assert loop.extent == 10 and all(c.loops == (loop,) for c in inside)
    assert len(inside) == 2, "the product and what follows it, no copies"
    offsets = {name: c.offset(i) for c in inside for i, name in enumerate(c.args)}
    assert offsets["x"] == offsets["scan.1"] == 9 * 256 - as_index(loop) * 256
    assert not offsets["out0"].terms and not offsets["w"].terms
    assert "out0" in inside[0].args and "out0" in inside[1].args, "the carry lies in the output"


def test_an_operand_that_stays_is_packed_once():
    program = schedule_program(lower_graph(parse_graph(NETWORK)), host_target())
    packings = [i for i, c in enumerate(program.calls) if c.kernel.endswith("_pack") and c.args[0] == "w"]
    first = next(i for i, c in enumerate(program.calls) if c.loops)
    assert len(packings) == 1 and packings[0] < first
    assert not program.calls[packings[0]].loops


@pytest.mark.parametrize("text", [NETWORK, EXCHANGE, NESTED])
@pytest.mark.parametrize("least", [0, 1 << 40])
def test_threads_share_loops_and_what_is_around_them(text: str, least: int):
    graph = parse_graph(text)
    stages = Stages(graph, target=priced(SHARED, threads={"repeated_ns": least}))
    plan = plan_threads(stages.scheduled, stages.target)
    repeated = {c.kernel for c in stages.scheduled.calls if c.loops}
    assert bool(plan.chunked.keys() & repeated) == (not least and text != EXCHANGE)
    run = load_compiled(compile_stages(stages))
    expected = native.run_graph(graph, arrays(graph))[0]
    for count in (1, 2, 3):
        with thread_count(count):
            found = run.run(arrays(graph))
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)


def test_the_step_changes_its_carries():
    (node,) = [n for n in parse_graph(EXCHANGE).nodes() if n.op.name == "scan"]
    loop = Repetition(node, "r0")
    writes = [n for n in loop.body.nodes() if n.op.name == "state_write"]
    assert [n.operands[0].name for n in writes] == ["a", "b"]
    assert [v.node.attrs["cls"] for v in loop.body.inputs] == ["state", "state", "input"]
    assert len(set(loop.body.outputs)) == 3


def test_parts_of_parts():
    outer, inner, renamed = Axis("r0", 4), Axis("r0", 2), Axis("r1", 2)
    part = Subview("x", as_index(outer) * 8).inside(as_index(inner) * 4 + 1, {inner: renamed})
    assert part == Subview("x", as_index(outer) * 8 + as_index(renamed) * 4 + 1)
