"""Nested arguments: PyTorch's texts become structures, and what they cannot be is refused."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

import pytest

from graphc.errors import ArtifactError, GraphcError, UnsupportedError
from graphc.interop.pt2.trees import read_tree
from graphc.tensors.structure import LEAF, Structure, unflatten
from tests.interop.pt2.kept import field

LEAF_TREE = {"type": None, "context": None, "children_spec": []}


def tree(kind: str, context: Any, *children: Any) -> dict[str, Any]:
    return {"type": kind, "context": context, "children_spec": list(children) or [LEAF_TREE, LEAF_TREE]}


def read(value: Any, records: Any = None, protocol: int = 1) -> Structure:
    return read_tree(field(json.dumps([protocol, value])), records or {})


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        (LEAF_TREE, 1),
        (tree("builtins.tuple", "null"), (1, 2)),
        (tree("builtins.list", "null", LEAF_TREE, tree("builtins.tuple", "null")), [1, (2, 3)]),
        (tree("builtins.dict", '["b", "a"]'), {"b": 1, "a": 2}),
        (tree("builtins.dict", "[0, true]"), {0: 1, True: 2}),
        (tree("collections.OrderedDict", '["b", "a"]'), OrderedDict(b=1, a=2)),
        (tree("some.library.Output", '["loss", "logits"]'), {"loss": 1, "logits": 2}),
        (tree("some.library.Output", '[["loss", "logits"], null]'), {"loss": 1, "logits": 2}),
    ],
)
def test_values_are_nested_as_the_text_says(spec: Any, found: Any):
    leaves = json.dumps(spec).count('"type": null')
    result = unflatten(read(spec), list(range(1, leaves + 1)))
    assert result == found and type(result) is type(found)


def test_named_tuples_have_the_fields_that_the_file_names():
    found = unflatten(read(tree("collections.namedtuple", "x.Pair"), {"x.Pair": ("low", "high")}), [1, 2])
    assert (type(found).__name__, found.low, found.high) == ("Pair", 1, 2)


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        (tree("builtins.dict", '["a"]'), ArtifactError),
        (tree("builtins.dict", '["a", "a"]'), ArtifactError),
        (tree("builtins.dict", "[[1], 2]"), UnsupportedError),
        (tree("builtins.dict", "{"), ArtifactError),
        (tree("builtins.dict", None), UnsupportedError),
        (tree("collections.namedtuple", "x.Other"), UnsupportedError),
        (tree("collections.namedtuple", "x.Bad"), ArtifactError),
        (tree("some.library.Output", '{"a": 1}'), UnsupportedError),
        (tree("some.library.Output", "3"), UnsupportedError),
        ({**LEAF_TREE, "children_spec": [LEAF_TREE]}, ArtifactError),
        ({"type": 3, "context": None, "children_spec": []}, ArtifactError),
        ([], ArtifactError),
    ],
)
def test_wrong_texts_are_refused(spec: Any, kind: type[GraphcError]):
    with pytest.raises(kind):
        read(spec, {"x.Bad": ("a", "import")})


def test_other_protocols_and_deep_nesting_are_refused():
    with pytest.raises(UnsupportedError, match="newer"):
        read(LEAF_TREE, protocol=2)
    deep: Any = LEAF_TREE
    for _ in range(100):
        deep = tree("builtins.tuple", "null", deep)
    with pytest.raises(UnsupportedError, match="64 levels deep"):
        read(deep)
    assert read(LEAF_TREE) is LEAF
