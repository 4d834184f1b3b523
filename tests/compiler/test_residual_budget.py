"""Budgets of residuals."""

import numpy as np
import pytest

from graphc.base.dtypes import float64
from graphc.codegen.machine.target import host_target
from graphc.compiler.memory_budget import Budget
from graphc.compiler.residual_budget import split_within
from graphc.errors import MemoryLimitError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.types import TensorType
from graphc.ops.autodiff import split_forward_backward, vjp_graph
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise.math import sin, tanh

_X = np.random.default_rng(0).standard_normal((16, 16)) / 4


def _joint():
    graph = Graph("chain")
    x = graph.add_input(TensorType(float64, (16, 16)), "x")
    with use(GraphDispatcher(graph)):
        value = x
        for _ in range(4):
            value = tanh(sin(matmul(value, x)))
        graph.set_outputs([value])
    return vjp_graph(graph, [x])


def _gradient(split):
    found = evaluate(split.forward, [_X])
    kept = [_X for _ in split.kept]
    return evaluate(split.backward, [*found[1:], *kept, np.ones((16, 16))])[0]


@pytest.mark.parametrize("share", [100, 70, 50, 30])
def test_the_two_parts_compute_the_same_from_less(share):
    joint = _joint()
    plain = split_forward_backward(joint, 1, 1)
    fitted = split_within(joint, 1, 1, Budget.parse(f"{share}%"), host_target())
    handed = sum(v.type.nbytes for v in fitted.split.forward.outputs[1:])
    assert handed <= share / 100 * sum(v.type.nbytes for v in plain.forward.outputs[1:])
    assert fitted.report.after == handed and fitted.is_optimized == (share < 100)
    assert np.allclose(_gradient(plain), _gradient(fitted.split), rtol=1e-12)


def test_what_cannot_be_met_is_an_error():
    graph = Graph("kept")
    state = graph.add_input(TensorType(float64, (16, 16)), "s", "state", "s")  # its content is another one later
    x = graph.add_input(TensorType(float64, (16, 16)), "x")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([tanh(matmul(x, state))])
    with pytest.raises(MemoryLimitError, match="the smallest split found takes 2048"):
        split_within(vjp_graph(graph, [x]), 2, 1, Budget.parse(1), host_target())
