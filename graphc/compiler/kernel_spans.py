"""Kernels as spans: programs run as twins with time stamps around each call of a kernel, and their calls are kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import GraphcError
from graphc.base.locks import Lock
from graphc.base.progress import COMPILED, KERNEL, PROFILER, Span, noted, timeline, unwatched
from graphc.base.records import NamedTuple
from graphc.compiler.duel import bound_arrays
from graphc.compiler.explain import KernelReport, explain
from graphc.compiler.profile import load_stamped
from graphc.compiler.stages import Stages
from graphc.runtime.call import Executable


class Twin(NamedTuple):
    """A program on one thread with a time stamp after each call of a kernel, in its last output."""

    program: Executable
    calls: Sequence[KernelReport]


class TimedRun(NamedTuple):
    """One run of a twin."""

    calls: Sequence[KernelReport]
    begin: float
    """Seconds of ``time.perf_counter`` before the run."""
    end: float
    thread: int
    words: np.ndarray
    """Time stamps, as llvm.stamps lays them out."""

    @property
    def lead(self) -> int:
        """Number of stamps before the first kernel."""
        return int(self.words[0])

    @property
    def first(self) -> int:
        """The first stamp."""
        return int(self.words[1])

    @property
    def last(self) -> int:
        """The stamp after the last kernel."""
        return int(self.words[self.lead + len(self.calls)])


class KernelTimer:
    """Timer of the kernels of all programs that this process calls, as an element of ``runtime.call.TIMING``.

    Programs without ``stages`` and programs for machines whose cycle counter cannot be read run without it.
    """

    def __init__(self) -> None:
        self._twins: dict[int, tuple[Executable, Twin | None]] = {}
        """Program and twin, by the program's identity; the reference keeps that from being reused."""
        self._runs: list[TimedRun] = []
        self._lock = Lock()

    def __call__(
        self,
        program: Executable,
        inputs: Sequence[Any],
        bound: Sequence[np.ndarray],
        out: Sequence[np.ndarray] | None,
        dim_sizes: Mapping[str, int] | None,
    ) -> list[np.ndarray] | None:
        """Run the twin of a program and keep its stamps. Return the outputs; None where there is no twin."""
        if program.stages is None or program.given_slots:
            return None
        with self._lock:
            twin = self._twin(program)
        if twin is None:
            return None
        return self._run(twin, inputs, bound, out, dim_sizes)

    def _run(self, twin: Twin, *arguments: Any) -> list[np.ndarray]:
        inputs, bound, out, dim_sizes = arguments
        if out is not None:
            out = [*out, np.empty(twin.program.outputs[-1].shape, np.int64)]
        begin = time.perf_counter()
        *results, words = twin.program.run(inputs, bound, out, dim_sizes)
        end = time.perf_counter()
        self._runs.append(TimedRun(twin.calls, begin, end, threading.get_native_id(), words))
        return results

    def _twin(self, program: Executable) -> Twin | None:
        if id(program) not in self._twins:
            twin = None
            with noted(PROFILER, f"build {program.manifest.name} with time stamps"), timeline(), unwatched():
                try:
                    twin = _twin_of(program.stages())  # type: ignore[misc]
                except GraphcError:  # this machine has no counter, or the program cannot be built on its own
                    twin = None
            if twin is not None and not _takes_the_same(twin.program, program):
                twin = None
            if twin is not None:
                twin.program.explain = program.explain
            self._twins[id(program)] = program, twin
        return self._twins[id(program)][1]

    def rounds(self, stages: Stages, inputs: Sequence[Any], weights: Mapping[str, np.ndarray], count: int) -> None:
        """Call the program of a compilation ``count`` times after a call without record. ``weights`` holds its params
        and states by path; calls write to copies."""
        with noted(PROFILER, f"build {stages.scheduled.name} with time stamps"), timeline(), unwatched():
            twin = _twin_of(stages)
        bound = bound_arrays(stages, twin.program, weights)
        twin.program.run(inputs, bound)
        for _ in range(count):
            with noted(COMPILED, stages.scheduled.name):
                self._run(twin, inputs, bound, None, None)

    def spans(self) -> list[Span]:
        """Return a span for each call of a kernel."""
        if not self._runs:
            return []
        first, last = self._runs[0], max(self._runs, key=lambda run: run.end)
        tick = (last.end - first.begin) / max(1, last.last - first.first)
        return [span for run in self._runs for span in _kernels(run, tick)]


def _twin_of(stages: Stages) -> Twin:
    return Twin(load_stamped(stages), explain(stages).calls)


def _takes_the_same(twin: Executable, program: Executable) -> bool:
    """Check that a twin has the ends of its program: tuning may have chosen other ones meanwhile."""
    ends = [(tuple((s.path, s.dtype, s.shape) for s in p.bound), len(p.inputs)) for p in (twin, program)]
    return ends[0] == ends[1] and len(twin.outputs) == len(program.outputs) + 1


def _kernels(run: TimedRun, tick: float) -> Iterator[Span]:
    """Yield the kernels of a run, in the middle of the time between its begin and end. ``tick``: seconds per count."""
    counts = max(1, run.last - run.first)
    tick = min(tick, (run.end - run.begin) / counts)
    begin = run.begin + (run.end - run.begin - counts * tick) / 2
    stamps = [begin + (int(word) - run.first) * tick for word in run.words[run.lead : run.lead + len(run.calls) + 1]]
    runs = run.words[1 + run.lead + len(run.calls) :]
    for report, start, stop, count in zip(run.calls, stamps[:-1], stamps[1:], runs, strict=True):
        if count:
            yield Span(KERNEL, report.kernel, start, stop, report.bytes, run.thread, _facts(report, int(count)))


def _facts(report: KernelReport, runs: int) -> dict[str, Any]:
    facts = {"module": ", ".join(report.modules), "kind": report.kind, "ops": ", ".join(report.ops)}
    facts |= {"from": report.source, "schedule": report.schedule}
    return {**facts, "flops": report.flops, "runs": runs, "reads": list(report.reads), "writes": list(report.writes)}
