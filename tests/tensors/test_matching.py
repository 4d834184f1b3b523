"""Structures that are compared by path."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pytest

import graphc as gc
from graphc.errors import ArgumentError, DTypeError, ShapeError
from graphc.tensors.matching import Sides, matched, matched_types, paths, types_of
from graphc.tensors.structure import flatten


@dataclass
class State:
    x: Any
    steps: int = 3


A, B = gc.ones(3), gc.zeros(2)
TREE = {"pos": (A, [B]), 1: State(A), "none": None}
CARRY = Sides("scan", "carry")


def test_paths():
    assert paths(flatten(TREE)[1], "carry") == ['carry["pos"][0]', 'carry["pos"][1][0]', "carry[1].x"]


def test_dictionaries_may_have_another_order():
    structure = flatten({"a": A, "b": {"c": B, "d": A}})[1]
    assert [t is x for t, x in zip(matched(structure, {"b": {"d": A, "c": B}, "a": A}, CARRY), (A, B, A), strict=True)]
    order = [t.tolist() for t in matched(structure, {"b": {"d": A * 2, "c": B}, "a": A}, CARRY)]
    assert order == [[1, 1, 1], [0, 0], [2, 2, 2]]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({**TREE, "pos": (A, [B, B])}, r'scan: carry\["pos"\]\[1\]: a list of 1 before the step and a list of 2 after'),
        ({**TREE, "pos": (A, B)}, r'carry\["pos"\]\[1\]: a list of 1 before the step and a tensor after'),
        ({**TREE, 1: State(A, 4)}, r"carry\[1\].steps: 3 before the step and 4 after"),
        ({**TREE, "none": A}, r'carry\["none"\]: None before the step and a tensor after'),
        ({**TREE, "more": A}, r'carry\["more"\]: missing before the step and a tensor after'),
        ({k: v for k, v in TREE.items() if k != 1}, r"carry\[1\]: a State before the step and missing after"),
        ([A], r"carry: a dict of 3 before the step and a list of 1 after"),
    ],
)
def test_other_structures(tree, message):
    with pytest.raises(ArgumentError, match=message):
        matched(flatten(TREE)[1], tree, CARRY)


def test_other_types():
    leaves, structure = flatten(TREE)
    with pytest.raises(ShapeError, match=r'carry\["pos"\]\[1\]\[0\]: shape \[2\] before the step and \[4\] after'):
        matched_types(structure, types_of(leaves), {**TREE, "pos": (A, [gc.ones(4)])}, CARRY)
    with pytest.raises(DTypeError, match=r"carry\[1\].x: f32 before the step and f64 after"):
        matched_types(structure, types_of(leaves), {**TREE, 1: State(A.double())}, CARRY)


def test_a_number_that_becomes_a_tensor_gets_a_remedy():
    with pytest.raises(ArgumentError, match=r"graphc.tensor\(0.0\)"):
        gc.scan(lambda total, x: (total + x, None), 0.0, A)


def test_default_dictionaries_keep_their_factory():
    tree = gc.map(lambda x: defaultdict(list, a=x), A)
    assert tree["b"] == [] and tree["a"].tolist() == [1, 1, 1]
