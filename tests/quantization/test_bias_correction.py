"""Corrected biases take the mean error of each channel away."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.quantization.bias_correction import correct_biases
from tests.quantization.nets import mlp

CASES = [(nn.Linear(6, 4), (64, 6)), (nn.Conv2d(3, 5, 3, bias=False), (4, 3, 8, 8)), (nn.Conv1d(3, 5, 3), (3, 8))]


@pytest.mark.parametrize(("layer", "shape"), CASES)
def test_the_mean_error_of_each_channel_is_zero(layer: Any, shape: tuple[int, ...]):
    gc.manual_seed(0)
    x = gc.randn(*shape).square() + 0.3
    model = gc.quantize(nn.Sequential(layer), [0.3 * x])  # most inputs are clipped
    axis = -1 if isinstance(layer, nn.Linear) else -1 - layer.rank

    def errors(m: Any) -> np.ndarray:
        difference = (layer(x) - m(x)).detach().numpy()
        return np.moveaxis(difference, axis, 0).reshape(difference.shape[axis], -1).mean(1)

    before = np.abs(errors(model)).max()
    correct_biases(model, [((x,), {})])
    assert before > 0.01 and np.abs(errors(model)).max() < 1e-3 * before


def test_training_drops_the_correction_and_state_dictionaries_hold_it():
    gc.manual_seed(0)
    x = gc.randn(32, 12)
    model = gc.quantize(mlp(), [x], correct_bias=True)
    plain = gc.quantize(mlp(), [x])
    expected = model(x)
    assert "0.corrected_bias" in model.state_dict() and not gc.equal(plain(x), expected)
    fresh = copy.deepcopy(plain)
    fresh.load_state_dict(model.state_dict())
    assert gc.equal(fresh(x), expected)
    fresh.load_state_dict(plain.state_dict())
    assert gc.equal(fresh(x), plain(x))
    model.eval()
    assert gc.equal(model(x), expected)
    with gc.no_grad():
        model[0].weight *= 2
    assert model.train().eval()[0].corrected_bias is None and model[2].corrected_bias is not None
