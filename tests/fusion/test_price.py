"""Prices: no op is forgotten, and what is dear is computed once for a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import graphc as gc
from graphc.base.dtypes import float32, layout_of
from graphc.fusion.price import is_slow, weight
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph, Node
from graphc.ir.graph.interpret import copy
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import Let, walk
from graphc.ir.op import REGISTRY, OpDef, Sample, Trait
from graphc.ir.types import TensorType
from graphc.lowering.program import lower_graph
from graphc.nn import functional as F
from graphc.passes.pipeline import optimize
from tests.codegen.lanes import count_operations, expanded, operation

ELEMENTWISE = [op for op in REGISTRY.values() if op.has(Trait.ELEMENTWISE) and op.lower is not None]
DIVIDERS = {"div", "floor_div", "hypot", "reciprocal", "rsqrt", "sqrt"}
"""Ops whose kernels divide or take a root: slow, without a cost of their own."""
READING = [
    op for op in REGISTRY.values() if op.lower is not None and op.samples is not None and not op.has(Trait.ELEMENTWISE)
]


def samples_of(op: OpDef) -> Sequence[Sample]:
    assert op.samples is not None
    return op.samples()


def sample_node(name: str) -> Node:
    """A node of the first sample of an op whose operands are of that type, or of the first one."""
    op = REGISTRY[name]
    samples = samples_of(op)
    sample = next((s for s in samples if all(a.dtype == np.float32 for a in s.operands)), samples[0])
    return node_of(op, sample)


def node_of(op: OpDef, sample: Sample) -> Node:
    """A node of arguments like those of a sample."""
    graph = Graph("g")
    inputs = [graph.add_input(TensorType(layout_of(a.dtype), a.shape), f"x{i}") for i, a in enumerate(sample.operands)]
    return emit(graph, op, inputs, dict(sample.attrs))[0].node


def operations(node: Node) -> list[str]:
    """Return the operations in the kernel of a graph of one node."""
    graph = Graph("g")
    inputs = [graph.add_input(v.type, f"x{i}") for i, v in enumerate(node.operands)]
    graph.set_outputs(emit(graph, node.op, inputs, node.attrs))
    return [s.op for k in lower_graph(graph).kernels for s, _ in walk(k.body) if isinstance(s, Let)]


@pytest.mark.parametrize("name", sorted(op.name for op in ELEMENTWISE))
def test_an_op_costs_as_much_as_what_its_kernel_consists_of(name: str):
    node, op = sample_node(name), REGISTRY[name]
    dear = [SCALAR_OPS[o].cost for o in operations(node) if SCALAR_OPS[o].cost]
    assert weight(node) == (op.cost or max(1, sum(dear))) >= sum(dear)
    assert is_slow(node) == bool(op.cost or dear or name in DIVIDERS)


@pytest.mark.parametrize("name", sorted(op.name for op in REGISTRY.values() if op.cost is not None))
def test_a_price_that_is_given_is_near_the_number_of_operations(name: str):
    """A price by hand is for what its rule's operations do not tell: many plain ones."""
    op, node = REGISTRY[name], sample_node(name)
    count = sum(max(1, SCALAR_OPS[o].cost) for o in operations(node))
    assert op.cost is not None and count / 2 <= op.cost <= count * 2, count


@pytest.mark.parametrize("name", sorted(name for name, op in SCALAR_OPS.items() if op.cost))
def test_the_cost_of_an_operation_is_near_the_length_of_its_expansion(name: str):
    count = count_operations(expanded(operation(name), [float32] * SCALAR_OPS[name].arity, float32, 1, 16))
    assert count / 2 <= SCALAR_OPS[name].cost <= count * 2, count


def test_what_reads_where_data_says_is_slow_and_what_reads_in_order_is_not():
    slow = {op.name for op in READING if any(is_slow(node_of(op, s)) for s in samples_of(op))}
    assert slow == {"gather", "max_pool_pick", "random_bits"}


@pytest.mark.parametrize("function", [gc.sigmoid, F.silu, F.softplus, gc.exp, gc.asinh])
def test_a_norm_of_a_dear_value_computes_it_once_for_each_element(function):
    graph = optimize(copy(gc.trace(lambda x: F.layer_norm(function(x), (64,)), gc.rand(16, 64))))
    (kernel,) = lower_graph(graph).kernels
    dear = [s.op for s, loops in walk(kernel.body) if isinstance(s, Let) and SCALAR_OPS[s.op].cost and len(loops) > 1]
    assert len(dear) == len(set(dear))
