"""Steps of fit: the numbers of a result by name, and states that are copies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError, ArtifactError
from graphc.training.stateful_step import StatefulStep, StepWeights, arguments, numbers_in


class Losses(NamedTuple):
    """Losses of two networks."""

    critic: float
    actor: float


@pytest.mark.parametrize(
    ("result", "names"),
    [
        (2.0, ["loss"]),
        (gc.tensor(2.0), ["loss"]),
        ((2.0, 3), ["loss", "loss.1"]),
        ((gc.tensor(2.0), {"accuracy": 0.5, "scores": gc.ones(2)}, gc.ones(3)), ["loss", "accuracy"]),
        ({"generator": 2.0, "discriminator": 1.0}, ["generator", "discriminator"]),
        (Losses(2.0, 1.0), ["critic", "actor"]),
        (({"generator": 2.0}, {}), ["generator"]),
    ],
)
def test_numbers_have_names(result: Any, names: list[str]):
    assert list(numbers_in(result)) == names and float(next(iter(numbers_in(result).values()))) == 2.0


@pytest.mark.parametrize("result", [None, (), gc.ones(2), {"a": gc.ones(2)}])
def test_results_without_a_number_are_refused(result: Any):
    with pytest.raises(ArgumentError, match="without a number"):
        numbers_in(result)


def test_a_batch_is_arguments():
    assert arguments((1, 2)) == (1, 2) and arguments({"x": 1}) == ({"x": 1},)


def compiled(net: nn.Module, shift: Any) -> Any:
    optimizer = gc.optim.SGD([*net.parameters(), shift], lr=0.1, momentum=0.9)
    return gc.compile_step(net, lambda output, y: ((output - y - shift) ** 2).mean(), optimizer)


def test_a_state_is_a_copy_of_all_weights():
    net, shift = nn.Linear(2, 1), nn.Parameter(gc.zeros(1))
    step = compiled(net, shift)
    stateful = StatefulStep(step, {"weights": StepWeights(step), "step": step})
    batch = gc.rand(4, 2), gc.rand(4, 1)
    stateful(batch)
    before = stateful.state()
    losses = [stateful(batch) for _ in range(3)]
    for _ in range(2):
        stateful.restore(before)
        assert shift.item() != 0 and [stateful(batch) for _ in range(3)] == losses
    other = compiled(nn.Linear(2, 1), nn.Parameter(gc.zeros(1)))
    resumed = StatefulStep(other, {"weights": StepWeights(other), "step": other})
    resumed.restore(before)
    assert resumed.names == ("loss",) and [resumed(batch) for _ in range(3)] == losses


def test_states_of_other_parts_are_refused():
    step = compiled(nn.Linear(2, 1), nn.Parameter(gc.zeros(1)))
    state = StatefulStep(step, {"weights": StepWeights(step)}).state()
    with pytest.raises(ArtifactError, match="the state is of weights, and not of weights, step"):
        StatefulStep(step, {"weights": StepWeights(step), "step": step}).restore(state)
    net = nn.Linear(2, 1)
    plain = gc.compile_step(net, nn.MSELoss(), gc.optim.SGD(net.parameters(), lr=0.1))
    with pytest.raises(ArtifactError, match="another number of modules"):
        StatefulStep(plain, {"weights": StepWeights(plain)}).restore(state)
    assert not np.array_equal(state["weights/modules/0/weight"], net.weight.detach().numpy())
