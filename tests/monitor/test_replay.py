"""Recorded steps run again, bit for bit, here and in another process, and differences are named."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError, NonFiniteError
from tests.monitor.steps_to_record import KINDS, make

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    result = tmp_path_factory.mktemp("recorded")
    for kind in KINDS:
        gc.manual_seed(7)
        step, _, _, batch = make(kind)
        for _ in range(3):
            step(*batch)
        with gc.debug(record=result / f"{kind}.gcr"):
            step(*batch)
    return result


def test_steps_are_replayed_bit_for_bit_in_another_process(folder):
    command = [sys.executable, "-m", "tests.monitor.steps_to_record", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["function", "loop", "step"])
def test_what_was_recorded_compiled_is_replayed_eagerly(folder, kind):
    gc.manual_seed(1)
    step, net, _, _ = make(kind)
    replayed = gc.replay(folder / f"{kind}.gcr", step, eager=True)
    ops = [e.op for e in replayed.log.events]
    assert (ops[0], ops.count("conv"), ops.count("matmul")) == ("conv", 2, 2), "forward and backward pass"
    result = replayed.values[0]
    assert result.path == "result" and result.is_within and result.relative < 1e-5
    weights = {v.path: v for v in replayed.values}
    assert all(v.is_within for name, v in weights.items() if name.endswith("last.weight")), str(replayed)
    assert net.training and replayed.op is None


def test_the_first_op_that_differs_is_named(folder):
    step, net, _, _ = make("eager")
    net.drop.p = 0.2
    result = gc.replay(folder / "eager.gcr", step)
    assert not result.is_equal and not result
    assert "in drop (Dropout)" in result.op.recorded and "drop (Dropout)" in result.op.replayed
    assert "the first op that differs" in str(result) and result.first.path == "result"
    assert json.loads(json.dumps(result.to_dict()))["equal"] is False


def test_other_models_are_refused(folder):
    net = nn.Linear(3, 2)
    with pytest.raises(ArgumentError, match=r"has 'conv.weight' as nothing, and f32\[4, 1, 3, 3\] was"):
        gc.replay(folder / "eager.gcr", make("eager")[0], model=net)
    with pytest.raises(ArgumentError, match="1 optimizers were recorded") as caught:
        gc.replay(folder / "eager.gcr", lambda x, y: net(x))
    assert "pass optimizer= to replay" in caught.value.remedy


def test_models_and_optimizers_of_other_names(folder):
    gc.manual_seed(5)
    _, a, b, _ = make("eager")

    def another(inputs, targets):
        b.zero_grad()
        loss = nn.CrossEntropyLoss()(a(inputs), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(a.parameters(), 1.0)
        b.step()
        return loss

    assert gc.replay(folder / "eager.gcr", another).is_equal

    class Trainer:
        def __init__(self):
            self.model, self.opt = a, b

        def step(self, inputs, targets):
            return another(inputs, targets)

    assert gc.replay(folder / "eager.gcr", Trainer().step, model=a, optimizer=b).is_equal


def test_a_bad_step_is_recorded_when_it_comes_and_stops_again(tmp_path, capsys):
    path = tmp_path / "bad.gcr"

    def make_step():
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        optimizer = gc.optim.SGD(net.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = net(x).abs().sum().sqrt()
            loss.backward()
            optimizer.step()
            return loss

        return net, step

    net, step = make_step()
    with gc.no_grad():
        for p in net.parameters():
            p.zero_()
    watched = gc.debug(record=path, stop="nan")(step)
    with pytest.raises(NonFiniteError, match="gradient of sqrt"):
        watched(gc.ones(3, 2))
    assert capsys.readouterr().err == f"debug: recorded step in {path}, {path.stat().st_size:,} bytes\n"
    other, again = make_step()
    result = gc.replay(path, again)
    assert isinstance(result.error, NonFiniteError) and result.error.stop.event.op == "sqrt"
    assert result.is_equal, str(result)
    assert all(not p.detach().numpy().any() for p in other.parameters())
    seen = []
    gc.replay(path, again, on_stop=seen.append)
    assert seen[0].event.op == "sqrt" and not np.isfinite(seen[0].outputs[0].numpy()).all()
    assert gc.replay(path, gc.compile(again), eager=True).error.what == result.error.what


def test_good_steps_are_not_written_where_a_stop_is_asked_for(tmp_path):
    net = nn.Linear(2, 1)
    with gc.debug(record=tmp_path / "step.gcr", stop="nan"):
        net(gc.ones(1, 2))
    assert not list(tmp_path.iterdir())


def test_compiled_steps_whose_result_is_not_finite_are_recorded(tmp_path):
    path = tmp_path / "bad.gcr"
    net = nn.Linear(2, 1)
    step = gc.compile_step(net, nn.MSELoss(), gc.optim.SGD(net.parameters(), lr=0.1))
    step(gc.ones(3, 2), gc.ones(3, 1))
    bad = gc.ones(3, 2) * 1e30
    session = gc.debug(record=path, stop="nan")
    with pytest.raises(NonFiniteError, match="step: the result is not finite after the call") as caught, session:
        step(bad, gc.ones(3, 1))
    assert "graphc.replay(" in caught.value.remedy
    result = gc.replay(path, step)
    assert result.is_equal and "not finite" in str(result)
    result = gc.replay(path, step, eager=True)
    assert not result and not result.values and result.error.stop.event.op
    assert str(result).startswith("step: raised NonFiniteError again, but elsewhere")


def test_random_numbers_of_python_and_numpy_come_again(tmp_path):
    net = nn.Linear(4, 1)

    def step(batch, *, scale=1.0, flags=()):
        noise = gc.tensor(np.random.rand(3, 4).astype(np.float32)) + random.random() + gc.rand(3, 4)
        return {"loss": net(batch["x"] + noise).sum() * scale, "flags": flags}

    with gc.debug(record=tmp_path / "step.gcr"):
        first = step({"x": gc.ones(3, 4)}, scale=2.0, flags=["a", None, (1, True)])
    result = gc.replay(tmp_path / "step.gcr", step)
    assert result.is_equal and result.result["loss"].item() == first["loss"].item()
    assert result.result["flags"] == ["a", None, (1, True)]


def test_gradients_that_were_there_before_are_there_again(tmp_path):
    net = nn.Linear(4, 1)
    x = gc.randn(3, 4)

    def step():
        net(x).sum().backward()

    step()
    with gc.debug(record=tmp_path / "step.gcr"):
        step()
    expected = net.weight.grad.numpy().copy()
    net.zero_grad()
    with gc.no_grad():
        x.zero_()
    assert gc.replay(tmp_path / "step.gcr", step).is_equal
    np.testing.assert_array_equal(net.weight.grad, expected)


def test_errors_of_the_step_that_were_not_recorded_are_raised(tmp_path):
    net = nn.Linear(4, 1)
    with gc.debug(record=tmp_path / "step.gcr"):
        net(gc.ones(1, 4))

    def broken(x):
        net(x)
        raise KeyError("new")

    with pytest.raises(KeyError):
        gc.replay(tmp_path / "step.gcr", broken)


def test_methods_refer_to_more_than_their_object(tmp_path):
    net, other = nn.Linear(2, 1), nn.Linear(2, 1)

    class Trainer:
        def __init__(self):
            self.model = net

        def run(self, x):
            return self.model(x) + other(x)

    trainer, x = Trainer(), gc.randn(3, 2)
    with gc.debug(record=tmp_path / "step.gcr"):
        trainer.run(x)
    with gc.no_grad():
        net.weight.zero_()
        other.weight.zero_()
    assert gc.replay(tmp_path / "step.gcr", trainer.run).is_equal
    assert gc.replay(tmp_path / "step.gcr", lambda x: net(x) + other(x), model=[net, other]).is_equal


def test_wrong_arguments(folder):
    step, _, _, _ = make("eager")
    for wrong, said in (
        ((3,), "function must be the function that was recorded"),
        ((step, {"model": 3}), "model must be a Module, or a list of them, got int"),
        ((step, {"optimizer": [step]}), "optimizer must be an Optimizer, or a list"),
    ):
        more = wrong[1] if len(wrong) > 1 else {}
        with pytest.raises(ArgumentError, match=said):
            gc.replay(folder / "eager.gcr", wrong[0], **more)
