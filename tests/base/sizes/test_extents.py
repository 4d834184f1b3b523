"""Shapes as tuples that know how many elements they stand for."""

from __future__ import annotations

import copy
import pickle

import pytest

import graphc
from graphc.base.sizes.extents import SIZES, Size


def test_a_shape_is_a_tuple_and_more():
    shape = graphc.ones(2, 3, 4).shape
    assert isinstance(shape, graphc.Size) and isinstance(shape, tuple) and shape == (2, 3, 4)
    assert shape.numel() == 24 and shape[1:].numel() == 12 and (shape + shape[:1]).numel() == 48
    assert type(shape[0]) is int and type(graphc.ones(2, 3).size()[:1]) is graphc.Size
    assert str(shape) == "(2, 3, 4)" and graphc.ones(()).shape.numel() == 1


def test_what_is_kept_of_it_is_a_tuple():
    shape = graphc.ones(2, 3).shape
    assert type(pickle.loads(pickle.dumps(shape))) is tuple and copy.deepcopy(shape) == (2, 3)


def test_equal_shapes_are_one_object_until_there_are_too_many(monkeypatch):
    monkeypatch.setattr("graphc.base.sizes.extents._MOST", len(SIZES) + 2)
    assert type(SIZES[5, 7]) is Size and SIZES[5, 7] is SIZES[5, 7]
    for extent in range(3):
        assert SIZES[10**9, extent] == (10**9, extent)
    assert 0 < len(SIZES) < 3


@pytest.mark.parametrize("dims", [None, "auto"])
def test_traced_code_reads_shapes(dims):
    compiled = graphc.compile(lambda x: x.reshape(x.shape[0], -1) + graphc.zeros(x.shape[:1])[:, None], dims=dims)
    for count in (2, 3, 5):
        assert compiled(graphc.ones(count, 3, 2)).shape == (count, 6)


def test_traced_shapes_of_numbers_know_their_elements():
    compiled = graphc.compile(lambda x: x * x.shape.numel())
    assert compiled(graphc.ones(2, 3)).tolist() == [[6.0] * 3] * 2
