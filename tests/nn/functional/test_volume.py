"""Volumes against planes: a kernel of depth 1 and pooling of one plane are those of planes."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import ShapeError
from graphc.nn import functional as F
from tests.nn.compare import floats


def test_a_kernel_without_depth_is_a_convolution_of_planes():
    x, w = (graphc.tensor(floats(*s, seed=i)) for i, s in enumerate([(2, 4, 3, 6, 5), (6, 2, 1, 3, 3)]))
    found = F.conv3d(x, w, padding=(0, 1, 1), groups=2)
    for d in range(3):
        np.testing.assert_allclose(
            found[:, :, d].numpy(), F.conv2d(x[:, :, d], w[:, :, 0], padding=1, groups=2).numpy()
        )


def test_depth_counts_as_the_other_dimensions_do():
    x, w = (graphc.tensor(floats(*s, seed=i)) for i, s in enumerate([(1, 2, 4, 5, 6), (3, 2, 3, 2, 2)]))
    turned = F.conv3d(x.permute(0, 1, 4, 3, 2), w.permute(0, 1, 4, 3, 2), stride=(2, 1, 1), padding=(1, 0, 1))
    np.testing.assert_allclose(
        F.conv3d(x, w, stride=(1, 1, 2), padding=(1, 0, 1)).numpy(), turned.permute(0, 1, 4, 3, 2).numpy(), atol=1e-12
    )


@pytest.mark.parametrize("name", ["max_pool3d", "avg_pool3d", "adaptive_max_pool3d", "adaptive_avg_pool3d"])
def test_pooling_is_that_of_windows(name):
    x = floats(2, 3, 4, 4, 6)
    size = (2, 2, 3) if name.startswith("adaptive") else (2, 2, 2)
    blocks = x.reshape(2, 3, 2, 2, 2, 2, 3, 2)
    fold = np.max if "max" in name else np.mean
    found = getattr(F, name)(graphc.tensor(x), size)
    np.testing.assert_allclose(found.numpy(), fold(blocks, axis=(3, 5, 7)))


def test_a_kernel_that_does_not_fit():
    with pytest.raises(ShapeError, match="depth 3"):
        F.conv3d(graphc.ones(1, 1, 2, 5, 5), graphc.ones(1, 1, 3, 1, 1))
    with pytest.raises(ShapeError, match="5 dimensions"):
        F.conv3d(graphc.ones(1, 1, 2, 5, 5), graphc.ones(1, 1, 1, 1))


@pytest.mark.parametrize("name", ["conv3d", "conv_transpose3d"])
def test_a_bias_of_another_shape_is_refused(name: str):
    x, w = graphc.zeros(1, 2, 3, 3, 3), graphc.zeros(2, 2, 1, 1, 1)
    with pytest.raises(ShapeError, match=rf"{name}: the bias has shape \[1\], expected \[2\]"):
        getattr(F, name)(x, w, graphc.zeros(1))
