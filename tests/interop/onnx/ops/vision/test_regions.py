"""Pooling of regions, against ONNX's evaluator and onnxruntime, eagerly and compiled."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import graphc as gc  # noqa: E402
from graphc.base.errors import ValueNeededError  # noqa: E402
from tests.interop.onnx.one_node import MICROSOFT, check, evaluated, floats, model_of, needs_runtime  # noqa: E402

IMAGE = floats(2, 3, 9, 8)
REGIONS = np.array([[0.5, 1.0, 6.2, 7.5], [2.0, 0.0, 3.0, 4.0], [-1.0, -2.0, 9.0, 12.0]], np.float32)
ITEMS = np.array([0, 1, 1], np.int64)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("transformation", ["half_pixel", "output_half_pixel"])
def test_regions_are_sampled_at_points(mode, transformation):
    options = {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.9}
    arrays = (IMAGE, REGIONS, ITEMS)
    check("RoiAlign", *arrays, mode=mode, coordinate_transformation_mode=transformation, tolerance=1e-4, **options)


def test_the_number_of_points_may_follow_from_the_regions():
    model = model_of("RoiAlign", (IMAGE, REGIONS, ITEMS), output_height=2, output_width=2, sampling_ratio=0)
    module = gc.from_onnx(model)
    found = module(IMAGE, REGIONS, ITEMS)
    np.testing.assert_allclose(found.numpy(), evaluated(model, (IMAGE, REGIONS, ITEMS))[0], rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueNeededError):
        gc.compile(module)(IMAGE, REGIONS, ITEMS)


@needs_runtime
def test_regions_are_divided_into_parts_with_maxima():
    regions = np.concatenate([ITEMS[:, None], REGIONS], 1).astype(np.float32)
    check("MaxRoiPool", IMAGE, regions, pooled_shape=[3, 2], spatial_scale=0.7, opset=18, runtime=True)


@needs_runtime
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_regions_are_brought_to_one_size(mode):
    regions = np.array([[0.1, 0.2, 0.8, 0.9], [0, 0, 1.2, 1]], np.float32)
    arrays = (IMAGE, regions, np.array([0, 1], np.int32), np.array([4, 3], np.int32))
    options = {"mode": mode, "extrapolation_value": 0.7, "constants": (3,), "domain": MICROSOFT}
    check("CropAndResize", *arrays, runtime=True, tolerance=1e-4, **options)
