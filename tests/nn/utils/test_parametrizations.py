"""Weight norm and spectral norm as parametrizations, compared with PyTorch."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError, IndexRangeError
from graphc.nn.utils import parametrizations
from tests.nn.compare import floats, modules_agree

LAYERS: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
    ("Linear", (4, 3), (2, 4)),
    ("Conv2d", (2, 3, 3), (1, 2, 5, 5)),
    ("ConvTranspose2d", (2, 3, 3), (1, 2, 4, 4)),
]


@pytest.mark.parametrize(("kind", "sizes", "shape"), LAYERS)
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_as_torch(torch, kind: str, sizes: Any, shape: Any, dim: int | None):
    ours = parametrizations.weight_norm(getattr(nn, kind)(*sizes), dim=dim)
    theirs = torch.nn.utils.parametrizations.weight_norm(getattr(torch.nn, kind)(*sizes), dim=dim)
    modules_agree(ours, theirs, floats(*shape))


@pytest.mark.parametrize(("kind", "sizes", "shape"), LAYERS)
@pytest.mark.parametrize("training", [True, False])
def test_spectral_norm_as_torch(torch, kind: str, sizes: Any, shape: Any, training: bool):
    ours = parametrizations.spectral_norm(getattr(nn, kind)(*sizes), n_power_iterations=2).train(training)
    theirs = torch.nn.utils.parametrizations.spectral_norm(getattr(torch.nn, kind)(*sizes), n_power_iterations=2)
    modules_agree(ours, theirs.train(training), floats(*shape))


def test_compiled_training_estimates_as_eager_training_does():
    layer = parametrizations.spectral_norm(nn.Linear(6, 4))
    other = copy.deepcopy(layer)
    x, y = graphc.randn(8, 6), graphc.randn(8, 4)
    step = graphc.compile_step(layer, nn.MSELoss(), graphc.optim.SGD(layer.parameters(), lr=0.1))
    optimizer = graphc.optim.SGD(other.parameters(), lr=0.1)
    for _ in range(3):
        step(x, y)
        optimizer.zero_grad()
        nn.MSELoss()(other(x), y).backward()
        optimizer.step()
    for name, value in other.state_dict().items():
        np.testing.assert_allclose(layer.state_dict()[name].numpy(), value.numpy(), rtol=1e-3, atol=1e-5)


def test_vectors_and_wrong_uses():
    layer = parametrizations.spectral_norm(nn.Linear(3, 2), "bias")
    assert (layer.bias * layer.bias).sum().item() == pytest.approx(1)
    with pytest.raises(AttributeValueError, match="no parameter or buffer 'w'"):
        parametrizations.spectral_norm(nn.Linear(2, 2), "w")
    with pytest.raises(AttributeValueError, match="n_power_iterations must be 1 or more, got 0"):
        parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
    with pytest.raises(IndexRangeError, match="dim 2 is out of range for a weight"):
        parametrizations.spectral_norm(nn.Linear(2, 2), dim=2)
