"""Iterators over modules, members by dotted name, and switches."""

from __future__ import annotations

import pytest

import graphc
from graphc import nn
from graphc.errors import MemberError


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.register_buffer("count", graphc.zeros(1))
        self.again = self.fc


def net() -> nn.Module:
    made = nn.Sequential(Block(), nn.ReLU(), Block())
    made.scale = nn.Parameter(graphc.ones(1))
    return made


def test_parents_come_first():
    assert [name for name, _ in net().named_modules()] == ["", "0", "0.fc", "1", "2", "2.fc"]
    assert [name for name, _ in net().named_modules(prefix="net")][:2] == ["net", "net.0"]


def test_duplicates():
    root = net()
    names = [name for name, _ in root.named_modules(remove_duplicate=False)]
    assert names == ["", "0", "0.fc", "0.again", "1", "2", "2.fc", "2.again"]
    assert len(list(root.modules())) == 6
    parameters = [name for name, _ in root.named_parameters(remove_duplicate=False)]
    assert parameters.count("0.again.weight") == 1
    assert [name for name, _ in root.named_parameters()] == [
        "scale",
        "0.fc.weight",
        "0.fc.bias",
        "2.fc.weight",
        "2.fc.bias",
    ]


def test_a_module_in_two_places_is_yielded_once():
    shared = nn.ReLU()
    root = nn.Sequential(shared, shared)
    assert len(list(root.children())) == 1
    assert [name for name, _ in root.named_children()] == ["0"]
    memo = {shared}
    assert [name for name, _ in root.named_modules(memo)] == [""]


def test_tied_parameters_are_yielded_once():
    root = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    root[1].weight = root[0].weight
    assert len(list(root.parameters())) == 1
    assert list(root.state_dict()) == ["0.weight", "1.weight"]


def test_only_own_members():
    root = net()
    assert [name for name, _ in root.named_parameters(recurse=False)] == ["scale"]
    assert [name for name, _ in root.named_buffers()] == ["0.count", "2.count"]
    assert list(root.buffers(recurse=False)) == []
    assert [name for name, _ in root.named_buffers(prefix="x")] == ["x.0.count", "x.2.count"]


def test_deep_trees_need_no_recursion():
    root = nn.Sequential()
    inner = root
    for _ in range(3000):
        inner.add_module("x", nn.Sequential())
        inner = inner.x
    assert len(list(root.modules())) == 3001
    assert list(root.parameters()) == []


def test_members_by_dotted_name():
    root = net()
    assert root.get_submodule("") is root
    assert root.get_submodule("2.fc") is root[2].fc
    assert root.get_parameter("0.fc.weight") is root[0].fc.weight
    assert root.get_buffer("2.count") is root[2].count
    for wrong, message in (("0.x", "Block has no 'x'"), ("0.count", "Block.count is not a module")):
        with pytest.raises(MemberError, match=message):
            root.get_submodule(wrong)
    with pytest.raises(AttributeError, match=r"'0.fc.x' is not a parameter"):
        root.get_parameter("0.fc.x")
    with pytest.raises(AttributeError, match=r"'0.fc.weight' is not a buffer"):
        root.get_buffer("0.fc.weight")


def test_set_submodule():
    root = net()
    root.set_submodule("0.fc", nn.Linear(2, 5))
    assert root[0].fc.out_features == 5
    with pytest.raises(ValueError, match="empty"):
        root.set_submodule("", nn.ReLU())
    with pytest.raises(TypeError, match="int is not a Module"):
        root.set_submodule("0.fc", 3)
    with pytest.raises(MemberError):
        root.set_submodule("9.fc", nn.ReLU())


def test_apply_goes_to_children_first():
    seen = []
    root = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU()))
    assert root.apply(lambda m: seen.append(type(m).__name__)) is root
    assert seen == ["Linear", "ReLU", "Sequential", "Sequential"]


def test_train_and_eval():
    root = net()
    assert all(m.training for m in root.modules())
    assert root.eval() is root and not any(m.training for m in root.modules())
    root.train()
    assert root[0].fc.training
    with pytest.raises(ValueError, match="the mode must be a bool, got 1"):
        root.train(1)


def test_train_is_called_on_overriding_children():
    class Frozen(nn.BatchNorm1d):
        def train(self, mode: bool = True):
            return super().train(False)

    root = nn.Sequential(Frozen(2), nn.Dropout())
    root.train()
    assert not root[0].training and root[1].training


def test_requires_grad():
    root = net()
    assert root.requires_grad_(False) is root
    assert not any(p.requires_grad for p in root.parameters())


def test_zero_grad():
    layer = nn.Linear(2, 1)
    layer(graphc.ones(1, 2)).sum().backward()
    gradient = layer.weight.grad
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad.tolist() == [[0, 0]] and gradient.tolist() == [[0, 0]]
    layer.zero_grad()
    assert layer.weight.grad is None
