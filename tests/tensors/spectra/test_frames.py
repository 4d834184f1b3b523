"""Padding with a dimension's own elements, and sums of frames that overlap."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.tensors.spectra.frames import overlapped, pad_along


@pytest.mark.parametrize(("mode", "of_numpy"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
def test_padding_as_numpy(mode: str, of_numpy: str):
    x = np.arange(12.0).reshape(2, 6)
    expected = np.pad(x, ((0, 0), (3, 4)), mode=of_numpy)  # type: ignore[call-overload]
    assert np.array_equal(pad_along(gc.from_numpy(x), 1, 3, 4, mode).numpy(), expected)


@pytest.mark.parametrize("hop", [1, 2, 3, 5, 7])
def test_frames_add_up_where_they_overlap(hop: int):
    frames = np.random.default_rng(0).standard_normal((2, 3, 4, 5))
    expected = np.zeros((2, 3, 5 + 3 * hop))
    for i in range(4):
        expected[..., i * hop : i * hop + 5] += frames[:, :, i]
    np.testing.assert_allclose(overlapped(gc.from_numpy(frames), hop).numpy(), expected)
