"""Rules of operations at positions that only calls know."""

import numpy as np
import pytest

from tests.interop.stablehlo.kept import check_kept, run


@pytest.mark.parametrize("name", ["dynamic_slices", "gathers", "scatters", "segments", "batched_positions", "one_hot"])
def test_kept_programs_give_what_jax_gives(name):
    check_kept(name)


def test_gather_moves_windows_into_the_tensor():
    body = """(%x: tensor<5x4xf64>, %i: tensor<3x2xi32>) -> tensor<2x3x2xf64>
    %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2],
      start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 2, 2>}>
      : (tensor<5x4xf64>, tensor<3x2xi32>) -> tensor<2x3x2xf64>
    return %0 : tensor<2x3x2xf64>"""
    x = np.arange(20.0).reshape(5, 4)
    places = np.array([[0, 1], [9, 9], [-3, 2]], np.int32)
    windows = [x[a : a + 2, b : b + 2] for a, b in ((0, 1), (3, 2), (0, 2))]
    assert np.array_equal(run(body, x, places), np.stack(windows, 1))


def test_scatter_leaves_out_windows_that_reach_out_of_the_tensor():
    body = """(%x: tensor<4x3xf64>, %i: tensor<3x2xi64>, %u: tensor<3x2x2xf64>) -> tensor<4x3xf64>
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2],
      scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %1 = stablehlo.add %a, %b : tensor<f64>
      stablehlo.return %1 : tensor<f64>
    }) : (tensor<4x3xf64>, tensor<3x2xi64>, tensor<3x2x2xf64>) -> tensor<4x3xf64>
    return %0 : tensor<4x3xf64>"""
    x, updates = np.zeros((4, 3)), np.arange(1.0, 13).reshape(3, 2, 2)
    expected = x.copy()
    expected[2:4, 1:3] += updates[0]
    expected[0:2, 0:2] += updates[2]
    assert np.array_equal(run(body, x, np.array([[1, 2], [2, 0], [0, 0]]), updates), expected)


def test_booleans_are_scattered():
    body = """(%x: tensor<4xi1>, %i: tensor<2x1xi32>) -> tensor<4xi1>
    %c = stablehlo.constant dense<true> : tensor<2xi1>
    %0 = "stablehlo.scatter"(%x, %i, %c) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<i1>, %b: tensor<i1>):
      %1 = stablehlo.or %a, %b : tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }) : (tensor<4xi1>, tensor<2x1xi32>, tensor<2xi1>) -> tensor<4xi1>
    return %0 : tensor<4xi1>"""
    assert run(body, [True, False, False, False], np.array([[2], [7]], np.int32)).tolist() == [True, False, True, False]
