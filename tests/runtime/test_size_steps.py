"""Steps that native code takes to solve the sizes of a call: what they compute is what sizes are."""

import ctypes
import operator
import random

import pytest

from graphc.base.sizes.assumptions import Assumption
from graphc.base.sizes.named_dims import Dim, dimensions
from graphc.base.sizes.shape_patterns import ShapePatterns
from graphc.base.sizes.size import at, positive_part, smaller
from graphc.runtime.size_steps import (
    ADD,
    AT_MOST,
    DIFFER,
    DIVIDE,
    LARGER,
    MULTIPLY,
    Move,
    Read,
    SizeStep,
    SizeSteps,
    Solver,
)

BATCH, TIME = Dim("batch", 1, 64, common=(5,)), Dim("time", 2, 512)
OPERATIONS = {ADD: operator.add, MULTIPLY: operator.mul, DIVIDE: operator.floordiv, LARGER: max}
SHAPES = [(BATCH, 16 * TIME + 3), (TIME, 7)]


def word(address: int) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(address)


def run(solver: Solver, shapes) -> bool:
    """Run the steps of a solver as native code does."""
    for read in (Read * solver.read_count).from_address(solver.reads):
        word(read.to).value = shapes[read.input][read.dim]
    for step in (SizeStep * solver.step_count).from_address(solver.steps):
        a, b = word(step.a).value, word(step.b).value
        if step.kind in (AT_MOST, DIFFER):
            if not (a <= b if step.kind == AT_MOST else a != b):
                return False
            continue
        word(step.to).value = OPERATIONS[step.kind](a, b)
    for move in (Move * solver.move_count).from_address(solver.moves):
        word(move.to).value = word(move.value).value
    return True


def solver_for(expected, apart=False):
    steps, places = SizeSteps(), (ctypes.c_int64 * max(1, len(expected)))()
    steps.solve(ShapePatterns(SHAPES, ["x", "w"]), apart)
    for i, size in enumerate(expected):
        steps.move(size, ctypes.addressof(places) + 8 * i)
    return steps.build(4 * BATCH * TIME, 0, 0, 0), places


def test_sizes_are_what_they_are_of_numbers():
    expected = [
        BATCH,
        TIME,
        BATCH * TIME * TIME - 5,
        (TIME + 63) // 64 * 64,
        (3 - TIME) // 7,
        (BATCH * 100 // TIME) * BATCH + 9,
        TIME // 16 % 2,
        smaller(BATCH, TIME - 5) * 3,
        positive_part(TIME - 20) // 7,
    ]
    solver, places = solver_for(expected)
    batch, time = dimensions([BATCH])["batch"], dimensions([TIME])["time"]
    generator = random.Random(0)
    for _ in range(200):
        values = {batch: generator.randint(1, 64), time: generator.randint(2, 512)}
        assert run(solver, [[at(n, values) for n in shape] for shape in SHAPES])
        assert list(places) == [at(size, values) for size in expected]
        assert word(solver.arena).value == 4 * values[batch] * values[time]


@pytest.mark.parametrize("batch", [0, 65])
def test_sizes_outside_of_a_range_change_nothing(batch: int):
    solver, places = solver_for([BATCH, TIME])
    assert run(solver, [(3, 16 * 9 + 3), (9, 7)]) and list(places) == [3, 9]
    assert not run(solver, [(batch, 16 * 8 + 3), (8, 7)]) and list(places) == [3, 9]


def test_common_sizes_can_be_left_out():
    assert run(solver_for([BATCH])[0], [(5, 35), (2, 7)]) and not run(solver_for([BATCH], True)[0], [(5, 35), (2, 7)])


def test_what_is_computed_twice_is_one_step():
    solver, _ = solver_for([BATCH * TIME * 4, BATCH * TIME * 8, BATCH * TIME * 4])
    products = [s for s in (SizeStep * solver.step_count).from_address(solver.steps) if s.kind == MULTIPLY]
    assert len(products) == 3


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize("relation", ["==", "<="])
def test_sizes_that_break_an_assumption_are_left_out(relation: str, answer: bool):
    assumption = Assumption(relation, 2 * BATCH, TIME + 1, answer)
    steps = SizeSteps()
    steps.solve(ShapePatterns(SHAPES, ["x", "w"]), False)
    steps.assume(assumption)
    solver = steps.build(0, 0, 0, 0)
    batch, time = dimensions([BATCH])["batch"], dimensions([TIME])["time"]
    for sizes in ((4, 6), (4, 7), (4, 8), (5, 9)):
        holds = assumption.holds({batch: sizes[0], time: sizes[1]})
        assert run(solver, [(sizes[0], 16 * sizes[1] + 3), (sizes[1], 7)]) is holds
