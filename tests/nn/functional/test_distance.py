"""Distances against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from tests.nn.compare import agree, floats


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cosine_similarity_as_torch(torch, dim: int):
    agree(F.cosine_similarity, torch.nn.functional.cosine_similarity, floats(4, 5), floats(4, 5, seed=1), dim=dim)


@pytest.mark.parametrize("options", [{}, {"p": 1.0}, {"p": 3.0, "keepdim": True}])
def test_pairwise_distance_as_torch(torch, options: dict):
    theirs = torch.nn.functional.pairwise_distance
    agree(F.pairwise_distance, theirs, floats(4, 5), floats(4, 5, seed=1), rtol=1e-7, **options)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_pdist_as_torch(torch, p: float):
    agree(F.pdist, torch.nn.functional.pdist, floats(5, 3), p=p)


def test_small_cases():
    assert F.pdist(graphc.zeros(1, 3)).shape == (0,)
    zero, one = graphc.zeros(1, 3), graphc.ones(1, 3)
    np.testing.assert_array_equal(F.cosine_similarity(zero, one).numpy(), [0.0])
    np.testing.assert_allclose(F.cosine_similarity(one, one * 4).numpy(), [1.0], rtol=1e-6)
