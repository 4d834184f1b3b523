"""Windows against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import graphc


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
@pytest.mark.parametrize("periodic", [True, False])
def test_windows_are_those_of_torch(torch, name, periodic):
    for length in (0, 1, 2, 7, 8):
        found, wanted = (getattr(m, f"{name}_window")(length, periodic=periodic).numpy() for m in (graphc, torch))
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_windows_take_types_and_refuse_whole_numbers():
    assert graphc.hann_window(4, dtype=graphc.float64).dtype is graphc.float64
    with pytest.raises(graphc.errors.DTypeError, match="hann_window must be floating point"):
        graphc.hann_window(4, dtype=graphc.int64)
    with pytest.raises(graphc.errors.GraphcError, match="of -1 points"):
        graphc.hann_window(-1)
