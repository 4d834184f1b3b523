"""Loops around calls of scalar kernels become one kernel each, and mean the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import graphc as gc
from graphc.codegen.machine.costs import LoopCosts
from graphc.codegen.schedule.loops.loop_kernels import make_loop_kernels
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.statements import Acc, Loop, Program, Store, walk
from graphc.ir.kernel.text import print_program
from graphc.ir.kernel.verify import verify_program
from tests.native import check_all, lowered

SWAP = """
graph @swap(%a: f32[], %b: f32[], %k: f32[], %x: f32[5]) -> (f32[], f32[], f32[5]) {
  %s.0, %s.1, %s.2 = scan(%a, %b, %x, %k) {body=graph @step(
      %a: f32[], %b: f32[], %x: f32[], %k: f32[]) -> (f32[], f32[], f32[]) {
    %e = exp(%b) : f32[]
    %m = mul(%k, %x) : f32[]
    %n = add(%a, %m) : f32[]
    %o = sqrt(%e) : f32[]
    return %b, %n, %o
  }, carries=2, sequences=1, length=5, reverse=false} : f32[], f32[], f32[5]
  return %s.0, %s.1, %s.2
}
"""
NESTED = """
graph @nested(%a: f32[], %x: f32[3,4]) -> (f32[], f32[3,4]) {
  %s.0, %s.1 = scan(%a, %x) {body=graph @rows(%a: f32[], %x: f32[4]) -> (f32[], f32[4]) {
    %t.0, %t.1 = scan(%a, %x) {body=graph @row(%a: f32[], %x: f32[]) -> (f32[], f32[]) {
      %n = add(%a, %x) : f32[]
      %h = mul(%n, f32(0.5)) : f32[]
      return %h, %n
    }, carries=1, sequences=1, length=4, reverse=true} : f32[], f32[4]
    return %t.0, %t.1
  }, carries=1, sequences=1, length=3, reverse=false} : f32[], f32[3,4]
  return %s.0, %s.1
}
"""
ARRAYS = SWAP.replace("f32[]", "f32[9]").replace("f32[5]", "f32[5,9]")


def merged(program: Program, costs: LoopCosts | None = None) -> Program:
    result = make_loop_kernels(program, costs or LoopCosts())
    verify_program(result)
    assert print_program(parse_program(print_program(result))) == print_program(result)
    return result


def numbers(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.random(shape).astype(np.float32) for shape in shapes]


def same(program: Program, other: Program, arguments: list[np.ndarray]) -> None:
    for got, expected in zip(run_program(other, arguments), run_program(program, arguments), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("reverse", ["false", "true"])
def test_carries_are_accumulators(reverse: str):
    graph, arguments = parse_graph(SWAP.replace("reverse=false", f"reverse={reverse}")), numbers((), (), (), (5,))
    program = lowered(graph)
    loops = merged(program)
    assert any(c.loops for c in program.calls) and not any(c.loops for c in loops.calls)
    (kernel,) = (k for k in loops.kernels if k.name.startswith("loop_"))
    assert [s.combine for s in kernel.body if isinstance(s, Acc)] == ["last", "last"]
    (loop,) = (s for s in kernel.body if isinstance(s, Loop))
    assert loop.kind == "serial" and sum(isinstance(s, Store) for s in loop.body) == 1
    same(program, loops, arguments)
    check_all(graph, arguments)


@pytest.mark.parametrize("length,most,calls", [(12, 5, 3), (12, 12, 0), (13, 5, 0)])
def test_long_loops_become_several_calls(length: int, most: int, calls: int):
    program = lowered(parse_graph(SWAP.replace("length=5", f"length={length}").replace("f32[5]", f"f32[{length}]")))
    loops = merged(program, LoopCosts(iterations=most))
    assert (loops is program) == (length == 13)
    if loops is not program:
        assert [a.extent for c in loops.calls for a in c.loops] == [calls] * bool(calls)
    same(program, loops, numbers((), (), (), (length,)))


def test_loops_in_loops():
    graph, arguments = parse_graph(NESTED), numbers((), (3, 4))
    program = lowered(graph)
    loops = merged(program)
    assert max(len(c.loops) for c in program.calls) == 2 and max(len(c.loops) for c in loops.calls) == 1
    same(program, loops, arguments)
    check_all(graph, arguments)


def test_temporaries_of_a_step_are_not_stored():
    program = lowered(parse_graph(SWAP))
    inside = {a for c in program.calls if c.loops for a in c.args if program.storage(a).cls == "temp"}
    loops = merged(program)
    kernel = next(k for k in loops.kernels if k.name.startswith("loop_"))
    assert {s.buffer for s, around in walk(kernel.body) if isinstance(s, Store) and around} == {
        b.name for b in kernel.buffers if b.size == 5 and b.role == "out"
    }
    assert len(inside & {s.name for s in loops.storages}) <= 2


@pytest.mark.parametrize("costs", [LoopCosts(kernel=3), LoopCosts(carries=1)])
def test_loops_of_many_statements_or_carries_stay(costs: LoopCosts):
    program = lowered(parse_graph(SWAP))
    assert merged(program, costs) is program


def test_other_loops_stay():
    program = lowered(parse_graph(ARRAYS))
    assert merged(program) is program
    calls = tuple(replace(c, loops=tuple(a._replace(flag="a") for a in c.loops)) for c in program.calls)
    assert make_loop_kernels(replace(program, calls=calls), LoopCosts()).calls == calls


def test_gradients_of_compiled_loops():
    def simulate(k: gc.Tensor) -> gc.Tensor:
        def step(carry, x):
            place, speed = carry
            speed = speed - 0.1 * k * gc.sin(place) + x
            return (place + 0.1 * speed, speed), gc.stack([place, speed])

        first = gc.tensor(np.array(0.5)), gc.tensor(np.array(0.0))
        return (gc.scan(step, first, gc.tensor(np.linspace(0, 0.1, 20)), None)[1] ** 2).sum()

    k = gc.tensor(np.array(2.0))
    value, gradient = gc.compile(gc.value_and_grad(simulate))(k)
    expected, eager = gc.value_and_grad(simulate)(k)
    np.testing.assert_allclose(value.numpy(), expected.numpy(), rtol=1e-12)
    np.testing.assert_allclose(gradient.numpy(), eager.numpy(), rtol=1e-12)
