"""The pass that reads numbers from the bytes of codes: where it does, and equal numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from graphc.base.dtypes import float32, int8, uint8
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.graph.interpret import copy, evaluate
from graphc.ir.types import TensorType
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise import elementwise as e
from graphc.ops.pointwise.quantization import quantize_linear
from graphc.ops.reduction import reduce
from graphc.passes.read_codes import ReadCodes

CODES = {"scale": 0.25, "low": -100.0, "high": 155.0}


def numbers(x: Value, **attrs: float) -> Value:
    return e.mul(quantize_linear(x, **CODES | attrs, zero=0.0, dtype=float32), 0.25)


def one_reader(x: Value) -> list[Value]:
    return [e.add(numbers(x), 1.0)]


def elementwise_readers(x: Value) -> list[Value]:
    y = numbers(x)
    return [e.mul(e.add(y, 1.0), y)]


def bytes_beside(x: Value) -> list[Value]:
    return [numbers(x), quantize_linear(x, **CODES, zero=100.0, dtype=uint8)]


def signed_bytes_beside(x: Value) -> list[Value]:
    return [numbers(x), quantize_linear(x, **CODES, zero=-28.0, dtype=int8)]


def a_sum_beside(x: Value) -> list[Value]:
    y = numbers(x)
    return [e.add(y, 1.0), reduce.sum(y, axes=(1,))]


def fewer_codes(x: Value) -> list[Value]:
    y = numbers(x, high=10.0)
    return [e.add(y, 1.0), reduce.sum(y, axes=(1,))]


@pytest.mark.parametrize(
    ("build", "count"),
    [
        (one_reader, 0),
        (elementwise_readers, 0),
        (bytes_beside, 1),
        (signed_bytes_beside, 1),
        (a_sum_beside, 1),
        (fewer_codes, 0),
    ],
)
def test_numbers_come_from_bytes_that_are_in_memory(build: Callable[[Value], list[Value]], count: int):
    graph = Graph("g")
    x = graph.add_input(TensorType(float32, (3, 40)), "x")
    with use(GraphDispatcher(graph)):
        graph.set_outputs(build(x))
    changed = copy(graph)
    assert ReadCodes().run(changed).changed == count
    assert any(node.op.name == "cast" for node in changed.nodes()) == bool(count)
    data = np.random.default_rng(0).standard_normal((3, 40), np.float32) * 30
    for got, expected in zip(evaluate(changed, [data]), evaluate(graph, [data]), strict=True):
        assert np.array_equal(got, expected)
