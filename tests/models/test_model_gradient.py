"""Loaded models in the autograd graph: gradients of inputs and parameters, of any order, as the model has them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import GradientError
from graphc.nn import functional as F


def make_net() -> nn.Module:
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))


X, Y = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3), np.ones((5, 2), np.float32)


def gradients(model: Any, x: Any, expected: Sequence[Any], create_graph: bool = False) -> Any:
    return gc.autograd.grad(model(x).square().sum(), expected, create_graph=create_graph)


@pytest.mark.parametrize("native", [False, True])
def test_gradients_go_to_inputs(tmp_path: Path, native: bool):
    net = make_net()
    gc.export(net, X, path=tmp_path / "m.gcm", derivative=True, native=native)
    model = gc.load(tmp_path / "m.gcm", trust=native)
    assert list(model.parameters()) == []
    x = gc.tensor(X, requires_grad=True)
    (result,), (expected,) = gradients(model, x, [x]), gradients(net, x, [x])
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
    assert isinstance(model(X), np.ndarray)


@pytest.mark.parametrize("native", [False, True])
def test_parameters_train_as_those_of_the_model(tmp_path: Path, native: bool):
    net = make_net()
    gc.export(net, X, path=tmp_path / "m.gcm", derivative=True, native=native)
    model: Any = gc.load(tmp_path / "m.gcm", trainable=True, trust=native)
    assert [name for name, _ in model.named_parameters()] == [name for name, _ in net.named_parameters()]
    assert all(isinstance(p, nn.Parameter) for p in model.parameters())
    steps = [(m, gc.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)) for m in (model, net)]
    losses: list[list[float]] = [[], []]
    for _ in range(10):
        for (trained, optimizer), result in zip(steps, losses, strict=True):
            optimizer.zero_grad()
            loss = F.mse_loss(trained(gc.tensor(X)), gc.tensor(Y))
            loss.backward()
            optimizer.step()
            result.append(loss.item())
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    assert losses[0][-1] < losses[0][0] / 3
    with gc.no_grad():
        np.testing.assert_allclose(model(X), net(gc.tensor(X)).numpy(), rtol=1e-3, atol=1e-5)
    assert set(model.state_dict()) == set(net.state_dict())


def test_gradients_have_gradients(tmp_path: Path):
    net = make_net()
    gc.export(net, X, path=tmp_path / "m.gcm", derivative=True)
    model: Any = gc.load(tmp_path / "m.gcm", trainable=True)
    results = []
    for each in (model, net):
        x = gc.tensor(X, requires_grad=True)
        (first,) = gradients(each, x, [x], create_graph=True)
        results.append(gc.autograd.grad(first.square().sum(), [x, *each.parameters()], allow_unused=True))
    for a, b in zip(*results, strict=True):
        assert a is not None and b is not None and b.numpy().any()
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3, atol=1e-4)


def test_sizes_are_those_of_each_call(tmp_path: Path):
    net = make_net()
    gc.export(net, X, path=tmp_path / "m.gcm", derivative=True, dims=[(gc.Dim("batch", 1, 64),)])
    model: Any = gc.load(tmp_path / "m.gcm", trainable=True)
    for size in (3, 7):
        x = gc.tensor(np.resize(X, (size, 3)), requires_grad=True)
        result, expected = (gradients(m, x, [x, *m.parameters()]) for m in (model, net))
        for a, b in zip(result, expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3, atol=1e-4)


class Normalized(nn.Module):
    """Writes states in a training mode, and gives several outputs, one of them whole numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.norm = nn.Linear(3, 4), nn.BatchNorm1d(4)
        self.fc.bias.requires_grad_(False)

    def forward(self, x: Any, rows: Any) -> Any:
        y = self.norm(self.fc(x[rows]))
        return {"logits": y, "best": y.argmax(1), "pair": (y.mean(), rows)}


def test_states_are_written_once_and_only_what_is_trained_has_gradients(tmp_path: Path):
    gc.manual_seed(1)
    net = Normalized()
    x, rows = gc.randn(5, 3).numpy(), np.array([0, 2, 2, 4])
    gc.export(net, x, rows, path=tmp_path / "m.gcm", derivative=True)
    model: Any = gc.load(tmp_path / "m.gcm", trainable=True)
    expected = net(gc.tensor(x), gc.tensor(rows))
    result = model(gc.tensor(x), gc.tensor(rows))
    assert result["best"].tolist() == expected["best"].tolist() and not result["best"].requires_grad
    for outputs in (result, expected):
        (outputs["logits"].square().sum() + outputs["pair"][0]).backward()
    given = {name: p.grad for name, p in model.named_parameters()}
    assert given["fc.bias"] is None
    for name, parameter in net.named_parameters():
        if name != "fc.bias":
            np.testing.assert_allclose(given[name].numpy(), parameter.grad.numpy(), rtol=1e-3, atol=1e-4)
    for name, buffer in net.named_buffers():
        np.testing.assert_allclose(model.states[name], buffer.numpy(), rtol=1e-5)


def test_a_write_between_forward_and_backward_is_seen(tmp_path: Path):
    net = nn.Linear(3, 2)
    gc.export(net, X, path=tmp_path / "m.gcm", derivative=True)
    model: Any = gc.load(tmp_path / "m.gcm", trainable=True)
    y = model(gc.tensor(X, requires_grad=True)).sum()
    with gc.no_grad():
        next(iter(model.parameters())).mul_(2)
    with pytest.raises(GradientError, match="modified by an in-place operation"):
        y.backward()
    y = model(gc.tensor(X, requires_grad=True)).sum()
    model.load_state_dict(copy.copy(model.state_dict()))
    with pytest.raises(GradientError, match="modified by an in-place operation"):
        y.backward()


def test_a_model_on_a_device_has_no_gradients(tmp_path: Path):
    gc.export(nn.Linear(3, 2), X, path=tmp_path / "m.gcm", derivative=True)
    model = gc.load(tmp_path / "m.gcm", device="cuda-emu")
    with pytest.raises(Exception, match="computed on the CPU"):
        model(gc.tensor(X, requires_grad=True))
