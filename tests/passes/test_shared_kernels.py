"""Shared kernels: what differs only by where it begins to read is one kernel, with the place in each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.codegen.machine.costs import DEFAULT
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.repeat import live_spans
from graphc.ir.kernel.statements import Program, walk
from graphc.ir.kernel.text import print_program
from graphc.ir.kernel.verify import verify_program
from graphc.lowering.program import lower_graph
from graphc.passes.pipeline import optimize

FEW = DEFAULT.fusion.kernels_apart
MANY = FEW + 8


def lowered(function: Callable[..., Any], *args: Any) -> Program:
    program = lower_graph(optimize(gc.trace(function, *args)))
    verify_program(program)
    assert parse_program(print_program(program)) == program
    expected = function(*args)
    found = run_program(program, [a.numpy() for a in args])
    np.testing.assert_allclose(found[0], expected.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gc.compile(function)(*args).numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    return program


def steps(length: int) -> Callable[[Any], Any]:
    cell = nn.RNNCell(4, 4).requires_grad_(False)

    def function(x: Any) -> Any:
        h = x[0] * 0
        for i in range(length):
            h = cell(x[i], h)
        return h

    return function


def test_the_same_of_each_slice_is_one_kernel():
    graph = optimize(gc.trace(steps(MANY), gc.rand(MANY, 2, 4)))
    program = lower_graph(graph)
    verify_program(program)
    assert len(program.calls) > MANY and len(program.kernels) <= 4
    starts = {c.offset(i).constant for c in program.calls for i, a in enumerate(c.args) if a == "x"}
    assert starts == {8 * i for i in range(MANY)}
    function, x = steps(MANY), gc.rand(MANY, 2, 4)
    np.testing.assert_allclose(gc.compile(function)(x).numpy(), function(x).numpy(), rtol=1e-5, atol=1e-6)


def test_longer_loops_are_more_calls_of_as_many_kernels():
    sizes = {}
    for length in (MANY, 4 * MANY):
        program = lower_graph(optimize(gc.trace(steps(length), gc.rand(length, 2, 4))))
        sizes[length] = len(program.kernels), sum(1 for k in program.kernels for _ in walk(k.body))
    assert sizes[MANY] == sizes[4 * MANY]


def test_a_few_stay_apart():
    program = lower_graph(optimize(gc.trace(steps(FEW), gc.rand(FEW, 2, 4))))
    assert len(program.kernels) > FEW and not any(c.offsets for c in program.calls)


@pytest.mark.parametrize(
    "read",
    [lambda x, i: x[i : i + 3], lambda x, i: x[i : i + 6 : 2], lambda x, i: x[i : i + 3].flip(0)],
    ids=["neighbours", "steps", "backwards"],
)
def test_slices_of_all_kinds_are_read_from_where_they_begin(read: Callable[[Any, int], Any]):
    def function(x: Any) -> Any:
        return gc.stack([gc.exp(read(x, i)).sum() for i in range(MANY)])

    program = lowered(function, gc.rand(MANY + 8))
    assert len(program.kernels) <= 3


def test_reads_under_a_condition_stay_where_they_are():
    def function(x: Any) -> Any:
        return gc.stack([gc.exp(nn.functional.pad(x[i : i + 2], (1, 0))).sum() for i in range(MANY)])

    program = lowered(function, gc.rand(MANY + 8))
    assert len(program.kernels) > MANY


def test_slices_of_weights_are_packed_ahead():
    weights = nn.Parameter(gc.rand(MANY, 40, 40) / 10)

    def function(x: Any) -> Any:
        for i in range(MANY):
            x = x @ weights[i]
        return x

    x = gc.rand(50, 40)
    with gc.no_grad():
        np.testing.assert_allclose(gc.compile(function)(x).numpy(), function(x).numpy(), rtol=1e-4)


def test_parts_of_a_storage_do_not_end_its_life():
    """A part is written, another one is read in the next iteration of a loop: the storage is needed all along."""
    program = parse_program("""
program @p {
  input %x: f32[4]
  output %y: f32[4]
  temp %t: f32[8]

  kernel @k(%a: f32[4] in, %b: f32[4] out) {
    for i0 in 4 parallel {
      v1: f32 = load %a[i0]
      store %b[i0] = v1
    }
  }

  repeat r0 in 2 {
    call @k(%x, %t)
    call @k(%t[4], %y)
    call @k(%x, %t[4])
  }
}
""")
    assert program.calls[0].offset(1) == Index()
    assert live_spans(program)["t"] == (0, 2)
