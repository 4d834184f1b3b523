"""Data of a model's page: the graph before and after every pass, its kernels, and optionally their times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from graphc.base.pass_runner import PassRun
from graphc.base.records import dataclass
from graphc.base.version import VERSION
from graphc.codegen.machine.target import Target
from graphc.compiler.explain import KernelReport, explain
from graphc.compiler.freeze import freeze
from graphc.compiler.profile import KernelTime, Profile
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph, Node
from graphc.ir.kernel.statements import Call
from graphc.ir.kernel.text import kernel_lines
from graphc.ir.op import Trait
from graphc.pages.diagram import first_open, page_nodes
from graphc.pages.graph_data import GraphCollector, inside_of, node_key
from graphc.pages.model_page import FORMAT
from graphc.passes.base import Pass, PassResult, held_graphs
from graphc.passes.pipeline import PIPELINE


def kernels_data(stages: Stages, times: Profile | None) -> dict[str, Any]:
    """Return the data of all kernels of a program.

    ``kernels`` has an entry per call in the order of execution, ``texts`` the loop nests by kernel name, and
    ``profile`` the figures of the whole call if ``times`` is given.
    """
    program = stages.scheduled
    nodes = _nodes_by_value(stages.optimized)
    time_of = {call.report.number: call for call in times.calls} if times else {}
    kernels = []
    for report, call in zip(explain(stages).calls, program.calls, strict=True):
        kernels.append(_kernel(report, _nodes_of(call, nodes), time_of.get(report.number)))
    texts = {kernel.name: "\n".join(line for line, _ in kernel_lines(kernel)) for kernel in program.kernels}
    return {"kernels": kernels, "texts": texts, "profile": _profile(times)}


def _nodes_by_value(graph: Graph) -> dict[str, list[tuple[str, Node]]]:
    """Return (key, node) by the names of values in kernel calls.

    Values in inner graphs of a node are prefixed with its name. Values of several branches may have the same name.
    """
    nodes: dict[str, list[tuple[str, Node]]] = {}
    pending = [("", "", graph)]
    while pending:
        start, prefix, current = pending.pop()
        for node in current.nodes():
            for value in node.results:
                nodes.setdefault(start + value.name, []).append((node_key(node, prefix), node))
            inner = f"{start}{node.results[0].name}." if node.results else ""
            pending += [(inner, inside_of(node, name, prefix), node.attrs[name]) for name in held_graphs(node)]
    return nodes


def _nodes_of(call: Call, nodes: dict[str, list[tuple[str, Node]]]) -> list[tuple[str, Node]]:
    """Return the nodes of a call; of nodes in several branches, only the branch that its flag selects."""
    flags = tuple(f"{axis.flag}." for axis in call.loops if axis.flag)
    unique: dict[tuple[str, Node], None] = {}
    for name in call.values:
        candidates = nodes.get(name, [])
        chosen = [pair for pair in candidates if pair[0].startswith(flags)] if len(candidates) > 1 else candidates
        unique.update(dict.fromkeys(chosen or candidates[:1]))
    return list(unique)


def _kernel(report: KernelReport, nodes: list[tuple[str, Node]], time: KernelTime | None) -> dict[str, Any]:
    products = [key for key, node in nodes if node.op.has(Trait.CONTRACTION)]
    keys = [key for key, _ in nodes]
    data: dict[str, Any] = {
        "number": report.number,
        "name": report.kernel,
        "kind": report.kind,
        "ops": list(report.ops),
        "nodes": keys,
        "home": next(iter((*products, *reversed(keys))), ""),
        "module": report.home,
        "reads": list(report.reads),
        "writes": list(report.writes),
        "schedule": report.schedule,
        "flops": report.flops,
        "bytes": report.bytes,
        "runs": list(report.loops),
    }
    if time is not None:
        best, low, high = time.spread
        data |= {"seconds": time.seconds, "share": time.share, "resolved": time.resolved}
        data |= {"best": best, "low": low, "high": high}
        data |= {"peak": time.peak_fraction, "copy": time.copy_fraction}
    return data


def _profile(times: Profile | None) -> dict[str, Any] | None:
    if times is None:
        return None
    machine = {"flops": times.machine.flops, "bandwidth": times.machine.bandwidth}
    call = {
        "sizes": times.sizes,
        "seconds": times.seconds,
        "kernels": times.kernels,
        "rounds": times.rounds,
        "overhead": times.overhead,
    }
    return {**call, "resolution": times.resolution, "stamp": times.stamp, **machine}


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
    code. ``classes`` are the classes of modules by path, by default those of the graph. ``measure`` returns the kernel
    times of a compiled program.
    Raises the errors of compilation.
    """
    recorder, graphs = GraphCollector(), list[int]()
    frozen = freeze(graph, weights)
    first = [recorder.add(graph), recorder.add(frozen)]
    looks = [step for own in passes for step in (own, Look(lambda g: graphs.append(recorder.add(g))))]
    stages = Stages(frozen, target=target, passes=looks)
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
        "classes": dict(graph.classes if classes is None else classes),
        "open": first_open(page_nodes([recorder.records[i] for i in recorder.graphs[first[0]]])),
        "passes": steps,
        "records": recorder.records,
        "graphs": recorder.graphs,
        "lines": recorder.lines,
        **kernels_data(stages, times),
    }


def _step(run: PassRun, graph: int) -> dict[str, Any]:
    return {"name": run.name, "graph": graph, "changed": run.changed, "reasons": list(run.reasons)}
