"""Rules of reductions over whole dimensions."""

import numpy as np

from graphc.base.dtypes import BY_NAME
from graphc.interop.stablehlo.ops.reductions import identity
from tests.interop.stablehlo.kept import check_kept, run


def test_kept_programs_give_what_jax_gives():
    check_kept("reductions", "largest")


def test_a_general_region_combines_neighbours_in_order():
    """Matrices of two rows do not commute: the first column of each product shows the order."""
    body = """(%a: tensor<5xf64>, %b: tensor<5xf64>) -> (tensor<f64>, tensor<f64>)
    %one = stablehlo.constant dense<1.0> : tensor<f64>
    %zero = stablehlo.constant dense<0.0> : tensor<f64>
    %0:2 = stablehlo.reduce(%a init: %one), (%b init: %zero) across dimensions = [0]
      : (tensor<5xf64>, tensor<5xf64>, tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<f64>)
     reducer(%x: tensor<f64>, %z: tensor<f64>) (%y: tensor<f64>, %w: tensor<f64>)  {
      %1 = stablehlo.multiply %x, %z : tensor<f64>
      %2 = stablehlo.multiply %x, %w : tensor<f64>
      %3 = stablehlo.add %2, %y : tensor<f64>
      stablehlo.return %1, %3 : tensor<f64>, tensor<f64>
    }
    return %0#0, %0#1 : tensor<f64>, tensor<f64>"""
    a, b = np.array([2.0, 3.0, 5.0, 7.0, 11.0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    product, total = 1.0, 0.0
    for x, y in zip(a, b, strict=True):
        product, total = product * x, product * y + total
    assert [r.item() for r in run(body, a, b)] == [product, total]


def test_identities_leave_numbers_unchanged():
    for kind, function in (
        ("add", np.add),
        ("multiply", np.multiply),
        ("maximum", np.maximum),
        ("minimum", np.minimum),
    ):
        for name in ("f64", "i32", "u8"):
            dtype = BY_NAME[name]
            number = np.array(5, dtype.numpy)
            assert function(np.array(identity(kind, dtype), dtype.numpy), number) == number
    assert identity("and", BY_NAME["u8"]) == 255 and identity("xor", BY_NAME["i32"]) is None
