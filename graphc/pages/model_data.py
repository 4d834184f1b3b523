"""Data of a model's page: the graph before and after every pass, its kernels, and optionally their times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphc.base.pass_runner import PassRun
from graphc.base.version import VERSION
from graphc.codegen.machine.target import Target
from graphc.compiler.freeze import freeze
from graphc.compiler.profile import Profile
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph
from graphc.pages.graph_data import GraphCollector
from graphc.pages.kernel_data import kernels_data
from graphc.passes.base import Pass, PassResult
from graphc.passes.pipeline import PIPELINE

FORMAT = 1
"""Version of the data."""


@dataclass(frozen=True)
class Look:
    """Needs: any graph. Does: hands it to ``take``. Leaves: the graph as it is."""

    take: Callable[[Graph], Any] = field(repr=False)
    name: str = "look"

    def run(self, graph: Graph) -> PassResult:
        """Pass the graph to ``take`` and change nothing."""
        self.take(graph)
        return PassResult(graph, 0)


def view_data(
    graph: Graph,
    weights: Mapping[str, np.ndarray],
    target: Target,
    passes: Sequence[Pass] = PIPELINE,
    classes: Mapping[str, str] | None = None,
    measure: Callable[[Stages], Profile | None] | None = None,
) -> dict[str, Any]:
    """Return the JSON-compatible data of a page; without ``measure`` it is deterministic.

    ``weights`` are the arrays of params and states by path; arrays without writes in the graph become constants of the
    code. ``classes`` are the classes of modules by path. ``measure`` returns the kernel times of a compiled program.
    Raises the errors of compilation.
    """
    recorder, graphs = GraphCollector(), list[int]()
    frozen = freeze(graph, weights)
    looks = [step for own in passes for step in (own, Look(lambda g: graphs.append(recorder.add(g))))]
    stages = Stages(frozen, target=target, passes=looks)
    first = [recorder.add(graph), recorder.add(frozen)]
    final = recorder.add(stages.optimized)
    graphs[-1:] = [final]
    runs = [run for run in stages.passes["optimized"] if run.name != Look.name]
    times = measure(stages) if measure is not None else None
    steps = [_step(PassRun(name, 0, 0.0), number) for name, number in zip(("traced", "frozen"), first, strict=True)]
    steps += [_step(run, number) for run, number in zip(runs, graphs, strict=True)]
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": graph.name,
        "target": target.cpu or target.triple,
        "classes": dict(classes or {}),
        "passes": steps,
        "records": recorder.records,
        "graphs": recorder.graphs,
        "lines": recorder.lines,
        **kernels_data(stages, times),
    }


def _step(run: PassRun, graph: int) -> dict[str, Any]:
    return {"name": run.name, "graph": graph, "changed": run.changed, "reasons": list(run.reasons)}
