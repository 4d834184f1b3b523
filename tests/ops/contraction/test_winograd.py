"""Winograd's transforms: exact matrices, the product between them is the convolution, and how it rounds."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import float32
from graphc.errors import AttributeValueError
from graphc.ir.types import TensorType
from graphc.ops.contraction.convolution import conv
from graphc.ops.contraction.winograd import matrices, transform_weights, winograd_input, winograd_output

PLAIN = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}


def direct(x: np.ndarray, w: np.ndarray, dilation: int = 1) -> np.ndarray:
    return conv.op.evaluate([x, w], conv.op.normalize({**PLAIN, "dilation": (dilation, dilation)}))[0]


def by_tiles(x: np.ndarray, w: np.ndarray, tile: int, dilation: int = 1) -> np.ndarray:
    kernel = w.shape[2]
    (v,) = winograd_input.op.evaluate([x], {"tile": tile, "kernel": kernel, "spare": tile, "dilation": dilation})
    m = np.matmul(v, transform_weights(w, tile))
    shape = (len(x), len(w), *(s - dilation * (kernel - 1) for s in x.shape[2:]))
    attrs = {"tile": tile, "kernel": kernel, "shape": shape, "dilation": dilation}
    return winograd_output.op.evaluate([m], attrs)[0]


@pytest.mark.parametrize(("tile", "kernel"), [(1, 3), (2, 3), (4, 3), (6, 3), (2, 5), (3, 2)])
def test_the_matrices_slide_weights_over_elements(tile: int, kernel: int):
    a, g, b = matrices(tile, kernel)
    random = np.random.default_rng(0)
    x, w = random.standard_normal(tile + kernel - 1), random.standard_normal(kernel)
    np.testing.assert_allclose(a @ ((g @ w) * (b @ x)), np.correlate(x, w), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("tile", "kernel", "dilation"), [(2, 3, 1), (4, 3, 1), (2, 5, 1), (4, 3, 2), (2, 3, 3)])
def test_convolution(tile: int, kernel: int, dilation: int):
    random = np.random.default_rng(1)
    x = random.standard_normal((2, 3, dilation * (4 * tile + kernel - 1), dilation * (tile + kernel - 1)))
    w = random.standard_normal((5, 3, kernel, kernel))
    np.testing.assert_allclose(by_tiles(x, w, tile, dilation), direct(x, w, dilation), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize(("tile", "worse"), [(2, 3.0), (4, 6.0)])
def test_rounding_is_about_that_of_the_direct_sum(tile: int, worse: float):
    """In f32 over 128 channels of activations that are not negative, as behind a ReLU; mean squares of errors."""
    random = np.random.default_rng(2)
    x = np.maximum(random.standard_normal((1, 128, 18, 18)), 0).astype(np.float32)
    w = (random.standard_normal((16, 128, 3, 3)) / 34).astype(np.float32)
    exact = direct(x.astype(np.float64), w.astype(np.float64))
    errors = [np.sqrt(np.mean((y - exact) ** 2)) for y in (by_tiles(x, w, tile), direct(x, w))]
    assert errors[0] <= worse * errors[1]
    assert np.abs(by_tiles(x, w, tile) - exact).max() <= 1e-5 * np.abs(exact).max()


def test_too_many_points():
    with pytest.raises(AttributeValueError, match="there are no points for tile 8 and kernel 5"):
        winograd_input.op.result_types(
            (TensorType(float32, (1, 1, 12, 12)),), {"tile": 8, "kernel": 5, "spare": 0, "dilation": 1}
        )
