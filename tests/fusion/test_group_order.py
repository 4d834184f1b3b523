"""The order of groups: as in the graph, and states last where their old content is read."""

from __future__ import annotations

from graphc.fusion.vertical import fuse
from tests.passes.graph_text import graph_of


def names(text: str) -> list[str]:
    return [g.outputs[0].name for g in fuse(graph_of(text)).groups]


def test_groups_that_are_free_come_as_in_the_graph():
    assert names("""
        graph @g(%x: f32[4,8], %y: f32[8,4]) -> (f32[4,4], f32[8,8], f32[4,4]) {
          %a = matmul(%x, %y) : f32[4,4]
          %b = matmul(%y, %x) : f32[8,8]
          %c = matmul(%a, %a) : f32[4,4]
          return %a, %b, %c
        }""") == ["a", "b", "c"]


def test_a_state_is_overwritten_after_its_last_reader():
    assert names("""
        graph @g(%x: f32[4,4], %s: f32[4,4] state "s") -> (f32[4,4]) {
          %new = matmul(%x, %x) : f32[4,4]
          %old = matmul(%s, %x) : f32[4,4]
          %w = state_write(%s, %new) : f32[4,4]
          return %old
        }""") == ["old", "new"]


def test_a_state_that_is_needed_before_it_is_read_is_overwritten_early():
    assert names("""
        graph @g(%x: f32[4,4], %s: f32[4,4] state "s") -> (f32[4,4]) {
          %new = matmul(%x, %x) : f32[4,4]
          %old = matmul(%s, %new) : f32[4,4]
          %w = state_write(%s, %new) : f32[4,4]
          return %old
        }""") == ["new", "old"]
