"""Training steps as entries of model files: they go on where the step is, and give the same numbers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError
from graphc.nn import functional as F

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)
Y = np.arange(8) % 2


def make_net() -> nn.Module:
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))


def make_step(net: nn.Module, **more: Any) -> Any:
    return gc.compile_step(net, F.cross_entropy, gc.optim.AdamW(net.parameters(), lr=0.01), **more)


def save(tmp_path: Path, calls: int = 0) -> tuple[Any, Any]:
    """A net and its step, after some calls, and a file of them."""
    net = make_net()
    step = make_step(net)
    for _ in range(calls):
        step(gc.tensor(X), gc.tensor(Y))
    entries = {"infer": gc.Entry(net, X, train=False), "train_step": gc.Entry(step, gc.tensor(X), gc.tensor(Y))}
    gc.export(entries, path=tmp_path / "t.gcm")
    return net, step


@pytest.mark.parametrize("calls", [0, 3])
def test_a_file_trains_as_the_step_does(tmp_path: Path, calls: int):
    net, step = save(tmp_path, calls)
    model = gc.load(tmp_path / "t.gcm")
    train = model.entry("train_step")
    found = [float(train(X, Y)) for _ in range(5)]
    expected = [step(gc.tensor(X), gc.tensor(Y)).item() for _ in range(5)]
    assert found == expected
    for name, tensor in net.state_dict().items():
        np.testing.assert_array_equal(model.state_dict()[name].numpy(), tensor.numpy())
    np.testing.assert_allclose(model(X), net.eval()(gc.tensor(X)).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_states_have_names_of_the_model_and_of_the_optimizer(tmp_path: Path):
    net, _ = save(tmp_path)
    names = set(gc.load(tmp_path / "t.gcm").state_dict())
    assert names >= set(net.state_dict())
    assert {"optimizer.0.weight.exp_avg", "optimizer.4.bias.step", "optimizer.group0.lr", "graphc.random"} <= names


def test_by_itself_a_step_is_the_entry_train_step(tmp_path: Path):
    step = make_step(make_net())
    manifest = gc.export(step, gc.tensor(X), gc.tensor(Y), path=tmp_path / "t.gcm")
    assert [e.name for e in manifest.entries] == ["train_step"]
    model = gc.load(tmp_path / "t.gcm")
    assert float(model(X, Y)) == step(gc.tensor(X), gc.tensor(Y)).item()


GO_ON = """
import sys, numpy as np, graphc as gc
file, state, out, calls = sys.argv[1:]
model = gc.load(file)
if state != "-":
    model.load_state_dict(gc.load(state))
