"""Random graphs mean the same to the graph interpreter, the kernel interpreter, and native code of every target."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from graphc.fusion.layout import LAYOUTS
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import copy
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import collect_data, print_graph
from graphc.ir.graph.verify import verify_graph
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.verify import verify_program
from graphc.lowering.program import lower_layouts
from graphc.passes.pipeline import optimize
from tests.end_to_end.random_graphs import random_graphs
from tests.native import (
    TARGETS,
    Tolerance,
    check_results,
    decomposed,
    run_graph,
    run_lowered,
    run_native,
    run_scheduled,
    target_or_skip,
)

TOLERANCE = Tolerance(1e-4, 2e-5)
quick = settings(
    max_examples=25,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)


@pytest.fixture(autouse=True)
def numbers_may_overflow():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@quick
@given(random_graphs())
def test_lowered(case: tuple[Graph, list[np.ndarray]]):
    graph, arguments = case
    check_results(run_lowered(graph, arguments), run_graph(graph, arguments), TOLERANCE)


@pytest.mark.parametrize("target", TARGETS)
def test_scheduled_and_native(target: str):
    machine = target_or_skip(target)

    @quick
    @given(random_graphs())
    def check(case: tuple[Graph, list[np.ndarray]]) -> None:
        graph, arguments = case
        expected = run_graph(graph, arguments)
        check_results(run_scheduled(graph, arguments, machine), expected, TOLERANCE, "scheduled")
        check_results(run_native(graph, arguments, machine), expected, TOLERANCE, "native")

    check()


@quick
@given(random_graphs())
def test_optimized(case: tuple[Graph, list[np.ndarray]]):
    graph, arguments = case
    expected = run_graph(graph, arguments)
    better = optimize(copy(graph))
    verify_graph(better)
    check_results(run_graph(better, arguments), expected, TOLERANCE, "optimized")
    check_results(run_native(better, arguments, target_or_skip("host")), expected, TOLERANCE, "native")


@quick
@given(random_graphs())
def test_layouts(case: tuple[Graph, list[np.ndarray]]):
    graph, arguments = case
    expected, _ = run_graph(graph, arguments)
    for program in lower_layouts(decomposed(graph), LAYOUTS[1:]):
        verify_program(program)
        TOLERANCE.check(run_program(program, [a.copy() for a in arguments]), expected)


@quick
@given(random_graphs())
def test_text(case: tuple[Graph, list[np.ndarray]]):
    graph, _ = case
    verify_graph(graph)
    assert parse_graph(print_graph(graph), collect_data(graph)) == graph
