"""Updates: the contents that a state has one after the other, under all their names."""

from __future__ import annotations

import pytest

from graphc.passes.updates import contents_of, lying, stored_content, unmoved, updated
from tests.passes.graph_text import graph_of

GRAPH = """
    graph @g(%s: f32[4,3] state "s", %i: i64[2], %u: f32[2], %v: f32[2,3]) -> () {
      %f = reshape(%s) {shape=[12]} : f32[12]
      %a = scatter(%f, %i, %u) {axis=0} : f32[12]
      %r = reshape(%a) {shape=[4,3]} : f32[4,3]
      %b = scatter_add(%r, %i, %v) {axis=0} : f32[4,3]
      %t = transpose(%b) {permutation=[1,0]} : f32[3,4]
      %w = state_write(%s, %b) : f32[4,3]
      return
    }"""


def test_contents_of_a_state_from_the_newest_to_the_oldest():
    graph = graph_of(GRAPH)
    values = {v.name: v for n in graph.nodes() for v in n.results} | {v.name: v for v in graph.inputs}
    found = contents_of(values["w"], values["s"])
    assert [[v.name for v in content] for content in found] == [["w", "b"], ["r", "a"], ["f", "s"]]
    assert stored_content(values["w"].node) is values["b"]
    assert contents_of(values["t"], values["s"]) == [] and contents_of(values["b"], values["i"]) == []
    assert updated(values["a"]) is values["f"] and updated(values["r"]) is None
    assert unmoved(values["t"]) is None
    assert lying(values["f"], {values["s"]}) is values["s"] and lying(values["t"], {values["s"]}) is None


@pytest.mark.parametrize(
    ("step", "steps"), [("scatter(%h, %i, %x) {axis=0} : f32[4,3]", True), ("tanh(%h) : f32[4,3]", False)]
)
def test_a_scan_updates_what_its_steps_update(step: str, steps: bool):
    graph = graph_of(f"""
        graph @g(%s: f32[4,3] state "s", %x: f32[6,1,3], %i: i64[6,1]) -> () {{
          %c = scan(%s, %x, %i) {{body=graph @step(%h: f32[4,3], %x: f32[1,3], %i: i64[1]) -> (f32[4,3]) {{
            %n = {step}
            return %n
          }}, carries=1, sequences=2, length=6, reverse=false}} : f32[4,3]
          %w = state_write(%s, %c) : f32[4,3]
          return
        }}""")
    (scan,) = [n for n in graph.nodes() if n.op.name == "scan"]
    assert updated(scan.results[0]) is (graph.inputs[0] if steps else None)
