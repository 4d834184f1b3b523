"""Nested containers of tensors."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError
from graphc.tensors.structure import LEAF, flatten, names, replace, unflatten

Pair = namedtuple("Pair", "left right")
A, B, C = graphc.ones(1), graphc.zeros(2), graphc.tensor(3)
TREE = {"a": [A, 1, None], "b": Pair(B, OrderedDict(c=(C, "text")))}


def test_round_trip():
    leaves, structure = flatten(TREE)
    assert [leaf is t for leaf, t in zip(leaves, (A, B, C), strict=True)] == [True] * 3
    again = unflatten(structure, leaves)
    assert type(again["b"]) is Pair and type(again["b"].right) is OrderedDict
    assert again["a"] == [A, 1, None] and again["b"].right["c"] == (C, "text")
    assert names(structure, "x") == ["x.a.0", "x.b.left", "x.b.right.c.0"]
    assert flatten(A) == ([A], LEAF)


def test_structures_are_keys():
    one, two = flatten(TREE)[1], flatten({**TREE, "a": [B, 1, None]})[1]
    assert one == two and hash(one) == hash(two)
    for other in ([A, 2, None], [A, True, None], [A, 1.0, None], (A, 1, None), [A, 1, A]):
        assert flatten({**TREE, "a": other})[1] != one
    unhashable = {1, 2}
    assert flatten([unhashable])[1] == flatten([{1, 2}])[1]
    hash(flatten([unhashable])[1])


def test_arrays_become_tensors():
    leaves, structure = flatten([np.ones(2, np.float32)])
    assert leaves[0].tolist() == [1, 1] and structure == flatten([A])[1]


def test_values_that_cannot_be_compared():
    class Odd:
        def __eq__(self, other):
            raise TypeError

        __hash__ = object.__hash__

    odd = Odd()
    assert flatten([odd])[1] == flatten([odd])[1]
    assert flatten([odd])[1] != flatten([Odd()])[1]


def test_replace():
    assert replace({"a": A, "n": 2}, lambda t: t.tolist()) == {"a": [1.0], "n": 2}


def test_leaves_must_fit():
    with pytest.raises(ArgumentError, match="more leaves"):
        unflatten(LEAF, [A, B])
