"""Compile times: models cold and warm from the disk cache, stage by stage, and growth with graph size and layers.

``python -m benchmarks.compile_time [MODEL...]`` prints the table of models and that of graph sizes; ``--nodes`` prints
only the second, ``--layers`` only the growth of first calls with a model's layers. Every model runs in separate
processes, first with an empty cache, then with the cache of the first run.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import graphc
from benchmarks.harness import framework as fw
from benchmarks.harness.process import call_in_child
from benchmarks.harness.results import format_table
from benchmarks.workloads import WORKLOADS
from graphc import nn
from graphc.base.dtypes import float32
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import collect_data, print_graph
from graphc.ir.types import TensorType
from graphc.lowering.program import lower_graph
from graphc.nn import functional as F
from graphc.ops import dispatch
from graphc.ops.contraction import matrix_product
from graphc.ops.pointwise import elementwise
from graphc.passes.pipeline import optimize

DEFAULT = ("policy_b1", "net_b1", "minilm_b1_t128", "resnet50_b1", "train_policy_b256", "train_gpt_b8_t128")
STAGES = ("optimized", "lowered", "scheduled", "llvm", "object")
NODES = (1_000, 3_000, 10_000)
LAYERS = (250, 1_000)
STACKS = ("inference", "gradients", "training step")


class _Stages(logging.Handler):
    """Log handler that sums the times of the compiler's stages."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        if len(arguments) == 2 and isinstance(arguments[1], float):
            stage = str(arguments[0])
            self.seconds[stage] = self.seconds.get(stage, 0.0) + arguments[1] / 1e3


def measure(name: str) -> dict[str, float]:
    """Return seconds of the first call of a workload in this process, of its stages, and of everything (wall and
    CPU)."""
    workload, stages = WORKLOADS[name], _Stages()
    logger = logging.getLogger("graphc.compile")
    logger.addHandler(stages)
    logger.setLevel(logging.INFO)
    model, inputs = fw.build_model(graphc, workload), fw.convert_inputs(graphc, workload)
    start, cpu = time.perf_counter(), time.process_time()
    if workload.train:
        optimizer = fw.make_optimizer(graphc, workload, model)
        graphc.compile_step(model.train(), fw.make_loss(graphc, workload), optimizer)(*inputs)
    else:
        with graphc.no_grad():
            graphc.compile(model)(*inputs)
    return {"wall": time.perf_counter() - start, "cpu": time.process_time() - cpu, **stages.seconds}


def run_apart(name: str, cache: str) -> dict[str, float]:
    """Run ``measure`` in a child process with a cache folder; modules come from compiled bytecode, as for users."""
    environment = os.environ | {"GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": cache, "PYTHONDONTWRITEBYTECODE": ""}
    answer = call_in_child("benchmarks.compile_time:measure", environment, 3600.0, name=name)
    if "error" in answer:
        raise RuntimeError(f"{name}: {answer['error']}")
    return answer


def chain(nodes: int) -> Graph:
    """Return a graph of about ``nodes`` nodes: products, sums, and elementwise ops that refer to older values."""
    graph = Graph("chain")
    x: Any = graph.add_input(TensorType(float32, (8, 8)), "x")
    rng = np.random.default_rng(0)
    values: list[Any] = [x]
    with dispatch.use(dispatch.GraphDispatcher(graph)):
        while len(values) < nodes:
            a = values[-1]
            b = values[int(rng.integers(max(0, len(values) - 20), len(values)))]
            kind = len(values) % 5
            if kind == 0:
                values.append(matrix_product.matmul(a, b, transpose_a=False, transpose_b=True))
            elif kind == 1:
                values.append(elementwise.maximum(a, b))
            elif kind == 2:
                values.append(elementwise.mul(a, graph.scalar(0.5, float32)))
            else:
                values.append((elementwise.add, elementwise.sub)[kind % 2](a, b))
    graph.set_outputs([values[-1]])
    return graph


def graph_times(nodes: int) -> dict[str, float]:
    """Return the CPU seconds of each stage for a whole graph."""
    times: dict[str, float] = {}

    def timed(name: str, action: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = action()
        times[name] = time.process_time() - start
        return result

    graph = timed("build", lambda: chain(nodes))
    text = timed("print", lambda: print_graph(graph))
    timed("parse", lambda: parse_graph(text, collect_data(graph)))
    optimized = timed("optimize", lambda: optimize(graph))
    timed("lower", lambda: lower_graph(optimized))
    return times


def stack_times(layers: int) -> dict[str, float]:
    """Return CPU seconds of the first call of small layers, each with ReLU: without gradients, as a forward pass whose
    backward pass is compiled with it, and as a training step with Adam."""
    times = {}
    for kind in STACKS:
        graphc.manual_seed(0)
        net = nn.Sequential(*(m for _ in range(layers) for m in (nn.Linear(8, 8), nn.ReLU())))
        x = graphc.rand(4, 8)
        start = time.process_time()
        if kind == "training step":
            optimizer = graphc.optim.Adam(net.parameters(), lr=0.01)
            graphc.compile_step(net, F.mse_loss, optimizer)(x, graphc.rand(4, 8))
        else:
            with graphc.set_grad_enabled(kind == "gradients"):
                graphc.compile(net)(x)
        times[kind] = time.process_time() - start
    return times


def format_growth(what: str, measure: Callable[[int], Mapping[str, float]], sizes: Sequence[int]) -> str:
    """Return the table of seconds by size, after a small size that loads the modules."""
    measure(1 if what == "layers" else 100)
    results = {size: measure(size) for size in sizes}
    rows = [[str(size), *(f"{seconds:.2f}" for seconds in times.values())] for size, times in results.items()]
    return format_table([what, *(f"{name} s" for name in results[sizes[0]])], rows)


def format_models(names: Sequence[str]) -> str:
    rows = []
    for name in names:
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = run_apart(name, cache), run_apart(name, cache)
        stages = [cold.get(stage, 0.0) for stage in STAGES]
        figures = [cold["wall"], warm["wall"], cold["cpu"], warm["cpu"], *stages, cold["wall"] - sum(stages)]
        rows.append([name, *(f"{figure:.3f}" for figure in figures)])
    return format_table(["model", "cold s", "warm s", "cold cpu", "warm cpu", *STAGES, "rest"], rows)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compile_time", description=__doc__)
    add = parser.add_argument
    add("models", nargs="*", metavar="MODEL", help=f"models, among {', '.join(WORKLOADS)}")
    add("--nodes", action="store_true", help="measure only the growth of graph passes")
    add("--layers", action="store_true", help="measure only the growth of first calls with a model's layers")
    options = parser.parse_args(argv)
    unknown = set(options.models) - set(WORKLOADS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))} (of {', '.join(WORKLOADS)})")
    if options.layers:
        os.environ["GRAPHC_CACHE"] = "off"
        print(format_growth("layers", stack_times, LAYERS))
        return
    if not options.nodes:
        print(format_models(options.models or DEFAULT) + "\n")
    print(format_growth("nodes", graph_times, NODES))


if __name__ == "__main__":
    main()
