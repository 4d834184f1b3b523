"""Functions on tensors under the name of the package."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError
from graphc.tensors import functions


def test_methods_as_functions():
    x = graphc.tensor([[1.0, -2.0], [3.0, 4.0]])
    assert graphc.exp(x).equal(x.exp())
    assert graphc.sum(x, 1, keepdim=True).equal(x.sum(1, keepdim=True))
    assert graphc.max(x, dim=0).indices.tolist() == [1, 1]
    assert graphc.softmax(x, dim=-1).equal(x.softmax(-1))
    assert graphc.add(1.5, graphc.ones(1)).tolist() == [2.5]
    assert graphc.abs.__name__ == "abs" and "softmax" not in graphc.abs.__doc__
    with pytest.raises(ArgumentError, match="exp takes a tensor, got str"):
        graphc.exp("x")


def test_a_number_before_a_tensor_is_of_the_type_that_an_operator_gives_it():
    assert graphc.mul(0.1, graphc.ones(1, dtype=graphc.float64)).tolist() == [0.1]
    assert graphc.mul(0.5, graphc.tensor(1.0, dtype=graphc.float16)).dtype is graphc.float16
    assert graphc.add(2, graphc.tensor(1, dtype=graphc.int8)).dtype is graphc.int8
    assert graphc.add(300, graphc.ones(1, dtype=graphc.int8)).tolist() == [45]


def test_every_public_name_exists():
    for name in functions.__all__:
        assert callable(getattr(graphc, name)), name


def test_where():
    condition = graphc.tensor([True, False])
    assert graphc.where(condition, 1.0, 2.0).tolist() == [1, 2]
    assert graphc.where(condition, graphc.tensor([1, 2]), 0.5).dtype is graphc.float32
    assert graphc.where(condition)[0].tolist() == [0]


def test_broadcasting_and_grids():
    a, b = graphc.broadcast_tensors(graphc.ones(2, 1), graphc.ones(3))
    assert a.shape == b.shape == (2, 3)
    for indexing in ("ij", "xy"):
        ours = graphc.meshgrid(graphc.arange(2), graphc.arange(3), graphc.arange(4), indexing=indexing)
        theirs = np.meshgrid(np.arange(2), np.arange(3), np.arange(4), indexing=indexing)
        for x, y in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(x.numpy(), y)
    with pytest.raises(ArgumentError, match="'ij' or 'xy'"):
        graphc.meshgrid(graphc.arange(2), indexing="yx")


def test_names():
    assert graphc.typename(graphc.ones(1)) == "graphc.float32"
    assert graphc.typename(3) == "int"
    assert graphc.typename(ArgumentError("x")) == "graphc.errors.ArgumentError"
    assert graphc.numel(graphc.ones(2, 3)) == 6
    assert graphc.is_floating_point(graphc.ones(1))
