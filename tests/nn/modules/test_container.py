"""Sequential, ModuleList and ModuleDict."""

from __future__ import annotations

from collections import OrderedDict

import pytest

import graphc
from graphc import nn
from graphc.errors import ArgumentError, AttributeValueError, IndexRangeError, MemberNameError


class Add(nn.Module):
    """Adds a number and is easy to recognise."""

    def __init__(self, n: float):
        super().__init__()
        self.n = n

    def forward(self, x):
        return x + self.n

    def extra_repr(self) -> str:
        return f"{self.n}"


def numbers(modules: object) -> list[float]:
    return [m.n for m in modules]


def test_sequential_runs_in_order():
    net = nn.Sequential(Add(1), nn.Flatten(0), Add(2))
    assert net(graphc.zeros(2, 1)).tolist() == [3, 3]
    assert list(dict(net.named_children())) == ["0", "1", "2"]


def test_sequential_from_names():
    net = nn.Sequential(OrderedDict(first=Add(1), second=Add(2)))
    assert net.second.n == 2 and net[1] is net.second
    assert repr(net) == "Sequential(\n  (first): Add(1)\n  (second): Add(2)\n)"
    assert list(dict(net[1:].named_children())) == ["second"]


@pytest.mark.parametrize("kind", [lambda *m: nn.Sequential(*m), lambda *m: nn.ModuleList(m)])
def test_list_operations(kind: object):
    held = kind(Add(0), Add(1), Add(2))
    assert len(held) == 3 and numbers(held) == [0, 1, 2]
    assert held[-1].n == 2
    assert numbers(held[:2]) == [0, 1] and type(held[:2]) is type(held)
    assert held.append(Add(3)) is held
    assert held.extend([Add(4)]) is held
    held.insert(1, Add(9))
    assert numbers(held) == [0, 9, 1, 2, 3, 4]
    assert held.pop(1).n == 9
    del held[0]
    held[0] = Add(7)
    assert numbers(held) == [7, 2, 3, 4]
    assert list(held._modules) == ["0", "1", "2", "3"]
    del held[1:3]
    assert numbers(held) == [7, 4] and list(held._modules) == ["0", "1"]
    with pytest.raises(IndexRangeError, match="index 2 is out of range for 2 entries"):
        held[2]
    with pytest.raises(IndexRangeError):
        held.insert(5, Add(1))
    with pytest.raises(ArgumentError, match="int is not a Module"):
        held.append(3)


def test_sequential_arithmetic():
    a, b = nn.Sequential(Add(1)), nn.Sequential(Add(2), Add(3))
    assert numbers(a + b) == [1, 2, 3] and numbers(a) == [1]
    assert numbers(b * 2) == [2, 3, 2, 3] and numbers(2 * b) == [2, 3, 2, 3]
    a += b
    assert numbers(a) == [1, 2, 3]
    a *= 2
    assert numbers(a) == [1, 2, 3, 1, 2, 3]
    with pytest.raises(ValueError, match=r"Sequential \+ list"):
        a.__add__([Add(1)])
    with pytest.raises(TypeError, match="must be an int"):
        a * 1.5
    with pytest.raises(AttributeValueError, match="must be positive"):
        a * 0


def test_module_list_adds_lists():
    held = nn.ModuleList([Add(1)])
    held += [Add(2)]
    assert numbers(held.__add__([Add(3)])) == [1, 2, 3] and numbers(held) == [1, 2]
    with pytest.raises(NotImplementedError):
        held(graphc.zeros(1))
    with pytest.raises(TypeError, match="not iterable"):
        held.extend(3)


def test_module_dict():
    held = nn.ModuleDict({"a": Add(1), "b": Add(2)})
    held["c"] = Add(3)
    assert list(held) == list(held.keys()) == ["a", "b", "c"]
    assert numbers(held.values()) == [1, 2, 3] and [k for k, _ in held.items()] == ["a", "b", "c"]
    assert "b" in held and len(held) == 3
    assert held.pop("b").n == 2 and "b" not in held
    del held["a"]
    held.update([("d", Add(4)), ("c", Add(5))])
    assert numbers(held.values()) == [5, 4]
    assert held["c"].n == 5
    held.clear()
    assert len(held) == 0
    with pytest.raises(KeyError):
        held["missing"]
    with pytest.raises(MemberNameError, match="attribute of this name"):
        held["items"] = Add(1)
    with pytest.raises(TypeError, match="neither a mapping nor pairs"):
        held.update(3)


def test_parameters_of_all_members_are_found():
    net = nn.ModuleDict({"x": nn.ModuleList([nn.Linear(1, 2), nn.Linear(2, 3, bias=False)])})
    assert [name for name, _ in net.named_parameters()] == ["x.0.weight", "x.0.bias", "x.1.weight"]


def test_neighbours_in_a_list_that_look_alike_are_printed_once():
    layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), nn.ModuleList([nn.Linear(2, 1)])])
    assert repr(layers).splitlines() == [
        "ModuleList(",
        "  (0-1): 2 x Linear(in_features=2, out_features=2, bias=True)",
        "  (2): ReLU()",
        "  (3): ModuleList(",
        "    (0): Linear(in_features=2, out_features=1, bias=True)",
        "  )",
        ")",
    ]
    assert repr(nn.ModuleList()) == "ModuleList()"
