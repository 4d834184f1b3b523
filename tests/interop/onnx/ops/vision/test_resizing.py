"""Resize, Upsample and CenterCropPad, against ONNX's evaluator, eagerly and compiled."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import graphc as gc  # noqa: E402
from graphc.base.errors import AttributeValueError, ShapeError  # noqa: E402
from graphc.interop.onnx.ops.vision.resizing import COORDINATES, NEAREST  # noqa: E402
from tests.interop.onnx.alike import module_of  # noqa: E402
from tests.interop.onnx.one_node import check, floats, model_of, needs_runtime  # noqa: E402

IMAGE = floats(2, 3, 9, 8)
OPEN = {0: ("n", 3, "h", "w")}
SCALES = np.array([1, 1, 2, 1.5], np.float32)
SIZES = np.array([2, 3, 5, 11], np.int64)
PLAIN = [c for c in COORDINATES if not c.startswith("tf")]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", PLAIN)
def test_images_grow_by_scales(mode, coordinates):
    options = {"mode": mode, "coordinate_transformation_mode": coordinates, "nearest_mode": "floor"}
    check("Resize", IMAGE, None, SCALES, constants=(2,), open_sizes=OPEN, tolerance=1e-4, **options)


@pytest.mark.parametrize("nearest", NEAREST)
@pytest.mark.parametrize("coordinates", ["half_pixel", "pytorch_half_pixel", "asymmetric"])
def test_elements_are_repeated_by_whole_scales(nearest, coordinates):
    options = {"mode": "nearest", "nearest_mode": nearest, "coordinate_transformation_mode": coordinates}
    scales = np.array([1, 1, 3, 2], np.float32)
    check("Resize", IMAGE, None, scales, constants=(2,), open_sizes=OPEN, **options)


@pytest.mark.parametrize("nearest", NEAREST)
def test_the_nearest_element_is_rounded_to_as_the_mode_says(nearest):
    check("Resize", IMAGE, None, None, SIZES, constants=(3,), mode="nearest", nearest_mode=nearest)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("exclude_outside", [0, 1])
def test_shrinking_with_a_wider_filter(mode, exclude_outside):
    sizes = np.array([4, 3], np.int64)
    options = {"mode": mode, "antialias": 1, "exclude_outside": exclude_outside, "axes": [2, 3]}
    check("Resize", IMAGE, None, None, sizes, constants=(3,), tolerance=1e-4, **options)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_the_ratio_of_sides_may_be_kept(policy):
    sizes = np.array([6, 20], np.int64)
    options = {"keep_aspect_ratio_policy": policy, "axes": [2, 3], "mode": "linear"}
    check("Resize", IMAGE, None, None, sizes, constants=(3,), tolerance=1e-4, **options)


def test_a_crop_has_a_value_outside():
    roi = np.array([0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7], np.float32)
    options = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 10.0, "mode": "linear"}
    check("Resize", IMAGE, roi, None, SIZES, constants=(1, 3), tolerance=1e-4, **options)


@needs_runtime
def test_version_10_scales_and_nothing_else():
    scales = np.array([1, 1, 2, 3], np.float32)
    for mode in ("nearest", "linear"):
        check("Resize", IMAGE, scales, mode=mode, opset=10, constants=(1,), runtime=True, tolerance=1e-4)
        check("Upsample", IMAGE, scales, mode=mode, opset=9, constants=(1,), runtime=True, tolerance=1e-4)


def test_version_7_has_scales_as_an_attribute():
    expected = IMAGE.repeat(2, 2).repeat(3, 3)
    check("Upsample", IMAGE, scales=[1.0, 1.0, 2.0, 3.0], opset=7, expected=[expected], open_sizes=OPEN)


def test_bytes_are_weighted_as_real_numbers():
    x = np.array([[[[0, 100], [200, 50]]]], np.uint8)
    check("Resize", x, None, None, np.array([1, 1, 3, 3], np.int64), constants=(3,), mode="linear")


@pytest.mark.parametrize("shape", [(6, 10), (9, 8), (11, 5)])
def test_the_middle_is_cut_out_or_surrounded_by_zeros(shape):
    check("CenterCropPad", IMAGE, np.array(shape, np.int64), axes=[2, -1], constants=(1,))


@pytest.mark.parametrize(
    "attribute", ["mode", "coordinate_transformation_mode", "nearest_mode", "keep_aspect_ratio_policy"]
)
def test_unknown_modes_are_errors(attribute):
    module = gc.from_onnx(model_of("Resize", (IMAGE, None, None, SIZES), constants=(3,), **{attribute: "odd"}))
    with pytest.raises(AttributeValueError, match="odd"):
        module(IMAGE)


def test_wider_filters_need_known_sizes():
    arrays = (IMAGE, None, None, np.array([4, 3], np.int64))
    options = {"antialias": 1, "mode": "linear", "axes": [2, 3], "constants": (3,), "open_sizes": OPEN}
    module = gc.from_onnx(model_of("Resize", arrays, **options))
    assert module(IMAGE).shape == (2, 3, 4, 3)
    with pytest.raises(ShapeError, match="antialias"):
        gc.compile(module, dims=module.dims)(IMAGE)


def test_nearest_rows_of_open_sizes_keep_them_open():
    """The ratio of two open sizes was read as a number, which fixed both."""
    text = """(float[1, 2, H, 3] x, float[T] y) => (float z) {
        one = Constant<value_ints=[1]>() two = Constant<value_ints=[2]>() three = Constant<value_ints=[3]>()
        t = Shape(y) s = Concat<axis=0>(one, two, t, three)
        z = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, , , s) }"""
    module = module_of(text)
    assumptions = gc.trace(module, gc.zeros(1, 2, 4, 3), gc.zeros(6), dims=module.dims).assumptions
    assert [(a.relation, a.b, a.answer) for a in assumptions] == [("==", 0, False)]  # there are rows
    compiled = gc.compile(module, dims=module.dims)
    for rows, wanted in ((4, 6), (5, 3), (2, 8), (1, 1)):
        x = np.arange(6 * rows, dtype=np.float32).reshape(1, 2, rows, 3)
        expected = x[:, :, np.arange(wanted) * rows // wanted]
        np.testing.assert_array_equal(compiled(x, np.zeros(wanted, np.float32)).numpy(), expected)
    assert len(compiled.programs) == 1


@pytest.mark.parametrize("rows", [4, 5, 1])
def test_corners_align_where_the_result_is_rounded_down(rows):
    """A file of PyTorch with a fraction as scale differed from PyTorch: the scaled length was not rounded."""
    options = 'mode="linear", coordinate_transformation_mode="align_corners"'
    module = module_of(
        f"(float[1, 1, H, 6] x) => (float y) {{ s = Constant<value_floats=[1., 1., 1.5, 1.5]>() "
        f"y = Resize<{options}>(x, , s) }}"
    )
    x = floats(1, 1, rows, 6)
    positions = np.linspace(0, rows - 1, int(rows * 1.5)), np.linspace(0, 5, 9)
    along = [np.interp(positions[1], np.arange(6), row) for row in x[0, 0]]
    expected = np.stack([np.interp(positions[0], np.arange(rows), column) for column in np.transpose(along)], 1)
    for model in (module, gc.compile(module, dims=module.dims)):
        np.testing.assert_allclose(model(x).numpy()[0, 0], expected, rtol=1e-5, atol=1e-5)
