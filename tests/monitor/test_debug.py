"""debug: a log of modules that stops at the first NaN, in eager mode and in compiled code."""

from __future__ import annotations

import contextlib
import json
import time
import warnings

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError, NonFiniteError
from graphc.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.block = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.last = nn.Linear(8, 2)

    def forward(self, x):
        return self.last(self.block(gc.tanh(self.first(x))))


ORDER = ["first", "block.0", "block.1", "block", "last", ""]


@pytest.mark.parametrize("compiled", [False, True])
def test_the_log_names_modules_classes_and_ranges(compiled):
    gc.manual_seed(0)
    net = Net()
    model = gc.compile(net) if compiled else net
    start = time.perf_counter()
    with gc.no_grad(), gc.debug(net, ops=False, stream=False) as log:
        out = model(gc.ones(3, 4))
    elapsed = time.perf_counter() - start
    assert [e.path for e in log] == ORDER
    assert [e.module for e in log][:3] == ["Linear", "Linear", "ReLU"]
    last = log.events[-1]
    assert last.outputs[0].shape == (3, 2) and last.outputs[0].dtype == "f32"
    np.testing.assert_allclose(last.outputs[0].high, out.max().item(), rtol=1e-5)
    assert "block.1 (ReLU): f32[3,8]" in str(log) and all(0 < e.seconds < elapsed for e in log)
    with gc.no_grad():
        model(gc.ones(3, 4))
    assert len(log.events) == len(ORDER), "behind the block nothing is logged"


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_logged(compiled):
    net = Net()
    model = gc.compile(net) if compiled else net
    with gc.debug(net, ops=False, backward=True, stream=False) as log:
        model(gc.ones(3, 4, requires_grad=True)).sum().backward()
    assert [e.path for e in log if e.phase == "backward"] == ["last", "block.1", "block.0", "block", "first", ""]


def spoil_weight(net, rng):
    parameter = [p for n, p in net.named_parameters() if n.startswith(("first", "block", "last"))][rng.integers(6)]
    with gc.no_grad():
        parameter.view(-1)[int(rng.integers(parameter.numel()))] = float(rng.choice([np.nan, np.inf, -np.inf]))
    return next(n for n, p in net.named_parameters() if p is parameter).rpartition(".")[0]


@pytest.mark.parametrize("compiled", [False, True])
def test_injected_numbers_are_found_where_they_are(compiled):
    rng = np.random.default_rng(0)
    for _ in range(20 if not compiled else 6):
        net = Net()
        place = spoil_weight(net, rng)
        model = gc.compile(net) if compiled else net
        with gc.no_grad(), pytest.raises(NonFiniteError) as caught, gc.debug(net, stop="nan"):
            model(gc.rand(3, 4) + 0.5)
        assert f"{place} (Linear)" in caught.value.what and "f32[3," in caught.value.where


def test_the_first_nan_of_a_training_step():
    class Loss(nn.Module):
        def forward(self, x):
            return gc.log(x - 1).sum()

    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), Loss())
    train = gc.compile(lambda x: net(x))
    with pytest.raises(NonFiniteError, match=r"2 \(Loss\)"), gc.debug(net, stop="nan"):
        train(gc.zeros(1, 2))


def test_models_that_are_well_raise_nothing():
    net = Net()
    compiled = gc.compile(net)
    optimizer = gc.optim.SGD(net.parameters(), lr=0.1)
    with gc.debug(net, stop="nan", backward=True, ops=False, limit=10) as log:
        for _ in range(5):
            optimizer.zero_grad()
            F.cross_entropy(compiled(gc.randn(3, 4)), gc.tensor([0, 1, 0])).backward()
            optimizer.step()
    assert len(log.text().splitlines()) <= 11 and "events before" in log.text()


def test_stopping_at_a_module():
    net, seen = Net(), []
    stop = lambda stop: seen.append((type(stop.module).__name__, tuple(stop.inputs[0].shape)))  # noqa: E731
    with gc.no_grad(), gc.debug(net, stop="block.1", on_stop=stop):
        net(gc.ones(3, 4))
        gc.compile(net)(gc.ones(5, 4))
    assert seen == [("ReLU", (3, 8)), ("ReLU", (5, 8))]
    with pytest.raises(ArgumentError, match=r"there is no module 'block\.7'"):
        gc.debug(net, stop="block.7")


def test_without_a_model_all_modules_are_logged():
    with gc.no_grad(), gc.debug(ops=False, stream=False) as log:
        nn.Sequential(nn.Linear(2, 2), nn.Tanh())(gc.ones(1, 2))
    assert [e.module for e in log] == ["Linear", "Tanh", "Sequential"] and log.events[0].path == "0"


