"""The dispatcher that applies ops to pairs of real values."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import complex64, float32
from graphc.base.errors import UnsupportedError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.op import REGISTRY
from graphc.ir.types import TensorType
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import apply, use
from graphc.ops.movement.shape import reshape
from graphc.ops.pointwise.elementwise import add, mul
from graphc.ops.pointwise.parts_of_complex import Complex, PartsDispatcher, conjugate


def pair(graph: Graph, *shape: int) -> Complex:
    return Complex(*(graph.add_input(TensorType(float32, shape), name) for name in ("re", "im")))


def test_a_pair_has_the_type_of_complex_numbers():
    x = pair(Graph("g"), 2, 3)
    assert (x.dtype, x.shape, str(x.type)) == (complex64, (2, 3), "c64[2,3]")


def test_ops_on_pairs_are_ops_on_their_parts():
    graph = Graph("g")
    x = pair(graph, 2, 2)
    with use(PartsDispatcher(graph)):
        y = matmul(reshape(add(mul(x, 2j), 1), shape=(2, 2)), conjugate(x))
    graph.set_outputs([y.real, y.imag])
    re, im = (np.arange(4, dtype=np.float32).reshape(2, 2) + k for k in (0, 1))
    z = re + 1j * im
    real, imag = evaluate(graph, [re, im])
    np.testing.assert_array_equal(real + 1j * imag, (z * 2j + 1) @ z.conj())
    assert all(v.dtype is float32 for node in graph.nodes() for v in node.results)


def test_constants_are_pairs_and_real_values_stay():
    graph = Graph("g")
    with use(PartsDispatcher(graph)) as made:
        found = made.constant(np.array([1 + 2j, 3j], np.complex64))
        real = made.constant(np.array([1.0], np.float32))
    assert isinstance(found, Complex) and found.imag.node.attrs["value"].tolist() == [2.0, 3.0]
    assert real.dtype is float32


def test_an_op_without_a_rule_is_named():
    graph = Graph("g")
    x = pair(graph, 2)
    with use(PartsDispatcher(graph)), pytest.raises(UnsupportedError, match=r"rank of complex numbers \(c64\[2\]\)"):
        apply(REGISTRY["rank"], (x,), {"axis": 0})


def test_parts_of_two_shapes_broadcast():
    graph = Graph("g")
    re, im = graph.add_input(TensorType(float32, (2, 1)), "re"), graph.add_input(TensorType(float32, (3,)), "im")
    with use(PartsDispatcher(graph)):
        z = Complex(re, im)
    assert z.shape == z.real.shape == z.imag.shape == (2, 3)
