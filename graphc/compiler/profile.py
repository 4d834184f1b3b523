"""profile: the time of a program by kernel, compared with the peak of the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, replace
from functools import cache
from typing import Any

import numpy as np

from graphc.base.records import dataclass
from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.entry import emit_stamped
from graphc.codegen.llvm.stamps import STAMPS, stamp_count
from graphc.codegen.machine.probe import PEAK, emit_peak, flops_per_round
from graphc.codegen.machine.target import Target, host_target
from graphc.compiler.cache import CacheEntry
from graphc.compiler.compile import describe, load_compiled
from graphc.compiler.example_arrays import expected_sizes
from graphc.compiler.explain import KernelReport, explain
from graphc.compiler.ready import target_spec
from graphc.compiler.stages import Stages
from graphc.files.manifest import BufferSpec, Manifest
from graphc.ir.kernel.statements import Program
from graphc.runtime.call import Executable
from graphc.runtime.profile import Machine, call_overhead, copy_bandwidth, measure_peak, time_programs


@dataclass(frozen=True)
class KernelTime:
    """One call of a kernel."""

    report: KernelReport
    seconds: float
    """The mean of the middle half of the rounds, on one thread, without the cost of the time stamps."""
    share: float
    """Fraction of the time of all calls; the fractions add up to 1."""
    peak_fraction: float | None
    """Operations per second relative to the machine's peak for f32; None for a call below the resolution."""
    copy_fraction: float | None
    """Bytes per second relative to a large copy; above 1 for data in a cache. None for a call below the resolution."""
    spread: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The best round, and the first and third quartile of the rounds."""
    resolved: bool = True
    """Whether the time is above the resolution."""

    @property
    def bound(self) -> str:
        """The closer limit: ``compute`` or ``memory``."""
        return "compute" if (self.peak_fraction or 0.0) > (self.copy_fraction or 0.0) else "memory"


@dataclass(frozen=True)
class Profile:
    """A program's time, call by call."""

    name: str
    calls: tuple[KernelTime, ...]
    seconds: float
    """Time of one run of the program on one thread, without the call from Python and without inner stamps.

    Calls of neighbouring kernels may overlap, so that it is less than their sum, or wait for each other.
    """
    rounds: int
    machine: Machine
    overhead: float = 0.0
    """Additional time of a call from Python."""
    resolution: float = 0.0
    """The smallest measurable time."""
    stamp: float = 0.0
    """Cost of one time stamp, which is subtracted."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Sizes of the named dimensions."""

    @property
    def kernels(self) -> float:
        """Sum of the seconds of all calls of kernels."""
        return sum(call.seconds for call in self.calls)

    def by_module(self) -> dict[str, float]:
        """Return seconds per module path. A kernel of several modules counts for its ``home``."""
        seconds_of: dict[str, float] = {}
        for call in self.calls:
            seconds_of[call.report.home] = seconds_of.get(call.report.home, 0.0) + call.seconds
        return dict(sorted(seconds_of.items(), key=lambda item: -item[1]))

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "kernels": self.kernels, "modules": self.by_module()}


def profile(
    stages: Stages,
    inputs: Sequence[np.ndarray],
    weights: Mapping[str, np.ndarray],
    seconds: float = 1.0,
    rounds: int = 1000,
) -> Profile:
    """Measure the time of each kernel of these stages' program, and of a complete run.

    Build the program with stamps around its kernels, and once more with stamps at both ends. Run the two in turn for
    about ``seconds`` on one thread. ``inputs`` has one array per input. ``weights`` holds params and states by path;
    the programs write to copies of them. Raise CompileError on machines with an unreadable cycle counter, and the
    errors of a call with wrong arrays.
    """
    programs = [load_stamped(stages), load_stamped(stages, each=False)]
    bound = [tuple(np.array(weights[spec.path]) for spec in program.bound) for program in programs]
    machine = measure_machine(stages.target)
    times, whole_run = time_programs(programs, inputs, bound, seconds, rounds)
    overhead = call_overhead(programs[-1], inputs, bound[-1], whole_run.tick, seconds / 10, rounds)
    reports = explain(stages).calls
    total = sum(times.calls) or 1.0
    calls = tuple(
        _kernel_time(report, spent, total, spread, times.resolution, machine)
        for report, spent, spread in zip(reports, times.calls, times.spread, strict=True)
    )
    name = stages.scheduled.name
    clock = times.resolution, times.stamp
    return Profile(name, calls, whole_run.total, times.rounds, machine, overhead, *clock, expected_sizes(stages))


def _kernel_time(
    report: KernelReport, spent: float, total: float, spread: tuple[float, float, float], least: float, machine: Machine
) -> KernelTime:
    resolved = spent > least
    peak = report.flops / machine.flops / spent if resolved else None
    copy = report.bytes / machine.bandwidth / spent if resolved else None
    return KernelTime(report, spent, spent / total, peak, copy, spread, resolved)


def load_stamped(stages: Stages, each: bool = True) -> Executable:
    """Build and load the program with stamps around each kernel call, or around all. They are its last output."""
    program = stages.scheduled
    manifest, constants = describe(program, stages.target)
    stamped = replace(manifest, buffers=(*manifest.buffers, _stamps(program, manifest, each)))
    code = build_object(emit_stamped(program, stages.target, stages.execution, each), stages.target)
    return load_compiled(CacheEntry(stamped, code, constants))


def _stamps(program: Program, manifest: Manifest, each: bool) -> BufferSpec:
    name, names = STAMPS, {b.name for b in manifest.buffers}
    while name in names:
        name += "_"
    return BufferSpec(name, "i64", (stamp_count(program, each),), "output", written=True)


@cache
def measure_machine(target: Target | None = None) -> Machine:
    """Measure the peak of one core of this machine with a target's instructions; once per process, in about a third of
    a second.
    """
    target = target or host_target()
    peak = measure_peak(build_object(emit_peak(target), target), PEAK, flops_per_round(target), target_spec(target))
    return Machine(peak, copy_bandwidth())