@pytest.mark.parametrize("in_place", [False, True])
def test_compiled_functions_run_their_python_code(in_place):
    net = Net()
    fast = net if in_place else gc.compile(net)
    if in_place:
        net.compile()
    with gc.no_grad():
        expected = fast(gc.ones(3, 4))
        with gc.debug(eager=True, stream=False) as log:
            found = fast(gc.ones(3, 4))
        assert [e.path for e in log if e.kind == "module"] == ORDER
        assert {"matmul", "tanh"} <= {e.op for e in log}
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        count = len(log.events)
        fast(gc.ones(3, 4))
        assert len(log.events) == count


def test_compiled_code_says_what_is_not_seen():
    fast = gc.compile(Net())
    with gc.no_grad(), gc.debug(stream=False) as log:
        fast(gc.ones(3, 4))
        fast(gc.ones(3, 4))
    assert log.text().count("# compiled code") == 1 and "eager=True" in log.text()


def test_a_log_goes_on_after_an_error():
    net = Net()
    with gc.debug(net, stream=False) as log:
        for width in (5, 4):
            with contextlib.suppress(gc.errors.ShapeError):
                net(gc.ones(3, width))
    assert [e.path for e in log if e.kind == "module"] == ORDER and log.events[-1].depth == 0


def test_logs_are_printed_and_written(capsys, tmp_path):
    with gc.debug(modules="Linear", names="mat*"):
        Net()(gc.ones(3, 4))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "  first (Linear): f32[3,4] 1..1" and len([x for x in lines if "matmul" in x]) == 3
    with gc.debug(log=tmp_path / "calls.jsonl") as log:
        Net()(gc.ones(3, 4))
    found = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert found == log.to_dict()["events"] and not capsys.readouterr().err


def test_a_session_as_a_decorator_and_wrong_uses():
    session = gc.debug(stream=False)
    session(lambda: gc.ones(2).exp())()
    assert [e.op for e in session] == ["exp"]
    with pytest.raises(ArgumentError, match="running already"), session, session:
        pass
    with pytest.raises(ArgumentError, match="inside a function that is being compiled"):
        gc.compile(session(lambda x: x.exp()))(gc.ones(2))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"model": 3}, "must be a Module, or a compiled one, got int"),
        ({"model": nn.Linear}, "got the class Linear"),
        ({"limit": -1}, "limit must be a number of events of at least 0"),
        ({"on_stop": print}, "on_stop needs stop="),
        ({"stop": "nan", "on_stop": 3}, "on_stop must be a function, got 3"),
        ({"names": "sofmax"}, "there is no op 'sofmax' to log"),
        ({"stream": 3}, "stream must be a file, True or False"),
        ({"log": "/no/such/folder/log.jsonl"}, "there is no folder to write '/no/such/folder/log.jsonl' to"),
        ({"record": 5}, "log and record must be paths of files, got 5"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(wrong, said):
    with pytest.raises(ArgumentError, match=said):
        gc.debug(**wrong)


def test_modules_to_log_are_those_of_the_model_and_steps_are_none():
    net = Net()
    with pytest.raises(ArgumentError, match="there is no module 'lost' to log"):
        gc.debug(net, modules="lost")
    with pytest.raises(ArgumentError, match="got CompiledStep") as caught:
        gc.debug(gc.compile_step(net, nn.MSELoss(), gc.optim.SGD(net.parameters(), lr=0.1)))
    assert caught.value.remedy == "pass its model: debug(step.model)"


def test_hooks_that_only_look_do_not_warn():
    net = nn.Sequential(nn.Embedding(4, 3), nn.Linear(3, 2))
    with warnings.catch_warnings(), gc.debug(net, ops=False, backward=True, stream=False) as log:
        warnings.simplefilter("error")
        net(gc.tensor([0, 1])).sum().backward()
    assert [e.path for e in log if e.phase == "backward"] == ["", "1", "0"]


def test_modules_in_steps_of_loops_are_said_not_to_be_seen():
    net = nn.Linear(3, 3)

    def run(x):
        return gc.scan(lambda h, v: (net(h) + v, h), x[0], x)[0]

    with gc.no_grad(), gc.debug(stream=False) as log:
        gc.compile(run)(gc.randn(4, 3))
    assert "(Linear) is not logged: compiled code calls it in a loop or a branch" in log.text()
    with gc.debug(ops=False, backward=True, stream=False):
        gc.trace(net, gc.ones(2, 3))
