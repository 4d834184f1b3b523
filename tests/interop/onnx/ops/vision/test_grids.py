"""GridSample and AffineGrid, against ONNX's evaluator, eagerly and compiled."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import graphc as gc  # noqa: E402
from graphc.base.errors import AttributeValueError  # noqa: E402
from tests.interop.onnx.one_node import check, floats, model_of  # noqa: E402

IMAGE, GRID = floats(2, 3, 5, 4), floats(2, 3, 4, 2) * 0.8
OPEN = {0: ("n", 3, "h", "w"), 1: ("n", "a", "b", 2)}


@pytest.mark.sampled(50)
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [0, 1])
def test_images_are_sampled_at_points(mode, padding_mode, align_corners):
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    check("GridSample", IMAGE, GRID, tolerance=1e-4, **options)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_sizes_may_be_open(mode):
    newer = check("GridSample", IMAGE, GRID, mode=mode.removeprefix("bi"), tolerance=1e-4)
    check("GridSample", IMAGE, GRID, mode=mode, opset=16, open_sizes=OPEN, tolerance=1e-4, expected=newer)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_volumes_are_sampled(mode):
    check("GridSample", floats(2, 2, 3, 4, 5), floats(2, 2, 3, 2, 3) * 0.8, mode=mode, tolerance=1e-4)


@pytest.mark.parametrize("spatial", [(4, 5), (2, 3, 4)])
@pytest.mark.parametrize("align_corners", [0, 1])
def test_points_of_affine_maps(spatial, align_corners):
    theta = floats(2, len(spatial), len(spatial) + 1)
    size = np.array([2, 3, *spatial], np.int64)
    check("AffineGrid", theta, size, align_corners=align_corners, constants=(1,), tolerance=1e-4)


def test_gradients_reach_image_and_grid():
    module = gc.from_onnx(model_of("GridSample", (IMAGE, GRID), mode="cubic"))
    image, grid = (gc.tensor(a, requires_grad=True) for a in (IMAGE, GRID))
    module(image, grid).sum().backward()
    assert all(t.grad is not None and np.abs(t.grad.numpy()).max() > 0 for t in (image, grid))


def test_an_unknown_mode_is_an_error():
    module = gc.from_onnx(model_of("GridSample", (IMAGE, GRID), mode="odd"))
    with pytest.raises(AttributeValueError, match="odd"):
        module(IMAGE, GRID)
