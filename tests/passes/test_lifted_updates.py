"""Updates of slices as updates of the whole: their places, and parts that leave nothing of a content."""

from __future__ import annotations

import pytest

from graphc.passes.lifted_updates import SliceRegion, content_before
from graphc.passes.slice_updates import UpdateSlices
from tests.passes.check_pass import check_pass
from tests.passes.graph_text import graph_of


def test_places_of_a_slice():
    places = SliceRegion((1, 0), (2, 1), (3, 4))
    assert places.size == 12 and places.stops == (6, 4) and places.as_index == (slice(1, 7, 2), slice(0, 4, 1))
    assert places.covers(1, 4) and not places.covers(0, 3) and not places.covers_all((6, 4))
    assert places.inside((6, 4)) and not places.inside((5, 4))
    assert places.restricted(1, 2) == SliceRegion((0,), (1,), (4,)) and SliceRegion((0,), (3,), (0,)).stops == (0,)


def test_what_a_content_was_before():
    graph = graph_of("""
        graph @g(%s: f32[4,3] state "s", %u: f32[1,3]) -> (f32[3,4]) {
          %a = update_slice(%s, %u) {starts=[1, 0], steps=[1, 1]} : f32[4,3]
          %t = transpose(%a) {permutation=[1, 0]} : f32[3,4]
          %e = exp(%t) : f32[3,4]
          %w = state_write(%s, %a) : f32[4,3]
          return %e
        }""")
    values = {v.name: v for n in graph.nodes() for v in n.results}
    assert content_before(values["t"]) is values["a"] and content_before(values["a"]) is graph.inputs[0]
    assert content_before(values["e"]) is None


def test_slices_one_behind_the_other_are_put_together():
    check_pass(
        UpdateSlices(),
        """
        graph @g(%s: f32[4,3] state "s", %u: f32[1,3]) -> () {
          %v = slice(%s) {starts=[1,0], stops=[4,3], steps=[1,1]} : f32[3,3]
          %a = update_slice(%s, %v) {starts=[0,0], steps=[1,1]} : f32[4,3]
          %b = update_slice(%a, %u) {starts=[3,0], steps=[1,1]} : f32[4,3]
          %w = state_write(%s, %b) : f32[4,3]
          return
        }
        """,
        """
        graph @g(%s: f32[4,3] state "s", %u: f32[1,3]) -> () {
          %v = slice(%s) {starts=[1,0], stops=[4,3], steps=[1,1]} : f32[3,3]
          %concat = concat(%v, %u) {axis=0} : f32[4,3]
          %w = state_write(%s, %concat) : f32[4,3]
          return
        }
        """,
    )


@pytest.mark.parametrize("start", [0, 2])
def test_slices_that_leave_a_place_are_not_put_together(start: int):
    check_pass(
        UpdateSlices(),
        f"""
        graph @g(%s: f32[4,3] state "s", %u: f32[1,3], %v: f32[2,3]) -> () {{
          %a = update_slice(%s, %v) {{starts=[{start},0], steps=[1,1]}} : f32[4,3]
          %b = update_slice(%a, %u) {{starts=[{2 - start},0], steps=[1,1]}} : f32[4,3]
          %w = state_write(%s, %b) : f32[4,3]
          return
        }}
        """,
    )


@pytest.mark.parametrize(("first", "second"), [("pos", "3 - pos"), ("pos", "2"), ("2", "pos")])
def test_slices_at_places_that_a_call_gives_are_not_put_together(first: str, second: str):
    graph = graph_of(f"""
        dim pos = 0..3 hint 1
        graph @g(%s: f32[4,3] state "s", %u: f32[1,3], %v: f32[1,3], %pos: i64[] = pos) -> () {{
          %a = update_slice(%s, %v) {{starts=[{first},0], steps=[1,1]}} : f32[4,3]
          %b = update_slice(%a, %u) {{starts=[{second},0], steps=[1,1]}} : f32[4,3]
          %w = state_write(%s, %b) : f32[4,3]
          return
        }}""")
    assert UpdateSlices().run(graph).changed == 0
