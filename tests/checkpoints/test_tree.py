"""Nested checkpoints: taken apart and put together they are what they were."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import graphc as gc
from graphc.checkpoints.tree import join, split
from graphc.errors import ArgumentError, ArtifactError


def test_flat_dictionaries_need_no_text():
    tensors, text = split({"a": gc.zeros(1), "b": np.zeros(2)})
    assert (list(tensors), text) == (["a", "b"], "")
    assert join(tensors, text) == tensors


def test_nesting_comes_back():
    a, b, c = gc.zeros(1), gc.ones(2), gc.tensor(3)
    tree = {"a": a, 0: [b, (1, 2.5, "x", None, True)], "0": {"b": c}, "inf": -math.inf, "empty": {}, "none": ()}
    tensors, text = split(tree)
    assert sorted(tensors) == ["0/0", "0/b", "a"]
    found = join(tensors, text)
    assert found == tree
    assert list(map(type, found)) == list(map(type, tree))
    assert isinstance(found[0][1], tuple)


def test_names_are_made_unique():
    tensors, text = split({"a/b": gc.zeros(1), "a": {"b": gc.ones(1)}})
    found = join(tensors, text)
    assert (found["a/b"].item(), found["a"]["b"].item()) == (0, 1)


@pytest.mark.parametrize(
    ("tree", "place"), [({"a": [object()]}, "a/0 is a object"), ({"a": {1.5: 2}}, "a has a key of class float")]
)
def test_other_values_are_named(tree, place):
    with pytest.raises(ArgumentError, match=place):
        split(tree)


def test_depth_is_limited():
    tree: object = 1
    for _ in range(100):
        tree = [tree]
    with pytest.raises(ArgumentError, match="nested more than"):
        split(tree)
    text = "1"
    for _ in range(100):
        text = '{"list": [' + text + "]}"
    with pytest.raises(ArtifactError, match="nested more than"):
        join({}, text)
    with pytest.raises(ArtifactError):
        join({}, "[" * 100_000)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "null",
        "{}",
        '{"tensor": "missing"}',
        '{"tensor": []}',
        '{"call": []}',
        '{"value": []}',
        '{"dict": [["float", "1", {"value": 1}]]}',
        '{"dict": [["int", "x", {"value": 1}]]}',
        '{"dict": [[1, 2]]}',
        '{"list": 3}',
        json.dumps({"value": 1, "list": []}),
    ],
)
def test_damaged_texts_are_refused(text):
    with pytest.raises(ArtifactError, match="description of the tree is damaged"):
        join({"a": gc.zeros(1)}, text)
