"""Numbers in attributes that compiled functions read: one program where only values differ."""

from __future__ import annotations

import copy
import logging
import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.calls.number_places import MOST_ANSWERS
from tests.calls.scaled import Options, Scaled, floats, same


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """The messages so far, with explanations on."""
    monkeypatch.setenv("GRAPHC_EXPLAIN_RECOMPILES", "1")
    caplog.set_level(logging.WARNING, "graphc")
    return lambda: "\n".join(r.getMessage() for r in caplog.records if r.name == "graphc.recompiles")


class Slots:
    """Settings in slots."""

    __slots__ = ("scale",)

    def __init__(self, scale: float):
        self.scale = scale


OPTIONS = Options()


# ---- one program


def test_five_values_of_an_attribute_take_a_second_program_and_no_third():
    model, x = Scaled(), floats(4, 3)
    fast = gc.compile(model)
    with gc.no_grad():
        for i in range(5):
            model.scale = 0.5 + i
            same(fast(x), model(x), exact=False)
            same(fast(x), model(x), exact=False)
    assert len(fast.variants) == 2


def test_gradients_are_those_of_the_value_at_the_call():
    model, x = Scaled(), floats(4, 3)
    fast = gc.compile(model)
    for i in range(5):
        model.scale = 0.5 + i
        results = []
        for f in (fast, model):
            model.zero_grad()
            given = x.clone().requires_grad_()
            loss = (f(given) ** 2).sum()
            model.scale = -100.0  # after the call, before its backward pass
            loss.backward()
            model.scale = 0.5 + i
            results.append([given.grad.numpy(), *(p.grad.numpy().copy() for p in model.parameters())])
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    assert len(fast.variants) == 2


def test_attributes_of_nested_modules_are_open_each_for_itself():
    model, x = nn.Sequential(Scaled(), nn.ModuleDict({"a": Scaled()})["a"], Scaled()), floats(4, 3)
    fast = gc.compile(model)
    with gc.no_grad():
        same(fast(x), model(x), exact=False)
        for i in range(5):
            model[1].scale, model[2].shift = 0.1 * i, i
            same(fast(x), model(x), exact=False)
        assert len(fast.variants) == 2
        for i in range(5):
            model[0].scale = float(i)
            same(fast(x), model(x), exact=False)
    assert len(fast.variants) == 3


def test_attributes_of_options_are_open():
    options, slots, x = Options(), Slots(0.5), floats(4, 3)

    def function(x: Any) -> Any:
        return x * options.scale + options.shift - slots.scale + OPTIONS.scale

    fast = gc.compile(function)
    same(fast(x), function(x))
    try:
        for i in range(5):
            options.scale, options.shift, slots.scale, OPTIONS.scale = 0.3 * i, i, 2.0 * i, -1.5 * i
            same(fast(x), function(x))
    finally:
        OPTIONS.scale = 0.5
    assert len(fast.variants) == 2


def test_two_attributes_that_change_at_once_are_open_at_once():
    model, x = Scaled(), floats(2, 3)
    fast = gc.compile(model)
    with gc.no_grad():
        for i in range(5):
            model.scale, model.shift = 0.1 * i, 7 * i
            same(fast(x), model(x), exact=False)
    assert len(fast.variants) == 2


def test_settings_of_layers_of_the_library_are_open():
    layer, x = nn.LeakyReLU(0.1), floats(4, 3)
    fast = gc.compile(layer)
    for i in range(5):
        layer.negative_slope = 0.1 + 0.05 * i
        same(fast(x), layer(x))
    assert len(fast.variants) == 2


def test_an_attribute_is_read_behind_properties_branches_and_methods():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self._scale, self.limit = 0.5, 0.4

        @property
        def scale(self) -> float:
            return 2 * self._scale

        def forward(self, x: Any) -> Any:
            more = getattr(self, "scale")  # noqa: B009
            return x * more if more > self.limit else x - more

    model, x = Net(), floats(3)
    fast = gc.compile(model)
    for i in range(10):
        model._scale, model.limit = 0.1 * i, 0.7
        same(fast(x), model(x))
    assert len(fast.variants) == 3, "that of the first values, and one for each way"


def test_an_attribute_and_an_argument_are_open_in_one_program():
    model, x = Scaled(), floats(4, 3)
    fast = gc.compile(lambda x, t: model(x) / t)
    with gc.no_grad():
        for i in range(5):
            model.scale = 1.0 + i
            same(fast(x, 1.5 * i + 1), model(x) / (1.5 * i + 1), exact=False)
    assert len(fast.variants) == 2


def test_named_dimensions_and_a_number_in_an_attribute_take_one_trace_for_all():
    model = Scaled()
    fast = gc.compile(model, dims={"x": (gc.Dim("batch", max=64),)})
    with gc.no_grad():
        for i in range(6):
            model.scale = 0.5 + i
            x = floats(1 + 3 * i, 3)
            same(fast(x), model(x), exact=False)
    assert len(fast.variants) == 2


def test_sizes_that_are_named_by_their_second_value_go_with_numbers_in_attributes():
    model = Scaled()
    fast = gc.compile(model, dims="auto")
    with gc.no_grad():
        for i in range(6):
            model.scale = 0.5 + i
            x = floats(2 + i, 3)
            same(fast(x), model(x), exact=False)
    assert len(fast.variants) <= 3


