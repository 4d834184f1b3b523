"""Results of functions are written to ``out=``."""

from __future__ import annotations

import pytest

import graphc
from graphc.errors import ArgumentError, DTypeError, GradientError, ShapeError


@pytest.mark.parametrize(
    "call",
    [
        lambda out: graphc.add(graphc.ones(2), 1, out=out),
        lambda out: graphc.matmul(graphc.ones(2, 2), graphc.ones(2), out=out),
        lambda out: graphc.full((2,), 2.0, out=out),
        lambda out: graphc.cat([graphc.full((1,), 2.0)] * 2, out=out),
        lambda out: graphc.arange(2, 3, 0.5, out=out).mul_(0).add_(2),
    ],
)
def test_out_gets_the_result_and_is_returned(call):
    out = graphc.zeros(2)
    assert call(out) is out and out.tolist() == [2.0, 2.0]


def test_several_results():
    values, indices = graphc.empty(1), graphc.empty(1, dtype=graphc.int64)
    found = graphc.max(graphc.tensor([[1.0, 3.0]]), 1, out=(values, indices))
    assert found.values is values and values.item() == 3 and indices.item() == 1
    with pytest.raises(ArgumentError, match="out= must be 2 tensors"):
        graphc.max(graphc.ones(1, 2), 1, out=values)


def test_an_empty_tensor_takes_the_shape():
    out = graphc.empty(0)
    graphc.mul(graphc.ones(2, 3), 2, out=out)
    assert out.shape == (2, 3)


def test_types_are_converted_upwards_only():
    assert graphc.add(graphc.tensor([1]), 1, out=graphc.zeros(1)).dtype is graphc.float32
    for size in (0, 1):
        with pytest.raises(DTypeError):
            graphc.add(graphc.ones(1), 1, out=graphc.zeros(size, dtype=graphc.int64))


def test_what_cannot_be_written_is_refused():
    with pytest.raises(ShapeError, match=r"out= has shape \[3\]"):
        graphc.add(graphc.ones(2), 1, out=graphc.ones(3))
    with pytest.raises(GradientError, match="lose its gradient"):
        graphc.add(graphc.ones(2, requires_grad=True), 1, out=graphc.ones(2))
    with pytest.raises(ArgumentError, match="out= must be a tensor"):
        graphc.add(graphc.ones(2), 1, out=[1])
    with graphc.no_grad():
        graphc.add(graphc.ones(2, requires_grad=True), 1, out=graphc.ones(2))


def test_it_is_traced():
    compiled = graphc.compile(lambda x: graphc.add(x, 1, out=graphc.empty(2)) * 2)
    assert compiled(graphc.ones(2)).tolist() == [4.0, 4.0]
