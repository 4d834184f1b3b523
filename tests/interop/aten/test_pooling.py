"""Rules of pooling and resampling."""

from __future__ import annotations

import pytest

from tests.interop.aten.compare import Sample, check, torch

X, PLACES = torch.linspace(-2, 2, 24).reshape(2, 3, 4), torch.tensor([[0, 2, 1], [1, 0, 2]])
GRID = torch.linspace(-1.3, 1.1, 12).reshape(1, 2, 3, 2)
SAMPLES: list[Sample] = [
    ("avg_pool1d", X, [2], [1], [1], True, False),
    ("max_pool1d", X, [2], [2], [1], [1], True),
    ("max_pool2d", X, [2, 2], [1, 2]),
    ("max_pool3d", X[None], [2, 1, 3], [1, 1, 1], [1, 0, 0], [1, 1, 1]),
    ("max_pool1d_with_indices", X, [3], [1], [1]),
    ("adaptive_avg_pool1d", X, [3]),
    ("adaptive_avg_pool2d", X, [2, 3]),
    ("adaptive_avg_pool3d", X[None], [1, 2, 3]),
    ("adaptive_max_pool1d", X, [3]),
    ("upsample_nearest1d.vec", X, None, [1.7]),
    ("upsample_nearest2d.vec", X[None], None, [1.5, 2.3]),
    ("upsample_nearest2d.vec", X[None], [5, 7], None),
    ("upsample_nearest2d", X[None], [4, 7], {"scales_w": 1.9, "scales_h": 1.4}),
    ("upsample_bilinear2d", X[None], [4, 7], False, 1.4, None),
    ("upsample_nearest3d", X[None, None], [3, 4, 6], None, None, None),
    ("upsample_nearest3d.vec", X[None, None], None, [1.0, 1.5, 2.0]),
    ("_upsample_nearest_exact1d.vec", X, None, [1.7]),
    ("_upsample_nearest_exact2d.vec", X[None], None, [1.5, 2.3]),
    ("upsample_linear1d.vec", X, None, False, [1.7]),
    ("upsample_bilinear2d.vec", X[None], None, False, [1.5, 2.3]),
    ("upsample_trilinear3d.vec", X[None, None], None, True, [1.0, 1.5, 2.0]),
    ("upsample_bicubic2d.vec", X[None], None, False, [1.5, 2.3]),
    ("grid_sampler", X[None], GRID, 0, 1, False),
    ("grid_sampler", X[None], GRID, 1, 2, True),
    ("max_pool2d_with_indices", X, [2, 2]),
    ("upsample_bilinear2d.vec", X[None], [6, 8], True, None),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)
