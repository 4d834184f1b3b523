"""Convolutions of ONNX, against its evaluator and onnxruntime, eagerly and compiled."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import graphc as gc  # noqa: E402
from graphc.base.errors import AttributeValueError  # noqa: E402
from tests.interop.onnx.one_node import check, floats, model_of, needs_runtime  # noqa: E402

IMAGE = floats(2, 4, 9, 8)
OPEN = {0: ("n", 4, "h", "w")}


@pytest.mark.parametrize(
    "attributes",
    [
        {"pads": [1, 0, 2, 1], "strides": [2, 1]},
        {"auto_pad": "SAME_UPPER"},
        {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
        {"auto_pad": "VALID", "dilations": [2, 1]},
    ],
)
def test_a_grouped_convolution_pads_as_its_attributes_say(attributes):
    check("Conv", IMAGE, floats(6, 2, 3, 3), floats(6), group=2, constants=(1, 2), open_sizes=OPEN, **attributes)


@pytest.mark.parametrize("rank", [1, 3])
def test_a_convolution_has_any_number_of_spatial_dimensions(rank):
    check(
        "Conv",
        floats(2, 3, *(7, 6, 5)[:rank]),
        floats(4, 3, *(3,) * rank),
        pads=[1] * rank + [0] * rank,
        tolerance=1e-4,
    )


@needs_runtime
@pytest.mark.parametrize(
    "attributes",
    [
        {"pads": [1, 0, 0, 1], "strides": [2, 3], "output_padding": [1, 2]},
        {"auto_pad": "SAME_LOWER", "strides": [2, 3]},
        {"output_shape": [19, 18], "strides": [2, 2]},
        {"dilations": [2, 1]},
    ],
)
def test_a_transposed_convolution_has_the_size_that_its_attributes_say(attributes):
    arrays = (IMAGE, floats(4, 3, 3, 3), floats(6))
    options = {"constants": (1, 2), "open_sizes": OPEN, "runtime": True, "tolerance": 1e-4}
    check("ConvTranspose", *arrays, group=2, **options, **attributes)


def test_a_deformed_convolution_reads_at_moved_places():
    arrays = (floats(2, 4, 6, 5), floats(4, 2, 2, 2), floats(2, 16, 5, 4, seed=1) * 0.5, floats(4))
    check("DeformConv", *arrays, floats(2, 8, 5, 4, seed=2), offset_group=2, group=2, tolerance=1e-4)


def test_columns_are_added_up_to_an_image():
    sizes = (np.array([5, 6], np.int64), np.array([2, 3], np.int64))
    check("Col2Im", floats(2, 12, 4 * 3), *sizes, constants=(1, 2), pads=[0, 1, 1, 0], strides=[1, 2], dilations=[2, 1])


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_channels_become_pixels(mode):
    check("DepthToSpace", floats(2, 8, 3, 2), blocksize=2, mode=mode, open_sizes={0: ("n", 8, "h", "w")})


def test_pixels_become_channels():
    check("SpaceToDepth", floats(2, 3, 4, 6), blocksize=2, open_sizes={0: ("n", 3, 4, 6)})


def test_gradients_reach_weights_and_images():
    module = gc.from_onnx(model_of("Conv", (IMAGE, floats(6, 4, 3, 3)), constants=(1,)))
    image = gc.tensor(IMAGE, requires_grad=True)
    module(image).sum().backward()
    (weight,) = module.parameters()
    assert weight.grad is not None and weight.grad.shape == (6, 4, 3, 3)
    assert image.grad is not None and np.abs(image.grad.numpy()).max() > 0


def test_an_unknown_way_of_padding_is_an_error():
    module = gc.from_onnx(model_of("Conv", (IMAGE, floats(6, 4, 3, 3)), auto_pad="SOMEHOW"))
    with pytest.raises(AttributeValueError, match="SOMEHOW"):
        module(IMAGE, floats(6, 4, 3, 3))
