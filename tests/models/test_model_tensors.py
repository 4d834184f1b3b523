"""Tensors as arguments and weights of loaded models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import GradientError, TraceError
from graphc.models.model_tensors import array_of, tensor_of


def test_tensors_own_the_arrays_that_they_are_made_of():
    array = np.ones(3, np.float32)
    assert array_of(tensor_of(array)) is array and isinstance(tensor_of(array, True), nn.Parameter)
    assert array_of([1, 2]).tolist() == [1, 2]


def test_calls_on_tensors_give_tensors_and_lose_no_gradient(tmp_path: Path):
    net = nn.Linear(4, 3).eval()
    gc.export(net, gc.zeros(2, 4), path=tmp_path / "net.gcm")
    loaded, x = gc.load(tmp_path / "net.gcm"), gc.rand(2, 4)
    found = loaded(x)
    assert isinstance(found, gc.Tensor) and isinstance(loaded(x.numpy()), np.ndarray)
    np.testing.assert_allclose(found.numpy(), net(x).detach().numpy(), rtol=1e-6)
    with pytest.raises(GradientError, match="computes no gradients"):
        loaded(x.requires_grad_(True))
    with pytest.raises(TraceError, match="cannot be part of a compiled function"):
        gc.compile(lambda y: loaded(y))(gc.rand(2, 4))
