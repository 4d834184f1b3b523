"""Costs: statements by trip counts and lanes, and time by bytes."""

from __future__ import annotations

import pytest

from graphc.base.dtypes import float32
from graphc.codegen.machine.costs import SpeedCosts
from graphc.codegen.machine.roofline import Roofline
from graphc.codegen.schedule.estimate.cost import StatementCounts, kernel_ns, program_ns
from graphc.ir.kernel.index import Axis, as_index
from graphc.ir.kernel.statements import Buffer, Call, Kernel, Load, Loop, Program, Stmt, Store

ROOFLINE = Roofline(SpeedCosts(10.0, 64.0, 64.0, 12.0, 12.0), 32 << 10, 1 << 20, 8 << 20)
A, B = Axis("a", 10), Axis("b", 16)


def load(stride: int = 1, axis: Axis = B) -> Load:
    return Load("v", "x", as_index(axis) * stride, float32)


def store() -> Store:
    return Store("y", as_index(B), "v")


@pytest.mark.parametrize(
    ("stmt", "expected"),
    [
        (load(), 1),
        (Loop(A, "parallel", (load(), store())), 30),
        (Loop(A, "unroll", (load(), store())), 20),
        (Loop(B, "vector", (load(), store())), 2),
        (Loop(B, "vector", (load(0), store())), 2),
        (Loop(B, "vector", (load(3), store())), 17),
        (Loop(A, "reduce", (Loop(B, "vector", (load(), store())),)), 30),
        (Loop(Axis("z", 0), "parallel", (load(),)), 0),
    ],
)
def test_statements(stmt: Stmt, expected: int):
    costs = StatementCounts()
    assert costs.statement(stmt) == expected
    assert costs.body((stmt, stmt)) == 2 * expected


def kernel(size: int) -> Kernel:
    return Kernel("k", (Buffer("x", float32, size, "in"), Buffer("s", float32, 1 << 30, "scratch")), ())


def test_time_is_that_of_the_work_or_of_the_bytes():
    assert kernel_ns(kernel(0), 1_000_000, ROOFLINE) == 100_000
    assert kernel_ns(kernel(1 << 16), 10, ROOFLINE) == (1 << 18) // 64
    assert kernel_ns(kernel(1 << 24), 10, ROOFLINE) == (1 << 26) // 12


def test_the_time_of_a_program_is_that_of_its_calls():
    used, unused = kernel(1 << 16), Kernel("other", kernel(1 << 24).buffers, ())
    calls = (Call("k", ("x",)), Call("k", ("x",)))
    assert program_ns(Program("p", (), (used, unused), calls), ROOFLINE) == 2 * kernel_ns(used, 0, ROOFLINE) > 0
    assert program_ns(Program("p", (), (used, unused), ()), ROOFLINE) == 0
