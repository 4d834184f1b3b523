"""Programs after each pass: all in order, with equal meaning; the last one where a pass fails."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.checks.pass_points import after_graph_pass, evaluated, program_runner, program_stops, run_native
from graphc.codegen.machine.target import host_target
from graphc.codegen.schedule.passes import SplitReductions
from graphc.codegen.schedule.pipeline import PIPELINE
from graphc.codegen.schedule.steps import STEPS
from graphc.compiler.stages import Stages
from graphc.ir.graph.parse import parse_graph
from graphc.passes.pipeline import PIPELINE as GRAPH_PASSES
from tests.compiler.graphs import arguments, counter, mlp

REDUNDANT = """graph @redundant(%x: f32[3]) -> (f32[3]) {
  %a = exp(%x) : f32[3]
  %b = exp(%x) : f32[3]
  %unread = neg(%x) : f32[3]
  %c = neg(%b) : f32[3]
  %d = neg(%c) : f32[3]
  %y = add(%a, %d) : f32[3]
  return %y
}"""
"""One op twice, one that nothing reads, and two that cancel each other."""


@pytest.mark.parametrize("make", [mlp, counter])
def test_every_program_means_what_the_graph_does(make):
    graph = make()
    given = arguments(graph)
    expected = evaluated(graph, given)
    stages = Stages(graph, passes=())
    stops = list(program_stops(stages))
    names = [stop.point.name for stop in stops if "/" not in stop.point.name]
    assert names == ["lowering", *(p.name for p in PIPELINE)]
    assert [s.point.name for s in stops if "/" in s.point.name] == [f"nests/{s.name}" for s in STEPS]
    run = program_runner(stages, {})
    for stop in stops:
        assert stop.program is not None
        found = run(stop.program, given)
        for a, b in zip(found[0], expected[0], strict=True):
            np.testing.assert_allclose(a, b, 1e-4, 1e-5)
    native = run_native(Stages(graph, passes=()), given)
    for path, array in expected[1].items():
        np.testing.assert_allclose(native[1][path], array, 1e-5)


def test_the_last_stop_is_that_of_a_pass_that_fails(monkeypatch: pytest.MonkeyPatch):
    def fails(*_: object) -> None:
        raise KeyError("gone")

    monkeypatch.setattr(SplitReductions, "run", fails)
    *before, last = program_stops(Stages(mlp(), passes=()))
    assert all(stop.program is not None for stop in before)
    assert (last.point.name, last.program, last.text) == ("split-reductions", None, "KeyError: 'gone'")


def test_a_graph_pass_leaves_its_operand_and_counts_its_changes():
    graph = parse_graph(REDUNDANT)
    text = str(graph)
    changing = set()
    for step in GRAPH_PASSES:
        result, changed = after_graph_pass(step, graph, host_target())
        assert result is not graph and str(graph) == text
        assert (changed == 0) == (str(result) == text), step.name
        if changed:
            changing.add(step.name)
    assert changing == {"canonicalize", "cse", "dce"}
