"""One process alone: its collectives give what they got."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.distributed.communicator import OPS, Alone, in_parts, reduce_arrays

GIVEN = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("op", OPS)
def test_reductions_of_one_are_copies(op: str):
    for name in ("all_reduce", "reduce_scatter"):
        result = np.zeros_like(GIVEN)
        getattr(Alone(), name)(GIVEN, result, op)
        np.testing.assert_array_equal(result, GIVEN)
        getattr(Alone(), name)(result, result, op)
        np.testing.assert_array_equal(result, GIVEN)


def test_other_collectives_of_one_are_copies():
    gathered, exchanged, sent = np.zeros((1, 2, 3), np.float32), np.zeros_like(GIVEN), GIVEN.copy()
    alone = Alone()
    alone.all_gather(GIVEN, gathered)
    alone.all_to_all(GIVEN, exchanged)
    alone.broadcast(sent, 0)
    for result in (gathered[0], exchanged, sent):
        np.testing.assert_array_equal(result, GIVEN)
    assert alone.gather_objects("mine") == ["mine"]
    assert alone.duplicate().size == 1
    alone.barrier()


def test_an_end_has_a_status_and_a_message():
    with pytest.raises(SystemExit, match="the plans differ"):
        Alone().abort("the plans differ")


def test_reductions_are_computed_in_the_order_of_ranks():
    given = [np.float32([number, -1.0]) for number in (2, 3, 4)]
    results = {op: reduce_arrays(given, op).tolist() for op in OPS}
    assert results == {"sum": [9, -3], "prod": [24, -1], "min": [2, -1], "max": [4, -1]}


def test_short_floats_are_rounded_once():
    given = [np.float16([x]) for x in (2048.0, 1.0, 1.0)]
    assert reduce_arrays(given, "sum").tolist() == [2050.0]


def test_parts_are_views_along_the_first_dimension():
    whole = np.zeros((4, 2))
    in_parts(whole, 2)[1][:] = 1
    assert whole.sum(1).tolist() == [0, 0, 2, 2]
