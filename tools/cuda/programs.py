"""Programs of the benchmark models for a CUDA target: scheduled, emitted, counted; no GPU is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.workloads import WORKLOADS, Workload
from graphc.codegen.cuda.emit import CudaSource
from graphc.codegen.machine.target import target_named
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph
from graphc.ir.kernel.statements import Program
from tools import cases

QUICK = ("policy_b1", "net_b1", "pointwise_64K", "rownorm_4096x1024", "train_policy_b256")
"""Workloads for runs with little time: small ones of all kinds."""


@dataclass(frozen=True)
class DeviceProgram:
    """A program as a device gets it."""

    name: str
    program: Program
    products: dict[str, Any]
    """Matrix products of the library, by the name of the kernel."""
    source: CudaSource


def workload_graph(workload: Workload) -> Graph:
    """Return the graph of a workload as a device runs it: weights are parameters that stay where they are."""
    return cases.workload_graph(workload, frozen=False)


def device_program(name: str, graph: Graph, arch: str = "sm_90a") -> DeviceProgram:
    """Return the program of a graph for an architecture."""
    stages = Stages(graph, target=target_named(arch))
    products = getattr(stages.execution, "products", {})
    return DeviceProgram(name, stages.scheduled, dict(products), stages.source)


def workload_programs(names: Sequence[str] = tuple(WORKLOADS), arch: str = "sm_90a") -> Iterator[DeviceProgram]:
    """Yield the programs of these workloads, each made when it is asked for."""
    for name in names:
        yield device_program(name, workload_graph(WORKLOADS[name]), arch)
