"""Kernels for the sizes that are expected."""

from graphc.base.dtypes import float32
from graphc.base.sizes.named_dims import Dim
from graphc.ir.kernel.expected import expected_axis, expected_body, expected_index, holds_sizes
from graphc.ir.kernel.index import Axis, as_index
from graphc.ir.kernel.statements import Const, Loop, Store

TIME, WIDE = Dim("time", 1, 512, hint=100), Dim("wide", 8, 64, hint=16)
ROW, LANE = Axis("i", TIME), Axis("j", 4)


def test_axes_and_indices_have_the_sizes_that_are_expected():
    index = as_index(ROW) * WIDE + as_index(LANE) * 3 + TIME // 2
    assert str(expected_axis(ROW)) == "i" and expected_axis(ROW).extent == 100 and expected_axis(LANE) is LANE
    assert expected_index(index) == as_index(Axis("i", 100)) * 16 + as_index(LANE) * 3 + 50
    assert expected_index((as_index(ROW) + 7) // WIDE) == (as_index(Axis("i", 100)) + 7) // 16


def test_a_loop_that_is_not_expected_to_run_counts_as_one_iteration():
    axis = Axis("i", Dim("time", 1, 512, hint=1) - 1)
    assert expected_axis(axis) == Axis("i", 1)


def test_what_is_known_stays_the_same_object():
    index = as_index(LANE) * 3 + 1
    assert expected_index(index) is index


def test_bodies():
    store = Store("y", as_index(ROW) * 4 + LANE, Const(1.0, float32))
    body = (Loop(ROW, "parallel", (Loop(LANE, "parallel", (store,)),)),)
    (loop,) = expected_body(body)
    assert isinstance(loop, Loop) and loop.axis == Axis("i", 100)
    assert holds_sizes(body) and not holds_sizes((loop,))
