"""Channels between layers are balanced where the function of the model allows it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.quantization.equalization import equalize_layers


def unbalanced(model: nn.Sequential) -> Any:
    """Give the output channels of the first layer very different magnitudes, which the last one takes back."""
    gc.manual_seed(0)
    with gc.no_grad():
        for i in range(model[0].weight.shape[0]):
            model[0].weight[i] *= 4.0**i
            model[0].bias[i] *= 4.0**i
    return model.eval()


def rows(layer: Any) -> np.ndarray:
    weight = np.abs(layer.weight.detach().numpy())
    return weight.reshape(len(weight), -1).max(1)


SEPARABLE = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 6, 3, groups=6), nn.ReLU(), nn.Conv2d(6, 4, 1))
CASES = [
    (nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3)), (8, 5)),
    (SEPARABLE, (2, 3, 9, 9)),
    (nn.Sequential(nn.Conv1d(3, 6, 3), nn.LeakyReLU(), nn.Conv1d(6, 4, 2, groups=2, bias=False)), (2, 3, 9)),
    (nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(24, 4)), (2, 3, 6, 6)),
]


@pytest.mark.parametrize(("model", "shape"), CASES)
def test_rows_of_one_layer_and_columns_of_the_next_have_equal_magnitudes(model: Any, shape: tuple[int, ...]):
    model, x = unbalanced(model), gc.randn(*shape)
    before = model(x).detach().numpy()
    spread = rows(model[0]).max() / rows(model[0]).min()
    pairs = equalize_layers(model, ((x,), {}))
    layers = [m for m in model if isinstance(m, (nn.Linear, nn.Conv1d, nn.Conv2d))]
    assert pairs == list(pairwise(layers))
    assert np.abs(model(x).detach().numpy() - before).max() < 1e-4 * np.abs(before).max()
    assert rows(model[0]).max() / rows(model[0]).min() < 0.1 * spread


def test_layers_with_something_between_that_does_not_scale_stay():
    model = unbalanced(nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3), nn.ReLU(), nn.Linear(3, 2)))
    weight = model[0].weight
    assert equalize_layers(model, ((gc.randn(8, 5),), {})) == [(model[2], model[4])]
    assert model[0].weight is weight


@pytest.mark.parametrize("between", [nn.ReLU6(), nn.Hardtanh(-3.0, 3.0)])
def test_limits_that_the_probe_does_not_reach_count(between: nn.Module):
    gc.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), between, nn.Linear(32, 4)).eval()
    x = gc.randn(8, 16) * 0.1
    assert float(model[0](x).abs().max()) < 3
    before = model(100 * x).detach().numpy()
    assert equalize_layers(model, ((x,), {})) == []
    assert np.array_equal(model(100 * x).detach().numpy(), before)


def test_a_result_with_another_reader_stays():
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            x = self.first(x)
            return x + self.second(x)

    assert equalize_layers(Residual(), ((gc.randn(8, 4),), {})) == []


class Named(nn.Module):
    """Two layers; the second one gets its input by name."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        return self.second(input=self.first(input=x).relu())


def test_layers_may_get_their_inputs_by_name():
    model = Named()
    assert equalize_layers(model, ((gc.randn(8, 4),), {})) == [(model.first, model.second)]


BRANCHES = {
    "the second layer is not called": lambda model, x: x,
    "the second layer is called twice": lambda model, x: model.second(x) + model.second(x),
    "the first layer is called twice": lambda model, x: model.second(x + model.first(gc.zeros(1, 4)).relu()),
    "the second layer gets fewer rows": lambda model, x: model.second(x[:3]),
}


@pytest.mark.parametrize("branch", BRANCHES)
def test_layers_whose_calls_depend_on_results_stay(branch: str):
    class Branching(Named):
        def forward(self, x: Any) -> Any:
            x = self.first(x).relu()
            return self.second(x) if float(x.max()) < 10 else BRANCHES[branch](self, x)

    gc.manual_seed(0)
    assert equalize_layers(Branching(), ((gc.randn(8, 4),), {})) == []


def test_a_shared_weight_stays_shared():
    model = unbalanced(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)))
    model[2].weight = model[0].weight
    assert equalize_layers(model, ((gc.randn(8, 4),), {})) == [] and model[2].weight is model[0].weight


def test_one_scale_per_weight_gains_from_it():
    model = unbalanced(nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)))
    with gc.no_grad():
        for i in range(8):
            model[2].weight[:, i] /= 4.0**i
    x = gc.randn(64, 16)
    exact = model(x)
    plain, equal = (gc.quantize(model, [x], per_channel=False, equalize=flag) for flag in (False, True))
    errors = [float((m(x) - exact).square().mean()) for m in (plain, equal)]
    assert errors[1] < 0.1 * errors[0]
    assert equal.quantization.equalized == (("0", "2"),) and plain.quantization.equalized == ()
