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
from graphc.passes.scans import HoistFromSteps, MergeScans, OptimizeSteps, PruneScans, ShareInvariantStacks
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


def test_an_invariant_that_becomes_a_carry_moves_too():
    graph = parse_graph("""
    graph @f(%c: f32[], %w: f32[]) -> (f32[], f32[4]) {
      %s.0, %s.1 = scan(%c, %w) {body=graph @step(%c: f32[], %w: f32[]) -> (f32[], f32[]) {
        %n = exp(%w) : f32[]
        return %n, %c
      }, carries=1, sequences=0, length=4, reverse=false} : f32[], f32[4]
      return %s.0, %s.1
    }""")
    before = copy(graph)
    result = HoistFromSteps().run(graph)
    assert result.changed == 1 and not any(n.operands for n in scans(result.graph)[0].attrs["body"].nodes())
    check_equal(before, result.graph)


KEPT = """
graph @f(%c: f32[2], %x: f32[4,2], %w: f32[6], %g: f32[2]) -> (f32[2], f32[2]) {
  %s.0, %s.1, %s.2 = scan(%c, %x, %w) {body=graph @step(
      %c: f32[2], %x: f32[2], %w: f32[6]) -> (f32[2], f32[2], f32[2]) {
    %v = slice(%w) {starts=[2], stops=[4], steps=[1]} : f32[2]
    %u = mul(%v, %v) : f32[2]
    %p = mul(%c, %u) : f32[2]
    %n = add(%p, %x) : f32[2]
    return %n, %u, %c
  }, carries=1, sequences=1, length=4, reverse=false} : f32[2], f32[4,2], f32[4,2]
  %b.0 = scan(%g, %s.1, %s.2) {body=graph @back(%g: f32[2], %u: f32[2], %c: f32[2]) -> (f32[2]) {
    %a = mul(%g, %u) : f32[2]
    %d = mul(%a, %c) : f32[2]
    return %d
  }, carries=1, sequences=2, length=4, reverse=true} : f32[2]
  return %s.0, %b.0
}
"""


def test_what_is_the_same_in_all_steps_is_not_stacked():
    graph = parse_graph(KEPT)
    before = copy(graph)
    result = ShareInvariantStacks().run(graph)
    assert result.changed == 2
    check_equal(before, result.graph)
    pruned = PruneScans().run(result.graph).graph
    check_equal(before, pruned)
    forward, backward = scans(pruned)
    assert [v.shape for v in forward.results] == [(2,), (4, 2)]
    assert backward.attrs["sequences"] == 1 and backward.operands[2].shape == (2,)
    assert ShareInvariantStacks().run(pruned).changed == 0
    varying = parse_graph(KEPT.replace("return %n, %u, %c", "return %n, %n, %c"))
    assert ShareInvariantStacks().run(varying).changed == 0
