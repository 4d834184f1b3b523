"""Dimensions that are found from calls."""

import graphc as gc
from tests.calls.sized import ones, same


def test_a_size_that_takes_a_second_value_gets_a_name(traces, told_reasons):
    f = gc.compile(lambda x, y: x * 2 + y, dims="auto")
    for shape in ((2, 3), (4, 3), (6, 3), (6, 5), (7, 9)):
        same(f(ones(*shape), ones(shape[1])), ones(*shape) * 3)
    assert len(traces) == 3
    found = [line for line in told_reasons() if "second size" in line]
    assert "dimension 0 of x takes a second size, 2 -> 4: now named" in found[0]
    assert "dimension 1 of x takes a second size, 3 -> 5: now named" in found[1] and len(found) == 2


def test_dimensions_that_were_equal_by_chance_are_taken_apart(traces):
    f = gc.compile(lambda x, y: x.sum() + y.sum(), dims="auto")
    for a, b in ((2, 2), (3, 3), (4, 5), (6, 1), (1, 1)):
        assert f(ones(a), ones(b)).item() == a + b
    assert len(traces) == 3


def test_sizes_of_further_arguments_get_names():
    f = gc.compile(lambda *x: x[0] + 1, dims="auto")
    for n in (3, 3, 5, 7):
        assert f(gc.ones(n)).tolist() == [2.0] * n
    assert len(f.programs) == 2 and "f32[arg0_0]" in str(f.programs)
