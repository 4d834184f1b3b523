"""Tables of positions that end."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import IndexRangeError
from tests.streams.nets import NETS


def test_the_smallest_table_ends_a_stream():
    rows, more = gc.randn(9, 4), gc.randn(7, 4)
    stream = gc.stream(lambda x: x + rows[: x.shape[1]] + more[: x.shape[1]], gc.zeros(2, 5, 4), dim=1)
    found = stream(np.ones((2, 7, 4), np.float32)).numpy()
    np.testing.assert_array_equal(found, np.broadcast_to((1 + rows[:7] + more).numpy(), found.shape))
    with pytest.raises(IndexRangeError, match="slice: position 7"):
        stream(np.ones((2, 1, 4), np.float32))
    stream.reset()
    assert np.array_equal(stream(np.ones((2, 7, 4), np.float32)).numpy(), found)


def test_a_mask_alone_ends_a_stream():
    case = NETS["transformer_with_tables"]()
    case.model.positions = gc.nn.Parameter(gc.zeros(1, 1000, 4))
    stream = case.stream(80)
    stream(*case.inputs(320))
    with pytest.raises(IndexRangeError, match="slice: position 320"):
        stream(*case.inputs(80))


def test_a_branch_behind_the_end_of_a_table_is_never_met():
    rows = gc.randn(90, 4)
    stream = gc.stream(lambda x: x + rows[: x.shape[1]] if x.shape[1] < 100 else x, gc.zeros(2, 5, 4), dim=1)
    assert gc.check(stream, np.ones((2, 90, 4), np.float32)).good
