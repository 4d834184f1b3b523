"""Rules of products and convolutions with general dimension numbers."""

import numpy as np
import pytest

from tests.interop.stablehlo.kept import check_kept, run


@pytest.mark.parametrize("name", ["einsums", "convolutions", "convolution_gradients", "attention"])
def test_kept_programs_give_what_jax_gives(name):
    check_kept(name)


def test_products_may_have_several_batch_and_contracted_dimensions():
    body = """(%x: tensor<2x3x4x5xf64>, %y: tensor<5x2x3x6xf64>) -> tensor<2x4x6xf64>
    %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [1], contracting_dims = [1, 3] x [2, 0]
      : (tensor<2x3x4x5xf64>, tensor<5x2x3x6xf64>) -> tensor<2x4x6xf64>
    return %0 : tensor<2x4x6xf64>"""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(5, 2, 3, 6))
    np.testing.assert_allclose(run(body, x, y), np.einsum("bijk,kbil->bjl", x, y), rtol=1e-12)


def test_windows_may_be_reversed_and_padding_negative():
    body = """(%x: tensor<1x1x6xf64>, %w: tensor<1x1x3xf64>) -> tensor<1x1x4xf64>
    %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
      window = {pad = [[-1, 1]], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x1x6xf64>, tensor<1x1x3xf64>) -> tensor<1x1x4xf64>
    return %0 : tensor<1x1x4xf64>"""
    x, w = np.arange(1.0, 7), np.array([1.0, 10.0, 100.0])
    expected = np.convolve(np.append(x[1:], 0), w, "valid")
    assert run(body, x.reshape(1, 1, 6), w.reshape(1, 1, 3)).reshape(-1).tolist() == expected.tolist()
