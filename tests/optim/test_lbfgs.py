"""L-BFGS against PyTorch on the Rosenbrock function and on a network, with saved state."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import ArgumentError, AttributeValueError
from graphc.optim import LBFGS
from graphc.optim.lbfgs import Point, cubic_minimum, strong_wolfe
from tests.nn.compare import floats


def rosenbrock(x: Any, y: Any) -> Any:
    return ((1 - x) ** 2).sum() + (100 * (y - x * x) ** 2).sum()


def bowl(x: Any, y: Any) -> Any:
    return (x**4 + x * x).sum() + ((y - x) ** 2).sum()


def run(library: Any, steps: int, save: bool = False, **options: Any) -> tuple[list[np.ndarray], list[float], Any]:
    params = [library.nn.Parameter(library.from_numpy(v.copy())) for v in (floats(3), floats(3, seed=1))]
    optimizer = library.optim.LBFGS(params, **options)
    losses = []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (rosenbrock if options.get("line_search_fn") else bowl)(*params)
        loss.backward()
        losses.append(float(loss.detach()))
        return loss

    for step in range(steps):
        if save and step == 1:
            state = optimizer.state_dict()
            optimizer = library.optim.LBFGS(params)
            optimizer.load_state_dict(state)
        optimizer.step(closure)
    return [p.detach().numpy() for p in params], losses, optimizer


@pytest.mark.parametrize(
    "options",
    [
        {"lr": 0.1},
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 8},
        {"line_search_fn": "strong_wolfe", "max_eval": 4},
    ],
)
@pytest.mark.parametrize("save", [False, True])
def test_as_torch(torch, options: dict, save: bool):
    ours, losses, mine = run(graphc, 3, save, **options)
    theirs, expected, other = run(torch, 3, save, **options)
    np.testing.assert_allclose(losses, expected, rtol=1e-5, atol=1e-10)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-8)
    a, b = mine.state_dict()["state"][0], other.state_dict()["state"][0]
    assert (a["n_iter"], a["func_evals"]) == (b["n_iter"], b["func_evals"])


def test_a_compiled_model_in_the_closure_is_fitted():
    graphc.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    fast = graphc.compile(net)
    x = graphc.linspace(-2, 2, 64).reshape(64, 1)
    y = (x * 2).sin()
    optimizer = LBFGS(net.parameters(), line_search_fn="strong_wolfe", max_iter=100)

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(fast(x), y)
        loss.backward()
        return loss

    first = optimizer.step(closure).item()
    assert optimizer.step_count == 1
    assert closure().item() < 1e-3 < first


def test_nothing_happens_at_an_optimum():
    p = nn.Parameter(graphc.ones(2))
    optimizer = LBFGS([p])

    def closure():
        optimizer.zero_grad()
        loss = ((p - 1) ** 2).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 0 and p.tolist() == [1, 1]


def test_wrong_uses():
    net = nn.Linear(2, 1)
    optimizer = LBFGS(net.parameters())
    with pytest.raises(ArgumentError, match="needs a closure"):
        optimizer.step()
    with pytest.raises(ArgumentError, match=r"LBFGS evaluates the loss.*\n  try    call LBFGS\.step\(closure\)"):
        graphc.compile_step(net, nn.functional.mse_loss, optimizer)(graphc.ones(1, 2), graphc.ones(1, 1))
    with pytest.raises(AttributeValueError, match="single group"):
        LBFGS([{"params": [net.weight]}, {"params": [net.bias]}])
    with pytest.raises(AttributeValueError, match="must be None or 'strong_wolfe', got 'wolfe'"):
        LBFGS(net.parameters(), line_search_fn="wolfe")


FUNCTIONS = {
    "parabola": (lambda t: (t - 3) ** 2, lambda t: 2 * (t - 3)),
    "far": (lambda t: (t - 300) ** 2, lambda t: 2 * (t - 300)),
    "near": (lambda t: (t - 0.01) ** 2, lambda t: 2 * (t - 0.01)),
    "waves": (
        lambda t: -t / (t * t + 2) + 0.1 * math.cos(5 * t),
        lambda t: (t * t - 2) / (t * t + 2) ** 2 - 0.5 * math.sin(5 * t),
    ),
    "steep": (lambda t: math.exp(t) - 5 * t, lambda t: math.exp(t) - 5),
}


def point(name: str, t: float) -> Point:
    value, slope = FUNCTIONS[name]
    return Point(t, value(t), np.array([slope(t)]), slope(t))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("t", [0.1, 1.0, 10.0])
def test_conditions_hold(name: str, t: float):
    start = point(name, 0.0)
    found, count = strong_wolfe(lambda t: point(name, t), start, t, 1.0, 25, 1e-9)
    assert found == point(name, found.t)
    assert found.value <= start.value + 1e-4 * found.t * start.slope
    assert abs(found.slope) <= 0.9 * abs(start.slope)
    assert 1 <= count <= 26


def test_trials_run_out():
    found, count = strong_wolfe(lambda t: point("far", t), point("far", 0.0), 0.001, 1.0, 2, 1e-9)
    assert count == 3 and found.value < point("far", 0.0).value


def test_the_cubic_of_a_parabola_has_its_minimum():
    a, b = point("parabola", 0.0), point("parabola", 5.0)
    assert cubic_minimum(a, b, 0.0, 5.0) == cubic_minimum(b, a, 0.0, 5.0) == pytest.approx(3.0)
    assert cubic_minimum(a, b, 0.0, 2.0) == 2.0
    assert cubic_minimum(a, a, 0.0, 2.0) == 1.0
    falling = Point(0.0, 0.0, np.zeros(1), -1.0), Point(1.0, -1.0, np.zeros(1), -1.0)
    assert 0.0 <= cubic_minimum(*falling, 0.0, 4.0) <= 4.0
