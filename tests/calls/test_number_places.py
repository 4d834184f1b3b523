"""Numbers among the arguments of compiled functions: one program where only values differ, and never a stale one."""

from __future__ import annotations

import copy
import functools
import json
import logging
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.calls import number_places
from graphc.calls.number_places import MOST_ANSWERS, DynamicNumbers
from graphc.nn import functional as F
from graphc.tensors.structure import Open, flatten, numbers

SPECIAL = (0.0, -0.0, math.nan, math.inf, -math.inf, 1e-45, 1e300, -3.5)


def floats(*shape: int, seed: int = 0) -> gc.Tensor:
    return gc.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def same(actual: Any, expected: Any, exact: bool = True) -> None:
    actual, expected = np.asarray(actual.detach()), np.asarray(expected.detach())
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    if exact:
        np.testing.assert_array_equal(actual, expected)
        np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))
    else:
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=1e-6)


def programs(function: Callable[..., Any], calls: list[tuple[Any, ...]], exact: bool = True) -> int:
    """Count the programs of these calls, and check each result against eager mode."""
    fast = gc.compile(function)
    for args in calls:
        same(fast(*args), function(*args), exact)
    return len(fast.variants)


@pytest.fixture
def explanations(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """The messages so far, with explanations on."""
    monkeypatch.setenv("GRAPHC_EXPLAIN_RECOMPILES", "1")
    caplog.set_level(logging.WARNING, "graphc")
    return lambda: "\n".join(r.getMessage() for r in caplog.records if r.name == "graphc.recompiles")


# ---- one program


def test_a_temperature_takes_one_program_beside_that_of_the_first_value():
    x = floats(4, 9)
    calls = [(x, 0.3 + 0.1 * i) for i in range(20)]
    assert programs(lambda x, t: (x / t).softmax(-1), calls, exact=False) == 2


def test_a_diffusion_step_takes_one_program():
    class Denoise(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.out = nn.Linear(8, 8), nn.Linear(8, 4)

        def forward(self, x: Any, step: int, sigma: float) -> Any:
            frequencies = gc.exp(gc.arange(4) * (-math.log(10000.0) / 4))
            angles = step * frequencies
            h = self.embed(gc.cat([angles.sin(), angles.cos()]))
            times = gc.full((x.shape[0], 1), step) + gc.tensor([step])
            return x - sigma**2 * self.out(h) / (1 + sigma) + times * gc.tensor(sigma)

    model = Denoise()
    fast = gc.compile(model)
    x = floats(3, 4)
    with gc.no_grad():
        for step in range(12):
            same(fast(x, step, 0.9**step), model(x, step, 0.9**step), exact=False)
    assert len(fast.variants) == 2


OPERATIONS = {
    "sum": lambda x, t: x + t,
    "difference": lambda x, t: t - x,
    "product": lambda x, t: x * t,
    "quotient": lambda x, t: x / t if t else x,
    "reflected quotient": lambda x, t: t / x,
    "less": lambda x, t: (x < t).float(),
    "where": lambda x, t: gc.where(x > 0, x, t),
    "masked_fill": lambda x, t: x.masked_fill(x > 0, t),
    "clamp": lambda x, t: x.clamp(min=t),
    "maximum": lambda x, t: gc.maximum(x, gc.tensor(t)),
    "fill_": lambda x, t: gc.zeros(3).fill_(t) + x[0],
    "item assignment": lambda x, t: _assigned(x, t),
    "full": lambda x, t: x + gc.full((3,), t),
    "full_like": lambda x, t: gc.full_like(x, t),
    "tensor": lambda x, t: gc.tensor(t).mul_(2) + gc.tensor(t) * x,
    "tensor of a list": lambda x, t: gc.tensor([t, 1.0, 2.0 * t]) * x,
    "alpha": lambda x, t: x.add(x, alpha=t),
    "integers": lambda x, t: (x * 4).int() * t,
    "booleans": lambda x, t: (x > 0) * t,
    "f64": lambda x, t: x.double() * t,
    "arithmetic": lambda x, t: x * (t * 3 - 1) + (2 - t) * abs(t),
    "scalar tensor": lambda x, t: x[0, 0] * t,
    "kept tensor": lambda x, t: x.index_fill(0, gc.tensor([0]), t),
}


def _assigned(x: Any, t: Any) -> Any:
    x = x.clone()
    x[0] = t
    x[x > 1] = t
    return x


@pytest.mark.parametrize("function", OPERATIONS.values(), ids=OPERATIONS.keys())
@pytest.mark.parametrize("kind", [float, int])
def test_every_use_of_a_number_has_the_bits_of_eager_mode(function: Any, kind: Any):
    x = floats(4, 3)
    values = SPECIAL if kind is float else (0, 1, -7, 2**31, 2**53 + 1, -(2**62), 5)
    fast = gc.compile(function)
    fast(x, kind(2))
    fast(x, kind(3))
    for t in (*values, *values):
        try:
            expected = function(x, t)
        except Exception as error:
            with pytest.raises(type(error)):
                fast(x, t)
            continue
        with np.errstate(all="ignore"):
            same(fast(x, t), expected)
    assert len(fast.variants) <= 5


def test_types_are_promoted_as_for_a_python_number():
    for dtype in (gc.float32, gc.float64, gc.int64, gc.int32, gc.uint8, gc.bool):
        x = gc.ones(3).to(dtype)
        assert programs(lambda x, t: x * t, [(x, 1.5), (x, 2.5), (x, -0.1)]) == 2
        assert programs(lambda x, t: x + t, [(x, 1), (x, 2), (x, 300)]) == 2


def test_keyword_default_and_nested_numbers_are_found():
    @dataclass
    class Settings:
        scale: float
        shift: int

    def function(x: Any, settings: Any, *, factor: float = 2.0, more: Any = (1.0,)) -> Any:
        return (x * settings.scale + settings.shift) * factor + more[0]

    fast = gc.compile(function)
    x = floats(3)
    same(fast(x, Settings(1.0, 1)), function(x, Settings(1.0, 1)))
    for i in range(6):
        args, kwargs = (x, Settings(0.1 * i, i)), {"factor": 0.5 + i, "more": [2.0 * i]}
        same(fast(*args, **kwargs), function(*args, **kwargs))
    assert len(fast.variants) == 3


def test_a_number_in_a_loop_of_calls_is_differentiated_through():
    model = nn.Linear(3, 2)
    x = floats(4, 3)

    def function(x: Any, t: float) -> Any:
        return (model(x) * t).tanh().sum() / (1 + t)

    fast = gc.compile(function)
    for t in (0.5, 0.7, -1.3, 2.0):
        results = []
        for f in (fast, function):
            model.zero_grad()
            values = x.clone().requires_grad_()
            f(values, t).backward()
            results.append([values.grad.numpy(), *(p.grad.numpy().copy() for p in model.parameters())])
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert len(fast.variants) == 2


def test_a_number_goes_through_scan_vmap_and_custom_functions():
    class Scale(gc.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, t: float) -> Any:
            ctx.t = t
            return x * t

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.t, None

    def function(x: Any, t: float) -> Any:
        y = gc.func.vmap(lambda row: row * t)(x)
        return Scale.apply(y, t) + gc.func.grad(lambda z: (z * z * t).sum())(x)

    calls = [(floats(3, 2), t) for t in (0.5, 0.25, -3.0, 4.0)]
    assert programs(function, calls, exact=False) == 2


# ---- what needs the value


def test_a_number_in_a_shape_is_a_constant_and_the_message_names_the_line(explanations: Any):
    fast = gc.compile(lambda x, n: x.reshape(n, -1))
    x = floats(12)
    for n in (2, 3, 4, 6, 3, 2):
        assert fast(x, n).shape == (n, 12 // n)
    assert len(fast.variants) == 4
    assert (
        "static argument 0.1: 2 -> 4 (its value is needed at" in explanations()
        and "test_number_places.py" in explanations()
    )


def test_of_several_numbers_only_the_one_that_needs_it_is_a_constant():
    def function(x: Any, n: int, t: float, s: float) -> Any:
        return x.reshape(n, -1) * t + s

    calls = [(floats(12), n, 0.1 * i, 0.3 * i) for i in range(6) for n in (2, 3)]
    assert programs(function, calls) == 4


def test_a_branch_takes_a_program_for_each_way_and_the_message_names_the_line(explanations: Any):
    def function(x: Any, t: float) -> Any:
        return x * t if t < 0.5 else x - t

    assert programs(function, [(floats(3), 0.1 * i) for i in range(10)]) == 3
    assert "is False, and was True (asked at" in explanations() and "test_number_places.py" in explanations()


def test_many_answers_make_a_constant_of_the_number():
    def function(x: Any, n: int) -> Any:
        return x * sum(1.0 for i in range(100) if n > i)

    fast = gc.compile(function)
    for n in range(MOST_ANSWERS + 6):
        same(fast(floats(3), n), function(floats(3), n))
    assert "0.1" in fast._numbers.constants
    for _ in range(2):
        count = len(fast.variants)
        for n in range(MOST_ANSWERS + 6):
            same(fast(floats(3), n), function(floats(3), n))
    assert len(fast.variants) == count


TEXTS: list[str] = []
NEEDS = {
    "float": lambda x, t: x * float(t),
    "math": lambda x, t: x * math.exp(t),
    "text": lambda x, t: x * len(f"{t:.3f}"),
    "numpy scalar": lambda x, t: x * np.float32(t),
    "array": lambda x, t: x * gc.tensor(np.array([t], np.float32)),
    "key": lambda x, t: x * {0.5: 2.0}.get(t, 3.0),
    "json": lambda x, t: x * len(json.dumps(t)),
    "type": lambda x, t: x * (2.0 if type(t) is float else 3.0),
    "item": lambda x, t: x * gc.tensor(t).item(),
    "copy": lambda x, t: x * copy.deepcopy([t])[0],
    "arange": lambda x, t: x[:1] * gc.arange(0, 4, t).sum(),
    "dropout": lambda x, t: F.dropout(x, t / 100, training=False),
    "norm": lambda x, t: x.norm(1 + t),
    "cumulative": lambda x, t: gc.linspace(0, t, 3) * x,
}


@pytest.mark.parametrize("function", NEEDS.values(), ids=NEEDS.keys())
def test_code_that_needs_the_value_sees_that_of_the_call(function: Any):
    fast = gc.compile(function)
    for t in (0.25, 0.5, 2.0, 0.5, 0.125, 2.0, 10.5):
        same(fast(floats(3), t), function(floats(3), t), exact=False)


def test_a_number_that_is_returned_is_that_of_the_call():
    fast = gc.compile(lambda x, t: (x * t, t, {"twice": 2 * t}))
    for t in (0.5, 0.25, 4.0, 0.5):
        _, a, b = fast(floats(2), t)
        assert type(a) is float and (a, b) == (t, {"twice": 2 * t})


def test_an_object_that_is_returned_holds_the_number_of_the_call():
    fast = gc.compile(lambda x, t: (x * t, functools.partial(pow, t)))
    for t in (0.5, 0.25, 4.0, 0.5):
        assert fast(floats(2), t)[1](2) == t**2


def test_an_attribute_that_is_set_to_a_number_is_that_of_the_call():
    class Net(nn.Module):
        def forward(self, x: Any, t: float) -> Any:
            self.last = t
            return x * t

    model = Net()
    fast = gc.compile(model)
    for t in (0.5, 0.25, 4.0, 0.5):
        same(fast(floats(2), t), floats(2) * t)
        assert type(model.last) is float and model.last == t


def test_powers_agree():
    for t in (2, 3, 0, -1, 0.5, -0.5, 1.5):
        calls = [(floats(5).abs() + 0.1, v) for v in (type(t)(7), t, type(t)(4), t)]
        programs(lambda x, n: x**n, calls, exact=False)
        programs(lambda x, n: n**x if n > 0 else x, calls, exact=False)


def test_division_by_zero_raises_as_in_python():
    fast = gc.compile(lambda x, t: x * (1 / t))
    for t in (2.0, 4.0, 5.0):
        same(fast(floats(2), t), floats(2) * (1 / t))
    with pytest.raises(ZeroDivisionError):
        fast(floats(2), 0.0)
    same(fast(floats(2), 8.0), floats(2) * (1 / 8.0))
    assert len(fast.variants) == 2, "an error of one call leaves the number open"


def test_bools_numpy_scalars_and_texts_stay_constants():
    assert programs(lambda x, b: x * b, [(floats(2), b) for b in (True, False, True)]) == 2
    assert programs(lambda x, b: x * b, [(floats(2), np.float32(b)) for b in (0.5, 0.25, 4)]) == 3


def test_a_float_an_int_and_a_bool_are_different_arguments():
    x = gc.tensor([1, 2, 3])
    fast = gc.compile(lambda x, t: x * t)
    for t in (2, 3, 2.0, 3.0, True, 5, 5.5, 4, 4.5, False):
        same(fast(x, t), x * t)


def test_numbers_are_open_in_frozen_and_narrowed_programs():
    model = nn.Linear(3, 2)
    for options in ({"freeze": True}, {"precision": "bf16"}):
        fast = gc.compile(lambda x, t: model(x) * t, **options)
        with gc.no_grad():
            for t in (0.5, 0.25, -1.0, 3.0):
                np.testing.assert_allclose(
                    np.asarray(fast(floats(4, 3), t)), np.asarray(model(floats(4, 3)) * t), 0.02, 0.02
                )
        assert len(fast.variants) == 2


def test_random_functions_of_numbers_agree_with_eager_mode():
    rng = random.Random(11)
    for _ in range(12):
        choices = [rng.randrange(10**6) for _ in range(6)]

        def function(x: Any, a: float, n: int, choices: list[int] = choices) -> Any:
            pool, tensors = [a, n, 0.5, 3], [x]
            for c in choices:
                p, q = pool[c % len(pool)], pool[c // 11 % len(pool)]
                pool.append((p + q, p * q, p - q, abs(p), -q)[c % 5])
                y = tensors[c // 13 % len(tensors)]
                tensors.append((y * p, y + q, p - y, gc.where(y > p, y, q), y.clamp(max=pool[-1]))[c // 17 % 5])
                if c % 7 == 0 and pool[-1] > 1:
                    tensors.append(tensors[-1] * 2)
            return tensors[-1] + x

        calls = [(floats(5, seed=i), rng.uniform(-2, 2), rng.randrange(-4, 5)) for i in range(6)]
        assert programs(function, calls) <= 6


def test_a_training_step_takes_numbers_of_the_model_and_of_the_loss():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 2)

        def forward(self, x: Any, t: float) -> Any:
            return self.fc(x) / t

    def loss(output: Any, y: Any, weight: float, rows: int) -> Any:
        return ((output - y) ** 2)[:rows].mean() * weight

    fast, slow = Net(), Net()
    slow.load_state_dict(fast.state_dict())
    optimizers = [gc.optim.Adam(m.parameters(), lr=0.1) for m in (fast, slow)]
    step = gc.compile_step(fast, loss, optimizers[0])
    x, y = floats(4, 3), floats(4, 2, seed=1)
    for i in range(8):
        t, weight, rows = 0.5 + i, 1.0 / (i + 1), 2 + i % 2
        result = step((x, t), y, weight, rows)
        expected = loss(slow(x, t), y, weight, rows)
        optimizers[1].zero_grad()
        expected.backward()
        optimizers[1].step()
        np.testing.assert_allclose(result.item(), expected.item(), rtol=1e-5)
    for a, b in zip(fast.parameters(), slow.parameters(), strict=True):
        np.testing.assert_allclose(np.asarray(a.detach()), np.asarray(b.detach()), rtol=1e-4, atol=1e-5)
    assert len(step.graphs) == 3, "one of the first values, and one for each number of rows"


def test_a_number_that_opens_in_another_thread_is_open_in_key_and_given_numbers_or_in_neither(
    monkeypatch: pytest.MonkeyPatch,
):
    open_numbers = DynamicNumbers()
    for call in ((1.0, 1.0), (1.0, 2.0)):
        open_numbers.learn(flatten(call)[1])

    numbers_opened = []

    def open_number(number: Any) -> Open:
        numbers_opened.append(number)
        if numbers_opened == [
            4.0,
            5.0,
            5.0,
        ]:  # the structure without its numbers is known, that with open ones is being made
            open_numbers.learn(flatten((3.0, 2.0))[1])  # as another thread would
        return Open(number)

    monkeypatch.setattr(number_places, "Open", open_number)
    shape, open_values = open_numbers.split(flatten((4.0, 5.0))[1])
    assert [path for path, element in numbers(shape) if isinstance(element, Open)] == [path for path, _ in open_values]
    assert len(open_numbers.split(flatten((4.0, 5.0))[1])[1]) == 2
