"""Thread plan of a program: the kernels cut into chunks, and the positions of barriers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import prod
from typing import Any

from graphc.base.records import dataclass
from graphc.base.sizes.size import always, bounds, hint, is_size
from graphc.codegen.machine.costs import ThreadCosts
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.estimate.cost import StatementCounts, kernel_ns
from graphc.codegen.schedule.threads.chunks import Chunking, chunk_kernel
from graphc.ir.kernel.expected import ample_kernel
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.repeat import blocks, executions, loop_spans, owners
from graphc.ir.kernel.statements import Call, Program


@dataclass(frozen=True)
class ThreadPlan:
    """Distribution of a program over threads; by default one thread runs all."""

    chunked: dict[str, Chunking] = field(default_factory=dict)
    """Kernels cut into chunks, by name; one thread runs the others."""
    barriers: frozenset[int] = frozenset()
    """Numbers of the calls before which all threads wait for each other."""
    most: int = 1
    """Largest number of threads."""
    parts: Any = 0
    """Upper bound of threads for one call, as a size, where sizes are known only at run time: each thread gets a
    worthwhile part of the work. Else 0."""

    def shared_loops(self, calls: Sequence[Call]) -> set[Axis]:
        """Return the loops that all threads execute, because they contain a shared kernel or a barrier."""
        spans = loop_spans(calls)
        return {
            axis
            for axis, (first, last) in spans.items()
            if any(calls[i].kernel in self.chunked for i in range(first, last + 1))
            or any(first < i <= last for i in self.barriers)
        }


def plan_threads(program: Program, target: Target) -> ThreadPlan:
    """Return the plan for a scheduled program with a memory plan."""
    if not target.has_pool:
        return ThreadPlan()
    costs, roofline = target.costs.threads, target.roofline
    runs: Counter[str] = Counter()
    for call in program.calls:
        runs[call.kernel] += hint(_expected_runs(call))
    repeated = {call.kernel for call in program.calls if call.loops}
    tiles = {call.kernel for call in program.calls if call.sizes}
    """Kernels of tiles; tile-and-fuse chose these tiles for large sizes."""
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
    worthwhile_parts = _worthwhile_parts(program, chunked, times, costs)
    if is_size(worthwhile_parts):
        return ThreadPlan(chunked, barriers, costs.most, worthwhile_parts)
    return ThreadPlan(chunked, barriers, max(2, min(costs.most, shared // costs.part_ns)))


def _expected_runs(call: Call) -> Any:
    """Return the expected number of runs of a kernel; loops ended by flags count with at most _FLAGGED_RUNS."""
    return prod(min(axis.extent, _FLAGGED_RUNS) if axis.flag else axis.extent for axis in call.loops)


_FLAGGED_RUNS = 8
"""Assumed iterations of a loop that its flag ends."""
_SCALE = 256
"""Fractions of a nanosecond in the unit of a grain's time."""


def _worthwhile_parts(
    program: Program, chunked: Mapping[str, Chunking], times: Mapping[str, int], costs: ThreadCosts
) -> Any:
    """Return the time of all shared calls, in units worth a thread each; a grain takes the same time for all sizes."""
    work: Any = 0
    for call in program.calls:
        if call.kernel in chunked:
            grains = chunked[call.kernel].grains
            each = max(1, _SCALE * times[call.kernel] // max(1, hint(grains)))
            work = work + _expected_runs(call) * call.size(grains) * each
    return work // (_SCALE * costs.part_ns)


@dataclass(frozen=True)
class _MemoryUse:
    """Memory used by a call: bytes of the arena, or of a separate storage."""

    storage: str
    """Name of the storage; empty for the arena."""
    start: int
    stop: int
    writes: bool
    alone: bool
    """True if the first thread alone makes the call."""

    def waits_for(self, earlier: _MemoryUse) -> bool:
        """Check whether a barrier is needed between the two uses."""
        if self.storage != earlier.storage or not (self.writes or earlier.writes) or (self.alone and earlier.alone):
            return False
        return not always("<=", earlier.stop, self.start) and not always("<=", self.stop, earlier.start)


_Uses = dict[str, list[_MemoryUse]]
"""Uses since the last barrier, by storage."""


class _Barriers:
    def __init__(self, program: Program, chunked: dict[str, Chunking]):
        self.calls = program.calls
        self.checked = program.checked or -1
        """The call before which all threads must know whether a check has stopped the program."""
        self.chunked = chunked
        self.owners = owners(program)
        self.kernels = {k.name: k for k in program.kernels}
        self.looking = {
            axis
            for axis, (first, last) in loop_spans(self.calls).items()
            if axis.flag and any(call.kernel in chunked for call in self.calls[first : last + 1])
        }
        """Loops with flags that all threads execute. There are barriers before and after each check of the flag, so the
        start, continuation and end of such a loop need none."""

    def find(self) -> set[int]:
        """Return the calls that need a barrier before them.

        Each accesses memory written since the last barrier, or writes memory accessed since then.
        """
        since: _Uses = {}
        barriers: set[int] = set()
        skipped: list[tuple[Axis, _Uses]] = []
        around: list[tuple[Axis, int]] = []
        for number, calls, at in self.units():
            before, around = around, [(a, at.get(a.name, 0)) for a in self.calls[number].loops if a in self.looking]
            if around != before:
                since.clear()
            self.follow(self.calls[number].loops, since, skipped)
            uses = [use for call in calls for use in self.uses(call)]
            waits = any(a.waits_for(earlier) for a in uses for earlier in since.get(a.storage, ()))
            if waits or number in barriers or number == self.checked:
                barriers.add(number)
                since.clear()
            for use in uses:
                since.setdefault(use.storage, []).append(use)
        return barriers

    def follow(self, loops: tuple[Axis, ...], since: _Uses, skipped: list[tuple[Axis, _Uses]]) -> None:
        """Enter and leave loops that may have no iteration in a call, as barriers inside such a loop do not count after
        it.

        ``skipped`` are the open ones of these loops, each with the uses since the barrier before it.
        """
        while skipped and skipped[-1][0] not in loops:
            for storage, uses in skipped.pop()[1].items():
                since[storage] = [*uses, *since.get(storage, ())]
        for axis in loops:
            may_be_skipped = axis not in self.looking and (axis.flag or bounds(axis.extent)[0] < 1)
            if may_be_skipped and all(axis != other for other, _ in skipped):
                skipped.append((axis, {storage: [*uses] for storage, uses in since.items()}))

    def units(self) -> Iterator[tuple[int, Sequence[Call], dict[str, int]]]:
        """Yield (number, calls, iterations by name of the loop) in the order of execution.

        Two iterations of each loop suffice to find dependences between iterations. A loop run by the first thread alone
        is one unit.
        """
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
        """Yield the memory uses of one call."""
        kernel, alone = self.kernels[call.kernel], call.kernel not in self.chunked
        touched = [(name, buffer.role != "in") for buffer, name in zip(kernel.arguments, call.args, strict=True)]
        if alone:
            touched += [(axis.flag, False) for axis in call.loops if axis.flag]
        for name, writes in touched:
            storage = self.owners[name]
            memory = "" if storage.cls == "temp" else storage.name
            start = storage.offset if storage.cls == "temp" else 0
            yield _MemoryUse(memory, start, start + storage.nbytes, writes, alone)
