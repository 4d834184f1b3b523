"""Attributes that compiled code depends on: what is recorded, what is compared, and what stays as it was traced."""

from __future__ import annotations

import copy
import enum
import threading
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.guards import attributes
from graphc.guards.attributes import recording
from graphc.nn import functional as F


class Net(nn.Module):
    factor = 2.0

    def __init__(self):
        super().__init__()
        self.number = 3.0
        self.function: Any = F.relu
        self.unread = 1
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        return self.function(self.fc(x)) * self.number * self.factor


def agrees(net: nn.Module, fast: object, x: graphc.Tensor) -> bool:
    return graphc.allclose(fast(x), net(x), atol=1e-6)  # type: ignore[operator]


def test_a_changed_attribute_that_was_read_makes_another_program():
    net, x = Net(), graphc.randn(3, 2)
    fast = graphc.compile(net)
    assert agrees(net, fast, x) and len(fast.variants) == 1
    net.number = 5.0
    assert agrees(net, fast, x) and len(fast.variants) == 2
    net.function = F.gelu
    assert agrees(net, fast, x) and len(fast.variants) == 3
    net.number, net.function = 3.0, F.relu
    assert agrees(net, fast, x) and len(fast.variants) == 3
    net.factor = 7.0  # hides that of the class
    assert agrees(net, fast, x) and len(fast.variants) == 4
    del net.factor
    net.unread = 2
    assert agrees(net, fast, x) and len(fast.variants) == 4


def test_equal_values_of_another_type_differ():
    net, x = Net(), graphc.arange(4).reshape(2, 2)
    net.forward = lambda x: x * net.number
    fast = graphc.compile(net)
    assert fast(x).dtype is graphc.float32
    net.number = 3
    assert fast(x).dtype is graphc.int64


def test_attributes_of_layers_count():
    net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.LeakyReLU(0.1))
    step = graphc.compile_step(net, F.mse_loss, graphc.optim.SGD(net.parameters(), lr=0.0))
    x = graphc.ones(4, 3)
    step(x, x)
    assert 0.0 in [v for row in step.last_output.tolist() for v in row]
    net[1].p = 0.0
    net[2].negative_slope = 1.0
    step(x, x)
    assert graphc.allclose(step.last_output, net[0](x), atol=1e-6)


def test_the_reason_is_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    monkeypatch.setenv("GRAPHC_EXPLAIN_RECOMPILES", "1")
    net, x = Net(), graphc.ones(1, 2)
    fast = graphc.compile(net)
    fast(x)
    net.number = 4.0
    with caplog.at_level("WARNING"):
        fast(x)
    assert "attribute 'number' of Net: 3.0 -> 4.0" in caplog.text


def test_only_the_recording_thread_records():
    net = Net()
    with recording() as outer:
        with recording() as reads:
            assert net.number == 3.0
            other = threading.Thread(target=lambda: net.unread)
            other.start()
            other.join()
        assert net.unread == 1
    assert "__getattribute__" not in vars(nn.Module)
    net.number, net.unread = 1.0, 2
    (first,), (second,) = reads.changed(), outer.changed()
    assert first.startswith("attribute 'number' of Net: 3.0 -> 1.0 (read at tests/guards/test_attributes.py:")
    assert second.startswith("attribute 'unread' of Net: 1 -> 2")


def test_a_class_that_is_watched_while_a_trace_runs(monkeypatch: pytest.MonkeyPatch):
    class Late:
        number = 1

    monkeypatch.setattr(attributes, "_watched", [*attributes._watched])
    with recording() as reads:
        attributes.watch(Late)
        assert Late().number == 1
    assert "__getattribute__" not in vars(Late) and reads.changed() == []


class Outside:
    kind = 1

    def __init__(self, value: float):
        self.value = value


class Slotted:
    __slots__ = ("value",)


OUTSIDE, SLOTTED = Outside(2.0), Slotted()


def test_objects_of_the_user_are_recorded_where_they_were_there_before():
    SLOTTED.value = 1.0

    def function() -> float:
        made = Outside(3.0)
        made.value += 1.0
        return made.value + OUTSIDE.value + OUTSIDE.kind + SLOTTED.value

    with recording(functions=True) as reads:
        assert function() == 8.0
        assert "__getattribute__" in vars(Outside)
    assert "__getattribute__" not in vars(Outside) and reads.settle() == []
    assert {"attribute 'value' of Outside", "attribute 'value' of Slotted"} <= {
        fact.title for fact in reads.facts.values()
    }
    OUTSIDE.value, SLOTTED.value = 5.0, 2.0
    assert [reason.split(" (")[0] for reason in reads.changed()] == [
        "attribute 'value' of Outside: 2.0 -> 5.0",
        "attribute 'value' of Slotted: 1.0 -> 2.0",
    ]
    OUTSIDE.value = 2.0


def test_what_was_changed_is_restored_and_told():
    items, number = [1, 2], 1

    def function() -> None:
        nonlocal number
        items.append(3)
        number = 2
        OUTSIDE.value = 7.0
        SLOTTED.value += 1.0

    SLOTTED.value = 1.0
    with recording(functions=True) as reads:
        function()
    faults = " ".join(reads.settle())
    assert "variable 'items': changed inside" in faults and "variable 'number': 1 -> 2" in faults
    assert "attribute 'value' of Slotted: 1.0 -> 2.0" in faults
    assert (items, number, OUTSIDE.value, SLOTTED.value) == ([1, 2], 1, 2.0, 1.0)
    assert [(name, value) for _, name, value in reads.effects] == [("value", 7.0)]


def test_an_enum_and_a_class_with_a_way_of_its_own_to_read_attributes():
    class Mode(enum.Enum):
        A = 1.0

    class Own:
        def __init__(self):
            self.value = 1.0

        def __getattribute__(self, name: str):
            return object.__getattribute__(self, name)

    own = Own()
    with recording(functions=True) as reads:
        assert (lambda: Mode.A.value + own.value)() == 2.0
    assert reads.settle() == []
    own.value = 2.0
    assert reads.changed()


class Doubled(nn.Module):
    """Reads an attribute of its class before it is a module."""

    factor = 2.0

    def __init__(self) -> None:
        doubled = self.factor * 2
        super().__init__()
        self.twice = doubled

    def forward(self, x: graphc.Tensor) -> graphc.Tensor:
        return x * self.twice


def test_modules_that_a_function_makes_are_none_of_the_outside():
    fast = graphc.compile(lambda x: Doubled()(nn.AvgPool3d(2)(x)))
    assert fast(graphc.ones(1, 1, 2, 2, 2)).tolist() == [[[[[4.0]]]]]


def test_copying_an_object_reads_all_its_attributes():
    def function() -> Any:
        return copy.deepcopy(OUTSIDE).value, copy.copy(SLOTTED)

    with recording(functions=True) as reads:
        function()
    OUTSIDE.value += 1.0
    assert any("attributes of Outside" in reason for reason in reads.changed())
    OUTSIDE.value -= 1.0


def test_modules_within_one_whose_tensors_are_replaced_for_a_while_are_as_before():
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))

    def loss(params, x):
        return graphc.func.functional_call(net, params, (x,)).sum()

    x, params = graphc.randn(4, 3), dict(net.named_parameters())
    samples = graphc.compile(lambda p, x: graphc.vmap(graphc.grad(loss), in_dims=(None, 0))(p, x))
    found = samples(params, x)
    expected = graphc.grad(loss)(params, x[1])
    for name, tensor in expected.items():
        np.testing.assert_allclose(found[name][1].detach().numpy(), tensor.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert net[0].weight is params["0.weight"]
