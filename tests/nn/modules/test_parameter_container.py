"""ParameterList and ParameterDict."""

from __future__ import annotations

import pytest

import graphc
from graphc import nn


def test_list_of_parameters():
    held = nn.ParameterList([graphc.zeros(2), nn.Parameter(graphc.ones(3)), "text"])
    assert len(held) == 3
    assert isinstance(held[0], nn.Parameter) and held[-1] == "text"
    assert [name for name, _ in held.named_parameters()] == ["0", "1"]
    held.append(graphc.ones(4)).extend([5])
    held += [graphc.zeros(1)]
    assert [getattr(v, "shape", v) for v in held] == [(2,), (3,), "text", (4,), 5, (1,)]
    held[1] = graphc.zeros(7)
    assert held[1].shape == (7,) and isinstance(held[1], nn.Parameter)
    assert len(held[1:3]) == 2
    with pytest.raises(RuntimeError, match="cannot be called"):
        held()
    with pytest.raises(IndexError, match="out of range"):
        held[6]
    with pytest.raises(TypeError, match="expected an iterable"):
        held.extend(graphc.zeros(2))


def test_list_in_a_module():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = nn.ParameterList(graphc.ones(2) for _ in range(3))

        def forward(self, x):
            for weight in self.weights:
                x = x * weight
            return x.sum()

    net = Net()
    net(graphc.ones(2)).backward()
    assert all(p.grad is not None for p in net.parameters())
    assert list(net.state_dict()) == ["weights.0", "weights.1", "weights.2"]


def test_dict_of_parameters():
    held = nn.ParameterDict({"a": graphc.zeros(2), "values": graphc.ones(3)})
    held["c"] = 4
    assert list(held) == ["a", "values", "c"] and len(held) == 3 and "values" in held
    assert isinstance(held["values"], nn.Parameter) and held.get("missing", 1) == 1
    assert [k for k, _ in held.items()] == list(held.keys()) == ["a", "values", "c"]
    assert list(reversed(held)) == ["c", "values", "a"]
    assert held.setdefault("a", 3).shape == (2,)
    assert held.popitem() == ("c", 4)
    assert held.pop("values").shape == (3,)
    assert list(held) == ["a"] and len(list(held.parameters())) == 1
    merged = held | {"b": graphc.zeros(1)}
    assert list(merged) == ["a", "b"] and list(held) == ["a"]
    assert list({"b": graphc.zeros(1)} | held) == ["b", "a"]
    held |= {"z": graphc.zeros(1)}
    assert list(held.copy()) == ["a", "z"] and held.copy()["a"] is held["a"]
    held.clear()
    assert len(held) == 0 and not list(held.parameters())
    assert list(nn.ParameterDict.fromkeys(["p", "q"], 1)) == ["p", "q"]
    with pytest.raises(KeyError):
        held["a"]
    with pytest.raises(RuntimeError, match="cannot be called"):
        held()
    with pytest.raises(TypeError, match="a key must be a string"):
        held[1] = graphc.zeros(1)


def test_text():
    text = repr(nn.ParameterList([graphc.zeros(2, 3), 4]))
    assert "(0): Parameter containing: [f32 of size 2x3]" in text and "(1): Object of type: int" in text
    assert "(w): Parameter containing: [f32 of size 2]" in repr(nn.ParameterDict({"w": graphc.zeros(2)}))
