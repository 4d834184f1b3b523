"""Loops that copy their state run two steps at a time between two buffers, and mean the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import graphc as gc
from graphc.codegen.schedule.loops.double_buffering import double_buffer, is_copy
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.statements import Program
from graphc.ir.kernel.text import print_program
from graphc.ir.kernel.verify import verify_program
from tests.native import check_all, lowered

STATE = """
graph @rotate(%h: f32[1,4], %w: f32[4,4], %x: f32[6,1,4]) -> (f32[1,4], f32[6,1,4]) {
  %s.0, %s.1 = scan(%h, %x, %w) {body=graph @step(
      %h: f32[1,4], %x: f32[1,4], %w: f32[4,4]) -> (f32[1,4], f32[1,4]) {
    %p = matmul(%h, %w) : f32[1,4]
    %n = add(%p, %x) : f32[1,4]
    %y = mul(%n, %h) : f32[1,4]
    return %n, %y
  }, carries=1, sequences=1, length=6, reverse=false} : f32[1,4], f32[6,1,4]
  return %s.0, %s.1
}
"""
SWAP = """
graph @swap(%a: f32[4], %b: f32[4]) -> (f32[4], f32[4]) {
  %s.0, %s.1 = scan(%a, %b) {body=graph @step(%a: f32[4], %b: f32[4]) -> (f32[4], f32[4]) {
    return %b, %a
  }, carries=2, sequences=0, length=6, reverse=false} : f32[4], f32[4]
  return %s.0, %s.1
}
"""


def buffered(program: Program) -> Program:
    result = double_buffer(program)
    verify_program(result)
    assert print_program(parse_program(print_program(result))) == print_program(result)
    return result


def copies(program: Program) -> int:
    """How often copies run in loops."""
    kernels = {k.name for k in program.kernels if is_copy(k)}
    return sum(c.runs for c in program.calls if c.kernel in kernels and c.loops)


def numbers(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.random(shape).astype(np.float32) / 2 for shape in shapes]


def same(program: Program, other: Program, arguments: list[np.ndarray]) -> None:
    for got, expected in zip(run_program(other, arguments), run_program(program, arguments), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("reverse", ["false", "true"])
@pytest.mark.parametrize("length", [1, 2, 3, 6, 7])
def test_states_alternate_between_two_buffers(length: int, reverse: str):
    text = STATE.replace("reverse=false", f"reverse={reverse}").replace("length=6", f"length={length}")
    graph, arguments = parse_graph(text.replace("[6,", f"[{length},")), numbers((1, 4), (4, 4), (length, 1, 4))
    program = lowered(graph)
    result = buffered(program)
    assert copies(program) == (length if length > 1 else 0) and copies(result) == 0
    same(program, result, arguments)
    check_all(graph, arguments)


def test_states_that_change_places_keep_their_copies():
    graph = parse_graph(SWAP)
    program = lowered(graph)
    same(program, buffered(program), numbers((4,), (4,)))
    check_all(graph, numbers((4,), (4,)))


def test_loops_that_go_on_while_a_flag_is_set_are_left_alone():
    program = lowered(parse_graph(STATE))
    calls = tuple(replace(c, loops=tuple(a._replace(flag="go") for a in c.loops)) for c in program.calls)
    assert double_buffer(replace(program, calls=calls)).calls == calls


def test_what_is_copied_before_it_is_written_keeps_its_copy():
    program = lowered(parse_graph(STATE))
    calls = [*program.calls]
    copy = next(i for i, c in enumerate(calls) if c.loops and is_copy(program.kernel(c.kernel)))
    state = calls[copy].args[1]
    last_read = max(i for i, c in enumerate(calls) if c.loops and i != copy and state in c.args)
    calls.insert(min(copy, last_read), calls.pop(max(copy, last_read)))
    early = replace(program, calls=tuple(calls))
    assert copies(early) == copies(program) and double_buffer(early) is early


@pytest.mark.parametrize("steps", [4, 5])
def test_nested_and_several_states(steps: int):
    def model(h, c, w):
        def step(state, _):
            h, c = state
            inner, _ = gc.scan(lambda x, _: (gc.roll(x, 1, 0) * 0.5 + x, None), c, None, 3)
            return (w @ h + c, inner + h), h

        return gc.scan(step, (h, c), None, steps)

    h, c, w = (gc.tensor(a) for a in numbers((5,), (5,), (5, 5)))
    (got, also), stack = gc.compile(model)(h, c, w)
    (expected, second), rows = model(h, c, w)
    for a, b in ((got, expected), (also, second), (stack, rows)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
