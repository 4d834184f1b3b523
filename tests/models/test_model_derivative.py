"""The derivative of an entry: what its graphs take and give, and the entry for who wants gradients as outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def test_outputs_and_gradients_come_together(tmp_path: Path):
    net = nn.Linear(3, 2)
    gc.export(net, X, path=tmp_path / "m.gcm", derivative=True)
    model = gc.load(tmp_path / "m.gcm")
    assert list(model.entries) == ["forward", "vjp"]
    seed = np.array([[1, 2], [3, 4]], np.float32)
    found = model.entry("vjp")(X, seed)
    np.testing.assert_allclose(found["outputs"], net(gc.tensor(X)).detach().numpy(), rtol=1e-5)
    assert list(found["gradients"]) == ["input", "weight", "bias"]
    np.testing.assert_allclose(found["gradients"]["input"], seed @ net.weight.detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(found["gradients"]["weight"], seed.T @ X, rtol=1e-5)
    np.testing.assert_allclose(found["gradients"]["bias"], seed.sum(0), rtol=1e-5)


def test_the_parts_say_what_goes_across(tmp_path: Path):
    manifest = gc.export(nn.Sequential(nn.Linear(3, 4), nn.Tanh()), X, path=tmp_path / "m.gcm", derivative=True)
    spec = manifest.first
    forward, backward = (manifest.entry(f"forward.{part}") for part in ("forward", "backward"))
    assert spec.derivative is not None
    assert forward.inputs == spec.inputs and len(forward.outputs) == 1 + spec.derivative.residuals
    taken = spec.derivative.residuals + len(spec.derivative.kept) + len(spec.derivative.outputs)
    assert len(backward.inputs) == taken
    assert len(backward.outputs) == len(spec.derivative.inputs) + len(spec.derivative.params)
    assert spec.derivative.params == ("0.weight", "0.bias") and spec.derivative.inputs == (0,)


def test_several_entries_each_have_their_own(tmp_path: Path):
    net = nn.Linear(3, 3)
    entries = {
        "once": gc.Entry(net, X, derivative=True),
        "twice": gc.Entry(lambda x: net(net(x)), X, derivative=True),
        "plain": gc.Entry(lambda x: x.round(), X),
    }
    gc.export(entries, path=tmp_path / "m.gcm", root=net)
    model = gc.load(tmp_path / "m.gcm", trainable=True)
    assert list(model.entries) == ["once", "once_vjp", "twice", "twice_vjp", "plain"]
    x = gc.tensor(X)
    (model.entry("twice")(x) + model(x)).sum().backward()
    (net(net(x)) + net(x)).sum().backward()
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(parameter.grad.numpy(), getattr(net, name).grad.numpy(), rtol=1e-4)


def test_what_has_no_gradient_is_refused(tmp_path: Path):
    with pytest.raises(ArgumentError, match="no output of main has a gradient"):
        gc.export(lambda x: x.argmax(), X, path=tmp_path / "m.gcm", derivative=True)
    with pytest.raises(ArgumentError, match="constants of the graph have no derivative"):
        gc.export(nn.Linear(3, 2), X, path=tmp_path / "m.gcm", derivative=True, precision="bf16")
    with pytest.raises(ArgumentError, match="constants of the graph have no derivative"):
        entries = {"net": gc.Entry(nn.Linear(3, 2), X, derivative=True)}
        gc.export(entries, path=tmp_path / "m.gcm", precision="int8")
    assert not list(tmp_path.iterdir())
