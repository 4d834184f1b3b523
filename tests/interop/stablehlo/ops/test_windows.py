"""Rules of reductions over sliding windows."""

import numpy as np
import pytest

from tests.interop.stablehlo.kept import check_kept, run


@pytest.mark.parametrize("name", ["pools", "pool_gradients", "running"])
def test_kept_programs_give_what_jax_gives(name):
    check_kept(name)


@pytest.mark.parametrize("window", [1, 2, 3, 7, 13])
@pytest.mark.parametrize("dilation", [1, 2])
def test_windows_of_any_length_are_combined_in_order(window, dilation):
    """The region keeps the first element, so the result is the start of each window."""
    count = 30 - (window - 1) * dilation
    body = f"""(%x: tensor<30xf64>) -> tensor<{count}xf64>
    %c = stablehlo.constant dense<0.0> : tensor<f64>
    %0 = "stablehlo.reduce_window"(%x, %c) <{{window_dimensions = array<i64: {window}>,
      window_dilations = array<i64: {dilation}>}}> ({{
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %m = stablehlo.constant dense<1000.0> : tensor<f64>
      %1 = stablehlo.remainder %a, %m : tensor<f64>
      %2 = stablehlo.maximum %1, %b : tensor<f64>
      stablehlo.return %2 : tensor<f64>
    }}) : (tensor<30xf64>, tensor<f64>) -> tensor<{count}xf64>
    return %0 : tensor<{count}xf64>"""
    x = np.random.default_rng(0).random(30)
    expected = [x[i : i + (window - 1) * dilation + 1 : dilation].max() for i in range(count)]
    assert run(body, x).tolist() == expected
