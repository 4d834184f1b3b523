"""Tests of the matrix product: every transposition and broadcast against numpy, gradients by adjointness."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from graphc.base.dtypes import dtype_of
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.op import REGISTRY, Trait
from graphc.ir.types import TensorType
from graphc.ops import registry
from graphc.ops.contraction import matrix_product, nibble_product
from graphc.ops.dispatch import GraphDispatcher, use

OP = REGISTRY[matrix_product.matmul.op.name]
BATCHES = [((), ()), ((3,), ()), ((2, 3), ()), ((), (4,)), ((2, 1), (3,)), ((1,), (1,))]
CASES = list(itertools.product(BATCHES, (False, True), (False, True)))


def normal(*dims):
    return np.random.default_rng(sum(dims)).standard_normal(dims)


@pytest.mark.parametrize("batches,ta,tb", CASES)
def test_value_and_gradients(batches, ta, tb):
    a = normal(*batches[0], *((5, 4) if ta else (4, 5)))
    b = normal(*batches[1], *((6, 5) if tb else (5, 6)))
    attrs = {"transpose_a": ta, "transpose_b": tb}
    result = OP.evaluate((a, b), attrs)[0]
    subscripts = f"...{'ki' if ta else 'ik'},...{'jk' if tb else 'kj'}->...ij"
    np.testing.assert_allclose(result, np.einsum(subscripts, a, b))
    g = normal(*result.shape)
    arrays = [g, result, a, b]
    for rule, operand in zip(OP.vjp, (a, b), strict=True):
        graph = Graph()
        values = [graph.add_input(TensorType(dtype_of(v.dtype), v.shape), "x") for v in arrays]
        with use(GraphDispatcher(graph)):
            graph.set_outputs([rule(*values, **attrs)])
        gradient = evaluate(graph, arrays)[0]
        assert np.broadcast_shapes(gradient.shape, operand.shape) == gradient.shape
        np.testing.assert_allclose(np.sum(gradient * operand), np.vdot(g, result))


def test_gradient_of_shared_matrix_is_one_product():
    graph = Graph()
    a = graph.add_input(TensorType(matrix_product.float32, (8, 3, 4)), "a")
    b = graph.add_input(TensorType(matrix_product.float32, (4, 5)), "b")
    g = graph.add_input(TensorType(matrix_product.float32, (8, 3, 5)), "g")
    with use(GraphDispatcher(graph)):
        gradient = OP.vjp[1](g, None, a, b, transpose_a=False, transpose_b=False)
    assert gradient.shape == (4, 5)


assert registry.FAMILIES
PRODUCTS = [op for op in REGISTRY.values() if op.has(Trait.CONTRACTION)]


ONES = {
    "quad_matmul": (0x01010101, 0x01010101),
    "quad_conv": (0x01010101, 0x01010101),
    "pair_matmul": (0x00010001, 0x00010001),
    "pair_conv": (0x00010001, 0x00010001),
    "nibble_matmul": (1, 0x11111111, 1),
    "group_matmul": (1, 1, 1),
    "nibble_quad_matmul": (0x01010101, -8 * nibble_product.GROUP, 0x11111111, 1),
}
"""What operands of words are filled with so that all factors are 1: steps multiplied by quads are 8 larger, for which
the start makes up."""


@pytest.mark.parametrize("op", PRODUCTS, ids=lambda op: op.name)
def test_every_product_says_how_many_multiply_adds_it_takes(op):
    """With operands of ones, each multiply-add adds 1 to the sum of the result; padding adds nothing."""
    for sample in op.samples():
        attrs = {**op.normalize(sample.attrs), **({"zero": 0.0} if "zero" in sample.attrs else {})}
        ones = ONES.get(op.name, (1,) * len(sample.operands))
        arrays = [np.full_like(a, one) for a, one in zip(sample.operands, ones, strict=True)]
        types = tuple(TensorType(dtype_of(a.dtype), a.shape) for a in arrays)
        found = op.multiply_adds(types, op.result_types(types, attrs), attrs)
        added = op.evaluate(arrays, attrs)[0].sum(dtype=np.float64)
        assert added <= found if any(map(any, attrs.get("padding", ()))) else added == found


@pytest.mark.parametrize("batches,ta,tb", CASES)
def test_a_sum_of_one_product_is_an_elementwise_product(batches, ta, tb):
    a = normal(*batches[0], *((1, 4) if ta else (4, 1)))
    b = normal(*batches[1], *((6, 1) if tb else (1, 6)))
    a[..., 0, 0], b[..., 0, 0] = -0.0, 1.0
    attrs = {"transpose_a": ta, "transpose_b": tb}
    graph = Graph()
    values = [graph.add_input(TensorType(dtype_of(v.dtype), v.shape), "x") for v in (a, b)]
    with use(GraphDispatcher(graph)):
        graph.set_outputs([OP.decompose(*values, **attrs)])
    (found,), (expected,) = evaluate(graph, [a, b]), OP.evaluate((a, b), attrs)
    np.testing.assert_array_equal(found, expected)
    assert not np.signbit(found[..., 0, 0]).any()
    assert OP.decompose(normal(4, 2), normal(2, 6), transpose_a=False, transpose_b=False) is None