x, y = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3), np.arange(8) % 2
print([float(model.entry("train_step")(x, y)) for _ in range(int(calls))])
gc.save(model.state_dict(), out)
"""


def test_a_run_that_was_interrupted_goes_on_bit_equal_in_another_process(tmp_path: Path):
    pytest.importorskip("safetensors")
    save(tmp_path)

    def run(state: str, out: str, calls: int) -> list[float]:
        arguments = [str(tmp_path / "t.gcm"), state, str(tmp_path / out), str(calls)]
        done = subprocess.run([sys.executable, "-c", GO_ON, *arguments], capture_output=True, text=True, check=True)
        return eval(done.stdout)

    whole = run("-", "whole.safetensors", 6)
    first = run("-", "half.safetensors", 3)
    assert first + run(str(tmp_path / "half.safetensors"), "end.safetensors", 3) == whole
    assert (tmp_path / "end.safetensors").read_bytes() == (tmp_path / "whole.safetensors").read_bytes()


def test_the_rate_is_a_state_that_keeps_its_value(tmp_path: Path):
    _, step = save(tmp_path)
    model = gc.load(tmp_path / "t.gcm")
    assert float(model.states["optimizer.group0.lr"]) == pytest.approx(0.01)
    model.load_state_dict({"optimizer.group0.lr": 0.001}, strict=False)
    step.optimizer.param_groups[0]["lr"] = 0.001
    for _ in range(2):
        expected = step(gc.tensor(X), gc.tensor(Y)).item()
        assert float(model.entry("train_step")(X, Y)) == expected
    assert float(model.states["optimizer.group0.lr"]) == pytest.approx(0.001)


def test_steps_for_several_sizes_share_all_states(tmp_path: Path):
    net = make_net()
    step = make_step(net)
    entries = {
        "large": gc.Entry(step, gc.tensor(X), gc.tensor(Y)),
        "small": gc.Entry(step, gc.tensor(X[:4]), gc.tensor(Y[:4])),
    }
    gc.export(entries, path=tmp_path / "t.gcm")
    model = gc.load(tmp_path / "t.gcm")
    for _ in range(3):
        found = [float(model(X, Y)), float(model.entry("small")(X[:4], Y[:4]))]
        assert found == [step(gc.tensor(X), gc.tensor(Y)).item(), step(gc.tensor(X[:4]), gc.tensor(Y[:4])).item()]
    assert not [name for name in model.states if name.startswith(("small.", "large."))]


def test_a_step_with_named_dimensions_takes_all_sizes(tmp_path: Path):
    net = make_net()
    batch = gc.Dim("batch", 2, 32)
    step = make_step(net, dims=[(batch,), (batch,)])
    gc.export(step, gc.tensor(X), gc.tensor(Y), path=tmp_path / "t.gcm")
    model = gc.load(tmp_path / "t.gcm")
    for size in (8, 4, 6):
        expected = step(gc.tensor(X[:size]), gc.tensor(Y[:size])).item()
        assert float(model(X[:size], Y[:size])) == pytest.approx(expected, rel=1e-5)


def test_what_the_loss_returns_is_what_a_call_returns(tmp_path: Path):
    net = nn.Linear(3, 2)

    def loss(output: Any, y: Any) -> Any:
        return F.cross_entropy(output, y), {"right": (output.argmax(1) == y).sum()}

    step = gc.compile_step(net, loss, gc.optim.SGD(net.parameters(), lr=0.1), clip_norm=1.0, ema=0.9)
    gc.export(step, gc.tensor(X), gc.tensor(Y), path=tmp_path / "t.gcm")
    model = gc.load(tmp_path / "t.gcm")
    for _ in range(2):
        found, expected = model(X, Y), step(gc.tensor(X), gc.tensor(Y))
        assert float(found[0]) == expected[0].item() and int(found[1]["right"]) == expected[1]["right"].item()


def test_a_dynamic_loss_scale_goes_along(tmp_path: Path):
    net = make_net()
    step = make_step(net, loss_scale="dynamic")
    gc.export(step, gc.tensor(X), gc.tensor(Y), path=tmp_path / "t.gcm")
    model = gc.load(tmp_path / "t.gcm")
    for _ in range(3):
        assert float(model(X, Y)) == step(gc.tensor(X), gc.tensor(Y)).item()


@pytest.mark.parametrize("more", [{"accumulate": 2}, {"first_nan": True}])
def test_what_runs_in_python_is_refused_by_name(tmp_path: Path, more: dict[str, Any]):
    step = make_step(make_net(), **more)
    with pytest.raises(ArgumentError, match=f"has {next(iter(more))}, which run in Python"):
        gc.export(step, gc.tensor(X), gc.tensor(Y), path=tmp_path / "t.gcm")
    assert not list(tmp_path.iterdir())


def make_function(net: nn.Module, scaler: Any = None, **more: Any) -> Any:
    optimizer = gc.optim.AdamW(net.parameters(), lr=0.01)

    @gc.compile(**more)
    def train(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        (loss if scaler is None else scaler.scale(loss)).backward()
        if scaler is not None:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        (optimizer if scaler is None else scaler).step(*[] if scaler is None else [optimizer])
        if scaler is not None:
            scaler.update()
        return {"loss": loss}

    return train


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("calls", [0, 3])
def test_a_file_trains_as_a_compiled_function_and_a_step_do(tmp_path: Path, calls: int, scaled: bool):
    batch, net = (gc.tensor(X), gc.tensor(Y)), make_net()
    step = make_step(net, clip_norm=0.5, loss_scale="dynamic" if scaled else None)
    expected = [step(*batch).item() for _ in range(5 + calls)][calls:]
    net = make_net()
    train = make_function(net, gc.amp.GradScaler() if scaled else None)
    for _ in range(calls):
        train(*batch)
    entries = {"infer": gc.Entry(net, X, train=False), "train": gc.Entry(train, *batch)}
    gc.export(entries, path=tmp_path / "t.gcm")
    model = gc.load(tmp_path / "t.gcm")
    found = [float(model.entry("train")(X, Y)["loss"]) for _ in range(5)]
    assert found == [train(*batch)["loss"].item() for _ in range(5)] == expected
    for name, tensor in net.state_dict().items():
        np.testing.assert_array_equal(model.state_dict()[name].numpy(), tensor.numpy())
    assert {"0.weight", "optimizer.0.weight.exp_avg", "optimizer.group0.lr", "graphc.random"} <= set(model.states)
    assert ("grad_scaler.scale" in model.states) is scaled


def test_the_rate_of_a_function_is_a_state_of_its_file(tmp_path: Path):
    net = make_net()
    train = make_function(net)
    gc.export(train, gc.tensor(X), gc.tensor(Y), path=tmp_path / "t.gcm")
    model = gc.load(tmp_path / "t.gcm")
    model.load_state_dict({"optimizer.group0.lr": 0.0, "optimizer.group0.weight_decay": 0.0}, strict=False)
    before = model.state_dict()["0.weight"].numpy().copy()
    model(X, Y)
    np.testing.assert_array_equal(model.state_dict()["0.weight"].numpy(), before)


def test_a_function_with_two_networks_and_optimizers(tmp_path: Path):
    gc.manual_seed(0)
    maker, critic = nn.Linear(4, 6), nn.Linear(6, 1)
    first, second = gc.optim.Adam(maker.parameters(), lr=1e-3), gc.optim.Adam(critic.parameters(), lr=1e-2)

    @gc.compile
    def play(real: Any, noise: Any) -> Any:
        second.zero_grad()
        fake = maker(noise)
        critic_loss = (critic(fake.detach()) - critic(real)).mean()
        critic_loss.backward()
        second.step()
        first.zero_grad()
        maker_loss = -critic(fake).mean()
        maker_loss.backward()
        first.step()
        return critic_loss, maker_loss

    real, noise = gc.randn(8, 6), gc.randn(8, 4)
    gc.export(play, real, noise, path=tmp_path / "t.gcm")
    model = gc.load(tmp_path / "t.gcm")
    assert {"maker.weight", "critic.weight", "optimizer.group0.lr", "optimizer.group0.lr.1"} <= set(model.states)
    for _ in range(3):
        expected = [loss.item() for loss in play(real, noise)]
        assert [float(loss) for loss in model(real.numpy(), noise.numpy())] == expected


def test_compiled_functions_that_do_not_train_are_exported_as_before(tmp_path: Path):
    double = gc.compile(lambda x: x * 2)
    gc.export(double, gc.zeros(3), path=tmp_path / "t.gcm")
    assert gc.load(tmp_path / "t.gcm")(gc.ones(3)).tolist() == [2, 2, 2]


def test_what_a_file_cannot_repeat_of_a_function_is_refused(tmp_path: Path):
    net, batch = make_net(), (gc.tensor(X), gc.tensor(Y))

    def gradients(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        return loss

    with pytest.raises(ArgumentError, match="gradients has gradients that stay in grad"):
        gc.export(gc.compile(gradients), *batch, path=tmp_path / "t.gcm")
    with pytest.raises(ArgumentError, match="train has first_nan, which run in Python"):
        gc.export(make_function(net, first_nan=True), *batch, path=tmp_path / "t.gcm")
    with pytest.raises(ArgumentError, match="no derivative and no dims for a function that trains"):
        gc.export(make_function(net), *batch, path=tmp_path / "t.gcm", derivative=True)
    assert not list(tmp_path.iterdir())
