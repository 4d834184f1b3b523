"""Time of a workload by kernel, and the machine's lower bounds: ``python -m benchmarks.roofline``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

import graphc
from benchmarks.harness import framework as fw
from benchmarks.harness.results import format_table
from benchmarks.harness.sweep import make_parser, restart, select, tell
from benchmarks.machine import FIELDS, Measurements
from benchmarks.workloads import WORKLOADS, Workload
from graphc.base.dtypes import float32
from graphc.codegen.machine.costs import SpeedCosts
from graphc.codegen.machine.roofline import Roofline
from graphc.codegen.machine.target import Target, named_targets, target_named
from graphc.compiler.freeze import freeze
from graphc.compiler.profile import KernelTime, Profile, profile
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import INPUT, Value, input_class, input_path
from graphc.runtime.profile import Machine

CASES = ("resnet50_b1", "minilm_b1_t128", "train_gpt_b8_t128")


@dataclass
class KernelSum:
    """All calls of a kernel."""

    kernel: str
    kind: str
    ops: str
    calls: int = 0
    seconds: float = 0.0
    flops: int = 0
    bytes: int = 0
    floor: float = 0.0
    """Least seconds: the multiply-adds of products at the machine's peak, or the bytes at the speed of the cache that
    holds the data of a call."""
    modules: list[str] = field(default_factory=list)

    def add(self, call: KernelTime, roofline: Roofline, lanes: int) -> None:
        """Count a call on a machine with ``lanes`` lanes of f32."""
        self.calls += 1
        self.seconds += call.seconds
        self.flops += call.report.flops
        self.bytes += call.report.bytes
        multiply_adds = call.report.flops / 2 / lanes if call.report.kind == "contraction" else 0.0
        self.floor += 1e-9 * roofline.time(multiply_adds, call.report.bytes)
        self.modules += [m for m in call.report.modules[-1:] if m not in self.modules]


def profile_workload(workload: Workload, seconds: float, target: Target) -> Profile:
    """Return the profile of a model with constant weights, or of a training step, compiled for a target."""
    return profile(*program_of(workload, target), seconds)


def program_of(workload: Workload, target: Target) -> tuple[Stages, list[np.ndarray], dict[str, np.ndarray]]:
    """Return a model with constant weights, or a training step, with its inputs, and its params and states by path."""
    graphc.manual_seed(0)
    model = fw.build_model(graphc, workload)
    examples = fw.convert_inputs(graphc, workload)
    if not workload.train:
        weights = {name: t.detach().numpy() for name, t in model.state_dict().items()}
        with graphc.no_grad():
            graph = freeze(graphc.trace(model, *examples), weights)
        return Stages(graph, target=target), workload.draw_inputs(), {}
    step = graphc.compile_step(model, fw.make_loss(graphc, workload), fw.make_optimizer(graphc, workload, model))
    step(*examples)
    (graph,) = step.graphs
    arrays = [e.numpy() for e in examples]
    feeds = [v for v in graph.inputs if v.node.op is INPUT and input_class(v) == "input"]
    inputs = [*arrays, *(np.full(v.shape, 1e-3, v.dtype.numpy) for v in feeds[len(arrays) :])]
    return Stages(graph, target=target), inputs, _state(model, graph.inputs)


def _state(model: Any, values: Sequence[Value]) -> dict[str, np.ndarray]:
    """Return weights by path, and zeros for the optimizer's state."""
    weights = {name: t.detach().numpy() for name, t in model.state_dict().items()}
    bound = {input_path(v): v for v in values if input_class(v) != "input"}
    return {path: weights.get(path, np.zeros(v.shape, v.dtype.numpy)) for path, v in bound.items()}


def measured_roofline(machine: Machine, target: Target) -> Roofline:
    """Return the roofline of a target with measured speeds: the peak of the profiled machine, and reads from caches."""
    memory, speeds = machine.bandwidth / 1e9, _cache_speeds(target)
    caches = {level: max(speed, memory) for level, speed in speeds.items()}
    operations = machine.flops / 1e9 / 2 / target.lanes(float32)
    return replace(target.roofline, speeds=SpeedCosts(operations=operations, memory=memory, **caches))


@cache
def _cache_speeds(target: Target) -> dict[str, float]:
    measurements = Measurements(target)
    return {level: FIELDS[f"speeds.{level}"].measure(measurements) or 0.0 for level in ("l1", "l2", "llc")}


def rows_of(profile: Profile, target: Target) -> list[KernelSum]:
    """Return one row per kernel, the longest first."""
    rows: dict[str, KernelSum] = {}
    roofline, lanes = measured_roofline(profile.machine, target), target.lanes(float32)
    for call in profile.calls:
        report = call.report
        row = rows.setdefault(
            report.kernel, KernelSum(report.kernel, report.kind, ", ".join(report.ops) or report.kind)
        )
        row.add(call, roofline, lanes)
    return sorted(rows.values(), key=lambda r: -r.seconds)


def format_profile(name: str, profile: Profile, most: int, target: Target) -> str:
    """Return a table in Markdown, and what all kernels together could still gain."""
    machine, rows = profile.machine, rows_of(profile, target)
    total = sum(r.seconds for r in rows)
    floor = sum(min(r.floor, r.seconds) for r in rows)
    lines = [_cells(row, total, f"{row.kind}: {row.ops}"[:60]) for row in rows[:most]]
    if rest := rows[most:]:
        others = KernelSum("others", "", "")
        for what in ("calls", "seconds", "flops", "bytes", "floor"):
            setattr(others, what, sum(getattr(row, what) for row in rest))
        lines.append(_cells(others, total, f"{len(rest)} kernels"))
    head = (
        f"{name}: {1e3 * profile.seconds:.3g} ms, {len(profile.calls)} calls of {len(rows)} kernels; one core, peak "
        f"{machine.flops / 1e9:.0f} GFLOP/s, copy {machine.bandwidth / 1e9:.0f} GB/s; floor of all kernels "
        f"{floor / total:.0%}"
    )
    columns = ["kernel", "calls", "ms", "share", "GFLOP/s", "GB/s", "of floor", "what"]
    return f"{head}\n\n{format_table(columns, lines)}"


def _cells(row: KernelSum, total: float, what: str) -> list[str]:
    spent = row.seconds or float("inf")
    cells = [row.kernel, str(row.calls), f"{1e3 * row.seconds:.3g}", f"{row.seconds / total:.1%}"]
    return [
        *cells,
        f"{row.flops / spent / 1e9:.0f}",
        f"{row.bytes / spent / 1e9:.1f}",
        f"{row.floor / spent:.0%}",
        what,
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = make_parser("benchmarks.roofline", __doc__, seconds=3.0)
    parser.add_argument("--rows", type=int, default=12, help="number of kernels to list (default: 12)")
    parser.add_argument("--target", choices=("host", *named_targets()), default="host", help="target (default: host)")
    options = select(parser, list(WORKLOADS), argv, CASES)
    profiles, target = {}, target_named(options.target)
    for name in options.cases:
        tell(name)
        profiles[name] = profile_workload(WORKLOADS[name], options.seconds, target)
    if options.json:
        print(json.dumps({name: [vars(r) for r in rows_of(p, target)] for name, p in profiles.items()}, indent=1))
    else:
        print("\n\n".join(format_profile(name, p, options.rows, target) for name, p in profiles.items()))
    return 0


if __name__ == "__main__":
    restart("benchmarks.roofline")
    sys.exit(main())
