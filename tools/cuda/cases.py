"""Graphs by which a device is compared with the CPU: ops with their derivatives, models, random graphs, named sizes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

import graphc
from benchmarks.workloads import WORKLOADS
from graphc.base.errors import GraphcError
from graphc.checks.op_check import array_type, is_differentiable, sample_graph
from graphc.checks.op_derivatives import differentiate, random_like
from graphc.ir.graph.build import constant, emit
from graphc.ir.graph.graph import Graph, Value, input_class, input_path
from graphc.ir.graph.interpret import bind
from graphc.ir.op import REGISTRY, OpDef, Sample, Trait
from graphc.models.model_trace import snapshot
from tests.end_to_end.seeded_graphs import seeded_call
from tests.families.test_families import FAMILIES, Family
from tests.passes import test_named_dims as named
from tools.cases import step_graph
from tools.cuda.programs import workload_graph

KINDS = ("ops", "families", "random", "named")
"""Names of the kinds of cases that are compared by default."""
WORKLOADS_KIND = "workloads"
"""The benchmark models: large, and slow where they are emulated."""
RANDOM_GRAPHS = 300
"""Random graphs of a full run."""
MOST_SIZES = 4
"""Choices of sizes at which a graph with named dimensions is called."""


@dataclass(frozen=True)
class Case:
    """A graph, and the arguments of its calls."""

    name: str
    """``op/softmax-2/first``: the same graph in every process."""
    graph: Graph
    calls: tuple[tuple[np.ndarray, ...], ...]
    """Arguments of each call, one array per input of the graph."""
    growth: float = 1.0
    """Factor on the rounding that one op is allowed."""
    sizes: tuple[dict[str, int], ...] = field(default=())
    """Sizes of the named dimensions, for each call."""

    @property
    def bound(self) -> list[str]:
        """Return paths of the params and states, in the order of the arguments."""
        return [input_path(v) for v in self.graph.inputs if input_class(v) != "input"]


Make = Callable[[], Case | None]
"""Builder of a case; returns None if there is no case of that name."""


def cases(kinds: Sequence[str], seed: int = 0, count: int | None = None, seeds: range | None = None) -> list[Case]:
    """Return the cases of some kinds. ``count`` draws that many of each kind by ``seed``; None takes all. ``seeds`` are
    those of the random graphs."""
    selected: list[Case] = []
    for kind in kinds:
        makers = list(_makers(kind, seeds or range(seed * RANDOM_GRAPHS, (seed + 1) * RANDOM_GRAPHS)))
        if count is not None:
            random.Random(f"{kind}{seed}").shuffle(makers)
        available = (case for case in (make() for _, make in makers) if case is not None)
        selected += available if count is None else islice(available, count)
    return selected


def named_cases(names: Sequence[str]) -> list[Case]:
    """Return the cases of these names, of all kinds; raises KeyError for an unknown one."""
    makers = {
        name: make for kind in (*KINDS, WORKLOADS_KIND) if kind != "random" for name, make in _makers(kind, range(0))
    }
    selected = [_random(int(n.partition("/")[2])) if n.startswith("random/") else makers[n]() for n in names]
    return [case for case in selected if case is not None]


def _makers(kind: str, seeds: range) -> Iterator[tuple[str, Make]]:
    if kind == "ops":
        yield from _ops()
    elif kind == "families":
        yield from _families()
    elif kind == WORKLOADS_KIND:
        for name in WORKLOADS:
            yield f"workload/{name}", lambda name=name: _workload(name)
    elif kind == "named":
        for path in named.FILES:
            yield f"named/{path.stem}", lambda path=path: _named(path)
    else:
        for seed in seeds:
            yield f"random/{seed}", lambda seed=seed: _random(seed)


# ---- ops


def _ops() -> Iterator[tuple[str, Make]]:
    """Yield samples of all ops, without those whose branches and loops depend on values: devices refuse these."""
    for op in [op for op in REGISTRY.values() if not (op.has(Trait.BRANCH) or op.has(Trait.WHILE))]:
        for number, sample in enumerate(op.samples() if op.samples else ()):
            name = f"op/{op.name}-{number}"
            yield f"{name}/value", lambda n=f"{name}/value", o=op, s=sample: _value(n, o, s)
            if not is_differentiable(op, sample):
                continue
            for order in (1, 2):
                full = f"{name}/{('first', 'second')[order - 1]}"
                yield full, lambda n=full, o=op, s=sample, d=order: _derivative(n, o, s, d, np.float32)
                wide = f"{full}/f64"
                yield wide, lambda n=wide, o=op, s=sample, d=order: _derivative(n, o, s, d, np.float64)


def _value(name: str, op: OpDef, sample: Sample) -> Case:
    graph = sample_graph(op, sample.operands, sample.attrs)
    return Case(name, graph, (tuple(np.array(a) for a in sample.operands),))


def _derivative(name: str, op: OpDef, sample: Sample, order: int, dtype: Any) -> Case | None:
    """Return the gradients of a sample with respect to all floats, or the gradients of these; None where there are
    none, or where the op does not take this type."""
    arrays = [a.astype(dtype) if a.dtype.kind == "f" else np.array(a) for a in sample.operands]
    graph = Graph(op.name)
    for i, array in enumerate(arrays):
        written = i == 0 and op.has(Trait.STATE_WRITE)
        graph.add_input(array_type(array), f"x{i}", *(("state", "the.state") if written else ("input", "")))
    try:
        results = emit(graph, op, graph.inputs, sample.attrs)
        targets = [v for v in results[: sample.attrs.get("results", len(results))] if v.dtype.is_floating_point]
        for _ in range(order):
            targets = _gradients(graph, targets)
    except GraphcError:
        return None
    if not targets:
        return None
    graph.set_outputs(targets)
    return Case(name, graph, (tuple(arrays),), growth=4.0**order)


def _gradients(graph: Graph, values: Sequence[Value]) -> list[Value]:
    seeds = [(v, constant(graph, random_like(v, i), v.dtype)) for i, v in enumerate(values)]
    varied = [v for v in graph.inputs if v.dtype.is_floating_point]
    return [g for g in differentiate(graph, seeds, varied) if g is not None] if values else []


# ---- models


def _families() -> Iterator[tuple[str, Make]]:
    for name, family in FAMILIES.items():
        yield f"family/{name}/value", lambda n=name, f=family: _model(n, f)
        yield f"family/{name}/step", lambda n=name, f=family: _step(n, f)


def _model(name: str, family: Family) -> Case:
    graphc.manual_seed(0)
    model = family.build(graphc).eval()
    traced = snapshot(model, [graphc.from_numpy(np.ascontiguousarray(a)) for a in family.inputs])
    state, inputs = traced.state(), iter(family.inputs)
    arguments = [next(inputs) if input_class(v) == "input" else state[input_path(v)] for v in traced.graph.inputs]
    return Case(f"family/{name}/value", traced.graph, (tuple(map(np.array, arguments)),), growth=32.0)


def _step(name: str, family: Family) -> Case:
    """Return a training step with momentum; arguments that only the step knows (numbers of the optimizer) are small and
    positive."""
    graphc.manual_seed(0)
    model = family.build(graphc)
    optimizer = graphc.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    inputs = tuple(graphc.from_numpy(np.ascontiguousarray(a)) for a in family.inputs)
    target = graphc.from_numpy(np.ascontiguousarray(family.target))
    graph = step_graph(model, family.loss(graphc), optimizer, inputs, target)
    state = {path: np.array(t.detach().numpy()) for path, t in model.state_dict().items()}
    feeds = iter([*family.inputs, family.target])
    arguments = []
    for value in graph.inputs:
        if input_class(value) == "input":
            fallback = np.full(value.shape, 0.01, value.dtype.numpy)
            arguments.append(np.array(next(feeds, fallback)).astype(value.dtype.numpy).reshape(value.shape))
        else:
            arguments.append(_state(input_path(value), value, state))
    return Case(f"family/{name}/step", graph, (tuple(arguments),), growth=64.0)


def _state(path: str, value: Value, state: dict[str, np.ndarray]) -> np.ndarray:
    stored = next((state[p] for p in (path, path.partition(".")[2]) if p in state), None)
    fits = stored is not None and stored.shape == value.shape
    return np.array(stored) if stored is not None and fits else np.zeros(value.shape, value.dtype.numpy)


def _workload(name: str) -> Case:
    """Return a benchmark model, or a step of its training, with random parameters."""
    graph, inputs = workload_graph(WORKLOADS[name]), iter(WORKLOADS[name].draw_inputs())
    random = np.random.default_rng(0)
    arguments = []
    for value in graph.inputs:
        if input_class(value) == "input":
            fallback = np.full(value.shape, 0.01, value.dtype.numpy)
            arguments.append(np.array(next(inputs, fallback)).astype(value.dtype.numpy).reshape(value.shape))
        elif value.dtype.kind == "f":
            arguments.append(_weights(random, value))
        else:
            arguments.append(np.zeros(value.shape, value.dtype.numpy))
    return Case(f"workload/{name}", graph, (tuple(arguments),), growth=256.0)


def _weights(random: np.random.Generator, value: Value) -> np.ndarray:
    """Return numbers of such a size that products of them stay around 1; variances are positive."""
    spread = 1 / math.sqrt(max(1, math.prod(value.shape[1:])))
    array = random.standard_normal(value.shape) * spread
    return np.asarray(np.abs(array) + 0.5 if "var" in input_path(value) else array, value.dtype.numpy)


# ---- random graphs and named dimensions


def _random(seed: int) -> Case:
    graph, arguments = seeded_call(seed)
    return Case(f"random/{seed}", graph, (tuple(arguments),), growth=16.0)


def _named(path: Any) -> Case:
    """Return a graph of named dimensions, called with some of their sizes."""
    graph = named.read(path)
    chosen = []
    for sizes in named.sizes_to_try(graph.dims):
        if sizes not in chosen and len(chosen) < MOST_SIZES:
            chosen.append(sizes)
    calls = tuple(tuple(named.arguments(bind(graph, sizes))) for sizes in chosen)
    return Case(f"named/{path.stem}", graph, calls, growth=256.0, sizes=tuple(chosen))
