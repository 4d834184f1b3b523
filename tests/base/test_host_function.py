"""The record of a Python function that compiled code calls."""

from __future__ import annotations

import numpy as np

from graphc.base.host_function import HostFunction


def test_it_says_what_it_takes_and_gives():
    spec = ((2, 3), np.dtype(np.float32))
    found = HostFunction("f", lambda state, array: [array], (spec,), (spec,))
    assert found.name == "f" and found.operands == found.results == (spec,)
    (array,) = found.function({}, np.ones((2, 3)))
    assert array.shape == found.results[0][0]
