"""Quantized layers equal integer arithmetic of their codes; rounded floats have the gradient of a clamp."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ShapeError
from graphc.nn import functional as F
from graphc.nn.functional.quantized import (
    fake_quantized,
    fake_quantized_weight,
    input_codes,
    quantized_conv,
    quantized_linear,
    weight_codes,
    weight_scale_of,
)

STEP = float(np.float32(0.02))
RANDOM = np.random.default_rng(0)


def reals(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def test_codes_of_inputs_round_half_to_even_and_saturate():
    scale, zero = 0.5, 10
    x = gc.tensor([0.25, 0.75, -0.25, -5.0, -6.0, 122.5, 500.0])
    assert input_codes(x, scale, zero).tolist() == [10, 12, 10, 0, 0, 255, 255]


def test_weights_have_a_scale_per_channel_or_one():
    weight = gc.tensor([[1.0, -2.0], [0.0, 0.0], [4.0, 1.0]])
    assert weight_scale_of(weight, True).tolist() == [np.float32(2 / 127), 1.0, np.float32(4 / 127)]
    assert float(weight_scale_of(weight, False)) == np.float32(4 / 127)
    assert weight_codes(weight, weight_scale_of(weight, True)).tolist() == [[64, -127], [0, 0], [127, 32]]


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5)])
@pytest.mark.parametrize("bias", [False, True])
def test_a_linear_layer_sums_products_of_codes(shape: tuple[int, ...], bias: bool):
    x, codes, scales = reals(*shape), RANDOM.integers(-127, 128, (4, 5)).astype(np.int8), np.abs(reals(4))
    scale, zero = STEP, 120
    added = reals(4) if bias else None
    result = quantized_linear(
        gc.tensor(x), gc.tensor(codes), gc.tensor(scales), scale, zero, None if added is None else gc.tensor(added)
    )
    centered = np.clip(np.rint(x / np.float32(0.02)) + 120, 0, 255).astype(np.int64) - 120
    expected = (centered @ codes.T.astype(np.int64)).astype(np.float32) * (np.float32(0.02) * scales)
    assert np.array_equal(result.numpy(), expected if added is None else expected + added)


@pytest.mark.parametrize("dtype", [gc.float64, gc.float16, gc.bfloat16])
def test_results_have_the_type_of_the_input(dtype: gc.dtype):
    x, codes, scales = gc.tensor(reals(2, 5)).to(dtype), gc.ones(4, 5, dtype="i8"), gc.ones(4)
    assert quantized_linear(x, codes, scales, STEP, 120).dtype is dtype
    image, filters, unit = x.reshape(2, 5, 1), gc.ones(4, 5, 1, dtype="i8"), ((1,), ((0, 0),), (1,))
    assert quantized_conv(image, filters, scales, STEP, 120, None, *unit, 1).dtype is dtype


def test_a_linear_layer_names_the_features_that_it_takes():
    scale = gc.tensor(1.0)
    with pytest.raises(ShapeError, match="pass an input with 5 features"):
        quantized_linear(gc.ones(2, 4), gc.ones(3, 5, dtype="i8"), scale, 1.0, 0)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_convolution_is_the_one_of_the_numbers_that_codes_represent(rank: int, groups: int):
    x, codes = reals(2, 4, *(6, 5, 7)[:rank]), RANDOM.integers(-127, 128, (8, 4 // groups, *(3, 2, 3)[:rank]))
    scales, bias = np.abs(reals(8)), reals(8)
    scale, zero = STEP, 77
    stride, padding, dilation = (2, 1, 1)[:rank], ((1, 1), (0, 2), (1, 0))[:rank], (1, 2, 1)[:rank]
    image = gc.tensor(x)
    geometry = stride, padding, dilation, groups
    weight = gc.tensor(codes.astype(np.int8))
    result = quantized_conv(image, weight, gc.tensor(scales), scale, zero, gc.tensor(bias), *geometry)
    numbers = (input_codes(image, scale, zero).to("f64") - 77) * 0.02
    sides = [n for pair in reversed(padding) for n in pair]
    filters = weight.to("f64") * gc.tensor(scales).to("f64").reshape(-1, 1, *(1,) * rank)
    convolve = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    exact = convolve(F.pad(numbers, sides), filters, gc.tensor(bias).to("f64"), stride, 0, dilation, groups)
    assert np.allclose(result.numpy(), exact.numpy(), rtol=1e-5, atol=1e-5)
    one = quantized_conv(image[0], weight, gc.tensor(scales), scale, zero, gc.tensor(bias), *geometry)
    assert np.array_equal(one.numpy(), result[0].numpy())


def test_a_convolution_names_the_channels_that_it_takes():
    scale = gc.tensor(1.0)
    with pytest.raises(ShapeError, match="has 3 channels, the weight takes 2"):
        quantized_conv(gc.ones(1, 3, 4), gc.ones(2, 2, 1, dtype="i8"), scale, 1.0, 0, None, (1,), ((0, 0),), (1,), 1)


def test_rounded_inputs_pass_gradients_inside_of_the_range():
    scale, zero = gc.tensor(0.5), gc.tensor(2, dtype="u8")
    x = gc.tensor([-3.0, -1.0, 0.3, 0.9, 200.0], requires_grad=True)
    y = fake_quantized(x, scale, zero, 0, 255)
    (y * gc.arange(1.0, 6.0)).sum().backward()
    assert y.tolist() == [-1.0, -1.0, 0.5, 1.0, 126.5]
    assert x.grad is not None and x.grad.tolist()[2:4] == [3.0, 4.0] and x.grad.tolist()[::4] == [0.0, 0.0]


def test_rounded_weights_are_their_codes_times_the_scale():
    weight = gc.tensor(reals(3, 7), requires_grad=True)
    scale = weight_scale_of(weight, True)
    rounded = fake_quantized_weight(weight, scale)
    expected = weight_codes(weight.detach(), scale).to("f32") * scale.reshape(-1, 1)
    assert np.allclose(rounded.detach().numpy(), expected.numpy(), rtol=1e-6, atol=1e-7)
    rounded.sum().backward()
    assert weight.grad is not None and float(weight.grad.min()) > 0
