"""Normalization of ONNX, against its evaluator, eagerly and compiled."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import graphc as gc  # noqa: E402
from tests.interop.onnx.one_node import check, floats, model_of  # noqa: E402

IMAGE = floats(2, 4, 9, 8)
OPEN = {0: ("n", 4, "h", "w")}
CHANNELS = (floats(4, seed=1), floats(4, seed=2))
RUNNING = (floats(4, seed=3), np.abs(floats(4, seed=4)))


@pytest.mark.parametrize("opset", [9, 14, 15])
def test_batches_are_normalized_by_running_statistics(opset):
    arrays = (IMAGE, *CHANNELS, *RUNNING)
    scale, bias, mean, var = (a.reshape(1, 4, 1, 1) for a in arrays[1:])
    options = {"open_sizes": OPEN, "constants": (1, 2, 3, 4), "tolerance": 1e-4}
    expected = (IMAGE - mean) / np.sqrt(var + 1e-5) * scale + bias
    check("BatchNormalization", *arrays, opset=opset, expected=[expected], **options)


def test_in_training_running_statistics_move():
    arrays = (IMAGE, *CHANNELS, *RUNNING)
    check("BatchNormalization", *arrays, training_mode=1, momentum=0.7, outputs=3, opset=15, tolerance=1e-4)


def test_version_7_may_have_statistics_of_each_element():
    parts = [floats(4, 9, seed=i) for i in range(3)]
    var = np.abs(floats(4, 9, seed=9))
    x = floats(2, 4, 9)
    expected = (x - parts[2]) / np.sqrt(var + 1e-5) * parts[0] + parts[1]
    check("BatchNormalization", x, *parts, var, spatial=0, opset=7, expected=[expected], tolerance=1e-4)


def test_images_are_normalized_by_their_own_statistics():
    check("InstanceNormalization", IMAGE, *CHANNELS, open_sizes=OPEN, tolerance=1e-4)


def test_images_of_one_pixel_become_the_bias():
    x = floats(2, 4, 1, 1)
    expected = np.broadcast_to(CHANNELS[1].reshape(1, 4, 1, 1), x.shape)
    check("InstanceNormalization", x, *CHANNELS, expected=[expected])


@pytest.mark.parametrize("axis", [-1, 2])
def test_layers_are_normalized_and_tell_their_statistics(axis):
    shape = IMAGE.shape[axis:]
    check("LayerNormalization", IMAGE, floats(*shape), floats(*shape, seed=1), axis=axis, outputs=3, tolerance=1e-4)


def test_the_scale_of_a_layer_may_broadcast():
    check("LayerNormalization", IMAGE, floats(1), axis=2, expected=None, tolerance=1e-4)


@pytest.mark.parametrize("scale", [(9, 8), (8,)])
def test_layers_are_divided_by_their_root_mean_square(scale):
    check("RMSNormalization", IMAGE, floats(*scale), axis=2, opset=23, open_sizes={0: ("n", 4, 9, 8)}, tolerance=1e-4)


@pytest.mark.parametrize(("opset", "count"), [(18, 2), (21, 4)])
def test_groups_are_normalized_with_scales_of_groups_or_of_channels(opset, count):
    arrays = (IMAGE, floats(count, seed=1), floats(count, seed=2))
    grouped = IMAGE.reshape(2, 2, -1)
    normal = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)
    scale, bias = (np.repeat(a, 4 // count).reshape(1, 4, 1, 1) for a in arrays[1:])
    expected = normal.reshape(IMAGE.shape) * scale + bias
    check(
        "GroupNormalization", *arrays, num_groups=2, opset=opset, expected=[expected], open_sizes=OPEN, tolerance=1e-4
    )


@pytest.mark.parametrize("size", [3, 4])
def test_an_even_number_of_channels_has_one_more_behind(size):
    wide = np.pad(IMAGE**2, ((0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)))
    total = np.sum([wide[:, i : i + 4] for i in range(size)], axis=0)
    expected = IMAGE / (1 + 0.3 / size * total) ** 0.75
    check("LRN", IMAGE, size=size, alpha=0.3, expected=[expected], open_sizes=OPEN)


@pytest.mark.parametrize("opset", [7, 10])
def test_before_version_12_nothing_is_dropped(opset):
    check("Dropout", IMAGE, outputs=2, ratio=0.7, opset=opset, expected=[IMAGE, np.ones_like(IMAGE, bool)])


@pytest.mark.parametrize("outputs", [1, 2])
def test_in_training_elements_are_dropped_and_the_others_scaled(outputs):
    arrays = (IMAGE, np.array(0.25, np.float32), np.array(True))
    module = gc.from_onnx(model_of("Dropout", arrays, outputs=outputs, constants=(1, 2)))
    for function in (module, gc.compile(module)):
        gc.manual_seed(3)
        found = function(IMAGE)
        result = (found[0] if outputs > 1 else found).numpy()
        kept = result != 0
        np.testing.assert_allclose(result, IMAGE * kept / 0.75, rtol=1e-6)
        assert 0.6 < kept.mean() < 0.9
        assert outputs == 1 or (found[1].numpy() == kept).all()
