"""Schedules that go up and down: where they turn, how high they go, and what the momentum does meanwhile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError
from graphc.optim import SGD, Adagrad, Adam
from graphc.optim.cycles import CyclicLR, OneCycleLR


def optimizer(kind: Any = SGD, **options: Any) -> Any:
    return kind([nn.Parameter(graphc.ones(1))], lr=0.5, **options)


def course(stepped: Any, schedule: Any, count: int) -> tuple[list[float], list[float]]:
    """Rates and momenta of so many steps."""
    rates, momenta = [], []
    for _ in range(count):
        group = stepped.param_groups[0]
        rates.append(group["lr"])
        momenta.append(group["betas"][0] if "betas" in group else group["momentum"])
        stepped.step()
        schedule.step()
    return rates, momenta


@pytest.mark.parametrize(("mode", "second"), [("triangular", 1.0), ("triangular2", 0.5), ("exp_range", 0.9**6)])
def test_cycles(mode: str, second: float):
    sgd = optimizer(momentum=0.9)
    schedule = CyclicLR(sgd, 0.1, 0.5, step_size_up=2, mode=mode, gamma=0.9)
    rates, momenta = course(sgd, schedule, 9)
    assert rates[0] == rates[4] == pytest.approx(rates[8]) == 0.1
    assert rates[6] == pytest.approx(0.1 + 0.4 * second)
    assert rates[2] == pytest.approx(0.1 + 0.4 * (0.81 if mode == "exp_range" else 1))
    np.testing.assert_allclose(np.subtract(rates, 0.1) / 0.4, np.subtract(0.9, momenta) / 0.1, atol=1e-12)


def test_slow_down():
    sgd = optimizer(momentum=0.9)
    rates, _ = course(sgd, CyclicLR(sgd, 0.0, 1.0, 1, 4, cycle_momentum=False), 6)
    np.testing.assert_allclose(rates, [0, 1, 0.75, 0.5, 0.25, 0], atol=1e-12)


@pytest.mark.parametrize(("mode", "expected"), [("cycle", [1, 1, 1, 1, 2, 2]), ("iterations", [0, 1, 2, 3, 4, 5])])
def test_a_scale_of_ones_own(mode: str, expected: list[int]):
    arguments = []
    sgd = optimizer(momentum=0.9)
    schedule = CyclicLR(sgd, 0.1, 0.2, 2, scale_fn=lambda x: arguments.append(x) or 1.0, scale_mode=mode)
    course(sgd, schedule, 5)
    assert arguments == expected


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("kind", [SGD, Adam])
def test_one_cycle(strategy: str, kind: Any):
    stepped = optimizer(kind, **({"momentum": 0.5} if kind is SGD else {}))
    schedule = OneCycleLR(stepped, 1.0, total_steps=12, pct_start=0.5, anneal_strategy=strategy, div_factor=10.0)
    rates, momenta = course(stepped, schedule, 12)
    peak = int(np.argmax(rates))
    assert (rates[0], max(rates)) == (pytest.approx(0.1), pytest.approx(1.0))
    assert rates[-1] == pytest.approx(0.1 / 1e4)
    assert rates == sorted(rates[: peak + 1]) + sorted(rates[peak + 1 :], reverse=True)
    assert np.argmin(momenta) == peak
    assert momenta[0] == momenta[-1] == pytest.approx(0.95)


def test_three_phases_return_to_the_start():
    sgd = optimizer(momentum=0.9)
    schedule = OneCycleLR(sgd, 1.0, epochs=3, steps_per_epoch=5, pct_start=0.4, three_phase=True, div_factor=4.0)
    rates, _ = course(sgd, schedule, 15)
    assert rates[10] == pytest.approx(rates[0]) == 0.25
    assert rates[5] == 1.0
    with pytest.raises(AttributeValueError, match="after the last one, 15"):
        schedule.step()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda o: CyclicLR(o, 0.1, 0.2, mode="square"), "unknown mode 'square'"),
        (lambda o: CyclicLR(o, [0.1, 0.2], 0.2), "2 values of base_lr for 1 groups"),
        (lambda o: CyclicLR(optimizer(Adagrad), 0.1, 0.2), "no momentum"),
        (lambda o: OneCycleLR(optimizer(Adagrad), 0.1, 5), "no momentum"),
        (lambda o: OneCycleLR(o, 0.1, epochs=2), "pass total_steps"),
    ],
)
def test_errors(make: Any, text: str):
    with pytest.raises(AttributeValueError, match=text):
        make(optimizer(momentum=0.9))
