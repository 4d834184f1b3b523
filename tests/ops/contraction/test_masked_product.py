"""Products of rows with zeros: that they are matrix products, and that what meets zeros only need not be read."""

from __future__ import annotations

import numpy as np

from graphc.ir.op import REGISTRY
from graphc.ops.contraction import masked_product
from tests.native import lowered
from tests.passes.graph_text import graph_of

OP = REGISTRY[masked_product.masked_matmul.op.name]


def test_it_is_a_matrix_product():
    for sample in OP.samples():
        (result,) = OP.evaluate(sample.operands, {})
        np.testing.assert_array_equal(result, np.matmul(*sample.operands))
    without_zeros = [s.operands[0].shape for s in OP.samples() if s.operands[0].all()]
    assert without_zeros == [(4, 6)], "the other samples have zeros to skip"


def test_its_kernel_says_which_factor_is_a_weight():
    (kernel,) = lowered(
        graph_of("""
            graph @g(%p: f32[2,1,8], %v: f32[8,4]) -> (f32[2,1,4]) {
              %y = masked_matmul(%p, %v) : f32[2,1,4]
              return %y
            }""")
    ).kernels
    text = str(kernel.body)
    assert "weigh" in text and "mul" not in text
