"""Prices: no op is forgotten, and what is dear is computed once for a row."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.dtypes import layout_of
from graphc.fusion.price import WEIGHTS, is_slow, weight
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph, Node
from graphc.ir.graph.interpret import copy
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import Let, walk
from graphc.ir.op import REGISTRY, Trait
from graphc.ir.types import TensorType
from graphc.lowering.program import lower_graph
from graphc.nn import functional as F
from graphc.passes.pipeline import optimize

ELEMENTWISE = [op for op in REGISTRY.values() if op.has(Trait.ELEMENTWISE) and op.lower is not None]


def sample_node(name: str) -> Node:
    """A node of the first sample of an op whose operands are of that type, or of the first one."""
    op = REGISTRY[name]
    assert op.samples is not None
    samples = op.samples()
    sample = next((s for s in samples if all(a.dtype == np.float32 for a in s.operands)), samples[0])
    graph = Graph("g")
    inputs = [graph.add_input(TensorType(layout_of(a.dtype), a.shape), f"x{i}") for i, a in enumerate(sample.operands)]
    return emit(graph, op, inputs, dict(sample.attrs))[0].node


def operations(node: Node) -> set[str]:
    """What the kernel of a graph of one node consists of."""
    graph = Graph("g")
    inputs = [graph.add_input(v.type, f"x{i}") for i, v in enumerate(node.operands)]
    graph.set_outputs(emit(graph, node.op, inputs, node.attrs))
    return {s.op for k in lower_graph(graph).kernels for s, _ in walk(k.body) if isinstance(s, Let)}


@pytest.mark.parametrize("name", sorted(op.name for op in ELEMENTWISE))
def test_an_op_costs_as_much_as_what_its_kernel_consists_of(name: str):
    node = sample_node(name)
    dear = [WEIGHTS[o] for o in operations(node) if o in WEIGHTS]
    assert name in WEIGHTS or weight(node) >= max(dear, default=1)
    assert is_slow(node) or not dear


def test_every_operation_that_becomes_a_polynomial_has_a_price():
    assert {name for name, op in SCALAR_OPS.items() if op.transcendental} <= WEIGHTS.keys()


@pytest.mark.parametrize("function", [gc.sigmoid, F.silu, F.softplus, gc.exp, gc.asinh])
def test_a_norm_of_a_dear_value_computes_it_once_for_each_element(function):
    graph = optimize(copy(gc.trace(lambda x: F.layer_norm(function(x), (64,)), gc.rand(16, 64))))
    (kernel,) = lower_graph(graph).kernels
    dear = [s.op for s, loops in walk(kernel.body) if isinstance(s, Let) and s.op in WEIGHTS and len(loops) > 1]
    assert len(dear) == len(set(dear))
