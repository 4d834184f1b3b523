"""Ops seen one by one, forward and backward, without changing a number."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.eager.dispatcher import references


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.block = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.last = nn.Linear(8, 2)

    def forward(self, x):
        return self.last(self.block(gc.tanh(self.first(x))))


def test_ops_are_logged_with_module_line_ranges_and_time():
    net = Net()
    with gc.debug(net, stream=False) as log:
        loss = net(gc.ones(3, 4)).square().sum()
        loss.backward()
    ops = [e for e in log if e.kind == "op" and e.phase == "forward"]
    assert [e.op for e in ops if e.path == "first"] == ["matmul", "add"]
    tanh = next(e for e in ops if e.op == "tanh")
    assert (tanh.path, tanh.module) == ("", "Net") and tanh.line.rpartition(":")[0].endswith("test_op_watch.py")
    assert all(-1 <= r.low <= r.high <= 1 for r in tanh.outputs) and all(e.seconds > 0 for e in ops)
    gradients = [e for e in log if e.kind == "gradient"]
    assert [e.op for e in gradients if e.path == "last"] == ["add", "matmul"]
    assert gradients[0].op == "sum" and gradients[0].inputs[0].low == 1.0
    back = next(e for e in gradients if e.op == "tanh")
    assert (back.module, back.line) == ("Net", tanh.line) and back.outputs[0].shape == (3, 8)
    assert "    matmul f32[3,4] 1..1, f32[8,4]" in log.text()


def test_logging_changes_no_number():
    def train():
        gc.manual_seed(3)
        net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
        optimizer = gc.optim.Adam(net.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            net(gc.randn(5, 4)).square().mean().backward()
            optimizer.step()
        return [p.detach().numpy().copy() for p in net.parameters()]

    expected = train()
    with gc.debug(stream=False, stop="nan") as log:
        found = train()
    assert log.events and all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


def test_ops_of_a_backward_pass_are_seen_whose_forward_pass_was_not():
    x = gc.ones(3, requires_grad=True)
    with references():
        y = x.exp().sum()
        with gc.debug(stream=False) as log:
            y.backward()
    assert {(e.kind, e.phase) for e in log} == {("op", "backward")} and "mul" in [e.op for e in log]


def test_ops_of_the_backward_pass_of_what_has_become_a_program_are_seen_too():
    x = gc.ones(3, requires_grad=True)
    for _ in range(40):
        x.exp().sum().backward()
    y = x.exp().sum()
    with gc.debug(stream=False) as log:
        y.backward()
    assert {e.phase for e in log} == {"backward"} and "mul" in [e.op for e in log]
    assert x.grad is not None and np.allclose(x.grad.numpy(), 41 * np.e)


def test_an_error_in_a_gradient_rule_does_not_silence_what_follows():
    x = gc.ones(3, requires_grad=True)
    with gc.debug(stream=False) as log:
        y = x * 2
        y.register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            y.exp().sum().backward()
        x.cos()
    assert log.events[-1].op == "cos"


def test_second_derivatives_are_seen():
    x = gc.ones(3, requires_grad=True)
    with gc.debug(stream=False) as log:
        (gradient,) = gc.autograd.grad(x.exp().sum(), x, create_graph=True)
        gc.autograd.grad(gradient.sum(), x)
    assert [e.op for e in log if e.kind == "gradient"].count("exp") == 2


def test_behind_the_block_nothing_is_seen():
    x = gc.ones(3, requires_grad=True)
    with gc.debug(stream=False) as log:
        y = x.exp().sum()
    count = len(log.events)
    y.backward()
    assert len(log.events) == count and x.grad is not None


def test_a_draw_of_random_numbers_is_one_entry():
    with gc.debug(stream=False) as log:
        values = gc.randn(3, 4)
        mask = nn.Dropout(0.5)(values)
    assert [e.op for e in log][:3] == ["normal", "uniform", "ge"] and mask.shape == (3, 4)
    (draw,) = [e for e in log if e.op == "normal"]
    assert draw.outputs[0].shape == (3, 4) and draw.outputs[0].low == values.min().item() and not draw.inputs
    assert draw.line.rpartition(":")[0].endswith("test_op_watch.py") and draw.seconds > 0
