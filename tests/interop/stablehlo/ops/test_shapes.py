"""Rules of constants and of operations that move elements by fixed positions."""

import numpy as np
import pytest

from tests.interop.stablehlo.kept import check_kept, run


@pytest.mark.parametrize("name", ["moves", "constants"])
def test_kept_programs_give_what_jax_gives(name):
    check_kept(name)


def test_dimensions_are_broadcast_in_any_order():
    body = """(%x: tensor<2x3xi32>) -> tensor<3x4x2xi32>
    %0 = stablehlo.broadcast_in_dim %x, dims = [2, 0] : (tensor<2x3xi32>) -> tensor<3x4x2xi32>
    return %0 : tensor<3x4x2xi32>"""
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert np.array_equal(run(body, x), np.broadcast_to(x.T[:, None, :], (3, 4, 2)))


def test_padding_may_be_a_value_of_the_call():
    body = """(%x: tensor<3xf64>, %v: tensor<f64>) -> tensor<6xf64>
    %0 = stablehlo.pad %x, %v, low = [-1], high = [2], interior = [1] : (tensor<3xf64>, tensor<f64>) -> tensor<6xf64>
    return %0 : tensor<6xf64>"""
    assert run(body, [1.0, 2.0, 3.0], 9.0).tolist() == [9, 2, 9, 3, 9, 9]
