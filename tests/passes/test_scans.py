"""Passes over scans: equal ones become one, what is not needed goes, steps are simplified."""

from __future__ import annotations

from dataclasses import replace

import graphc.ops.registry  # noqa: F401  (fills REGISTRY)
from graphc.codegen.machine.costs import DEFAULT
from graphc.ir.graph.interpret import copy
from graphc.ir.graph.parse import parse_graph
from graphc.ops.autodiff import vjp_graph
from graphc.passes.canonicalize import Canonicalize
from graphc.passes.pipeline import optimize
from graphc.passes.scans import HoistFromSteps, MergeScans, OptimizeSteps, PruneScans
from tests.passes.check_pass import check_equal, check_pass
from tests.passes.choosing import Choosing

STEP = """
graph @f(%c: f32[3], %x: f32[4,3], %w: f32[3]) -> (f32[3], f32[4,3]) {
  %s.0, %s.1 = scan(%c, %x, %w) {body=graph @step(%c: f32[3], %x: f32[3], %w: f32[3]) -> (f32[3], f32[3]) {
    %p = mul(%c, %w) : f32[3]
    %n = add(%p, %x) : f32[3]
    %t = tanh(%n) : f32[3]
    return %t, %t
  }, carries=1, sequences=1, length=4, reverse=false} : f32[3], f32[4,3]
  return %s.0, %s.1
}
"""


def scans(graph):
    return [n for n in graph.nodes() if n.op.name == "scan"]


def test_a_scan_and_the_run_for_its_gradient_become_one():
    graph = parse_graph(STEP)
    joint = vjp_graph(graph, graph.inputs)
    before = copy(joint)
    result = MergeScans().run(joint)
    assert result.changed == 1 and len(scans(result.graph)) == 2
    check_equal(before, result.graph)
    assert MergeScans().run(result.graph).changed == 0


def test_scans_with_other_carries_stay():
    text = STEP.replace(
        "return %s.0, %s.1", "  %u.0, %u.1 = scan(%c, %x, %w) {BODY} : f32[3], f32[4,3]\n  return %s.0, %u.1"
    )
    body = STEP[STEP.index("{body=") + 1 : STEP.index("} : f32[3], f32[4,3]\n  return")].replace("tanh", "neg")
    graph = parse_graph(text.replace("BODY", body))
    assert MergeScans().run(graph).changed == 0 and len(scans(graph)) == 2


def test_what_nobody_needs_goes():
    text = """
        graph @f(%a: f32[3], %b: f32[3], %x: f32[4,3], %y: f32[4,3]) -> (f32[3], f32[4,3], f32[4,3]) {
          %s.0, %s.1, %s.2, %s.3, %s.4 = scan(%a, %b, %x, %x, %y) {body=graph @step(
              %a: f32[3], %b: f32[3], %x: f32[3], %z: f32[3], %y: f32[3]) -> (f32[3], f32[3], f32[3], f32[3], f32[3]) {
            %n = add(%a, %x) : f32[3]
            %m = mul(%b, %y) : f32[3]
            %o = add(%n, %z) : f32[3]
            return %n, %m, %o, %o, %m
          }, carries=2, sequences=3, length=4, reverse=false} : f32[3], f32[3], f32[4,3], f32[4,3], f32[4,3]
          return %s.0, %s.2, %s.3
        }
    """
    graph = parse_graph(text)
    before = copy(graph)
    result = PruneScans().run(graph)
    assert result.changed == 1
    (node,) = scans(result.graph)
    assert [v.name for v in node.operands] == ["a", "x"]
    assert [v.name for v in node.attrs["body"].inputs] == ["a", "x"]
    assert len(node.results) == 2 and node.attrs["carries"] == node.attrs["sequences"] == 1
    check_equal(before, result.graph)
    assert PruneScans().run(result.graph).changed == 0


def test_a_complete_scan_stays():
    check_pass(PruneScans(), print_of(STEP))


def test_gradients_that_nobody_wants_are_not_computed():
    graph = parse_graph(STEP)
    whole = optimize(vjp_graph(graph, graph.inputs))
    part = optimize(vjp_graph(graph, graph.inputs[:1]))
    (_, back), (_, less) = scans(whole), scans(part)
    assert back.attrs["carries"] == 2 and less.attrs["carries"] == 1
    assert len(less.results) < len(back.results)


def test_steps_are_optimised():
    text = STEP.replace("%p = mul(%c, %w)", "%q = mul(%c, f32(1.0)) : f32[3]\n    %p = mul(%q, %w)")
    result = OptimizeSteps((Canonicalize(),)).run(parse_graph(text))
    assert result.changed == 1 and result.graph == parse_graph(STEP)


def test_steps_are_optimised_by_the_costs_that_are_given():
    other = replace(DEFAULT, rewrites=replace(DEFAULT.rewrites, folded_bytes=1))
    step = Choosing()
    optimize(parse_graph(STEP), [OptimizeSteps((step,))], other)
    assert step.told == [other]


def print_of(text: str) -> str:
    return str(parse_graph(text))


INVARIANT = """
graph @f(%c: f32[3], %x: f32[4,3], %w: f32[3], %h: f16[3]) -> (f32[3]) {
  %s = scan(%c, %x, %w, %h) {body=graph @step(%c: f32[3], %x: f32[3], %w: f32[3], %h: f16[3]) -> (f32[3]) {
    %e = exp(%w) : f32[3]
    %d = mul(%e, f32(2.0)) : f32[3]
    %g = cast(%h) {dtype=f32} : f32[3]
    %k = mul(%d, %g) : f32[3]
    %p = mul(%c, %k) : f32[3]
    %n = add(%p, %x) : f32[3]
    return %n
  }, carries=1, sequences=1, length=4, reverse=false} : f32[3]
  return %s
}
"""


def test_what_all_steps_compute_alike_is_computed_once_unless_it_is_larger_than_what_it_is_made_of():
    graph = parse_graph(INVARIANT)
    before = copy(graph)
    result = HoistFromSteps().run(graph)
    assert result.changed == 2
    (scan,) = scans(result.graph)
    assert [n.op.name for n in scan.attrs["body"].nodes() if n.operands] == ["cast", "mul", "mul", "add"]
    assert [n.op.name for n in result.graph.nodes() if n.op.name in ("exp", "mul")] == ["exp", "mul"]
    check_equal(before, result.graph)
    assert HoistFromSteps().run(result.graph).changed == 0
