"""Products that updates multiply and add at once."""

from __future__ import annotations

import numpy as np

from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.kernel.products import fused_products
from tests.codegen.kernel_native import kernel_of

DOT = """
kernel @k(%a: f32[3] in, %b: f32[3] in, %c: f32[1] out) {
  acc s: f32 = add f32(0.0)
  for i in 3 reduce {
    x: f32 = load %a[i]
    y: f32 = load %b[i]
    p: f32 = mul(x, y)
    update s with p
  }
  t = read s
  store %c[0] = t
}
"""


def test_a_product_that_is_only_added_is_fused():
    assert set(fused_products(kernel_of(DOT))) == {"p"}
    assert not fused_products(kernel_of(DOT.replace("= add f32(0.0)", "= max f32(-inf)")))
    assert not fused_products(kernel_of(DOT.replace("    update", "    update s with p\n    update")))


def test_the_interpreter_rounds_a_fused_product_once():
    a = np.float32([1 + 2.0**-12, 1, 0])
    b = np.float32([1 + 2.0**-12, -1 - 2.0**-11, 0])
    fused, separate = np.zeros(1, np.float32), np.zeros(1, np.float32)
    run_kernel(kernel_of(DOT), {"a": b[[1, 0, 2]], "b": a[[1, 0, 2]], "c": fused}, fused=True)
    run_kernel(kernel_of(DOT), {"a": b[[1, 0, 2]], "b": a[[1, 0, 2]], "c": separate})
    assert fused[0] == 2.0**-24 and separate[0] == 0
