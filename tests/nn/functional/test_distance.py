"""Distances of nothing and of zeros."""

from __future__ import annotations

import numpy as np

import graphc
import graphc.nn.functional as F


def test_small_cases():
    assert F.pdist(graphc.zeros(1, 3)).shape == (0,)
    zero, one = graphc.zeros(1, 3), graphc.ones(1, 3)
    np.testing.assert_array_equal(F.cosine_similarity(zero, one).numpy(), [0.0])
    np.testing.assert_allclose(F.cosine_similarity(one, one * 4).numpy(), [1.0], rtol=1e-6)
