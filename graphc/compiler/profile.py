"""profile: where the time of a program goes, kernel by kernel, against what the machine can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.entry import emit_stamped
from graphc.codegen.llvm.stamps import STAMPS, stamp_count
from graphc.codegen.machine.probe import PEAK, emit_peak, flops_per_round
from graphc.codegen.machine.target import Target, host_target
from graphc.compiler.cache import Entry
from graphc.compiler.compile import describe, load_compiled
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
    """The mean of the middle half of the rounds, on one thread, without the cost of taking the time."""
    share: float
    """Of the time of all calls: the shares add up to 1."""
    peak_fraction: float | None
    """Operations per second over the machine's peak for f32; None for a call that is not resolved."""
    copy_fraction: float | None
    """Bytes per second over those of a large copy; above 1 what is read or written is in a cache. None as before."""
    spread: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The best round, and those below which a quarter and three quarters of the rounds lie."""
    resolved: bool = True
    """Whether it takes longer than the least that can be told from nothing."""

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
    """One run of the whole program on one thread, without the call from Python and with no stamp inside: the calls of
    neighbouring kernels may overlap, so that it takes less than their sum, or wait for what one has left."""
    rounds: int
    machine: Machine
    overhead: float = 0.0
    """What a call from Python adds to ``seconds``."""
    resolution: float = 0.0
    """What can be told from nothing."""
    stamp: float = 0.0
    """What it costs to take the time once, which is taken off."""

    @property
    def kernels(self) -> float:
        """Seconds of all calls of kernels, one by one."""
        return sum(call.seconds for call in self.calls)

    def by_module(self) -> dict[str, float]:
        """Seconds per module path; a kernel made of several modules counts for its ``home``."""
        found: dict[str, float] = {}
        for call in self.calls:
            found[call.report.home] = found.get(call.report.home, 0.0) + call.seconds
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "kernels": self.kernels, "modules": self.by_module()}


def profile(
    stages: Stages,
    inputs: Sequence[np.ndarray],
    weights: Mapping[str, np.ndarray],
    seconds: float = 1.0,
    rounds: int = 1000,
) -> Profile:
    """Builds the program of these stages with stamps around its kernels, and once more with stamps at both ends, and
    runs the two in turn for about ``seconds`` on one thread.

    ``inputs``: one array per input. ``weights``: params and states by path; the programs write to copies of them.
    Raises CompileError on machines whose cycle counter cannot be read, and what a call raises for arrays that do not
    fit."""
    programs = [load_stamped(stages), load_stamped(stages, each=False)]
    bound = [tuple(np.array(weights[spec.path]) for spec in program.bound) for program in programs]
    machine = measure_machine(stages.target)
    times, whole = time_programs(programs, inputs, bound, seconds, rounds)
    overhead = call_overhead(programs[-1], inputs, bound[-1], whole.tick, seconds / 10, rounds)
    reports = explain(stages).calls
    total = sum(times.calls) or 1.0
    calls = tuple(
        _kernel_time(report, spent, total, spread, times.resolution, machine)
        for report, spent, spread in zip(reports, times.calls, times.spread, strict=True)
    )
    name = stages.scheduled.name
    return Profile(name, calls, whole.total, times.rounds, machine, overhead, times.resolution, times.stamp)


def _kernel_time(
    report: KernelReport, spent: float, total: float, spread: tuple[float, float, float], least: float, machine: Machine
) -> KernelTime:
    resolved = spent > least
    peak = report.flops / machine.flops / spent if resolved else None
    copy = report.bytes / machine.bandwidth / spent if resolved else None
    return KernelTime(report, spent, spent / total, peak, copy, spread, resolved)


def load_stamped(stages: Stages, each: bool = True) -> Executable:
    """The program with stamps around each call of a kernel or around all together, loaded; they are its last output."""
    program = stages.scheduled
    manifest, constants = describe(program, stages.target)
    stamped = replace(manifest, buffers=(*manifest.buffers, _stamps(program, manifest, each)))
    code = build_object(emit_stamped(program, stages.target, stages.execution, each), stages.target)
    return load_compiled(Entry(stamped, code, constants))


def _stamps(program: Program, manifest: Manifest, each: bool) -> BufferSpec:
    name, taken = STAMPS, {b.name for b in manifest.buffers}
    while name in taken:
        name += "_"
    return BufferSpec(name, "i64", (stamp_count(program, each),), "output", written=True)


@cache
def measure_machine(target: Target | None = None) -> Machine:
    """What one core of this machine does at best, with the instructions of a target; measured once in a process, which
    takes about a third of a second."""
    target = target or host_target()
    peak = measure_peak(build_object(emit_peak(target), target), PEAK, flops_per_round(target), target_spec(target))
    return Machine(peak, copy_bandwidth())