def test_a_training_step_reads_attributes():
    fast, slow = Scaled(), Scaled()
    slow.load_state_dict(fast.state_dict())
    options = Options()
    optimizers = [gc.optim.Adam(m.parameters(), lr=0.1) for m in (fast, slow)]

    def loss(output: Any, y: Any) -> Any:
        return ((output - y) ** 2).mean() * options.scale

    step = gc.compile_step(fast, loss, optimizers[0])
    x, y = floats(4, 3), floats(4, 3, seed=1)
    for i in range(6):
        fast.scale = slow.scale = 0.5 + 0.1 * i
        options.scale = 1.0 / (i + 1)
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"] = 0.1 / (1 + i)
        result, expected = step(x, y), loss(slow(x), y)
        optimizers[1].zero_grad()
        expected.backward()
        optimizers[1].step()
        np.testing.assert_allclose(result.item(), expected.item(), rtol=1e-4)
    assert len(step.graphs) == 2


READS: list[Callable[[Any], Any]] = [
    lambda m: m.a,
    lambda m: m.n * m.a - 1,
    lambda m: m.a - m.b,
    lambda m: m.a if m.b > m.n else m.n,
    lambda m: abs(m.n) + 2 * m.inner.a,
    lambda m: max(m.inner.a, m.b),
]


def test_random_programs_of_attributes_agree_with_eager_mode():
    rng = random.Random(3)
    for _ in range(12):
        model = nn.Module()
        model.a, model.b, model.n, model.inner = 0.5, 2.0, 3, nn.Module()
        model.inner.a = 1.5
        steps = [(rng.choice([operator.mul, operator.add, operator.sub]), rng.choice(READS)) for _ in range(4)]

        def function(x: Any, steps: Any = tuple(steps), model: Any = model) -> Any:
            for operate, read in steps:
                x = operate(x, read(model))
            return x

        fast = gc.compile(function)
        for _ in range(10):
            name = rng.choice(["a", "b", "n", "inner"])
            if name == "inner":
                model.inner.a = rng.uniform(-2, 2)
            else:
                setattr(model, name, rng.randrange(-3, 5) if name == "n" else rng.uniform(-2, 2))
            same(fast(floats(5)), function(floats(5)))
        assert len(fast.variants) <= 8


# ---- what needs the value


def test_an_attribute_in_a_shape_is_a_constant_and_the_message_names_the_line(told: Any):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads, self.scale = 2, 0.5

        def forward(self, x: Any) -> Any:
            return x.reshape(self.heads, -1) * self.scale

    model, x = Net(), floats(12)
    fast = gc.compile(model)
    for i, heads in enumerate((2, 3, 4, 6, 3, 2)):
        model.heads, model.scale = heads, 0.1 * i
        same(fast(x), model(x))
    assert len(fast.variants) == 5, "2 with its first scale, and then one for each number of heads"
    assert "attribute 'heads' of Net: 3 -> 4" in told()
    assert "its value is needed at" in told() and "test_number_places_attributes.py" in told()


def test_the_message_says_that_calls_give_an_attribute_from_now_on(told: Any):
    model, x = Scaled(), floats(4, 3)
    fast = gc.compile(model)
    fast(x)
    model.scale = 2.5
    fast(x)
    assert "attribute 'scale' of Scaled: 0.5 -> 2.5" in told() and "now passed by each call" in told()


def test_a_branch_on_an_attribute_takes_a_program_for_each_way_and_the_message_names_the_line(told: Any):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = 0.0

        def forward(self, x: Any) -> Any:
            return x * self.t if self.t < 0.5 else x - self.t

    model, x = Net(), floats(3)
    fast = gc.compile(model)
    for i in range(10):
        model.t = 0.1 * i
        same(fast(x), model(x))
    assert len(fast.variants) == 3
    assert "is False, and was True (asked at" in told() and "test_number_places_attributes.py" in told()


def test_many_answers_make_a_constant_of_an_attribute():
    options, x = Options(), floats(3)

    def function(x: Any) -> Any:
        return x * sum(1.0 for i in range(100) if options.shift > i)

    fast = gc.compile(function)
    for n in range(MOST_ANSWERS + 4):
        options.shift = n
        same(fast(x), function(x))
    assert "attribute 'shift' of Options" in fast._numbers.constants


NEEDS = {
    "float": lambda x, o: x * float(o.scale),
    "text": lambda x, o: x * len(f"{o.scale:.3f}"),
    "numpy scalar": lambda x, o: x * np.float32(o.scale),
    "key": lambda x, o: x * {0.5: 2.0}.get(o.scale, 3.0),
    "type": lambda x, o: x * (2.0 if type(o.scale) is float else 3.0),
    "dictionary": lambda x, o: x * vars(o)["scale"] + o.scale,
    "copy": lambda x, o: x * copy.deepcopy(o).scale + o.scale,
    "returned": lambda x, o: x * o.scale + {"s": o.scale}["s"],
}


@pytest.mark.parametrize("function", NEEDS.values(), ids=NEEDS.keys())
def test_code_that_needs_the_value_of_an_attribute_sees_that_of_the_call(function: Any):
    options, x = Options(), floats(3)
    fast = gc.compile(lambda x: function(x, options))
    for t in (0.25, 0.5, 2.0, 0.5, 0.125, 2.0, 10.5):
        options.scale = t
        same(fast(x), function(x, options))


def test_an_attribute_that_is_returned_is_that_of_the_call():
    options, x = Options(), floats(3)
    fast = gc.compile(lambda x: (x * options.scale, options.scale, {"twice": 2 * options.scale}))
    for t in (0.5, 0.25, 4.0, 0.5):
        options.scale = t
        _, a, b = fast(x)
        assert type(a) is float and (a, b) == (t, {"twice": 2 * t})
