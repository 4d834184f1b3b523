"""Long programs: thousands of ops in a row, beside each other, or inside each other, traced, compiled and run."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.codegen.machine.costs import DEFAULT
from graphc.errors import TraceError
from graphc.fusion.vertical import fuse
from graphc.nn import functional as F
from graphc.passes.pipeline import optimize

LENGTHS = [200, 2000, pytest.param(10_000, marks=pytest.mark.slow)]


def check(function: Callable[..., Any], *args: Any) -> None:
    """The compiled function gives what it gives in eager mode."""
    expected = function(*args)
    np.testing.assert_allclose(gc.compile(function)(*args).numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", LENGTHS)
def test_one_op_after_the_other(length: int):
    def function(x: Any) -> Any:
        for _ in range(length):
            x = gc.sin(x)
        return x

    check(function, gc.rand(16))


@pytest.mark.parametrize("length", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_sum_of_many_arguments(length: int):
    check(lambda *args: sum(args), *(gc.full((4,), i / length) for i in range(length)))


@pytest.mark.parametrize("length", LENGTHS)
def test_a_sum_of_many_terms(length: int):
    def function(x: Any, y: Any) -> Any:
        for i in range(length):
            x = x + y * ((i % 7) / length)
        return x

    check(function, gc.rand(16), gc.rand(16))


@pytest.mark.parametrize("length", [400, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_nodes_that_read_each_other(length: int):
    def function(x: Any) -> Any:
        choose, known = random.Random(0), [x]
        for _ in range(length):
            a, b = choose.choice(known[-6:]), choose.choice(known[-6:])
            known.append(choose.choice([a + b * 0.5, gc.tanh(a) * b, gc.maximum(a, b), gc.sin(a) - b]))
        return gc.tanh(known[-1])

    graph = optimize(gc.trace(function, gc.rand(16)))
    assert max(len(group.nodes) for group in fuse(graph).groups) <= DEFAULT.fusion.longest
    check(function, gc.rand(16))


class Wrapped(nn.Module):
    """Adds one to what another module gives."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x) + 1


def nested(levels: int) -> nn.Module:
    module: nn.Module = nn.Identity()
    for _ in range(levels):
        module = Wrapped(module)
    return module


def test_modules_inside_of_modules():
    check(nested(300), gc.rand(4))


def test_calls_beyond_pythons_limit_are_a_trace_error():
    def function(x: Any) -> Any:
        return function(x + 1)

    with pytest.raises(TraceError, match="nested more deeply"):
        gc.compile(function)(gc.rand(4))
    with pytest.raises(TraceError, match="nested more deeply"):
        gc.compile_step(nested(2000), F.mse_loss, gc.optim.SGD([gc.zeros(1, requires_grad=True)], lr=0.1))(
            gc.rand(4), gc.rand(4)
        )
    check(lambda x: x + 1, gc.rand(4))  # the failed traces leave nothing behind


VIEWS: dict[str, Callable[[Any], Any]] = {
    "halves put together again": lambda x: gc.cat([x[1:], x[:1]]),
    "rolled and turned": lambda x: gc.roll(x, 1, 0).flip(0),
    "looked up": lambda x: x[gc.tensor([3, 1, 2, 0, 4, 5, 6, 7])],
    "padded and cut": lambda x: F.pad(x, (0, 0, 1, 0))[:-1],
    "padded, cut and scaled": lambda x: F.pad(x, (0, 0, 1, 0))[:-1] * 1.01,
    "turned": lambda x: x.t().reshape(8, 4),
}


@pytest.mark.parametrize("view", VIEWS)
def test_views_of_views(view: str):
    def function(x: Any) -> Any:
        for _ in range(150):
            x = VIEWS[view](x)
        return x

    check(function, gc.rand(8, 4))


def test_writes_to_parts_one_after_the_other():
    def function(x: Any) -> Any:
        y = x * 1
        for i in range(100):
            y[i % 8] = y[(i + 1) % 8] * 0.5 + x[0]
        return y

    check(function, gc.rand(8, 4))


def cpu_seconds(layers: int) -> float:
    gc.manual_seed(0)
    net = nn.Sequential(*(m for _ in range(layers) for m in (nn.Linear(8, 8), nn.ReLU()))).eval()
    start = time.process_time()
    with gc.no_grad():
        gc.compile(net)(gc.rand(4, 8))
    return time.process_time() - start


@pytest.mark.slow
def test_the_time_to_compile_grows_with_the_number_of_layers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_CACHE", "off")
    cpu_seconds(20)
    short, long = cpu_seconds(250), cpu_seconds(1000)
    assert long < 12 * short, f"250 layers took {short:.2f} s, 1,000 took {long:.2f} s"


def test_long_training_steps_train_as_in_eager_mode():
    gc.manual_seed(0)
    net = nn.Sequential(*(m for _ in range(40) for m in (nn.Linear(8, 8), nn.Tanh())))
    start = {k: v.clone() for k, v in net.state_dict().items()}
    x, y = gc.rand(4, 8), gc.rand(4, 8)
    step = gc.compile_step(net, F.mse_loss, gc.optim.Adam(net.parameters(), lr=0.01))
    found = [float(step(x, y)) for _ in range(3)]
    net.load_state_dict(start)
    optimizer = gc.optim.Adam(net.parameters(), lr=0.01)
    for loss in found:
        optimizer.zero_grad()
        expected = F.mse_loss(net(x), y)
        expected.backward()
        optimizer.step()
        assert loss == pytest.approx(float(expected), rel=1e-3)
