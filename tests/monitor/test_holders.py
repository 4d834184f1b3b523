"""Models and optimizers of a step, found through closures, objects and compiled functions, matched by name or order."""

from __future__ import annotations

import functools
from types import ModuleType

import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError
from graphc.monitor.holders import Holder, holders_of, matched


def kinds(value):
    return [(h.kind, h.name) for h in holders_of([("step", value)])]


def test_closures_objects_and_compiled_functions():
    net, other = nn.Linear(2, 1), nn.Linear(2, 1)
    opt = gc.optim.SGD(net.parameters(), lr=0.1)
    schedule = gc.optim.lr_scheduler.StepLR(opt, 1)
    loss, numbers, table = nn.MSELoss(), gc.Generator(), gc.ones(3)

    def helper(x):
        return net(x) * table

    def train(x):
        loss(helper(x), gc.randn(1, generator=numbers)).backward()
        schedule.step()

    expected = {("module", "net"), ("optimizer", "schedule.optimizer"), ("state", "schedule")}
    expected |= {("generator", "numbers"), ("tensor", "table")}
    assert set(kinds(train)) == expected == set(kinds(gc.compile(train)))
    assert kinds(functools.partial(train, 1)) == kinds(train)
    assert kinds(gc.compile(net)) == [("module", "step")]
    step = gc.compile_step(net, loss, opt)
    assert kinds(step) == [("module", "step.model"), ("optimizer", "step.optimizer"), ("state", "step")]

    class Trainer:
        def __init__(self):
            self.model, self.parts = net, {"other": other, "inner": net}

        def run(self):
            pass

    assert kinds(Trainer().run) == [("module", "step.model"), ("module", "step.parts['other']")]


def test_python_modules_hold_what_is_named():
    library = ModuleType("library")
    library.net, library.other = nn.Linear(2, 1), nn.Linear(2, 1)
    exec(compile("def run(x):\n    return library.net(x)", "run.py", "exec"), scope := {"library": library})
    assert kinds(scope["run"]) == [("module", "library.net")]


def test_matching_by_name_and_by_order():
    a, b = Holder("module", "a", 1), Holder("module", "b", 2)
    opt = Holder("optimizer", "o", 3)
    assert matched([("module", "b"), ("optimizer", "q"), ("module", "a")], [a, b, opt]) == [b, opt, a]
    assert matched([("module", "x"), ("module", "y")], [a, b]) == [a, b]
    assert matched([("tensor", "t"), ("module", "a")], [a]) == [None, a]
    with pytest.raises(ArgumentError, match=r"1 modules were recorded \(x\), and the function reaches 2 \(a, b\)"):
        matched([("module", "x")], [a, b])


def test_contents_are_put_back():
    net = nn.BatchNorm1d(2)
    opt = gc.optim.Adam(net.parameters())
    holders = holders_of([("net", net), ("opt", opt)])
    net.eval()
    with gc.no_grad():
        saved = [
            {**h.contents(), **{"tensors": {n: t.clone() for n, t in h.contents()["tensors"].items()}}} for h in holders
        ]
        net.weight.zero_()
    net.train()
    opt.step_count = 7
    net.weight.grad = gc.ones(2)
    for holder, contents in zip(holders, saved, strict=True):
        holder.restore(contents)
    assert net.weight.sum().item() == 2 and not net.training and opt.step_count == 0 and net.weight.grad is None
    with pytest.raises(ArgumentError, match="was recorded"):
        Holder("module", "net", nn.BatchNorm1d(3)).restore(saved[0])
