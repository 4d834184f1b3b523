"""Tensors, compiled models and training steps on ``cuda``, where a module in the place of cupy executes the kernels."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from tests.runtime.devices.fake_cupy import installed


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    return installed(monkeypatch)


def model():
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.25), nn.Linear(16, 4))


def test_operations_on_tensors_and_their_gradients(fake):
    host = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
    x = gc.tensor(host).cuda().requires_grad_()
    y = (x * 2 + 1).exp().sum()
    y.backward()
    assert str(x.device) == "cuda:0" and x.grad.is_cuda
    np.testing.assert_allclose(x.grad.cpu().numpy(), 2 * np.exp(2 * host + 1), rtol=1e-5)
    np.testing.assert_array_equal(x.detach().T[::2].contiguous().cpu().numpy(), host.T[::2])
    assert not any(c[0] == "end" for c in fake.calls), "single operations are not recorded"


def test_what_is_said_of_gpus():
    assert gc.cuda.is_available() and gc.cuda.device_count() == 1
    before = gc.cuda.memory_allocated()
    kept = gc.zeros(1000, device="cuda")
    assert gc.cuda.memory_allocated() - before == 4000
    assert gc.cuda.get_device_name(0) == "NVIDIA H200"
    del kept
    gc.cuda.synchronize()
    assert gc.cuda.memory_allocated() == before


@pytest.mark.parametrize("moved", [False, True])
def test_compiled_models(moved):
    net = model().eval()
    x = gc.randn(5, 8)
    expected = net(x).detach().numpy()
    compiled = gc.compile(net.cuda() if moved else net, device=None if moved else "cuda")
    for _ in range(4):
        found = compiled(x.cuda() if moved else x)
        assert found.is_cuda == moved
        np.testing.assert_allclose(found.detach().cpu().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_training_steps(fake):
    def run(place):
        net = model().to(place)
        optimizer = gc.optim.AdamW(net.parameters(), lr=0.01)
        step = gc.compile_step(net, lambda out, y: ((out - y) ** 2).mean(), optimizer)
        gc.manual_seed(1)
        x, y = gc.randn(5, 8).to(place), gc.randn(5, 4).to(place)
        losses = [float(step(x, y)) for _ in range(6)]
        return losses, [p.detach().cpu().numpy() for p in net.parameters()]

    (expected, weights), (losses, found) = run("cpu"), run("cuda")
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    for a, b in zip(found, weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    assert len({c[2] for c in fake.calls if c[0] == "launch"}) > 1, "the steps were recorded"
