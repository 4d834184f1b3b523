"""Rules of operations that compute each element by itself."""

import numpy as np
import pytest

import graphc as gc
from tests.interop.stablehlo.kept import check_kept, run


@pytest.mark.parametrize("name", ["elementary", "special", "integers", "unsigned", "conditions", "activations"])
def test_kept_programs_give_what_jax_gives(name):
    check_kept(name)


def binary(name, dtype, x, y, result=None):
    body = f"""(%x: tensor<{len(x)}x{dtype}>, %y: tensor<{len(x)}x{dtype}>) -> tensor<{len(x)}x{dtype}>
    %0 = stablehlo.{name} %x, %y : tensor<{len(x)}x{dtype}>
    return %0 : tensor<{len(x)}x{dtype}>"""
    kind = {"f": "float", "i": "int", "u": "uint"}[dtype[0]]
    layout = np.dtype(f"{kind}{dtype.lstrip('fui')}")
    return run(body, np.array(x, layout), np.array(y, layout)).tolist()


def test_integers_divide_toward_zero_and_by_zero_like_xla():
    assert binary("divide", "i32", [7, -7, 7, -7, 5], [2, 2, -2, -2, 0]) == [3, -3, -3, 3, -1]
    assert binary("remainder", "i32", [7, -7, 7, -7, 5], [2, 2, -2, -2, 0]) == [1, -1, 1, -1, 5]
    assert binary("divide", "ui8", [200, 7], [3, 0]) == [66, 255]


def test_shifts_beyond_the_width_give_what_the_specification_says():
    assert binary("shift_left", "i32", [1, 1, -1], [31, 32, 40]) == [-(2**31), 0, 0]
    assert binary("shift_right_logical", "i32", [-1, -1, 8], [28, 32, 1]) == [15, 0, 4]
    assert binary("shift_right_arithmetic", "i32", [-8, -8, 8], [1, 50, 50]) == [-4, -1, 0]


def test_functions_of_chlo_have_rules():
    names = "asin acos atan sinh cosh asinh atanh tan erf erfc erf_inv lgamma digamma square"
    x = np.array([0.3, 0.7])
    for name in names.split():
        body = f"""(%x: tensor<2xf64>) -> tensor<2xf64>
        %0 = chlo.{name} %x : tensor<2xf64> -> tensor<2xf64>
        return %0 : tensor<2xf64>"""
        ours = {"erf_inv": gc.erfinv}.get(name) or getattr(gc, name)
        np.testing.assert_allclose(run(body, x), ours(gc.tensor(x)).numpy(), rtol=1e-14)


def test_polygamma_needs_a_constant_order():
    text = """func.func @main(%n: tensor<f64>, %x: tensor<f64>) -> tensor<f64> {
      %0 = chlo.polygamma %n, %x : tensor<f64>, tensor<f64> -> tensor<f64>
      return %0 : tensor<f64>
    }"""
    module = gc.compile(gc.from_stablehlo(text))
    with pytest.raises(gc.errors.UnsupportedError, match=r"chlo\.polygamma: graphc has no form for orders"):
        module(np.array(1.0), np.array(2.0))
