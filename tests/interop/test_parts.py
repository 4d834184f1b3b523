"""Imported models as trees of modules: names, kinds, shared parts, hooks that cannot be called."""

from __future__ import annotations

import pytest

import graphc as gc
from graphc import errors, nn
from graphc.interop.parts import ImportedRoot, ImportedSubmodule, Member


def whole(*members: Member) -> ImportedRoot:
    result = ImportedRoot("Net")
    for member in members:
        result._add(member)
    return result


def test_members_lie_in_parts_by_their_paths():
    weight = nn.Parameter(gc.ones(2))
    result = whole(Member("body.fc.weight", weight, "param"), Member("mean", gc.zeros(1), "buffer"))
    assert result.get_parameter("body.fc.weight") is weight
    assert list(result.state_dict()) == ["mean", "body.fc.weight"]
    assert [name for name, _ in result.named_modules()] == ["", "body", "body.fc"]


def test_buffers_that_are_no_state_are_not_in_the_state():
    result = whole(Member("a.kept", gc.zeros(1), "buffer"), Member("a.left", gc.zeros(1), "transient"))
    assert list(result.state_dict()) == ["a.kept"] and set(result._tensors()) == {"a.kept", "a.left"}


def test_parts_have_the_names_of_their_kinds_and_may_be_shared():
    result = ImportedRoot("Net")
    result._put("block", "Block", None)
    result._put("again", "Block", "block")
    assert result.get_submodule("block") is result.get_submodule("again")
    assert (repr(result).splitlines()[0], repr(result.get_submodule("block"))) == ("Net(", "Block()")


def test_a_part_cannot_be_called():
    with pytest.raises(errors.UnsupportedError, match="Block is a submodule of an imported model"):
        ImportedSubmodule("Block")(1)


def test_hooks_of_parts_are_refused_those_of_the_whole_are_not():
    result = whole(Member("fc.weight", nn.Parameter(gc.ones(2)), "param"))
    result.register_forward_hook(lambda *a: None)
    result._check_hooks()
    result.get_submodule("fc").register_forward_hook(lambda *a: None)
    with pytest.raises(errors.UnsupportedError, match="hooks of fc"):
        result._check_hooks()


def test_the_training_flag_reaches_all_parts():
    result = whole(Member("a.b.weight", nn.Parameter(gc.ones(2)), "param"))
    result.train(False)
    assert [m.training for m in result.modules()] == [False, False, False]
