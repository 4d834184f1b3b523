"""Memory budgets of graphs."""

import numpy as np
import pytest

from graphc.base.dtypes import float64
from graphc.codegen.machine.target import host_target
from graphc.compiler.budget import Budget
from graphc.compiler.memory_budget import fit_memory
from graphc.compiler.stages import Stages
from graphc.errors import MemoryLimitError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.types import TensorType
from graphc.ops.autodiff import vjp_graph
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise.math import sin, tanh
from graphc.ops.reduction.reduce import sum as add_up


def _graph(layers=8, size=48):
    graph = Graph("chain")
    x = graph.add_input(TensorType(float64, (size, size)), "x")
    with use(GraphDispatcher(graph)):
        value = x
        for _ in range(layers):
            value = tanh(sin(matmul(value, x)))
        graph.set_outputs([add_up(value, axes=(0, 1))])
    return vjp_graph(graph, [x], [0], unit=True)


def _arena(graph):
    return Stages(graph, target=host_target()).scheduled.arena


@pytest.mark.parametrize("share", [85, 75, 60])
def test_the_plan_is_within_the_budget_and_computes_the_same(share):
    graph = _graph()
    fitted = fit_memory(graph, Budget.parse(f"{share}%"), host_target())
    assert _arena(fitted.graph) <= share / 100 * _arena(graph)
    assert fitted.report.before == _arena(graph) and fitted.report.after == _arena(fitted.graph)
    x = np.random.default_rng(0).standard_normal((48, 48)) / 7
    for a, b in zip(evaluate(graph, [x]), evaluate(fitted.graph, [x]), strict=True):
        assert np.allclose(a, b, rtol=1e-13)


def test_a_graph_that_fits_stays_the_one_that_was_given():
    graph = _graph()
    fitted = fit_memory(graph, Budget.parse(_arena(graph)), host_target())
    assert fitted.graph is graph and not fitted.report.again


def test_a_budget_that_cannot_be_met_is_an_error_that_says_what_can():
    graph = _graph()
    with pytest.raises(MemoryLimitError, match="the smallest plan found takes") as caught:
        fit_memory(graph, Budget.parse(1000), host_target())
    least = int(str(caught.value).split("found takes ")[1].split()[0])
    fitted = fit_memory(graph, Budget.parse(least), host_target())
    assert _arena(fitted.graph) <= least
