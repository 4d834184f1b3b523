"""Scratch rows: which values are kept between passes over a row."""

from __future__ import annotations

from dataclasses import replace

from graphc.codegen.machine.costs import DEFAULT
from graphc.fusion.vertical import fuse
from graphc.ir.graph.graph import Graph
from graphc.lowering.row_cache import cached_values
from tests.passes.graph_text import graph_of


def cached(text: str | Graph) -> list[str]:
    graph = graph_of(text) if isinstance(text, str) else text
    return sorted(v.name for g in fuse(graph).groups for v in cached_values(g))


def softmax(width: int, dtype: str = "f32") -> str:
    t, r = f"{dtype}[4,{width}]", f"{dtype}[4,1]"
    return f"""
        graph @g(%x: {t}) -> ({t}) {{
          %m = max(%x) {{axes=[1], keepdims=true}} : {r}
          %d = sub(%x, %m) : {t}
          %e = exp(%d) : {t}
          %s = sum(%e) {{axes=[1], keepdims=true}} : {r}
          %y = div(%e, %s) : {t}
          return %y
        }}"""


def test_exponentials_are_kept():
    assert cached(softmax(64)) == ["e"]


def test_rows_that_leave_the_cache_are_computed_again():
    assert cached(softmax(100_000)) == []


def test_cheap_values_are_computed_again():
    assert (
        cached("""
        graph @g(%x: f32[4,8]) -> (f32[4,8]) {
          %m = sum(%x) {axes=[1], keepdims=true} : f32[4,1]
          %d = sub(%x, %m) : f32[4,8]
          %q = mul(%d, %d) : f32[4,8]
          %s = sum(%q) {axes=[1], keepdims=true} : f32[4,1]
          %y = mul(%d, %s) : f32[4,8]
          return %y
        }""")
        == []
    )


def test_only_the_last_expensive_value_of_a_chain_is_kept():
    assert cached("""
        graph @g(%x: f32[4,8]) -> (f32[4,8]) {
          %t = tanh(%x) : f32[4,8]
          %e = exp(%t) : f32[4,8]
          %s = sum(%e) {axes=[1], keepdims=true} : f32[4,1]
          %y = mul(%e, %s) : f32[4,8]
          return %y
        }""") == ["e"]


def test_what_one_pass_needs_is_not_kept():
    assert (
        cached("""
        graph @g(%x: f32[4,8]) -> (f32[4]) {
          %e = exp(%x) : f32[4,8]
          %s = sum(%e) {axes=[1]} : f32[4]
          return %s
        }""")
        == []
    )


def test_maps_have_no_rows():
    assert cached("graph @g(%x: f32[8]) -> (f32[8]) {\n  %e = exp(%x) : f32[8]\n  return %e\n}") == []


def test_rows_that_run_across_memory_are_not_kept():
    text = """
        graph @g(%x: f32[4,N]) -> (f32[4,N]) {
          %e = exp(%x) : f32[4,N]
          %s = sum(%e) {axes=[0], keepdims=true} : f32[1,N]
          %y = mul(%e, %s) : f32[4,N]
          return %y
        }"""
    assert cached(text.replace("N", "64")) == []
    assert cached(text.replace("N", "2")) == ["e"]


def test_rows_that_would_leave_their_cache_are_not_kept():
    groups = fuse(graph_of(softmax(64))).groups
    assert any(cached_values(g) for g in groups)
    assert not any(cached_values(g, replace(DEFAULT.fusion, row_bytes=64)) for g in groups)
