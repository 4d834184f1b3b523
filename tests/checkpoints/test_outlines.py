"""Outlines of checkpoints of several processes become one, and parts of one are left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphc.checkpoints.outlines import children, merged, pruned, tensors_of
from graphc.checkpoints.tree import outline, rebuilt
from graphc.errors import DistributedError

ONE = np.float32(1)


def of(tree: Any) -> Any:
    return outline(tree)[1]


def test_entries_that_only_some_have_are_all_there():
    trees: list[Any] = [{"state": {0: {"m": ONE}}, "n": 3}, {"state": {1: {"m": ONE}}, "n": 3, "more": [1, (2,)]}]
    result = merged([(rank, of(tree)) for rank, tree in enumerate(trees)])
    tensors = {name: name for name in tensors_of(result)}
    assert rebuilt(result, tensors) == {
        "state": {0: {"m": "state/0/m"}, 1: {"m": "state/1/m"}},
        "n": 3,
        "more": [1, (2,)],
    }


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ({"a": {"n": 1}}, {"a": {"n": 2}}, "a/n is not the same on rank 0 and rank 1: 1, 2"),
        ({"a": [1, 2]}, {"a": [1]}, "a is not the same on rank 0 and rank 1: a list of 2, a list of 1"),
        ({"a": [1, 2]}, {"a": [1, 3]}, "a/1 is not the same"),
        ({"a": ONE}, {"a": 1}, "a is not the same on rank 0 and rank 1: a tensor, 1"),
        ({"a": True}, {"a": 1}, "a is not the same"),
        (1, "x", "the checkpoint is not the same"),
    ],
)
def test_a_difference_names_the_place(one: Any, other: Any, message: str):
    with pytest.raises(DistributedError, match=message):
        merged([(0, of(one)), (1, of(other))])


def test_what_is_no_number_is_the_same_everywhere():
    outline = merged([(rank, of({"loss": float("nan")})) for rank in range(2)])
    assert np.isnan(rebuilt(outline, {})["loss"])


def test_keys_keep_their_classes():
    result = merged([(0, of({1: "int", "1": "text"}))])
    assert rebuilt(result, {}) == {1: "int", "1": "text"}
    assert list(children(result)) == [1, "1"]


def test_what_is_not_wanted_is_left_out():
    part = of({"state": {0: ONE, 1: ONE}, "groups": [{"lr": 0.1}]})
    left = pruned(part, lambda path: path[:1] != ("state",) or len(path) < 2 or path[1] == 1)
    assert tensors_of(left) == ["state/1"]
    assert rebuilt(left, {"state/1": "here"}) == {"state": {1: "here"}, "groups": [{"lr": 0.1}]}
