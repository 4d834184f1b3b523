"""The data of a page: every pass, every kernel's node, no difference between two builds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.module_path import class_names
from graphc.codegen.machine.target import host_target
from graphc.compiler.freeze import freeze
from graphc.compiler.profile import profile
from graphc.compiler.stages import Stages
from graphc.models.model_trace import snapshot
from graphc.nn import functional as F
from graphc.pages.model_data import kernels_data, view_data
from graphc.passes.base import PassResult
from graphc.passes.pipeline import PIPELINE, arrange


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.bn = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4 * 6 * 6, 5)

    def forward(self, x):
        return self.fc(self.bn(self.conv(x)).relu().flatten(1)).log_softmax(1)


EXAMPLES = {
    "net": (Net, gc.zeros(2, 1, 8, 8)),
    "lstm": (lambda: nn.LSTM(3, 4), gc.zeros(5, 1, 3)),
}


def data_of(name: str, times: bool = False, passes=PIPELINE):
    gc.manual_seed(0)
    build, x = EXAMPLES[name]
    net = build().eval()
    traced = snapshot(net, [x])
    measure = (lambda stages: profile(stages, [np.ones(x.shape, np.float32)], {}, 0.01, 3)) if times else None
    return view_data(traced.graph, traced.state(), host_target(), passes, class_names(net), measure)


@pytest.mark.parametrize("name", EXAMPLES)
def test_graphs_stand_behind_every_pass(name: str):
    data = data_of(name)
    assert [p["name"] for p in data["passes"]] == ["traced", "frozen", *(p.name for p in PIPELINE)]
    for step in data["passes"]:
        records = [data["records"][i] for i in data["graphs"][step["graph"]]]
        keys, values = [r["key"] for r in records], [n for r in records for n, _ in r["results"]]
        assert len(set(keys)) == len(keys) and len(set(values)) == len(values)
        constants = {o for r in records for o in r["operands"]} - set(values)
        assert constants <= {"f32(0.0)", "f32(1e-05)"}
    used = {i for graph in data["graphs"] for i in graph}
    assert used == set(range(len(data["records"])))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_node_of_a_kernel_is_in_the_graph_that_is_compiled(name: str):
    data = data_of(name, times=True)
    last = {data["records"][i]["key"] for i in data["graphs"][data["passes"][-1]["graph"]]}
    for kernel in data["kernels"]:
        assert set(kernel["nodes"]) <= last and kernel["name"] in data["texts"]
        assert kernel["home"] in (kernel["nodes"] or [""])
    assert any(k["nodes"] for k in data["kernels"])
    assert sum(k["share"] for k in data["kernels"]) == pytest.approx(1)
    json.dumps(data, allow_nan=False)


def test_a_pass_that_changes_nothing_has_the_graph_before_it():
    data = data_of("net")
    graphs = [p["graph"] for p in data["passes"]]
    for step, (before, after) in zip(data["passes"][2:], pairwise(graphs[1:]), strict=True):
        assert (step["changed"] == 0) == (before == after), step["name"]
    assert len(set(graphs)) > 3


def test_without_times_equal_models_have_equal_data():
    first, second = (json.dumps(data_of("net")) for _ in range(2))
    assert first == second and '"seconds"' not in first


def test_classes_are_those_of_modules():
    assert data_of("net")["classes"] == {"conv": "Conv2d", "bn": "BatchNorm2d", "fc": "Linear"}


def test_passes_of_a_user_are_shown():
    @dataclass(frozen=True)
    class Nothing:
        """Needs: any graph. Does: nothing. Leaves: it."""

        name: str = "nothing"
        after: str = "decompose"

        def run(self, graph):
            return PassResult(graph, 0, ("there is nothing to do",))

    data = data_of("net", passes=arrange([Nothing()]).pipeline)
    (step,) = (p for p in data["passes"] if p["name"] == "nothing")
    assert step["reasons"] == ["there is nothing to do"]


class TwoLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        return F.softmax(F.relu(self.fc(x)), 1)


def stages_of(function, *examples) -> Stages:
    result = snapshot(function, list(examples))
    return Stages(freeze(result.graph, result.state()))


def test_kernels_without_times():
    stages = stages_of(TwoLayers().eval(), gc.zeros(2, 6))
    result = kernels_data(stages, None)
    assert result["profile"] is None and not any("seconds" in k for k in result["kernels"])
    assert [k["number"] for k in result["kernels"]] == list(range(len(stages.scheduled.calls)))
    assert all(result["texts"][k["name"]].startswith("kernel @") for k in result["kernels"])
    product = next(k for k in result["kernels"] if "matmul" in k["ops"])
    assert product["module"] == "fc" and product["home"].endswith("matmul")


def test_times_add_up():
    stages = stages_of(TwoLayers().eval(), gc.zeros(2, 6))
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
