"""Named programs that digests and budgets examine: models in all forms, training steps, examples, random graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np

import graphc
from benchmarks.harness import framework as fw
from benchmarks.workloads import WORKLOADS, Workload
from examples import custom_optimizer, mlp, net
from graphc.calls import variant
from graphc.compiler.freeze import freeze, freeze_narrow, watch
from graphc.ir.graph.graph import Graph
from graphc.models.model_trace import snapshot
from graphc.nn import functional as F
from graphc.ops.autodiff import split_forward_backward, vjp_graph
from graphc.passes.precision import PRECISIONS
from graphc.passes.scans import MergeScans
from graphc.tracing.trace import trace_function
from tests.end_to_end.seeded_graphs import seeded_graph

RANDOM_GRAPHS, QUICK_RANDOM_GRAPHS = 200, 40
QUICK = (
    *("policy_b1", "net_b1", "lstm_b1_t64", "pointwise_64K", "rownorm_4096x1024", "gpt_b1_t128", "textcnn_b8"),
    *("dlrm_b8", "train_net_b64", "custom_optimizer", "mlp"),
)
"""Models and examples for runs with little time: small ones, of all kinds."""
GRADIENTS = ("policy_b1", "net_b64", "lstm_b1_t64", "gpt_b1_t128")
"""Models whose forward and backward passes are looked at as programs of their own."""
NARROWED = "gpt_b1_t128"
"""Model whose digests are taken with weights of each precision."""
RANDOM = "random"

Graphs = Iterator[tuple[str, Graph]]
"""Graphs with their names."""


class _CapturedError(Exception):
    """Carries a graph out of the call that would compile it."""

    def __init__(self, graph: Graph):
        super().__init__(graph.name)
        self.graph = graph


def _capture(graph: Graph, *_options: Any) -> Any:
    raise _CapturedError(graph)


def step_graph(model: Any, loss: Callable[..., Any], optimizer: Any, x: Any, y: Any) -> Graph:
    """Return the graph of a compiled training step, before it is optimized."""
    with mock.patch.object(variant, "program_on", _capture):
        try:
            graphc.compile_step(model, loss, optimizer)(x, y)
        except _CapturedError as captured:
            return captured.graph
    raise AssertionError("compile_step compiles through another door")


def workload_graph(workload: Workload, frozen: bool = True) -> Graph:
    """Return the training step of a workload, or its graph: frozen, or with parameters that stay where they are."""
    model, inputs = fw.build_model(graphc, workload), fw.convert_inputs(graphc, workload)
    if workload.train:
        x, y = inputs
        loss = fw.make_loss(graphc, workload)
        return step_graph(model.train(), loss, fw.make_optimizer(graphc, workload, model), x, y)
    traced = snapshot(model, inputs)
    return freeze(traced.graph, traced.state()) if frozen else traced.graph


def _forms(workload: Workload) -> Graphs:
    """Yield a model's graphs: as called, with watched weights, frozen, narrowed, and its gradients."""
    name = workload.name
    model, inputs = fw.build_model(graphc, workload), fw.convert_inputs(graphc, workload)
    traced = snapshot(model, inputs)
    state = traced.state()
    yield f"{name}/traced", traced.graph
    yield f"{name}/watched", watch(traced.graph, list(state))
    yield f"{name}/frozen", freeze(traced.graph, state)
    if name == NARROWED:
        for precision in PRECISIONS:
            yield f"{name}/{precision}", freeze_narrow(traced.graph, state, precision).graph
    if name in GRADIENTS:
        yield from _gradients(name, model, inputs)


def _gradients(name: str, model: Any, inputs: Sequence[Any]) -> Graphs:
    traced = trace_function(model, inputs)
    targets = [a.value for a in traced.arguments if a.tensor._requires_grad]
    joint = MergeScans().run(vjp_graph(traced.graph, targets, [0])).graph
    split = split_forward_backward(joint, len(traced.graph.inputs), len(traced.graph.outputs))
    yield f"{name}/forward", split.forward
    yield f"{name}/backward", split.backward


def _examples() -> Iterator[tuple[str, Callable[[], Graph]]]:
    random = np.random.default_rng(0)
    points, labels = (graphc.tensor(a) for a in mlp.make_spirals(256, seed=0))
    rows = graphc.tensor(random.standard_normal((256, 8)).astype(np.float32))
    images = graphc.tensor(random.standard_normal((64, 1, 28, 28)).astype(np.float32))
    digits = graphc.tensor(random.integers(0, 10, 64))

    def lion() -> Graph:
        model = custom_optimizer.make_model()
        return step_graph(model, F.mse_loss, custom_optimizer.make_optimizer(model), rows, rows[:, :1])

    def spirals() -> Graph:
        model = mlp.make_model()
        return step_graph(model, F.cross_entropy, graphc.optim.Adam(model.parameters(), lr=3e-3), points, labels)

    def mnist() -> Graph:
        graphc.manual_seed(0)
        model = net.Net().train()
        return step_graph(model, F.nll_loss, graphc.optim.Adam(model.parameters(), lr=1e-3), images, digits)

    yield "custom_optimizer", lion
    yield "mlp", spirals
    yield "mnist", mnist


def names() -> list[str]:
    """Return all names that can be selected: workloads, examples, and ``random`` for all random graphs."""
    return [*WORKLOADS, *(name for name, _ in _examples()), RANDOM]


def graphs(selection: Sequence[str], quick: bool = False) -> Graphs:
    """Yield the selected random graphs (fewer when ``quick``), models and examples; each is built on demand."""
    if RANDOM in selection:
        count = QUICK_RANDOM_GRAPHS if quick else RANDOM_GRAPHS
        yield from ((f"{RANDOM}/{seed}", seeded_graph(seed)) for seed in range(count))
    for workload in WORKLOADS.values():
        if workload.name in selection:
            if workload.train:
                yield f"{workload.name}/step", workload_graph(workload)
            else:
                yield from _forms(workload)
    for name, make in _examples():
        if name in selection:
            yield f"{name}/step", make()
