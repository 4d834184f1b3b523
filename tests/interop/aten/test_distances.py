"""Rules of distances and likeness."""

from __future__ import annotations

import pytest

from tests.interop.aten.compare import Sample, check, torch

X, Y = torch.linspace(-2, 2, 12).reshape(4, 3), torch.linspace(1, -1, 12).reshape(4, 3)
Z = torch.cat([X[:1], Y[1:]])  # its first row lies where X's does
SAMPLES: list[Sample] = [
    ("cosine_similarity", X, Y, 0),
    ("pairwise_distance", X, Y, 1.0, 1e-6, True),
    ("pdist", X),
    ("cdist", X, Y),
    *[("_cdist_backward", X @ Y.T, X, Z, p, torch.cdist(X, Z, p)) for p in (0.0, 0.5, 1.0, 2.0, 3.0, float("inf"))],
    *[("_pdist_backward", X[:, 0] @ X[:4, :3].new_ones(4, 6), X, p, torch.pdist(X, p)) for p in (1.0, 2.0, 3.0)],
    ("_cdist_forward", torch.stack([X, Y]), torch.stack([Y, X * 2]), 1.0, None),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)
