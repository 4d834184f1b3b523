"""The plan by which threads run a program: which kernels are cut into chunks, and where barriers stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from graphc.base.sizes.size import always, bounds, hint, is_size
from graphc.codegen.machine.costs import ThreadCosts
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.estimate.cost import StatementCounts, kernel_ns
from graphc.codegen.schedule.threads.chunks import Chunking, chunk_kernel
from graphc.ir.kernel.expected import ample_kernel
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.repeat import blocks, executions, loop_spans
from graphc.ir.kernel.statements import Call, Program, Storage


@dataclass(frozen=True)
class ThreadPlan:
    """How threads share a program; by default not at all."""

    chunked: dict[str, Chunking] = field(default_factory=dict)
    """How loops are cut into chunks, by name of the kernel; one thread runs the others."""
    barriers: frozenset[int] = frozenset()
    """Numbers of the calls before which all threads wait for each other."""
    most: int = 1
    """How many threads there should be at most."""
    parts: Any = 0
    """A size where sizes are known at run time: how many parts of worthwhile length a call has, so that no more threads
    share it; else 0."""

    def shared_loops(self, calls: Sequence[Call]) -> set[Axis]:
        """Loops through which all threads go: they share a kernel in it, or a barrier stands in it."""
        spans = loop_spans(calls)
        return {
            axis
            for axis, (first, last) in spans.items()
            if any(calls[i].kernel in self.chunked for i in range(first, last + 1))
            or any(first < i <= last for i in self.barriers)
        }


def plan_threads(program: Program, target: Target) -> ThreadPlan:
    """The plan for a scheduled program whose memory is planned."""
    if not target.has_pool:
        return ThreadPlan()
    costs, roofline = target.costs.threads, target.roofline
    runs: Counter[str] = Counter()
    for call in program.calls:
        runs[call.kernel] += hint(_expected_runs(call))
    repeated = {call.kernel for call in program.calls if call.loops}
    tiles = {call.kernel for call in program.calls if call.sizes}
    """Kernels of tiles, which were chosen for ample sizes."""
    chunked: dict[str, Chunking] = {}
    times: dict[str, int] = {}
    shared = 0
    for kernel in (k for k in program.kernels if runs[k.name]):
        counts = StatementCounts()
        ns = kernel_ns(kernel, counts.body(kernel.body), roofline)
        least = costs.repeated_ns if kernel.name in repeated else costs.split_ns
        if kernel.name in tiles:
            large = ample_kernel(kernel, target.costs.memory.tile_dimension)
            is_long = kernel_ns(large, StatementCounts().body(large.body), roofline) >= least
        else:
            is_long = ns >= least
        chunking = chunk_kernel(kernel, counts, costs, least / max(ns, least, 1)) if is_long else None
        if chunking is not None:
            chunked[kernel.name], times[kernel.name] = chunking, ns
            shared += ns * runs[kernel.name]
    if not chunked or shared < costs.team_ns:
        return ThreadPlan()
    barriers = frozenset(_Barriers(program, chunked).find())
    parts = _parts(program, chunked, times, costs)
    if is_size(parts):
        return ThreadPlan(chunked, barriers, costs.most, parts)
    return ThreadPlan(chunked, barriers, max(2, min(costs.most, shared // costs.part_ns)))


def _expected_runs(call: Call) -> Any:
    """How often a kernel runs, where flags end some of the loops around it."""
    return prod(min(axis.extent, _FLAGGED_RUNS) if axis.flag else axis.extent for axis in call.loops)


_FLAGGED_RUNS = 8
"""Assumed iterations of a loop that its flag ends."""
_SCALE = 256
"""Parts of a nanosecond in which the time of a grain is counted."""


def _parts(program: Program, chunked: Mapping[str, Chunking], times: Mapping[str, int], costs: ThreadCosts) -> Any:
    """The time of all shared calls in the unit that is worth a thread: a grain takes as long whatever the sizes are."""
    work: Any = 0
    for call in program.calls:
        if call.kernel in chunked:
            grains = chunked[call.kernel].grains
            each = max(1, _SCALE * times[call.kernel] // max(1, hint(grains)))
            work = work + _expected_runs(call) * call.size(grains) * each
    return work // (_SCALE * costs.part_ns)


@dataclass(frozen=True)
class _MemoryUse:
    """Memory that a call uses: bytes of the arena, or of a storage of its own."""

    place: str
    """Name of the storage; empty for the arena."""
    start: int
    stop: int
    writes: bool
    alone: bool
    """Whether the first thread alone makes the call."""

    def waits_for(self, earlier: _MemoryUse) -> bool:
        """Whether a barrier must stand between the two uses."""
        if self.place != earlier.place or not (self.writes or earlier.writes) or (self.alone and earlier.alone):
            return False
        return not always("<=", earlier.stop, self.start) and not always("<=", self.stop, earlier.start)


_Uses = dict[str, list[_MemoryUse]]
"""By place, uses since the last barrier."""


class _Barriers:
    def __init__(self, program: Program, chunked: dict[str, Chunking]):
        self.calls = program.calls
        self.checked = program.checked or -1
        """The call before which all threads must know whether the program goes on."""
        self.chunked = chunked
        self.owners = owners(program)
        self.kernels = {k.name: k for k in program.kernels}
        self.looking = {
            axis
            for axis, (first, last) in loop_spans(self.calls).items()
            if axis.flag and any(call.kernel in chunked for call in self.calls[first : last + 1])
        }
        """Loops with flags that all threads go through. Barriers stand before and behind each look at the flag, so
        nothing is to be waited for where such a loop begins, goes on or ends."""

    def find(self) -> set[int]:
        """Calls before which a barrier stands: they touch what calls after the barrier before have written, or write
        what those have touched."""
        since: _Uses = {}
        found: set[int] = set()
        skipped: list[tuple[Axis, _Uses]] = []
        around: list[tuple[Axis, int]] = []
        for number, calls, at in self.units():
            before, around = around, [(a, at.get(a.name, 0)) for a in self.calls[number].loops if a in self.looking]
            if around != before:
                since.clear()
            self.follow(self.calls[number].loops, since, skipped)
            uses = [use for call in calls for use in self.uses(call)]
            waits = any(a.waits_for(earlier) for a in uses for earlier in since.get(a.place, ()))
            if waits or number in found or number == self.checked:
                found.add(number)
                since.clear()
            for use in uses:
                since.setdefault(use.place, []).append(use)
        return found

    def follow(self, loops: tuple[Axis, ...], since: _Uses, skipped: list[tuple[Axis, _Uses]]) -> None:
        """Enters and leaves loops that may have no iteration in a call: the barriers in one do not count behind it.
        ``skipped``: those that are open, each with what has been used since the barrier before it."""
        while skipped and skipped[-1][0] not in loops:
            for place, uses in skipped.pop()[1].items():
                since[place] = [*uses, *since.get(place, ())]
        for axis in loops:
            may_be_skipped = axis not in self.looking and (axis.flag or bounds(axis.extent)[0] < 1)
            if may_be_skipped and all(axis != known for known, _ in skipped):
                skipped.append((axis, {place: [*uses] for place, uses in since.items()}))

    def units(self) -> Iterator[tuple[int, Sequence[Call], dict[str, int]]]:
        """Calls with their numbers, and iterations by names of loops, in the order in which they run. What one
        iteration leaves for the next shows in two iterations; a loop that the first thread runs alone is one unit."""
        number = 0
        for axis, block in blocks(self.calls):
            if axis is None or not any(call.kernel in self.chunked for call in block):
                yield number, block, {}
            else:
                numbered = [
                    replace(call, kernel=str(i), loops=tuple(Axis(a.name, 2) for a in call.loops))
                    for i, call in enumerate(block, number)
                ]
                for call, at in executions(numbered):
                    yield int(call.kernel), (self.calls[int(call.kernel)],), {a.name: i for a, i in at.items()}
            number += len(block)

    def uses(self, call: Call) -> Iterator[_MemoryUse]:
        """What one call reads and writes."""
        kernel, alone = self.kernels[call.kernel], call.kernel not in self.chunked
        touched = [(name, buffer.role != "in") for buffer, name in zip(kernel.arguments, call.args, strict=True)]
        if alone:
            touched += [(axis.flag, False) for axis in call.loops if axis.flag]
        for name, writes in touched:
            storage = self.owners[name]
            place = "" if storage.cls == "temp" else storage.name
            start = storage.offset if storage.cls == "temp" else 0
            yield _MemoryUse(place, start, start + storage.nbytes, writes, alone)


def owners(program: Program) -> dict[str, Storage]:
    """For the name of each storage the one that owns its memory."""
    storages = {s.name: s for s in program.storages}
    found = {}
    for name, storage in storages.items():
        while storage.alias:
            storage = storages[storage.alias]
        found[name] = storage
    return found
