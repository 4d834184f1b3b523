"""Checks of a compile: what is right passes, and a fault planted in any stage is found and named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphc.base.pass_runner import PassRun
from graphc.checks import check
from graphc.checks.check import check_graph, check_narrow, statements
from graphc.codegen.llvm.module import LlvmModule
from graphc.compiler import stages
from graphc.compiler.freeze import graph_arguments
from graphc.compiler.stages import Stages
from graphc.errors import ArgumentError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.statements import Let, Loop, Program, Stmt
from graphc.ir.op import REGISTRY
from tests.compiler.graphs import COUNTER, MLP, arguments, counter, mlp, weights


@pytest.mark.parametrize("make", [mlp, counter])
def test_what_is_right_passes(make):
    graph = make()
    arrays = arguments(graph)
    before = [a.copy() for a in arrays]
    report = check_graph(graph, arrays)
    assert report.good
    assert [s.stage for s in report.stages] == ["optimized", "lowered", "scheduled", "native"]
    assert all(s.difference.ratio < 1 and not s.skipped for s in report.stages)
    assert str(report).count("ok ") == 4
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_large_programs_skip_the_kernel_interpreter(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(check, "KERNEL_LIMIT", 10)
    graph = mlp()
    report = check_graph(graph, arguments(graph))
    assert report.good
    assert [bool(s.skipped) for s in report.stages] == [False, True, True, False]
    assert "at most 10 are interpreted" in str(report)


def test_a_wrong_pass_is_found_and_the_node_named(monkeypatch: pytest.MonkeyPatch):
    def wrong(graph: Graph, *rest: Any) -> tuple[Graph, list[PassRun]]:
        graph, runs = run_passes(graph, *rest)
        for node in graph.nodes():
            if node.op.name == "maximum":
                node.op = REGISTRY["minimum"]
        return graph, runs

    run_passes = stages.run_passes
    monkeypatch.setattr(stages, "run_passes", wrong)
    graph = mlp()
    report = check_graph(graph, arguments(graph))
    assert not report.good
    bad = report.stages[0]
    assert not bad.good and bad.stage == "optimized"
    assert "where  %y = minimum(%h1, f32(0.0))" in bad.bad and "model.py:13" in bad.bad
    assert "optimized  BAD max absolute" in str(report)


def test_a_wrong_lowering_is_found_and_the_node_named(monkeypatch: pytest.MonkeyPatch):
    def wrong_statement(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Loop):
            return replace(stmt, body=tuple(map(wrong_statement, stmt.body)))
        return replace(stmt, op="min") if isinstance(stmt, Let) and stmt.op == "max" else stmt

    def wrong(graph: Graph, **options: Any) -> Program:
        program = lower(graph, **options)
        kernels = tuple(replace(k, body=tuple(map(wrong_statement, k.body))) for k in program.kernels)
        return replace(program, kernels=kernels)

    lower = stages.lower_graph
    monkeypatch.setattr(stages, "lower_graph", wrong)
    graph = mlp()
    report = check_graph(graph, arguments(graph))
    assert [s.good for s in report.stages] == [True, False, False, False]
    for stage in report.stages[1:]:
        assert "where  %y = maximum(%h1, f32(0.0))" in stage.bad


def test_a_fault_of_the_emitter_alone_is_found(monkeypatch: pytest.MonkeyPatch):
    emit = stages.emit_module
    monkeypatch.setattr(stages, "emit_module", lambda *a: LlvmModule((emit(*a).text.replace("fadd ", "fsub "),)))
    graph = counter()
    report = check_graph(graph, arguments(graph))
    assert [s.good for s in report.stages] == [True, True, True, False]
    assert "where  %a = add(%n, %x)" in report.stages[3].bad


def test_tolerances_are_the_callers():
    graph = mlp()
    arrays = arguments(graph)
    assert not check_graph(graph, arrays, rtol=0, atol=1e-30).good
    assert check_graph(graph, arrays, rtol=1e-3, atol=0).good


def test_arguments_must_fit():
    graph = mlp()
    arrays = arguments(graph)
    with pytest.raises(ArgumentError, match=r"@mlp takes f32\[4,17\]"):
        check_graph(graph, arrays[:2])
    with pytest.raises(ArgumentError):
        check_graph(graph, [a.astype(np.float64) for a in arrays])


def test_statements_grow_with_the_loops():
    program = Stages(counter()).lowered
    assert 3 <= statements(program) < 100
    assert statements(Stages(mlp()).lowered) > 4 * 32 * 17


def test_narrow_weights():
    graph = parse_graph(MLP.replace("f32[32,17]", "f32[32,170]").replace("f32[4,17]", "f32[4,170]"))
    arrays = arguments(graph)
    state = weights(graph, arrays)
    assert all(a is b for a, b in zip(graph_arguments(graph, state, arrays[:1]), arrays, strict=True))
    report = check_narrow(graph, state, arrays[:1], "int8")
    found = report.precision
    assert report.good and found is not None and (found.weights, found.saved) == (1, 32 * 170 * 3 - 32 * 4)
    assert found.max_absolute > 0 and 0 < found.of_largest < 0.05
    head, row = str(found).splitlines()
    assert str(report).endswith(str(found)) and head.startswith("int8       1 weights, 16,192 bytes less")
    assert [layer.stored for layer in found.layers] == ["int8"] and 30 < found.layers[0].snr < 60
    assert row == f"  {found.layers[0].name}  int8    {found.layers[0].snr:.1f} dB"


def test_narrow_weights_beside_written_states():
    graph = parse_graph(COUNTER)
    arrays = arguments(graph)
    report = check_narrow(graph, weights(graph, arrays), arrays[:1], "f16")
    assert report.good and report.precision is not None
    assert (report.precision.weights, report.precision.max_absolute) == (0, 0.0)
