"""Changes: everything that a compiled function depends on is counted when it changes, and what it does not is not."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

import graphc
from graphc import nn
from graphc.base.mutation_epoch import EPOCH, Members


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


CHANGES: dict[str, Callable[[nn.Sequential], object]] = {
    "train": lambda m: m.train(False),
    "training flag": lambda m: setattr(m[1], "training", False),
    "child": lambda m: setattr(m, "0", nn.Linear(3, 4)),
    "append": lambda m: m.append(nn.Tanh()),
    "add_module": lambda m: m.add_module("more", nn.Tanh()),
    "delete child": lambda m: delattr(m, "2"),
    "delete item": lambda m: m.__delitem__(0),
    "parameter": lambda m: setattr(m[0], "weight", nn.Parameter(graphc.zeros(4, 3))),
    "no parameter": lambda m: m[0].register_parameter("bias", None),
    "delete parameter": lambda m: delattr(m[0], "bias"),
    "buffer": lambda m: setattr(m[1], "running_mean", graphc.ones(4)),
    "new buffer": lambda m: m.register_buffer("extra", graphc.ones(4)),
    "table": lambda m: m._modules.update({"0": nn.Linear(3, 4)}),
    "table of parameters": lambda m: m[0]._parameters.__setitem__("weight", nn.Parameter(graphc.zeros(4, 3))),
    "pop": lambda m: m._modules.pop("0"),
    "popitem": lambda m: m._modules.popitem(),
    "clear": lambda m: m._modules.clear(),
    "setdefault": lambda m: m._modules.setdefault("x", nn.Tanh()),
    "or": lambda m: m._modules.__ior__({"x": nn.Tanh()}),
    "order": lambda m: m._modules.move_to_end("0"),
    "data": lambda m: setattr(m[0].weight, "data", graphc.zeros(4, 3)),
    "requires_grad": lambda m: setattr(m[0].weight, "requires_grad", False),
    "requires_grad_": lambda m: m.requires_grad_(False),
    "double": lambda m: m.double(),
    "state": lambda m: m.__setstate__(dict(vars(m))),
    "assigned state": lambda m: m.load_state_dict(m.state_dict(), assign=True),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_counted(name: str):
    changed = model()
    before = EPOCH[0]
    CHANGES[name](changed)
    assert EPOCH[0] > before


def test_in_place_gradients_are_counted():
    buffer = graphc.zeros(3)
    before = EPOCH[0]
    buffer += graphc.ones(3).requires_grad_()
    assert EPOCH[0] > before + 1 and buffer.requires_grad
    before = EPOCH[0]
    buffer.detach_()
    assert EPOCH[0] > before


def test_calls_and_writes_are_not_counted():
    trained = model()
    x = graphc.randn(5, 3)
    before = EPOCH[0]
    trained(x).sum().backward()
    with graphc.no_grad():
        for parameter in trained.parameters():
            parameter -= 0.1
        trained(x)
    trained.load_state_dict(trained.state_dict())
    assert EPOCH[0] == before


def test_members_are_an_ordered_dictionary():
    members = Members(a=1)
    members["b"] = 2
    members |= {"c": 3}
    for other in (copy.copy(members), copy.deepcopy(members), pickle.loads(pickle.dumps(members))):
        assert type(other) is Members and list(other.items()) == [("a", 1), ("b", 2), ("c", 3)]
    assert members.pop("x", None) is None and members.pop("a") == 1
    with pytest.raises(KeyError):
        members.pop("a")
    assert members.popitem(last=False) == ("b", 2) and members.setdefault("c") == 3
    assert members == {"c": 3}
