"""Kernels as the plain data of a page: what each call does, which nodes went into it, and how long it takes."""

from __future__ import annotations

from typing import Any

from graphc.compiler.explain import KernelReport, explain
from graphc.compiler.profile import KernelTime, Profile
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph, Node
from graphc.ir.kernel.statements import Call
from graphc.ir.kernel.text import kernel_lines
from graphc.ir.op import Trait
from graphc.pages.graph_data import inside_of, node_key
from graphc.passes.base import held_graphs


def kernels_data(stages: Stages, times: Profile | None) -> dict[str, Any]:
    """``kernels``, one per call in the order in which they run; ``texts``, the loop nests by the kernel's name; and
    with times ``profile``, the figures of the whole call."""
    program = stages.scheduled
    nodes = _nodes_by_value(stages.optimized)
    spent = {call.report.number: call for call in times.calls} if times else {}
    kernels = []
    for report, call in zip(explain(stages).calls, program.calls, strict=True):
        kernels.append(_kernel(report, _nodes_of(call, nodes), spent.get(report.number)))
    texts = {kernel.name: "\n".join(line for line, _ in kernel_lines(kernel)) for kernel in program.kernels}
    return {"kernels": kernels, "texts": texts, "profile": _profile(times)}


def _nodes_by_value(graph: Graph) -> dict[str, list[tuple[str, Node]]]:
    """Key and node by the names of values as calls of kernels have them: of what a node holds they begin with its name.
    Values of several branches may have one."""
    found: dict[str, list[tuple[str, Node]]] = {}
    pending = [("", "", graph)]
    while pending:
        start, prefix, present = pending.pop()
        for node in present.nodes():
            for value in node.results:
                found.setdefault(start + value.name, []).append((node_key(node, prefix), node))
            inner = f"{start}{node.results[0].name}." if node.results else ""
            pending += [(inner, inside_of(node, name, prefix), node.attrs[name]) for name in held_graphs(node)]
    return found


def _nodes_of(call: Call, nodes: dict[str, list[tuple[str, Node]]]) -> list[tuple[str, Node]]:
    """What a call computes; where branches have values of one name, those of the branch that its flag chooses."""
    flags = tuple(f"{axis.flag}." for axis in call.loops if axis.flag)
    found: dict[tuple[str, Node], None] = {}
    for name in call.values:
        known = nodes.get(name, [])
        chosen = [pair for pair in known if pair[0].startswith(flags)] if len(known) > 1 else known
        found.update(dict.fromkeys(chosen or known[:1]))
    return list(found)


def _kernel(report: KernelReport, nodes: list[tuple[str, Node]], time: KernelTime | None) -> dict[str, Any]:
    products = [key for key, node in nodes if node.op.has(Trait.CONTRACTION)]
    keys = [key for key, _ in nodes]
    found: dict[str, Any] = {
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
        found |= {"seconds": time.seconds, "share": time.share, "resolved": time.resolved}
        found |= {"best": best, "low": low, "high": high}
        found |= {"peak": time.peak_fraction, "copy": time.copy_fraction}
    return found


def _profile(times: Profile | None) -> dict[str, Any] | None:
    if times is None:
        return None
    machine = {"flops": times.machine.flops, "bandwidth": times.machine.bandwidth}
    whole = {"seconds": times.seconds, "kernels": times.kernels, "rounds": times.rounds, "overhead": times.overhead}
    return {**whole, "resolution": times.resolution, "stamp": times.stamp, **machine}
