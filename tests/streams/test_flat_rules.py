"""Reads and writes of elements of a sample by computed numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import IndexRangeError


@pytest.mark.parametrize("channel", [-1, 2, 3])
def test_an_index_beyond_the_channels_is_refused_in_its_tick(channel: int):
    example = gc.zeros(1, 3, 16), gc.zeros(1, 1, 16, dtype=gc.int64)
    stream = gc.stream(lambda x, i: gc.take_along_dim(x, i, 1), *example, dim=2)
    x, channels = np.arange(12, dtype=np.float32).reshape(1, 3, 4), np.zeros((1, 1, 4), np.int64)
    channels[..., 2] = channel
    if channel < 3:
        assert stream(x, channels).numpy().reshape(-1).tolist() == [0, 1, [2, 6, 10][channel], 3]
    else:
        with pytest.raises(IndexRangeError, match="index"):
            stream(x, channels)


def test_a_number_that_reaches_another_sample_is_refused_in_its_tick():
    """The whole sequence has an element there, which a stream may not have."""

    def forward(x: Any, number: Any) -> Any:
        return x.reshape(-1)[number + gc.arange(x.shape[0]) * 3]

    stream = gc.stream(forward, gc.zeros(16, 3), gc.zeros(16, dtype=gc.int64), dim=0)
    x, number = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([2, 0, 1, 0])
    assert stream(x, number).numpy().tolist() == forward(*map(gc.from_numpy, (x, number))).numpy().tolist()
    with pytest.raises(IndexRangeError, match="gather: index"):
        stream(x, number + 1)
