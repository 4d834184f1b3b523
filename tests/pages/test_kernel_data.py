"""Kernels as plain data: the nodes behind them, the node that shows their time."""

from __future__ import annotations

import numpy as np

import graphc as gc
from graphc import nn
from graphc.compiler.freeze import freeze
from graphc.compiler.profile import profile
from graphc.compiler.stages import Stages
from graphc.models.model_trace import snapshot
from graphc.nn import functional as F
from graphc.pages.kernel_data import kernels_data


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        return F.softmax(F.relu(self.fc(x)), 1)


def stages_of(function, *examples) -> Stages:
    result = snapshot(function, list(examples))
    return Stages(freeze(result.graph, result.state()))


def test_kernels_without_times():
    stages = stages_of(Net().eval(), gc.zeros(2, 6))
    result = kernels_data(stages, None)
    assert result["profile"] is None and not any("seconds" in k for k in result["kernels"])
    assert [k["number"] for k in result["kernels"]] == list(range(len(stages.scheduled.calls)))
    assert all(result["texts"][k["name"]].startswith("kernel @") for k in result["kernels"])
    product = next(k for k in result["kernels"] if "matmul" in k["ops"])
    assert product["module"] == "fc" and product["home"].endswith("matmul")


def test_times_add_up():
    stages = stages_of(Net().eval(), gc.zeros(2, 6))
    times = profile(stages, [np.ones((2, 6), np.float32)], {}, seconds=0.01, rounds=3)
    result = kernels_data(stages, times)
    assert abs(sum(k["share"] for k in result["kernels"]) - 1) < 1e-9
    assert abs(sum(k["seconds"] for k in result["kernels"]) - result["profile"]["kernels"]) < 1e-12
    assert all(k["best"] <= k["low"] <= k["high"] for k in result["kernels"])


def test_kernels_of_branches_of_one_name_are_told_apart():
    fc = nn.Linear(3, 3)

    def function(x):
        return gc.cond(x.sum() > 0, lambda v: fc(v).tanh(), lambda v: fc(v).exp(), (x,))

    result = kernels_data(stages_of(function, gc.zeros(2, 3)), None)
    keys = [k["nodes"] for k in result["kernels"] if any("matmul" in n or "addmm" in n for n in k["nodes"])]
    assert len(keys) == 2 and not set(keys[0]) & set(keys[1])
    assert all(n.startswith("cond.then.") for n in keys[0]) and all(n.startswith("cond.otherwise.") for n in keys[1])


def test_kernels_of_loops_inside_of_loops():
    def inner(x):
        return gc.while_loop(lambda c: c[1] < 3, lambda c: (c[0].cos(), c[1] + 1), (x, gc.tensor(0)))[0]

    def function(x):
        return gc.while_loop(lambda c: c[1] < 2, lambda c: (inner(c[0]), c[1] + 1), (x, gc.tensor(0)))[0]

    result = kernels_data(stages_of(function, gc.zeros(3)), None)
    (cosine,) = (k for k in result["kernels"] if "cos" in k["ops"])
    assert cosine["home"].endswith("cos") and cosine["home"].count(".body.") == 2
