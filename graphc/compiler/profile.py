"""profile: where the time of a program goes, kernel by kernel, against what the machine can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.entry import STAMPS, emit_stamped, stamp_count
from graphc.codegen.machine.probe import PEAK, emit_peak, flops_per_round
from graphc.codegen.machine.target import Target, host_target
from graphc.compiler.cache import Entry
from graphc.compiler.compile import describe, load_compiled
from graphc.compiler.explain import KernelReport, explain
from graphc.compiler.stages import Stages
from graphc.files.manifest import BufferSpec, Manifest
from graphc.ir.kernel.statements import Program
from graphc.runtime.call import Executable
from graphc.runtime.profile import Machine, copy_bandwidth, measure_peak, time_calls


@dataclass(frozen=True)
class KernelTime:
    """One call of a kernel."""

    report: KernelReport
    seconds: float
    """Median over the rounds, on one thread."""
    share: float
    """Of the time of all calls."""
    peak_fraction: float | None
    """Operations per second over the machine's peak for f32; None for a call that takes less than taking its time."""
    copy_fraction: float | None
    """Bytes per second over those of a large copy; above 1 what is read or written is in a cache. None as before."""

    @property
    def bound(self) -> str:
        """What the call comes closer to."""
        return "compute" if (self.peak_fraction or 0.0) > (self.copy_fraction or 0.0) else "memory"


@dataclass(frozen=True)
class Profile:
    """A program's time, call by call."""

    name: str
    calls: tuple[KernelTime, ...]
    seconds: float
    """One run of the whole program on one thread, without the call from Python."""
    rounds: int
    machine: Machine

    def by_module(self) -> dict[str, float]:
        """Seconds per module path; a kernel made of several modules counts for the last one, which names its result."""
        found: dict[str, float] = {}
        for call in self.calls:
            name = call.report.modules[-1] if call.report.modules else ""
            found[name] = found.get(name, 0.0) + call.seconds
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "modules": self.by_module()}


def profile(
    stages: Stages,
    inputs: Sequence[np.ndarray],
    weights: Mapping[str, np.ndarray],
    seconds: float = 1.0,
    rounds: int = 1000,
) -> Profile:
    """Builds the program of these stages with stamps around its kernels, and runs it for about ``seconds`` on one
    thread.

    ``inputs``: one array per input. ``weights``: params and states by path; the program writes to copies of them.
    Raises CompileError on machines whose cycle counter cannot be read, and what a call raises for arrays that do not
    fit."""
    program = load_stamped(stages)
    bound = tuple(np.array(weights[spec.path]) for spec in program.bound)
    machine = measure_machine(stages.target)
    times = time_calls(program, inputs, bound, seconds, rounds)
    reports = explain(stages).calls
    total = sum(times.calls) or 1.0
    calls = tuple(
        KernelTime(
            report,
            spent,
            spent / total,
            report.flops / machine.flops / spent if spent > times.least else None,
            report.bytes / machine.bandwidth / spent if spent > times.least else None,
        )
        for report, spent in zip(reports, times.calls, strict=True)
    )
    return Profile(stages.scheduled.name, calls, times.total, times.rounds, machine)


def load_stamped(stages: Stages) -> Executable:
    """The program with stamps, loaded; they are its last output."""
    program = stages.scheduled
    manifest, constants = describe(program, stages.target)
    stamped = replace(manifest, buffers=(*manifest.buffers, _stamps(program, manifest)))
    code = build_object(emit_stamped(program, stages.target, stages.execution), stages.target)
    return load_compiled(Entry(stamped, code, constants))


def _stamps(program: Program, manifest: Manifest) -> BufferSpec:
    name, taken = STAMPS, {b.name for b in manifest.buffers}
    while name in taken:
        name += "_"
    return BufferSpec(name, "i64", (stamp_count(program),), "output", written=True)


@cache
def measure_machine(target: Target | None = None) -> Machine:
    """What one core of this machine does at best, with the instructions of a target; measured once in a process, which
    takes about a third of a second."""
    target = target or host_target()
    peak = measure_peak(build_object(emit_peak(target), target), PEAK, flops_per_round(target))
    return Machine(peak, copy_bandwidth())
