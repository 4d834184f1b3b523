"""Products of which a mask hides terms: which these are."""

from __future__ import annotations

import pytest

import graphc as gc
from graphc.ir.graph.interpret import copy
from graphc.ir.op import Trait
from graphc.nn import functional as F
from graphc.ops.contraction.masked_product import masked_matmul
from graphc.passes.masked_products import MaskedProducts
from graphc.passes.pipeline import optimize
from tests.passes.check_pass import check_equal, check_pass
from tests.passes.graph_text import graph_of


def test_powers_of_what_is_masked():
    check_pass(
        MaskedProducts(),
        """
        graph @g(%m: bool[1,6], %x: f32[1,6], %t: f32[1,1], %v: f32[6,4]) -> (f32[1,4]) {
          %s = where(%m, %x, f32(-inf)) : f32[1,6]
          %d = sub(%s, %t) : f32[1,6]
          %p = exp(%d) : f32[1,6]
          %w = mul(f32(2.0), %p) : f32[1,6]
          %y = matmul(%w, %v) : f32[1,4]
          return %y
        }""",
        """
        graph @g(%m: bool[1,6], %x: f32[1,6], %t: f32[1,1], %v: f32[6,4]) -> (f32[1,4]) {
          %s = where(%m, %x, f32(-inf)) : f32[1,6]
          %d = sub(%s, %t) : f32[1,6]
          %p = exp(%d) : f32[1,6]
          %w = mul(f32(2.0), %p) : f32[1,6]
          %masked_matmul = masked_matmul(%w, %v) : f32[1,4]
          return %masked_matmul
        }""",
        1,
    )


@pytest.mark.parametrize(
    "text",
    [
        "%p = exp(%x) : f32[1,6]",
        "%s = where(%m, %x, f32(-1.0)) : f32[1,6]\n %p = exp(%s) : f32[1,6]",
        "%s = where(%m, %x, f32(-inf)) : f32[1,6]\n %p = tanh(%s) : f32[1,6]",
        "%s = where(%m, %x, f32(-inf)) : f32[1,6]\n %e = exp(%s) : f32[1,6]\n %p = add(%e, %x) : f32[1,6]",
        "%s = where(%m, %x, f32(-inf)) : f32[1,6]\n %e = exp(%s) : f32[1,6]\n %p = div(%x, %e) : f32[1,6]",
    ],
)
def test_what_is_not_0_where_a_mask_hides_it(text: str):
    graph = graph_of(f"""
        graph @g(%m: bool[1,6], %x: f32[1,6], %v: f32[6,4]) -> (f32[1,4]) {{
          {text}
          %y = matmul(%p, %v) : f32[1,4]
          return %y
        }}""")
    assert MaskedProducts().run(graph).changed == 0


@pytest.mark.parametrize(("rows", "found"), [(1, 1), (2, 0)])
@pytest.mark.parametrize("written", [True, False])
def test_attention_of_one_query(rows: int, found: int, written: bool):
    """As a function, and as users write it."""

    def attend(q, k, v, mask):
        if not written:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        scores = (q @ k.transpose(-1, -2)).masked_fill(~mask, float("-inf"))
        return scores.softmax(-1) @ v

    q, k, mask = gc.rand(2, 3, rows, 8), gc.rand(2, 3, 20, 8), gc.rand(rows, 20) > 0.5
    graph = optimize(gc.trace(attend, q, k, k, mask))
    assert sum(n.op.name == "masked_matmul" for n in graph.nodes()) == found


def test_attention_of_one_query_in_each_step_of_a_scan():
    def attend(queries, k, v):
        def step(position, q):
            scores = (q @ k.transpose(-1, -2)).masked_fill(gc.arange(20) > position, float("-inf"))
            return position + 1, scores.softmax(-1) @ v

        return gc.scan(step, gc.tensor(0), queries)[1]

    queries, k = gc.rand(4, 2, 1, 8), gc.rand(2, 20, 8)
    traced = gc.trace(attend, queries, k, k)
    before = copy(traced)
    graph = optimize(traced)
    (scan,) = (n for n in graph.nodes() if n.op.has(Trait.LOOP))
    assert sum(n.op is masked_matmul.op for n in scan.attrs["body"].nodes()) == 1
    check_equal(before, graph)
