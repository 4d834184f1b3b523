"""Distances as modules against PyTorch."""

from __future__ import annotations

from graphc import nn
from tests.nn.compare import floats, modules_agree


def test_as_torch(torch):
    pair = (floats(4, 5), floats(4, 5, seed=1))
    for options in ({}, {"dim": 0}):
        modules_agree(nn.CosineSimilarity(**options), torch.nn.CosineSimilarity(**options), *pair)
    for options in ({}, {"p": 1.0, "keepdim": True}):
        modules_agree(nn.PairwiseDistance(**options), torch.nn.PairwiseDistance(**options), *pair, rtol=1e-7)
