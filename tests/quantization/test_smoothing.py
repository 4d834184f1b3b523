"""Large channels of normalizations move into the linear layers that read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.quantization.smoothing import smooth_norms
from tests.quantization.nets import mlp


class Block(nn.Module):
    """A normalization with two linear readers and, if ``is_shared``, a third reader."""

    def __init__(self, kind: Any = nn.LayerNorm, is_shared: bool = False) -> None:
        super().__init__()
        self.norm, self.is_shared = kind(8), is_shared
        self.first, self.second = nn.Linear(8, 4), nn.Linear(8, 4, bias=False)
        with gc.no_grad():
            self.norm.weight[3] *= 100

    def forward(self, x: Any) -> Any:
        x = self.norm(x)
        return self.first(x) + self.second(input=x) + (x.sum(-1, keepdim=True) if self.is_shared else 0)


@pytest.mark.parametrize("kind", [nn.LayerNorm, nn.RMSNorm])
def test_channels_have_the_magnitude_that_the_exponent_gives(kind: Any):
    gc.manual_seed(0)
    model, batches = Block(kind).eval(), [((gc.randn(16, 8),), {}) for _ in range(2)]
    before = [model(*args).detach().numpy() for args, _ in batches]
    rows = np.concatenate([model.norm(*args).detach().numpy() for args, _ in batches])
    inputs = np.abs(rows).max(0)
    columns = np.abs(np.concatenate([model.first.weight.detach().numpy(), model.second.weight.detach().numpy()])).max(0)
    assert smooth_norms(model, batches, 0.5) == [model.norm]
    assert all(
        np.allclose(model(*args).detach().numpy(), y, atol=1e-4) for (args, _), y in zip(batches, before, strict=True)
    )
    smooth = np.abs(np.concatenate([model.norm(*args).detach().numpy() for args, _ in batches])).max(0)
    assert np.allclose(smooth, np.sqrt(inputs * columns), rtol=1e-4)


def test_a_normalization_with_another_reader_or_a_shared_weight_stays():
    batches = [((gc.randn(16, 8),), {})]
    model = Block(is_shared=True).eval()
    weight = model.norm.weight
    assert smooth_norms(model, batches, 0.5) == [] and model.norm.weight is weight
    tied = Block().eval()
    tied.second.weight = tied.first.weight
    assert smooth_norms(tied, batches, 0.5) == []
    assert smooth_norms(mlp(), [((gc.randn(2, 12),), {})], 0.5) == []


def test_quantized_layers_gain_from_it():
    gc.manual_seed(0)
    model, data = Block().eval(), [gc.randn(64, 8) for _ in range(2)]
    plain, smooth = gc.quantize(model, data), gc.quantize(model, data, smooth=0.5)
    assert smooth.quantization.smoothed == ("norm",) and plain.quantization.smoothed == ()
    exact = model(data[0])
    errors = [float((m(data[0]) - exact).square().mean()) for m in (plain, smooth)]
    assert errors[1] < 0.2 * errors[0]
