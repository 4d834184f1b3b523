"""Graphs with named dimensions become one program for all sizes."""

from __future__ import annotations

import pytest

from graphc.lowering.program import lower_graph
from tests.lowering.sized import check
from tests.passes.graph_text import graph_of

DIMS = "dim batch = 1..9 hint 4\ndim time = 1..20 hint 8\n"
SIZES = [{"batch": b, "time": t} for b, t in ((1, 1), (3, 5), (4, 8), (9, 20), (2, 1))]
GRAPHS = {
    "mlp": """
        graph @mlp(%x: f32[batch,6], %w: f32[5,6] param "w", %b: f32[5] param "b") -> (f32[batch,5]) {
          %m = matmul(%x, %w) {transpose_b=true} : f32[batch,5]
          %a = add(%m, %b) : f32[batch,5]
          %l = le(%a, f32(0.0)) : bool[batch,5]
          %r = where(%l, f32(0.0), %a) : f32[batch,5]
          %h = max(%r) {axes=[1], keepdims=true} : f32[batch,1]
          %s = sub(%r, %h) : f32[batch,5]
          %e = exp(%s) : f32[batch,5]
          %n = sum(%e) {axes=[1], keepdims=true} : f32[batch,1]
          %d = div(%e, %n) : f32[batch,5]
          return %d
        }""",
    "softmax over a named axis": """
        graph @g(%x: f32[batch,time]) -> (f32[batch,time]) {
          %h = max(%x) {axes=[1], keepdims=true} : f32[batch,1]
          %s = sub(%x, %h) : f32[batch,time]
          %e = exp(%s) : f32[batch,time]
          %n = sum(%e) {axes=[1], keepdims=true} : f32[batch,1]
          %d = div(%e, %n) : f32[batch,time]
          return %d
        }""",
    "sides by side": """
        graph @g(%x: f32[batch,time], %y: f32[batch,3]) -> (f32[batch,2*time + 3]) {
          %c = concat(%x, %y, %x) {axis=1} : f32[batch,2*time + 3]
          %n = neg(%c) : f32[batch,2*time + 3]
          return %n
        }""",
    "views of merged dimensions": """
        graph @g(%x: f32[batch,time,4], %y: f32[4*time,batch]) -> (f32[batch*time,4], f32[batch]) {
          %f = reshape(%x) {shape=[batch*time,4]} : f32[batch*time,4]
          %e = exp(%f) : f32[batch*time,4]
          %b = reshape(%e) {shape=[batch,4*time]} : f32[batch,4*time]
          %t = transpose(%y) {permutation=[1,0]} : f32[batch,4*time]
          %m = mul(%b, %t) : f32[batch,4*time]
          %s = sum(%m) {axes=[1], keepdims=false} : f32[batch]
          return %e, %s
        }""",
}


@pytest.mark.parametrize("name", GRAPHS)
def test_one_program_computes_what_the_graph_says_for_each_size(name: str):
    text = GRAPHS[name]
    check(graph_of(DIMS + text), [{d: n for d, n in s.items() if d in text} for s in SIZES])


def test_softmax_over_a_named_axis_is_one_kernel():
    assert len(lower_graph(graph_of(DIMS + GRAPHS["softmax over a named axis"])).calls) == 1
