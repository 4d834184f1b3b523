"""Rules of conversions of element types."""

import numpy as np

import graphc as gc
from tests.interop.stablehlo.kept import check_kept, run


def test_kept_programs_give_what_jax_gives():
    check_kept("conversions", "complex_numbers", "single_precision")


def test_numbers_are_rounded_to_narrow_types():
    body = """(%x: tensor<2xf32>) -> tensor<2xf32>
    %0 = stablehlo.reduce_precision %x, format = e8m7 : tensor<2xf32>
    return %0 : tensor<2xf32>"""
    x = np.array([1.2345678, -3.0], np.float32)
    assert run(body, x).tolist() == gc.tensor(x).to(gc.bfloat16).to(gc.float32).numpy().tolist()


def test_unknown_formats_are_refused():
    text = """func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.reduce_precision %x, format = e3m2 : tensor<f32>
      return %0 : tensor<f32>
    }"""
    try:
        gc.from_stablehlo(text)(np.float32(1))
    except gc.errors.UnsupportedError as error:
        assert "3 bits of exponent and 2 of fraction" in str(error) and "line 2" in str(error)
    else:
        raise AssertionError("expected UnsupportedError")
