"""Batch normalizations are folded where they are the only readers of a layer's result."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphc as gc
from graphc import nn
from graphc.quantization.folding import fold_batch_norms
from tests.quantization.nets import images, net


def folded(model: Any, x: Any) -> list[str]:
    """Fold, check that the results are the same, and return the names of the layers."""
    names = {module: name for name, module in model.named_modules()}
    before = model(x).detach().numpy()
    layers = [names[layer] for layer in fold_batch_norms(model, ((x,), {}))]
    assert np.allclose(model(x).detach().numpy(), before, rtol=1e-4, atol=1e-5)
    return layers


def test_a_normalization_whose_layer_has_another_reader_stays():
    model = net()
    assert folded(model, images()) == ["first"]
    assert type(model.norm) is nn.Identity and type(model.branch) is nn.BatchNorm2d


def test_linear_layers_and_convolutions_of_every_rank_take_one_up():
    gc.manual_seed(0)
    cases = [
        (nn.Linear(4, 6), nn.BatchNorm1d(6), gc.randn(8, 4)),
        (nn.Conv1d(4, 6, 3, bias=False), nn.BatchNorm1d(6, affine=False), gc.randn(8, 4, 9)),
        (nn.Conv3d(4, 6, 2, groups=2), nn.BatchNorm3d(6), gc.randn(2, 4, 5, 4, 3)),
    ]
    for layer, norm, x in cases:
        model = nn.Sequential(layer, norm, nn.ReLU())
        model(3 * x + 1)
        assert folded(model.eval(), x) == ["0"]


def test_a_layer_that_is_called_twice_keeps_its_normalization():
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)

        def forward(self, x: Any) -> Any:
            return self.norm(self.layer(x)) + self.layer(-x)

    model = Twice()
    model(gc.randn(8, 4))
    assert folded(model.eval(), gc.randn(3, 4)) == []
    assert type(model.norm) is nn.BatchNorm1d


def test_a_normalization_may_get_its_input_by_name():
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)

        def forward(self, x: Any) -> Any:
            return self.norm(input=self.layer(input=x))

    model = Named()
    model(3 * gc.randn(8, 4) + 1)
    assert folded(model.eval(), gc.randn(3, 4)) == ["layer"]
    assert type(model.norm) is nn.Identity


def test_rows_of_features_are_not_the_channels_of_a_normalization():
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    model(gc.randn(8, 3, 4))
    assert folded(model.eval(), gc.randn(8, 3, 4)) == []
